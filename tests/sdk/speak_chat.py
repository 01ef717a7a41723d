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
    **dict.fromkeys((500, 502, 503), "server_error"),
}


def connect(gateway, key):
    return openai.OpenAI(base_url=f"{gateway}/v1", api_key=key, max_retries=0, timeout=60)


def connect_async(gateway, key):
    return openai.AsyncOpenAI(base_url=f"{gateway}/v1", api_key=key, max_retries=0, timeout=60)


def user(prompt, picture=None):
    if picture is None:
        return [{"role": "user", "content": prompt}]
    url = "data:image/png;base64," + base64.b64encode(picture).decode()
    image = {"type": "image_url", "image_url": {"url": url}}
    return [{"role": "user", "content": [{"type": "text", "text": prompt}, image]}]


def body(model, turns, tools=()):
    fields = {"model": model, "messages": user(turns) if isinstance(turns, str) else turns}
    if tools:
        fields["tools"] = [
            {"type": "function", "function": {"name": name, "parameters": parameters}}
            for name, parameters in tools
        ]
    return fields


def ask(client, model, turns, tools=()):
    return client.chat.completions.create(**body(model, turns, tools))


def stream(client, model, turns, tools=()):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    return client.chat.completions.create(**body(model, turns, tools), **options)


def gather(client, model, turns, tools=()):
    """A stream, put together by the SDK's own helper."""
    asked = {**body(model, turns, tools), "stream_options": {"include_usage": True}}
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
    return reply.choices[0].message.content


def refusal(reply):
    return reply.choices[0].message.refusal


def model_of(reply):
    return reply.model


def is_cut_short(reply):
    return reply.choices[0].finish_reason == "length"


def counts(reply):
    return reply.usage.prompt_tokens, reply.usage.completion_tokens


def calls(reply):
    made = reply.choices[0].message.tool_calls or []
    return [(call.id, call.function.name, json.loads(call.function.arguments)) for call in made]


def ended_in_calls(reply):
    return reply.choices[0].finish_reason == "tool_calls"


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


def headers(client, model, prompt):
    return client.chat.completions.with_raw_response.create(**body(model, prompt)).headers


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
