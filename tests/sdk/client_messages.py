"""Adapter of the anthropic client to the messages format."""

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
ERROR_TYPES = {
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


def user(prompt, image=None, document=None):
    parts = [{"type": "text", "text": prompt}]
    if image:
        parts.append({"type": "image", "source": source("image/png", image)})
    if document:
        parts.append({"type": "document", "source": source("application/pdf", document)})
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


def reasoning_options():
    return {"thinking": {"type": "adaptive"}}


def force_tool(name):
    return {"tool_choice": {"type": "tool", "name": name}}


def with_instructions(instructions, prompt):
    """Returns the turns and the further fields of a request with system instructions."""
    return user(prompt), {"system": instructions}


def send(client, model, turns, tools=(), **more):
    return client.messages.create(**body(model, turns, tools), **more)


def stream(client, model, turns, tools=()):
    return client.messages.create(**body(model, turns, tools), stream=True)


def collect_stream(client, model, turns, tools=(), **more):
    """Returns the whole response of a stream, by the SDK's own helper."""
    with client.messages.stream(**body(model, turns, tools), **more) as events:
        return events.get_final_message()


async def send_async(client, model, prompt):
    return await client.messages.create(**body(model, prompt))


async def stream_async(client, model, prompt):
    return await client.messages.create(**body(model, prompt), stream=True)


def delta(event):
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        return event.delta.text
    return ""


def event_token_counts(event):
    """Returns the counts of the last event with usage, which may leave out those of the first."""
    if event.type == "message_delta" and event.usage.input_tokens is not None:
        return event.usage.input_tokens, event.usage.output_tokens
    return None


def text(response):
    return "".join(block.text for block in response.content if block.type == "text")


def model_of(response):
    return response.model


FINISH_REASONS = {
    "end": "end_turn",
    "length": "max_tokens",
    "filtered": "refusal",
    "refused": "refusal",
}


def finish_reason(response):
    return response.stop_reason


def outcome(response):
    """Returns the finish reason, no refusal since the format has no field for it, and the text."""
    return finish_reason(response), None, text(response)


def stream_outcome(client, model, prompt):
    return outcome(collect_stream(client, model, prompt))


def usage_details(response):
    """Returns the tokens of the input, of its cached part, of the output, and of its reasoning part."""
    usage = response.usage
    cached = usage.cache_read_input_tokens or 0
    input_tokens = usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0)
    return input_tokens, cached, usage.output_tokens, usage.output_tokens_details.thinking_tokens


def token_counts(response):
    return response.usage.input_tokens, response.usage.output_tokens


def tool_calls(response):
    calls = [block for block in response.content if block.type == "tool_use"]
    return [(block.id, block.name, block.input) for block in calls]


def ended_with_tool_calls(response):
    return response.stop_reason == "tool_use"


def reasoning(response):
    """Returns the text and the signature of the reasoning; a signature without text is a block of its own."""
    texts = [block.thinking for block in response.content if block.type == "thinking"]
    kinds = {"thinking": "signature", "redacted_thinking": "data"}
    blocks = [block for block in response.content if block.type in kinds]
    signatures = [getattr(block, kinds[block.type]) for block in blocks]
    return "".join(texts), next(filter(None, signatures), None)


def append_tool_results(turns, response, results, prompt=None):
    """Returns the conversation with the response, the results of its tool calls, and a prompt."""
    content = [
        {"type": "tool_result", "tool_use_id": call[0], "content": result}
        for call, result in zip(tool_calls(response), results, strict=True)
    ]
    if prompt:
        content.append({"type": "text", "text": prompt})
    message = {"role": "assistant", "content": response.content}
    return [*turns, message, {"role": "user", "content": content}]


def parse(client, model, prompt, schema):
    return client.messages.parse(**body(model, prompt), output_format=schema).parsed_output


def parse_stream(client, model, prompt, schema):
    return collect_stream(client, model, prompt, output_format=schema).parsed_output


def count_tokens(client, model, turns, tools=()):
    fields = body(model, turns, tools)
    del fields["max_tokens"]
    return client.messages.count_tokens(**fields).input_tokens


def headers(client, model, prompt, **more):
    return client.messages.with_raw_response.create(**body(model, prompt), **more).headers


def status(error):
    return error.status_code


def error_headers(error):
    return error.response.headers


def error_type(error):
    return error.body["error"]["type"]


def list_models(client):
    return [model.id for model in client.models.list()]


def get_model(client, model):
    return client.models.retrieve(model).id
