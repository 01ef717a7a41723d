"""How the google-genai client speaks the native format."""

from google import genai
from google.genai import errors, types

ERROR = errors.APIError
ERRORS = {
    **dict.fromkeys((400, 401, 403, 404, 413, 429), errors.ClientError),
    **dict.fromkeys((500, 502, 503, 529), errors.ServerError),
}
KINDS = {
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


def user(prompt, picture=None, paper=None, sound=None):
    parts = [types.Part(text=prompt)]
    media = {"image/png": picture, "application/pdf": paper, "audio/wav": sound}
    for mime, data in media.items():
        if data:
            parts.append(types.Part.from_bytes(data=data, mime_type=mime))
    return [types.Content(role="user", parts=parts)]


def body(model, turns, tools=(), **more):
    declared = [
        types.FunctionDeclaration(name=name, parameters_json_schema=parameters)
        for name, parameters in tools
    ]
    return {
        "model": model,
        "contents": user(turns) if isinstance(turns, str) else turns,
        "config": types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=declared)] if declared else None, **more
        ),
    }


def thoughtful():
    return {"thinking_config": types.ThinkingConfig(include_thoughts=True)}


def forced(name):
    only = types.FunctionCallingConfig(mode="ANY", allowed_function_names=[name])
    return {"tool_config": types.ToolConfig(function_calling_config=only)}


def instructed(words, prompt):
    """A conversation under standing instructions, and what else must be sent for them."""
    return user(prompt), {"system_instruction": words}


def ask(client, model, turns, tools=(), **more):
    return client.models.generate_content(**body(model, turns, tools, **more))


def stream(client, model, turns, tools=(), **more):
    return client.models.generate_content_stream(**body(model, turns, tools, **more))


def gather(client, model, turns, tools=(), **more):
    """A stream, put together: the SDK has no helper for it."""
    chunks = list(stream(client, model, turns, tools, **more))
    parts = [part for chunk in chunks for part in (first(chunk).content.parts or [])]
    whole = chunks[-1].model_copy(deep=True)
    first(whole).content = types.Content(role="model", parts=parts)
    return whole


async def ask_async(client, model, prompt):
    return await client.models.generate_content(**body(model, prompt))


async def stream_async(client, model, prompt):
    return await client.models.generate_content_stream(**body(model, prompt))


def first(reply):
    return reply.candidates[0]


def delta(event):
    return text(event)


def event_counts(event):
    return counts(event) if event.usage_metadata else None


def text(reply):
    parts = first(reply).content.parts or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def model_of(reply):
    return reply.model_version


ENDINGS = {
    "end": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "refused": "STOP",
}


def ending(reply):
    return first(reply).finish_reason.value


def outcome(reply):
    """How it ended, no words of a refusal since there is no place for them, and the text."""
    return ending(reply), None, text(reply)


def stream_outcome(client, model, prompt):
    return outcome(gather(client, model, prompt))


def tally(reply):
    """All that went in, what of it was cached, all that came out, what of it was thought."""
    usage = reply.usage_metadata
    thought = usage.thoughts_token_count or 0
    whole = usage.candidates_token_count + thought
    return usage.prompt_token_count, usage.cached_content_token_count or 0, whole, thought


def counts(reply):
    usage = reply.usage_metadata
    return usage.prompt_token_count, usage.candidates_token_count


def calls(reply):
    return [(call.id, call.name, call.args) for call in reply.function_calls or []]


def ended_in_calls(reply):
    return first(reply).finish_reason == types.FinishReason.STOP


def thought(reply):
    """Text of the thoughts and the seal, which sits on the part that they led to."""
    parts = first(reply).content.parts
    said = "".join(part.text for part in parts if part.thought)
    seals = [part.thought_signature for part in parts if part.thought_signature]
    return said, next(iter(seals), None)


def follow(turns, reply, results, words=None):
    """The conversation, gone on with what the tools said."""
    answers = [
        types.Part(
            function_response=types.FunctionResponse(
                id=call[0], name=call[1], response={"result": result}
            )
        )
        for call, result in zip(calls(reply), results, strict=True)
    ]
    said = [*turns, first(reply).content, types.Content(role="user", parts=answers)]
    return [*said, *(user(words) if words else [])]


def parse(client, model, prompt, shape):
    options = {"response_mime_type": "application/json", "response_schema": shape}
    return ask(client, model, prompt, **options).parsed


def parse_stream(client, model, prompt, shape):
    options = {"response_mime_type": "application/json", "response_schema": shape}
    return shape.model_validate_json(text(gather(client, model, prompt, **options)))


def count(client, model, turns, tools=()):
    assert not tools, "this SDK has no way to say them to a counter"
    return client.models.count_tokens(model=model, contents=turns).total_tokens


def headers(client, model, prompt, **more):
    return ask(client, model, prompt, **more).sdk_http_response.headers


def status(error):
    return error.code


def error_headers(error):
    return error.response.headers


def error_kind(error):
    return error.status


def list_models(client):
    return [model.name.removeprefix("models/") for model in client.models.list()]


def get_model(client, model):
    return client.models.get(model=model).name.removeprefix("models/")
