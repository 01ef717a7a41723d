"""How the openai client speaks the responses format."""

import base64
import json

import speak_chat

connect, connect_async = speak_chat.connect, speak_chat.connect_async
ERROR, ERRORS, KINDS = speak_chat.ERROR, speak_chat.ERRORS, speak_chat.KINDS
status, error_headers, error_kind = (
    speak_chat.status,
    speak_chat.error_headers,
    speak_chat.error_kind,
)
list_models, get_model = speak_chat.list_models, speak_chat.get_model


def user(prompt, picture=None):
    if picture is None:
        return [{"role": "user", "content": prompt}]
    url = "data:image/png;base64," + base64.b64encode(picture).decode()
    image = {"type": "input_image", "image_url": url, "detail": "auto"}
    return [{"role": "user", "content": [{"type": "input_text", "text": prompt}, image]}]


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
    return "".join(part.refusal for part in parts if part.type == "refusal")


def model_of(reply):
    return reply.model


def is_cut_short(reply):
    return (
        reply.status == "incomplete" and reply.incomplete_details.reason == "max_output_tokens"
    )


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
    return (items[0].summary[0].text, items[0].encrypted_content) if items else None


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


def count(client, model, prompt):
    return client.responses.input_tokens.count(model=model, input=prompt).input_tokens


def headers(client, model, prompt):
    return client.responses.with_raw_response.create(**body(model, prompt)).headers
