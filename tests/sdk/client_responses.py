"""How the openai client speaks the responses format."""

import base64
import json

import client_chat

connect, connect_async = client_chat.connect, client_chat.connect_async
ERROR, ERRORS, KINDS = client_chat.ERROR, client_chat.ERRORS, client_chat.KINDS
status, error_headers, error_kind = (
    client_chat.status,
    client_chat.error_headers,
    client_chat.error_kind,
)
list_models, get_model = client_chat.list_models, client_chat.get_model


def user(prompt, picture=None, paper=None):
    parts = [{"type": "input_text", "text": prompt}]
    if picture:
        url = "data:image/png;base64," + base64.b64encode(picture).decode()
        parts.append({"type": "input_image", "image_url": url, "detail": "auto"})
    if paper:
        data = "data:application/pdf;base64," + base64.b64encode(paper).decode()
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


def thoughtful():
    return {
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    }


def forced(name):
    return {"tool_choice": {"type": "function", "name": name}}


def instructed(words, prompt):
    """A conversation under standing instructions, and what else must be sent for them."""
    return user(prompt), {"instructions": words}


def ask(client, model, turns, tools=(), **more):
    return client.responses.create(**body(model, turns, tools), **more)


def stream(client, model, turns, tools=()):
    return client.responses.create(**body(model, turns, tools), stream=True)


def gather(client, model, turns, tools=(), **more):
    """A stream, put together by the SDK's own helper."""
    with client.responses.stream(**body(model, turns, tools), **more) as events:
        return events.get_final_response()


async def ask_async(client, model, prompt):
    return await client.responses.create(**body(model, prompt))


async def stream_async(client, model, prompt):
    return await client.responses.create(**body(model, prompt), stream=True)


def delta(event):
    return event.delta if event.type == "response.output_text.delta" else ""


def event_counts(event):
    return counts(event.response) if event.type == "response.completed" else None


def text(reply):
    return reply.output_text


def refusal(reply):
    parts = reply.output[-1].content
    return "".join(part.refusal for part in parts if part.type == "refusal") or None


def model_of(reply):
    return reply.model


ENDINGS = {
    "end": "completed",
    "length": "incomplete: max_output_tokens",
    "filtered": "incomplete: content_filter",
    "refused": "completed",
}


def ending(reply):
    if reply.status == "incomplete":
        return f"incomplete: {reply.incomplete_details.reason}"
    return reply.status


def outcome(reply):
    """How it ended, the words of a refusal in the place for them, and the text."""
    return ending(reply), refusal(reply), text(reply)


def stream_outcome(client, model, prompt):
    """By the last event: the SDK's helper knows no ending but the natural one."""
    *_, last = stream(client, model, prompt)
    return outcome(last.response)


def tally(reply):
    """All that went in, what of it was cached, all that came out, what of it was thought."""
    usage = reply.usage
    cached = usage.input_tokens_details.cached_tokens
    thought = usage.output_tokens_details.reasoning_tokens
    return usage.input_tokens, cached, usage.output_tokens, thought


def counts(reply):
    return reply.usage.input_tokens, reply.usage.output_tokens


def calls(reply):
    made = [item for item in reply.output if item.type == "function_call"]
    return [(item.call_id, item.name, json.loads(item.arguments)) for item in made]


def ended_in_calls(reply):
    return reply.status == "completed" and reply.output[-1].type == "function_call"


def thought(reply):
    """Text and seal of the first thought."""
    items = [item for item in reply.output if item.type == "reasoning"]
    said = "".join(text.text for item in items for text in item.summary)
    return said, next((item.encrypted_content for item in items if item.encrypted_content), None)


def follow(turns, reply, results, words=None):
    """The conversation, gone on with what the tools said."""
    answers = [
        {"type": "function_call_output", "call_id": call[0], "output": result}
        for call, result in zip(calls(reply), results, strict=True)
    ]
    # What the helper adds to a parsed call is not part of the format.
    said = [item.to_dict() for item in reply.output]
    said = [{k: v for k, v in item.items() if k != "parsed_arguments"} for item in said]
    return [*turns, *said, *answers, *(user(words) if words else [])]


def parse(client, model, prompt, shape):
    return client.responses.parse(**body(model, prompt), text_format=shape).output_parsed


def parse_stream(client, model, prompt, shape):
    return gather(client, model, prompt, text_format=shape).output_parsed


def count(client, model, turns, tools=()):
    fields = body(model, turns, tools)
    del fields["store"]
    return client.responses.input_tokens.count(**fields).input_tokens


def headers(client, model, prompt, **more):
    return client.responses.with_raw_response.create(**body(model, prompt), **more).headers
