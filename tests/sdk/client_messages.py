"""How the anthropic client speaks the messages format."""

import base64

import anthropic

ERROR = anthropic.APIError
ERRORS = {
    400: anthropic.BadRequestError,
    401: anthropic.AuthenticationError,
    403: anthropic.PermissionDeniedError,
    404: anthropic.NotFoundError,
    413: anthropic.APIStatusError,
    429: anthropic.RateLimitError,
    500: anthropic.InternalServerError,
    502: anthropic.InternalServerError,
    503: anthropic.InternalServerError,
    529: anthropic.InternalServerError,
}
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "overloaded_error",
    529: "overloaded_error",
}


def connect(gateway, key):
    return anthropic.Anthropic(base_url=gateway, api_key=key, max_retries=0, timeout=60)


def connect_async(gateway, key):
    return anthropic.AsyncAnthropic(base_url=gateway, api_key=key, max_retries=0, timeout=60)


def user(prompt, picture=None, paper=None):
    parts = [{"type": "text", "text": prompt}]
    if picture:
        parts.append({"type": "image", "source": source("image/png", picture)})
    if paper:
        parts.append({"type": "document", "source": source("application/pdf", paper)})
    return [{"role": "user", "content": parts if parts[1:] else prompt}]


def source(media_type, data):
    encoded = base64.b64encode(data).decode()
    return {"type": "base64", "media_type": media_type, "data": encoded}


def body(model, turns, tools=()):
    turns = user(turns) if isinstance(turns, str) else turns
    fields = {"model": model, "max_tokens": 1024, "messages": turns}
    if tools:
        fields["tools"] = [
            {"name": name, "input_schema": parameters} for name, parameters in tools
        ]
    return fields


def thoughtful():
    return {"thinking": {"type": "adaptive"}}


def forced(name):
    return {"tool_choice": {"type": "tool", "name": name}}


def instructed(words, prompt):
    """A conversation under standing instructions, and what else must be sent for them."""
    return user(prompt), {"system": words}


def ask(client, model, turns, tools=(), **more):
    return client.messages.create(**body(model, turns, tools), **more)


def stream(client, model, turns, tools=()):
    return client.messages.create(**body(model, turns, tools), stream=True)


def gather(client, model, turns, tools=(), **more):
    """A stream, put together by the SDK's own helper."""
    with client.messages.stream(**body(model, turns, tools), **more) as events:
        return events.get_final_message()


async def ask_async(client, model, prompt):
    return await client.messages.create(**body(model, prompt))


async def stream_async(client, model, prompt):
    return await client.messages.create(**body(model, prompt), stream=True)


def delta(event):
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        return event.delta.text
    return ""


def event_counts(event):
    """Of the last event that counts: it may leave out what the first has said."""
    if event.type == "message_delta" and event.usage.input_tokens is not None:
        return event.usage.input_tokens, event.usage.output_tokens
    return None


def text(reply):
    return "".join(block.text for block in reply.content if block.type == "text")


def model_of(reply):
    return reply.model


ENDINGS = {
    "end": "end_turn",
    "length": "max_tokens",
    "filtered": "refusal",
    "refused": "refusal",
}


def ending(reply):
    return reply.stop_reason


def outcome(reply):
    """How it ended, no words of a refusal since there is no place for them, and the text."""
    return ending(reply), None, text(reply)


def stream_outcome(client, model, prompt):
    return outcome(gather(client, model, prompt))


def tally(reply):
    """All that went in, what of it was cached, all that came out, what of it was thought."""
    usage = reply.usage
    cached = usage.cache_read_input_tokens or 0
    whole = usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0)
    return whole, cached, usage.output_tokens, usage.output_tokens_details.thinking_tokens


def counts(reply):
    return reply.usage.input_tokens, reply.usage.output_tokens


def calls(reply):
    made = [block for block in reply.content if block.type == "tool_use"]
    return [(block.id, block.name, block.input) for block in made]


def ended_in_calls(reply):
    return reply.stop_reason == "tool_use"


def thought(reply):
    """Text and seal of the thoughts; a seal without a text is a block of its own."""
    said = [block.thinking for block in reply.content if block.type == "thinking"]
    kinds = {"thinking": "signature", "redacted_thinking": "data"}
    blocks = [block for block in reply.content if block.type in kinds]
    seals = [getattr(block, kinds[block.type]) for block in blocks]
    return "".join(said), next(filter(None, seals), None)


def follow(turns, reply, results, words=None):
    """The conversation, gone on with what the tools said."""
    answers = [
        {"type": "tool_result", "tool_use_id": call[0], "content": result}
        for call, result in zip(calls(reply), results, strict=True)
    ]
    if words:
        answers.append({"type": "text", "text": words})
    said = {"role": "assistant", "content": reply.content}
    return [*turns, said, {"role": "user", "content": answers}]


def parse(client, model, prompt, shape):
    return client.messages.parse(**body(model, prompt), output_format=shape).parsed_output


def parse_stream(client, model, prompt, shape):
    return gather(client, model, prompt, output_format=shape).parsed_output


def count(client, model, turns, tools=()):
    fields = body(model, turns, tools)
    del fields["max_tokens"]
    return client.messages.count_tokens(**fields).input_tokens


def headers(client, model, prompt, **more):
    return client.messages.with_raw_response.create(**body(model, prompt), **more).headers


def status(error):
    return error.status_code


def error_headers(error):
    return error.response.headers


def error_kind(error):
    return error.body["error"]["type"]


def list_models(client):
    return [model.id for model in client.models.list()]


def get_model(client, model):
    return client.models.retrieve(model).id
