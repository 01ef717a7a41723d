"""Adapter of the openai client to the chat format."""

import base64
import json

import openai

ERROR = openai.APIError
ERRORS = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    413: openai.APIStatusError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
    502: openai.InternalServerError,
    503: openai.InternalServerError,
    529: openai.InternalServerError,
}
ERROR_TYPES = {
    **dict.fromkeys((400, 401, 403, 404, 413), "invalid_request_error"),
    429: "rate_limit_error",
    **dict.fromkeys((500, 502, 503, 529), "server_error"),
}


def connect(gateway, key):
    return openai.OpenAI(base_url=f"{gateway}/v1", api_key=key, max_retries=0, timeout=60)


def connect_async(gateway, key):
    return openai.AsyncOpenAI(base_url=f"{gateway}/v1", api_key=key, max_retries=0, timeout=60)


def user(prompt, image=None, document=None, audio=None):
    parts = [{"type": "text", "text": prompt}]
    if image:
        url = "data:image/png;base64," + base64.b64encode(image).decode()
        parts.append({"type": "image_url", "image_url": {"url": url}})
    if document:
        data = "data:application/pdf;base64," + base64.b64encode(document).decode()
        parts.append({"type": "file", "file": {"file_data": data, "filename": "paper.pdf"}})
    if audio:
        audio = {"data": base64.b64encode(audio).decode(), "format": "wav"}
        parts.append({"type": "input_audio", "input_audio": audio})
    return [{"role": "user", "content": parts if parts[1:] else prompt}]


def body(model, turns, tools=()):
    fields = {"model": model, "messages": user(turns) if isinstance(turns, str) else turns}
    if tools:
        fields["tools"] = [
            {"type": "function", "function": {"name": name, "parameters": parameters}}
            for name, parameters in tools
        ]
    return fields


def reasoning_options():
    return {"reasoning_effort": "low"}


def force_tool(name):
    return {"tool_choice": {"type": "function", "function": {"name": name}}}


def with_instructions(instructions, prompt):
    """Returns the turns and the further fields of a request with system instructions."""
    return [{"role": "system", "content": instructions}, *user(prompt)], {}


def send(client, model, turns, tools=(), **more):
    return client.chat.completions.create(**body(model, turns, tools), **more)


def stream(client, model, turns, tools=()):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    return client.chat.completions.create(**body(model, turns, tools), **options)


def collect_stream(client, model, turns, tools=(), **more):
    """Returns the whole response of a stream, by the SDK's own helper."""
    fields = {**body(model, turns, tools), "stream_options": {"include_usage": True}, **more}
    with client.chat.completions.stream(**fields) as events:
        return events.get_final_completion()


async def send_async(client, model, prompt):
    return await client.chat.completions.create(**body(model, prompt))


async def stream_async(client, model, prompt):
    return await client.chat.completions.create(**body(model, prompt), stream=True)


def delta(event):
    return (event.choices[0].delta.content or "") if event.choices else ""


def event_token_counts(event):
    return token_counts(event) if event.usage else None


def text(response):
    return response.choices[0].message.content or ""


def refusal(response):
    return response.choices[0].message.refusal


def model_of(response):
    return response.model


FINISH_REASONS = {
    "end": "stop",
    "length": "length",
    "filtered": "content_filter",
    "refused": "stop",
}


def finish_reason(response):
    return response.choices[0].finish_reason


def outcome(response):
    """Returns the finish reason, the refusal and the text."""
    return finish_reason(response), refusal(response), text(response)


def stream_outcome(client, model, prompt):
    """Reads the chunks: the SDK's helper raises an error for every finish reason but `stop`."""
    chunks = [chunk.choices[0] for chunk in stream(client, model, prompt) if chunk.choices]
    finish_reasons = [chunk.finish_reason for chunk in chunks if chunk.finish_reason]
    refusals = "".join(chunk.delta.refusal or "" for chunk in chunks)
    texts = "".join(chunk.delta.content or "" for chunk in chunks)
    return finish_reasons[-1], refusals or None, texts


def usage_details(response):
    """Returns the tokens of the input, of its cached part, of the output, and of its reasoning part."""
    usage = response.usage
    cached = usage.prompt_tokens_details.cached_tokens
    reasoning = usage.completion_tokens_details.reasoning_tokens
    return usage.prompt_tokens, cached, usage.completion_tokens, reasoning


def token_counts(response):
    return response.usage.prompt_tokens, response.usage.completion_tokens


def tool_calls(response):
    calls = response.choices[0].message.tool_calls or []
    return [(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls]


def ended_with_tool_calls(response):
    return response.choices[0].finish_reason == "tool_calls"


def reasoning(response):
    """Returns the text and the signature of the reasoning: both are extensions of the format."""
    message = response.choices[0].message
    details = getattr(message, "reasoning_details", None) or [{}]
    return getattr(message, "reasoning_content", None), signature_of(details)


def signature_of(details):
    signatures = [detail.get("signature") or detail.get("data") for detail in details]
    return next(filter(None, signatures), None)


def append_tool_results(turns, response, results, prompt=None):
    """Returns the conversation with the response, the results of its tool calls, and a prompt."""
    message = response.choices[0].message.to_dict()
    tool_results = [
        {"role": "tool", "tool_call_id": call[0], "content": result}
        for call, result in zip(tool_calls(response), results, strict=True)
    ]
    return [*turns, message, *tool_results, *(user(prompt) if prompt else [])]


def parse(client, model, prompt, schema):
    fields = body(model, prompt)
    response = client.chat.completions.parse(**fields, response_format=schema)
    return response.choices[0].message.parsed


def parse_stream(client, model, prompt, schema):
    response = collect_stream(client, model, prompt, response_format=schema)
    return response.choices[0].message.parsed


def headers(client, model, prompt, **more):
    create = client.chat.completions.with_raw_response.create
    return create(**body(model, prompt), **more).headers


def status(error):
    return error.status_code


def error_headers(error):
    return error.response.headers


def error_type(error):
    return error.type


def list_models(client):
    return [model.id for model in client.models.list()]


def get_model(client, model):
    return client.models.retrieve(model).id
