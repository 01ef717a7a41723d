"""Tool calls, thoughts that must come back sealed, pictures and shaped output."""

import base64
import functools
import json

import anthropic
import pytest

from samples import PAPER, PARAMETERS, PICTURE, SOUND, TOOLS, Recipe

DECLARED = [(name, PARAMETERS) for name in TOOLS]
# How everything begins that carries an upstream's proof through another format.
WRAPPED = "b21uaWdsb3QvMS"
WAYS = pytest.mark.parametrize("way", ["ask", "gather"])


def use(talk, way, turns, **more):
    """Asks with both tools at hand: whole, or as a stream that is put together."""
    return getattr(talk.speak, way)(talk.client, talk.model, turns, DECLARED, **more)


def names(calls):
    return [name for _, name, _ in calls]


@WAYS
def test_tool_call(talk, way):
    reply = use(talk, way, "mock:tool=get_time what time is it")
    (call,) = talk.speak.calls(reply)
    assert call[1:] == ("get_time", {"city": "example"})
    assert talk.speak.ended_in_calls(reply)


@WAYS
def test_forced_tool(talk, way):
    reply = use(talk, way, "whatever you like", **talk.speak.forced("get_time"))
    assert names(talk.speak.calls(reply)) == ["get_time"]


@WAYS
def test_tool_loop(talk, way):
    turns = talk.speak.user("mock:tool how is the weather")
    reply = use(talk, way, turns)
    assert names(talk.speak.calls(reply)) == ["get_weather"]
    reply = use(talk, way, talk.speak.follow(turns, reply, ["sunny"]))
    assert talk.speak.calls(reply) == []
    said = talk.speak.text(reply)
    assert said.startswith("The tools answered: ")
    assert "sunny" in said


@pytest.mark.clients("messages")
def test_tool_runner(talk):
    """The SDK's own loop asks for a thread first, and goes on without one where that is refused."""

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """Says how the weather is.

        Args:
            city: where
        """
        return "sunny"

    messages = talk.speak.user("mock:tool how is the weather")
    runner = talk.client.beta.messages.tool_runner(
        model=talk.model, max_tokens=1024, tools=[get_weather], messages=messages
    )
    said = talk.speak.text(runner.until_done())
    assert said.startswith("The tools answered: ")
    assert "sunny" in said


@WAYS
def test_parallel_tools(talk, way):
    turns = talk.speak.user("mock:parallel=3 weather and time")
    reply = use(talk, way, turns)
    calls = talk.speak.calls(reply)
    assert names(calls) == ["get_weather", "get_time", "get_weather"]
    # Native models do not number their calls; where another format needs it, the gateway does.
    if (talk.client_format, talk.upstream_format) != ("native", "native"):
        assert len({identity for identity, _, _ in calls}) == 3
    results = ["sunny", "noon", "rainy"]
    said = talk.speak.text(use(talk, way, talk.speak.follow(turns, reply, results)))
    positions = [said.index(result) for result in results]
    assert positions == sorted(positions)


@WAYS
def test_a_thought_goes_back_as_it_came(talk, way):
    turns = talk.speak.user("mock:thinking mock:tool think about the weather")
    more = talk.speak.thoughtful()
    reply = use(talk, way, turns, **more)
    said, seal = talk.speak.thought(reply)
    assert said.startswith("The user wants an answer")
    assert names(talk.speak.calls(reply)) == ["get_weather"]
    followed = talk.speak.follow(turns, reply, ["sunny"], words="mock:echo")
    body = json.loads(talk.speak.text(use(talk, way, followed, **more)))["body"]
    if talk.upstream_format == "chat":
        assert seal is None, "chat does not sign"
        assert (said in body) == (talk.client_format == "chat"), "and takes no thoughts of others"
    elif talk.client_format == talk.upstream_format:
        assert spelled(seal) in body
    else:
        assert WRAPPED not in body
        # Native takes the proof back on the call that the thought led to, without the thought.
        kept = None if talk.upstream_format == "native" else said
        assert signed(talk.upstream_format, json.loads(body)) == [(kept, unwrapped(seal))]


def spelled(seal):
    """As it stands in a body: bytes are base64, in the alphabet of this SDK."""
    return base64.urlsafe_b64encode(seal).decode() if isinstance(seal, bytes) else seal


def unwrapped(seal):
    """The upstream's own proof, out of the field of another format that carried it."""
    wrapped = seal if isinstance(seal, bytes) else base64.b64decode(seal)
    mark, proof = wrapped.decode().split("\n", 1)
    assert mark.startswith("omniglot/1 ")
    return proof


def signed(upstream_format, body):
    """The thoughts that an upstream was given back: their text, where it has one, and proof."""
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
    proofs = [part["thoughtSignature"] for part in parts if "functionCall" in part]
    return [(None, proof) for proof in proofs]


@WAYS
@pytest.mark.parametrize(
    "what, mime, data",
    [("picture", "image/png", PICTURE), ("paper", "application/pdf", PAPER)],
)
def test_media(talk, what, mime, data, way):
    turns = talk.speak.user("mock:echo what is this", **{what: data})
    reply = getattr(talk.speak, way)(talk.client, talk.model, turns)
    body = json.loads(talk.speak.text(reply))["body"]
    encoded = (base64.b64encode(data), base64.urlsafe_b64encode(data))
    assert any(each.decode() in body for each in encoded)
    assert mime in body


@pytest.mark.clients("messages", "native", "responses")
def test_count_tokens(talk):
    tools = () if talk.client_format == "native" else DECLARED
    turns = talk.speak.user("one two three", picture=PICTURE)
    counted = talk.speak.count(talk.client, talk.model, turns, tools)
    if talk.upstream_format == "chat":
        assert counted > 700, "a picture has its price"
    else:
        assert counted == 3 + 1 + len(tools), "the mock counts by pieces"


@WAYS
@pytest.mark.clients("chat", "native")
def test_sound(talk, way):
    turns = talk.speak.user("mock:echo what is this", sound=SOUND)
    listen = functools.partial(getattr(talk.speak, way), talk.client, talk.model, turns)
    if talk.upstream_format in ("chat", "native"):
        body = json.loads(talk.speak.text(listen()))["body"]
        assert base64.b64encode(SOUND).decode() in body
        return
    # The others have no place for it, and content is never dropped.
    with pytest.raises(talk.speak.ERRORS[400]) as caught:
        listen()
    part = {"chat": "messages[0].content[1]", "native": "contents[0].parts[1]"}
    assert part[talk.client_format] in str(caught.value)


@pytest.mark.parametrize("way", ["parse", "parse_stream"])
def test_shaped_output(talk, way):
    recipe = getattr(talk.speak, way)(talk.client, talk.model, "a recipe, please", Recipe)
    assert isinstance(recipe, Recipe)
    assert recipe.ingredients
