"""Adapter of the openai client to the responses format."""

import base64
import json

import client_chat

connect, connect_async = client_chat.connect, client_chat.connect_async
ERROR, ERRORS, ERROR_TYPES = client_chat.ERROR, client_chat.ERRORS, client_chat.ERROR_TYPES
status, error_headers, error_type = (
    client_chat.status,
    client_chat.error_headers,
    client_chat.error_type,
)
list_models, get_model = client_chat.list_models, client_chat.get_model


def user(prompt, image=None, document=None):
    parts = [{"type": "input_text", "text": prompt}]
    if image:
        url = "data:image/png;base64," + base64.b64encode(image).decode()
        parts.append({"type": "input_image", "image_url": url, "detail": "auto"})
    if document:
        data = "data:application/pdf;base64," + base64.b64encode(document).decode()
        parts.append({"type": "input_file", "file_data": data, "filename": "paper.pdf"})
    return [{"role": "user", "content": parts if parts[1:] else prompt}]


def body(model, turns, tools=()):
    fields = {"model": model, "input": turns, "store": False}
    if tools:
        fields["tools"] = [
            {"type": "function", "name": name, "parameters": parameters, "strict": True}
            for name, parameters in tools
        ]
    return fields


def reasoning_options():
    return {
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    }


def force_tool(name):
    return {"tool_choice": {"type": "function", "name": name}}


def with_instructions(instructions, prompt):
    """Returns the turns and the further fields of a request with system instructions."""
    return user(prompt), {"instructions": instructions}


def send(client, model, turns, tools=(), **more):
    return client.responses.create(**body(model, turns, tools), **more)


def stream(client, model, turns, tools=()):
    return client.responses.create(**body(model, turns, tools), stream=True)


def collect_stream(client, model, turns, tools=(), **more):
    """Returns the whole response of a stream, by the SDK's own helper."""
    with client.responses.stream(**body(model, turns, tools), **more) as events:
        return events.get_final_response()


async def send_async(client, model, prompt):
    return await client.responses.create(**body(model, prompt))


async def stream_async(client, model, prompt):
    return await client.responses.create(**body(model, prompt), stream=True)


def delta(event):
    return event.delta if event.type == "response.output_text.delta" else ""


def event_token_counts(event):
    return token_counts(event.response) if event.type == "response.completed" else None


def text(response):
    return response.output_text


def refusal(response):
    parts = response.output[-1].content
    return "".join(part.refusal for part in parts if part.type == "refusal") or None


def model_of(response):
    return response.model


FINISH_REASONS = {
    "end": "completed",
    "length": "incomplete: max_output_tokens",
    "filtered": "incomplete: content_filter",
    "refused": "completed",
}


def finish_reason(response):
    if response.status == "incomplete":
        return f"incomplete: {response.incomplete_details.reason}"
    return response.status


def outcome(response):
    """Returns the finish reason, the refusal and the text."""
    return finish_reason(response), refusal(response), text(response)


def stream_outcome(client, model, prompt):
    """Reads the last event: the SDK's helper accepts `response.completed` only."""
    *_, last = stream(client, model, prompt)
    return outcome(last.response)


def usage_details(response):
    """Returns the tokens of the input, of its cached part, of the output, and of its reasoning part."""
    usage = response.usage
    cached = usage.input_tokens_details.cached_tokens
    reasoning = usage.output_tokens_details.reasoning_tokens
    return usage.input_tokens, cached, usage.output_tokens, reasoning


def token_counts(response):
    return response.usage.input_tokens, response.usage.output_tokens


def tool_calls(response):
    calls = [item for item in response.output if item.type == "function_call"]
    return [(item.call_id, item.name, json.loads(item.arguments)) for item in calls]


def ended_with_tool_calls(response):
    return response.status == "completed" and response.output[-1].type == "function_call"


def reasoning(response):
    """Returns the text and the signature of the reasoning."""
    items = [item for item in response.output if item.type == "reasoning"]
    summary = "".join(text.text for item in items for text in item.summary)
    return summary, next((item.encrypted_content for item in items if item.encrypted_content), None)


def append_tool_results(turns, response, results, prompt=None):
    """Returns the conversation with the response, the results of its tool calls, and a prompt."""
    tool_results = [
        {"type": "function_call_output", "call_id": call[0], "output": result}
        for call, result in zip(tool_calls(response), results, strict=True)
    ]
    # The SDK's helper adds this field, which is not part of the format.
    items = [item.to_dict() for item in response.output]
    items = [{k: v for k, v in item.items() if k != "parsed_arguments"} for item in items]
    return [*turns, *items, *tool_results, *(user(prompt) if prompt else [])]


def parse(client, model, prompt, schema):
    return client.responses.parse(**body(model, prompt), text_format=schema).output_parsed


def parse_stream(client, model, prompt, schema):
    return collect_stream(client, model, prompt, text_format=schema).output_parsed


def count_tokens(client, model, turns, tools=()):
    fields = body(model, turns, tools)
    del fields["store"]
    return client.responses.input_tokens.count(**fields).input_tokens


def headers(client, model, prompt, **more):
    return client.responses.with_raw_response.create(**body(model, prompt), **more).headers
