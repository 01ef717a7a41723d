"""Tool calls, reasoning with signatures, media and structured output."""

import base64
import functools
import json

import anthropic
import pytest

from samples import DOCUMENT, PARAMETERS, IMAGE, AUDIO, TOOLS, Recipe

DECLARATIONS = [(name, PARAMETERS) for name in TOOLS]
# The prefix of an upstream's signature in a field of another format.
WRAPPED_PREFIX = "b21uaWdsb3QvMS"
METHODS = pytest.mark.parametrize("method", ["send", "collect_stream"])


def send_with_tools(case, method, turns, **more):
    """Sends turns with both tools and returns the whole response, of JSON or of a stream."""
    return getattr(case.adapter, method)(case.client, case.model, turns, DECLARATIONS, **more)


def names(tool_calls):
    return [name for _, name, _ in tool_calls]


@METHODS
def test_tool_call(case, method):
    response = send_with_tools(case, method, "mock:tool=get_time what time is it")
    (call,) = case.adapter.tool_calls(response)
    assert call[1:] == ("get_time", {"city": "example"})
    assert case.adapter.ended_with_tool_calls(response)


@METHODS
def test_forced_tool(case, method):
    response = send_with_tools(case, method, "whatever you like", **case.adapter.force_tool("get_time"))
    assert names(case.adapter.tool_calls(response)) == ["get_time"]


@METHODS
def test_tool_loop(case, method):
    turns = case.adapter.user("mock:tool how is the weather")
    response = send_with_tools(case, method, turns)
    assert names(case.adapter.tool_calls(response)) == ["get_weather"]
    response = send_with_tools(case, method, case.adapter.append_tool_results(turns, response, ["sunny"]))
    assert case.adapter.tool_calls(response) == []
    text = case.adapter.text(response)
    assert text.startswith("The tools answered: ")
    assert "sunny" in text


@pytest.mark.clients("messages")
def test_tool_runner(case):
    """The SDK's tool loop asks for a thread first, and continues without one if that is refused."""

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """Says how the weather is.

        Args:
            city: where
        """
        return "sunny"

    messages = case.adapter.user("mock:tool how is the weather")
    runner = case.client.beta.messages.tool_runner(
        model=case.model, max_tokens=1024, tools=[get_weather], messages=messages
    )
    text = case.adapter.text(runner.until_done())
    assert text.startswith("The tools answered: ")
    assert "sunny" in text


@METHODS
def test_parallel_tools(case, method):
    turns = case.adapter.user("mock:parallel=3 weather and time")
    response = send_with_tools(case, method, turns)
    tool_calls = case.adapter.tool_calls(response)
    assert names(tool_calls) == ["get_weather", "get_time", "get_weather"]
    # Native models send no ids of calls; the gateway adds them where another format needs them.
    if (case.client_format, case.upstream_format) != ("native", "native"):
        assert len({call_id for call_id, _, _ in tool_calls}) == 3
    results = ["sunny", "noon", "rainy"]
    text = case.adapter.text(send_with_tools(case, method, case.adapter.append_tool_results(turns, response, results)))
    positions = [text.index(result) for result in results]
    assert positions == sorted(positions)


@METHODS
def test_reasoning_is_sent_back_unchanged(case, method):
    turns = case.adapter.user("mock:thinking mock:tool think about the weather")
    more = case.adapter.reasoning_options()
    response = send_with_tools(case, method, turns, **more)
    text, signature = case.adapter.reasoning(response)
    assert text.startswith("The user wants an answer")
    assert names(case.adapter.tool_calls(response)) == ["get_weather"]
    turns = case.adapter.append_tool_results(turns, response, ["sunny"], prompt="mock:echo")
    body = json.loads(case.adapter.text(send_with_tools(case, method, turns, **more)))["body"]
    if case.upstream_format == "chat":
        assert signature is None, "chat does not sign"
        assert (text in body) == (case.client_format == "chat"), "and takes no reasoning of other formats"
    elif case.client_format == case.upstream_format:
        assert encode_signature(signature) in body
    else:
        assert WRAPPED_PREFIX not in body
        # Native takes the signature back on the call after the reasoning, without its text.
        returned_text = None if case.upstream_format == "native" else text
        assert returned_signatures(case.upstream_format, json.loads(body)) == [(returned_text, unwrap_signature(signature))]


def encode_signature(signature):
    """Returns a signature as in a body: bytes are base64, in the alphabet of this SDK."""
    return base64.urlsafe_b64encode(signature).decode() if isinstance(signature, bytes) else signature


def unwrap_signature(signature):
    """Returns the upstream's signature from a field of another format."""
    wrapped = signature if isinstance(signature, bytes) else base64.b64decode(signature)
    prefix, signature = wrapped.decode().split("\n", 1)
    assert prefix.startswith("omniglot/1 ")
    return signature


def returned_signatures(upstream_format, body):
    """Returns text, if there is one, and signature of the reasoning in a request to an upstream."""
    if upstream_format == "messages":
        turns = [turn["content"] for turn in body["messages"] if turn["role"] == "assistant"]
        blocks = [block for turn in turns for block in turn if block["type"] == "thinking"]
        return [(block["thinking"], block["signature"]) for block in blocks]
    if upstream_format == "responses":
        items = [item for item in body["input"] if item.get("type") == "reasoning"]
        return [
            (item["summary"][0]["text"], item["id"] + "\n" + item["encrypted_content"])
            for item in items
        ]
    parts = [part for content in body["contents"] for part in content["parts"]]
    signatures = [part["thoughtSignature"] for part in parts if "functionCall" in part]
    return [(None, signature) for signature in signatures]


@METHODS
@pytest.mark.parametrize(
    "what, mime, data",
    [("image", "image/png", IMAGE), ("document", "application/pdf", DOCUMENT)],
)
def test_media(case, what, mime, data, method):
    turns = case.adapter.user("mock:echo what is this", **{what: data})
    response = getattr(case.adapter, method)(case.client, case.model, turns)
    body = json.loads(case.adapter.text(response))["body"]
    encoded = (base64.b64encode(data), base64.urlsafe_b64encode(data))
    assert any(each.decode() in body for each in encoded)
    assert mime in body


@pytest.mark.clients("messages", "native", "responses")
def test_count_tokens(case):
    tools = () if case.client_format == "native" else DECLARATIONS
    turns = case.adapter.user("one two three", image=IMAGE)
    counted = case.adapter.count_tokens(case.client, case.model, turns, tools)
    if case.upstream_format == "chat":
        assert counted > 700, "an image costs tokens"
    else:
        assert counted == 3 + 1 + len(tools), "the mock counts one for each part"


@METHODS
@pytest.mark.clients("chat", "native")
def test_audio(case, method):
    turns = case.adapter.user("mock:echo what is this", audio=AUDIO)
    send = functools.partial(getattr(case.adapter, method), case.client, case.model, turns)
    if case.upstream_format in ("chat", "native"):
        body = json.loads(case.adapter.text(send()))["body"]
        assert base64.b64encode(AUDIO).decode() in body
        return
    # The other formats have no field for it, and content is never dropped.
    with pytest.raises(case.adapter.ERRORS[400]) as caught:
        send()
    part = {"chat": "messages[0].content[1]", "native": "contents[0].parts[1]"}
    assert part[case.client_format] in str(caught.value)


@pytest.mark.parametrize("method", ["parse", "parse_stream"])
def test_structured_output(case, method):
    recipe = getattr(case.adapter, method)(case.client, case.model, "a recipe, please", Recipe)
    assert isinstance(recipe, Recipe)
    assert recipe.ingredients
