"""Adapter of the google-genai client to the native format."""

from google import genai
from google.genai import errors, types

ERROR = errors.APIError
ERRORS = {
    **dict.fromkeys((400, 401, 403, 404, 413, 429), errors.ClientError),
    **dict.fromkeys((500, 502, 503, 529), errors.ServerError),
}
ERROR_TYPES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    502: "INTERNAL",
    503: "UNAVAILABLE",
    529: "UNAVAILABLE",
}


def connect(gateway, key):
    options = types.HttpOptions(base_url=gateway, timeout=60_000)
    return genai.Client(api_key=key, http_options=options)


def connect_async(gateway, key):
    return connect(gateway, key).aio


def user(prompt, image=None, document=None, audio=None):
    parts = [types.Part(text=prompt)]
    media = {"image/png": image, "application/pdf": document, "audio/wav": audio}
    for mime, data in media.items():
        if data:
            parts.append(types.Part.from_bytes(data=data, mime_type=mime))
    return [types.Content(role="user", parts=parts)]


def body(model, turns, tools=(), **more):
    declarations = [
        types.FunctionDeclaration(name=name, parameters_json_schema=parameters)
        for name, parameters in tools
    ]
    return {
        "model": model,
        "contents": user(turns) if isinstance(turns, str) else turns,
        "config": types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=declarations)] if declarations else None, **more
        ),
    }


def reasoning_options():
    return {"thinking_config": types.ThinkingConfig(include_thoughts=True)}


def force_tool(name):
    config = types.FunctionCallingConfig(mode="ANY", allowed_function_names=[name])
    return {"tool_config": types.ToolConfig(function_calling_config=config)}


def with_instructions(instructions, prompt):
    """Returns the turns and the further fields of a request with system instructions."""
    return user(prompt), {"system_instruction": instructions}


def send(client, model, turns, tools=(), **more):
    return client.models.generate_content(**body(model, turns, tools, **more))


def stream(client, model, turns, tools=(), **more):
    return client.models.generate_content_stream(**body(model, turns, tools, **more))


def collect_stream(client, model, turns, tools=(), **more):
    """Returns the whole response of a stream; the SDK has no helper for it."""
    chunks = list(stream(client, model, turns, tools, **more))
    parts = [part for chunk in chunks for part in (first(chunk).content.parts or [])]
    response = chunks[-1].model_copy(deep=True)
    first(response).content = types.Content(role="model", parts=parts)
    return response


async def send_async(client, model, prompt):
    return await client.models.generate_content(**body(model, prompt))


async def stream_async(client, model, prompt):
    return await client.models.generate_content_stream(**body(model, prompt))


def first(response):
    return response.candidates[0]


def delta(event):
    return text(event)


def event_token_counts(event):
    return token_counts(event) if event.usage_metadata else None


def text(response):
    parts = first(response).content.parts or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def model_of(response):
    return response.model_version


FINISH_REASONS = {
    "end": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "refused": "STOP",
}


def finish_reason(response):
    return first(response).finish_reason.value


def outcome(response):
    """Returns the finish reason, no refusal since the format has no field for it, and the text."""
    return finish_reason(response), None, text(response)


def stream_outcome(client, model, prompt):
    return outcome(collect_stream(client, model, prompt))


def usage_details(response):
    """Returns the tokens of the input, of its cached part, of the output, and of its reasoning part."""
    usage = response.usage_metadata
    reasoning = usage.thoughts_token_count or 0
    output = usage.candidates_token_count + reasoning
    return usage.prompt_token_count, usage.cached_content_token_count or 0, output, reasoning


def token_counts(response):
    usage = response.usage_metadata
    return usage.prompt_token_count, usage.candidates_token_count


def tool_calls(response):
    return [(call.id, call.name, call.args) for call in response.function_calls or []]


def ended_with_tool_calls(response):
    return first(response).finish_reason == types.FinishReason.STOP


def reasoning(response):
    """Returns the text of the reasoning and its signature, which the part after it has."""
    parts = first(response).content.parts
    text = "".join(part.text for part in parts if part.thought)
    signatures = [part.thought_signature for part in parts if part.thought_signature]
    return text, next(iter(signatures), None)


def append_tool_results(turns, response, results, prompt=None):
    """Returns the conversation with the response, the results of its tool calls, and a prompt."""
    tool_results = [
        types.Part(
            function_response=types.FunctionResponse(
                id=call[0], name=call[1], response={"result": result}
            )
        )
        for call, result in zip(tool_calls(response), results, strict=True)
    ]
    turns = [*turns, first(response).content, types.Content(role="user", parts=tool_results)]
    return [*turns, *(user(prompt) if prompt else [])]


def parse(client, model, prompt, schema):
    options = {"response_mime_type": "application/json", "response_schema": schema}
    return send(client, model, prompt, **options).parsed


def parse_stream(client, model, prompt, schema):
    options = {"response_mime_type": "application/json", "response_schema": schema}
    return schema.model_validate_json(text(collect_stream(client, model, prompt, **options)))


def count_tokens(client, model, turns, tools=()):
    assert not tools, "this SDK cannot send tools to count_tokens"
    return client.models.count_tokens(model=model, contents=turns).total_tokens


def headers(client, model, prompt, **more):
    return send(client, model, prompt, **more).sdk_http_response.headers


def status(error):
    return error.code


def error_headers(error):
    return error.response.headers


def error_type(error):
    return error.status


def list_models(client):
    return [model.name.removeprefix("models/") for model in client.models.list()]


def get_model(client, model):
    return client.models.get(model=model).name.removeprefix("models/")
