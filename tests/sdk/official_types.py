"""Validates bodies strictly by the types of the official SDKs, down to the last element."""

import collections.abc
import functools
import json

import pydantic
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent, message_create_params
from google.genai import types as native
from openai import omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk, completion_create_params
from openai.types.responses import Response, ResponseStreamEvent, response_create_params


@functools.cache
def adapter(kind):
    return pydantic.TypeAdapter(kind)


def walk(value):
    """Reads a value completely: lists in the SDKs' dictionaries are validated when they are read."""
    if isinstance(value, collections.abc.Mapping):
        for inner in value.values():
            walk(inner)
    elif isinstance(value, collections.abc.Iterable) and not isinstance(value, (str, bytes)):
        if not isinstance(value, pydantic.BaseModel):
            for inner in value:
                walk(inner)


def check_dictionary(kind, body):
    walk(adapter(kind).validate_python(body))


def unknown_keys(kind, body):
    """Returns the top-level keys that the SDK's method does not accept."""
    return sorted(set(body) - set(kind.__annotations__) - inherited(kind))


def inherited(kind):
    keys = set()
    for base in getattr(kind, "__orig_bases__", ()):
        keys |= set(getattr(base, "__annotations__", {})) | inherited(base)
    return keys


def chat_request(body):
    streaming = body.get("stream") is True
    kind = (
        completion_create_params.CompletionCreateParamsStreaming
        if streaming
        else completion_create_params.CompletionCreateParamsNonStreaming
    )
    assert not unknown_keys(kind, body), unknown_keys(kind, body)
    # Images as output are an extension that the official types do not have.
    modalities = [word for word in body.get("modalities") or [] if word != "image"]
    known = {key: value for key, value in body.items() if key != "modalities"}
    check_dictionary(kind, known | ({"modalities": modalities} if modalities else {}))


def messages_request(body):
    kind = (
        message_create_params.MessageCreateParamsStreaming
        if body.get("stream")
        else message_create_params.MessageCreateParamsNonStreaming
    )
    assert not unknown_keys(kind, body), unknown_keys(kind, body)
    check_dictionary(kind, body)


def responses_request(body):
    kind = (
        response_create_params.ResponseCreateParamsStreaming
        if body.get("stream")
        else response_create_params.ResponseCreateParamsNonStreaming
    )
    assert not unknown_keys(kind, body), unknown_keys(kind, body)
    check_dictionary(kind, body)


NATIVE_FIELDS = {
    "contents": list[native.Content],
    "systemInstruction": native.Content,
    "tools": list[native.Tool],
    "toolConfig": native.ToolConfig,
    "generationConfig": native.GenerationConfig,
    "serviceTier": str,
}


def native_request(body):
    assert not set(body) - set(NATIVE_FIELDS), sorted(set(body) - set(NATIVE_FIELDS))
    for key, value in body.items():
        adapter(NATIVE_FIELDS[key]).validate_json(json.dumps(value))


def events(stream):
    """Yields the data of the events of a stream, without `[DONE]`."""
    for block in stream.split("\n\n"):
        data = [line[6:] for line in block.split("\n") if line.startswith("data: ")]
        if data and data != ["[DONE]"]:
            yield json.loads("\n".join(data))


def chat_stream(payloads, is_complete):
    state = ChatCompletionStreamState()
    for payload in payloads:
        # Custom tool calls are in the official types of whole responses only.
        if "\"custom\"" in json.dumps(payload):
            return
        chunk = ChatCompletionChunk.model_validate(payload)
        state.handle_chunk(chunk)
    if is_complete:
        ChatCompletion.model_validate(state.current_completion_snapshot.model_dump(warnings=False))


def messages_stream(payloads, is_complete):
    snapshot, json_buffers = None, {}
    for payload in payloads:
        event = adapter(RawMessageStreamEvent).validate_python(payload)
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=json_buffers)
    if is_complete:
        Message.model_validate(snapshot.model_dump(warnings=False))


def responses_stream(payloads, _is_whole):
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    for payload in payloads:
        event = adapter(ResponseStreamEvent).validate_python(payload)
        state.handle_event(event)


def native_stream(payloads, _is_whole):
    for payload in payloads:
        native.GenerateContentResponse.model_validate_json(json.dumps(payload))


def check_response(kind, body):
    """Validates a response, which the SDKs themselves do not."""
    kind.model_validate_json(json.dumps(body))


REQUESTS = {
    "chat": chat_request,
    "messages": messages_request,
    "native": native_request,
    "responses": responses_request,
}
RESPONSES = {
    "chat": functools.partial(check_response, ChatCompletion),
    "messages": functools.partial(check_response, Message),
    "native": functools.partial(check_response, native.GenerateContentResponse),
    "responses": functools.partial(check_response, Response),
}
STREAMS = {
    "chat": chat_stream,
    "messages": messages_stream,
    "native": native_stream,
    "responses": responses_stream,
}
