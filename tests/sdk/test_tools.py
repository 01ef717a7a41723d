"""Tool calls, thoughts that must come back sealed, pictures and shaped output."""

import base64
import json

import pytest

from things import PARAMETERS, PICTURE, TOOLS, Recipe

DECLARED = [(name, PARAMETERS) for name in TOOLS]
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
def test_tool_loop(talk, way):
    turns = talk.speak.user("mock:tool how is the weather")
    reply = use(talk, way, turns)
    assert names(talk.speak.calls(reply)) == ["get_weather"]
    reply = use(talk, way, talk.speak.follow(turns, reply, ["sunny"]))
    assert talk.speak.calls(reply) == []
    said = talk.speak.text(reply)
    assert said.startswith("The tools answered: ")
    assert "sunny" in said


@WAYS
def test_parallel_tools(talk, way):
    turns = talk.speak.user("mock:parallel=3 weather and time")
    reply = use(talk, way, turns)
    calls = talk.speak.calls(reply)
    assert names(calls) == ["get_weather", "get_time", "get_weather"]
    if talk.client_format != "native":
        assert len({identity for identity, _, _ in calls}) == 3
    results = ["sunny", "noon", "rainy"]
    said = talk.speak.text(use(talk, way, talk.speak.follow(turns, reply, results)))
    positions = [said.index(result) for result in results]
    assert positions == sorted(positions)


@WAYS
@pytest.mark.clients("messages", "native", "responses")
def test_a_thought_comes_back_sealed(talk, way):
    turns = talk.speak.user("mock:thinking mock:tool think about the weather")
    more = talk.speak.thoughtful()
    reply = use(talk, way, turns, **more)
    said, seal = talk.speak.thought(reply)
    assert said.startswith("The user wants an answer")
    assert names(talk.speak.calls(reply)) == ["get_weather"]
    followed = talk.speak.follow(turns, reply, ["sunny"], words="mock:echo")
    echo = json.loads(talk.speak.text(use(talk, "ask", followed, **more)))
    if talk.client_format == talk.upstream_format:
        assert spelled(seal) in echo["body"]


def spelled(seal):
    """As it stands in a body: bytes are base64, in the alphabet of this SDK."""
    return base64.urlsafe_b64encode(seal).decode() if isinstance(seal, bytes) else seal


def test_picture(talk):
    turns = talk.speak.user("mock:echo what is this", picture=PICTURE)
    echo = json.loads(talk.speak.text(talk.speak.ask(talk.client, talk.model, turns)))
    body = echo["body"]
    encoded = (base64.b64encode(PICTURE), base64.urlsafe_b64encode(PICTURE))
    assert any(picture.decode() in body for picture in encoded)
    assert "image/png" in body


def test_shaped_output(talk):
    recipe = talk.speak.parse(talk.client, talk.model, "a recipe, please", Recipe)
    assert isinstance(recipe, Recipe)
    assert recipe.ingredients
