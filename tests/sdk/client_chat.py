"""How the openai client speaks the chat format."""

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
KINDS = {
    **dict.fromkeys((400, 401, 403, 404, 413), "invalid_request_error"),
    429: "rate_limit_error",
    **dict.fromkeys((500, 502, 503, 529), "server_error"),
}


def connect(gateway, key):
    return openai.OpenAI(base_url=f"{gateway}/v1", api_key=key, max_retries=0, timeout=60)


def connect_async(gateway, key):
    return openai.AsyncOpenAI(base_url=f"{gateway}/v1", api_key=key, max_retries=0, timeout=60)


def user(prompt, picture=None, paper=None, sound=None):
    parts = [{"type": "text", "text": prompt}]
    if picture:
        url = "data:image/png;base64," + base64.b64encode(picture).decode()
        parts.append({"type": "image_url", "image_url": {"url": url}})
    if paper:
        data = "data:application/pdf;base64," + base64.b64encode(paper).decode()
        parts.append({"type": "file", "file": {"file_data": data, "filename": "paper.pdf"}})
    if sound:
        audio = {"data": base64.b64encode(sound).decode(), "format": "wav"}
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


def thoughtful():
    return {"reasoning_effort": "low"}


def forced(name):
    return {"tool_choice": {"type": "function", "function": {"name": name}}}


def instructed(words, prompt):
    """A conversation under standing instructions, and what else must be sent for them."""
    return [{"role": "system", "content": words}, *user(prompt)], {}


def ask(client, model, turns, tools=(), **more):
    return client.chat.completions.create(**body(model, turns, tools), **more)


def stream(client, model, turns, tools=()):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    return client.chat.completions.create(**body(model, turns, tools), **options)


def gather(client, model, turns, tools=(), **more):
    """A stream, put together by the SDK's own helper."""
    asked = {**body(model, turns, tools), "stream_options": {"include_usage": True}, **more}
    with client.chat.completions.stream(**asked) as events:
        return events.get_final_completion()


async def ask_async(client, model, prompt):
    return await client.chat.completions.create(**body(model, prompt))


async def stream_async(client, model, prompt):
    return await client.chat.completions.create(**body(model, prompt), stream=True)


def delta(event):
    return (event.choices[0].delta.content or "") if event.choices else ""


def event_counts(event):
    return counts(event) if event.usage else None


def text(reply):
    return reply.choices[0].message.content or ""


def refusal(reply):
    return reply.choices[0].message.refusal


def model_of(reply):
    return reply.model


ENDINGS = {
    "end": "stop",
    "length": "length",
    "filtered": "content_filter",
    "refused": "stop",
}


def ending(reply):
    return reply.choices[0].finish_reason


def outcome(reply):
    """How it ended, the words of a refusal in the place for them, and the text."""
    return ending(reply), refusal(reply), text(reply)


def stream_outcome(client, model, prompt):
    """By the chunks: the SDK's helper makes an error of every ending but the natural one."""
    chunks = [chunk.choices[0] for chunk in stream(client, model, prompt) if chunk.choices]
    ends = [chunk.finish_reason for chunk in chunks if chunk.finish_reason]
    refused = "".join(chunk.delta.refusal or "" for chunk in chunks)
    said = "".join(chunk.delta.content or "" for chunk in chunks)
    return ends[-1], refused or None, said


def tally(reply):
    """All that went in, what of it was cached, all that came out, what of it was thought."""
    usage = reply.usage
    cached = usage.prompt_tokens_details.cached_tokens
    thought = usage.completion_tokens_details.reasoning_tokens
    return usage.prompt_tokens, cached, usage.completion_tokens, thought


def counts(reply):
    return reply.usage.prompt_tokens, reply.usage.completion_tokens


def calls(reply):
    made = reply.choices[0].message.tool_calls or []
    return [(call.id, call.function.name, json.loads(call.function.arguments)) for call in made]


def ended_in_calls(reply):
    return reply.choices[0].finish_reason == "tool_calls"


def thought(reply):
    """Text and seal of the first thought: neither is part of the format, so both are extras."""
    message = reply.choices[0].message
    details = getattr(message, "reasoning_details", None) or [{}]
    return getattr(message, "reasoning_content", None), seal_of(details)


def seal_of(details):
    seals = [detail.get("signature") or detail.get("data") for detail in details]
    return next(filter(None, seals), None)


def follow(turns, reply, results, words=None):
    """The conversation, gone on with what the tools said."""
    said = reply.choices[0].message.to_dict()
    answers = [
        {"role": "tool", "tool_call_id": call[0], "content": result}
        for call, result in zip(calls(reply), results, strict=True)
    ]
    return [*turns, said, *answers, *(user(words) if words else [])]


def parse(client, model, prompt, shape):
    asked = body(model, prompt)
    reply = client.chat.completions.parse(**asked, response_format=shape)
    return reply.choices[0].message.parsed


def parse_stream(client, model, prompt, shape):
    reply = gather(client, model, prompt, response_format=shape)
    return reply.choices[0].message.parsed


def headers(client, model, prompt, **more):
    create = client.chat.completions.with_raw_response.create
    return create(**body(model, prompt), **more).headers


def status(error):
    return error.status_code


def error_headers(error):
    return error.response.headers


def error_kind(error):
    return error.type


def list_models(client):
    return [model.id for model in client.models.list()]


def get_model(client, model):
    return client.models.retrieve(model).id
