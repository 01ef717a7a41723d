"""Texts, whole and streamed; how they are counted and how they end."""

import json

import pytest

import stage

WAYS = pytest.mark.parametrize("way", ["ask", "gather"])
OUTCOMES = pytest.mark.parametrize("way", ["ask", "stream"])

# Emoji of several code points, combining marks, right to left, and line separators that JSON
# leaves alone but some line readers do not.
ODD = "👩‍👩‍👧‍👦 e\u0301 \u05e9\u05dc\u05d5\u05dd z\u0335a\u0335 a\u2028b\u2029c\u0085d 𝔘 «\\\"»"


def ask(talk, prompt, way="ask"):
    """Whole, or as a stream that is put together."""
    return getattr(talk.speak, way)(talk.client, talk.model, prompt)


def deltas(talk, prompt):
    events = talk.speak.stream(talk.client, talk.model, prompt)
    return [piece for piece in map(talk.speak.delta, events) if piece]


def test_text(talk):
    reply = ask(talk, "good morning")
    assert talk.speak.text(reply) == "You said: good morning"


@pytest.mark.clients("chat", "messages", "responses")
def test_the_model_is_the_one_that_was_asked_for(talk):
    reply = talk.speak.ask(talk.client, talk.other_model, "hello")
    assert talk.speak.model_of(reply) == talk.other_model
    streamed = talk.speak.gather(talk.client, talk.other_model, "hello")
    assert talk.speak.model_of(streamed) == talk.other_model


@pytest.mark.clients("native")
def test_the_version_is_what_the_upstream_said(talk):
    reply = talk.speak.ask(talk.client, talk.other_model, "hello")
    assert talk.speak.model_of(reply) == "theirs"


def test_unicode(talk):
    assert talk.speak.text(ask(talk, ODD)) == f"You said: {ODD}"


def test_unicode_in_a_stream(talk):
    assert "".join(deltas(talk, ODD)) == f"You said: {ODD}"


def test_a_stream_says_what_the_whole_answer_says(talk):
    pieces = deltas(talk, "mock:long=30")
    assert len(pieces) == 30
    assert "".join(pieces) == talk.speak.text(ask(talk, "mock:long=30"))


def test_a_stream_that_pauses(talk):
    prompt = "mock:long=4 mock:pace=100ms"
    whole = talk.speak.text(ask(talk, "mock:long=4"))
    assert "".join(deltas(talk, prompt)) == whole
    assert talk.speak.text(ask(talk, prompt, "gather")) == whole


# Where each upstream reads its standing instructions.
INSTRUCTIONS = {
    "chat": lambda body: body["messages"][0]["content"],
    "messages": lambda body: body["system"],
    "native": lambda body: body["systemInstruction"]["parts"][0]["text"],
    "responses": lambda body: body["instructions"],
}


@WAYS
def test_instructions(talk, way):
    turns, more = talk.speak.instructed("Be brief.", "mock:echo")
    reply = getattr(talk.speak, way)(talk.client, talk.model, turns, **more)
    body = json.loads(json.loads(talk.speak.text(reply))["body"])
    assert INSTRUCTIONS[talk.upstream_format](body) == "Be brief."


def test_a_stream_put_together(talk):
    gathered = talk.speak.gather(talk.client, talk.model, "mock:long=30")
    assert talk.speak.text(gathered) == talk.speak.text(ask(talk, "mock:long=30"))


def test_counts_are_the_same_in_a_stream(talk):
    prompt = "count me mock:usage=11,0,7,0"
    events = talk.speak.stream(talk.client, talk.model, prompt)
    streamed = [counts for counts in map(talk.speak.event_counts, events) if counts]
    assert talk.speak.counts(ask(talk, prompt)) == (11, 7)
    assert streamed[-1] == (11, 7)


@WAYS
def test_all_that_is_counted_is_counted_the_same(talk, way):
    reply = ask(talk, "count me mock:thinking mock:usage=11,4,7,3", way)
    assert talk.speak.tally(reply) == (11, 4, 7, 3)


def outcome(talk, prompt, way):
    """How it ended, the words of a refusal in the format's place for them, and the text."""
    if way == "ask":
        return talk.speak.outcome(ask(talk, prompt))
    return talk.speak.stream_outcome(talk.client, talk.model, prompt)


@OUTCOMES
@pytest.mark.parametrize("end", ["length", "filtered", "end"])
def test_how_it_ends(talk, end, way):
    prompt = "a tale" if end == "end" else f"a tale mock:{end}"
    expected = (talk.speak.ENDINGS[end], None, "You said: a tale")
    assert outcome(talk, prompt, way) == expected


# How a refusal ends, by the upstream that refuses: chat and responses have a place of its own for
# its words, messages has an ending that is a filter's too, native has neither.
REFUSED = {"chat": "refused", "responses": "refused", "messages": "filtered", "native": "end"}


@OUTCOMES
def test_refusal(talk, way):
    words = "I cannot help with that."
    ending = "refused"
    if talk.client_format != talk.upstream_format:
        ending = REFUSED[talk.upstream_format]
    both_have_a_place = {talk.client_format, talk.upstream_format} <= {"chat", "responses"}
    told = (words, "") if both_have_a_place else (None, words)
    expected = (talk.speak.ENDINGS[ending], *told)
    assert outcome(talk, "mock:refusal something bad", way) == expected


def test_the_answer_names_itself(talk):
    headers = talk.speak.headers(talk.client, talk.model, "hello")
    assert headers["x-request-id"]
    assert headers["x-omniglot-upstream"] == f"mock-{talk.upstream_format}"
    assert headers["x-omniglot-attempts"] == "1"


def test_models(talk):
    namings = (stage.first_model, stage.second_model)
    every = [naming(name) for name in stage.FORMATS for naming in namings]
    assert sorted(talk.speak.list_models(talk.client)) == sorted([*every, *stage.PAINTERS])
    assert talk.speak.get_model(talk.client, talk.model) == talk.model


def test_models_that_the_key_does_not_open_are_not_listed(talk):
    listed = talk.speak.list_models(talk.connect(stage.KEY_OF_SOME))
    assert sorted(listed) == sorted(stage.first_model(name) for name in stage.FORMATS)


@pytest.mark.clients("messages", "native", "responses")
def test_count_tokens(talk):
    few = talk.speak.count(talk.client, talk.model, "one two three")
    many = talk.speak.count(talk.client, talk.other_model, "one two three four five six seven")
    assert 0 < few < many
    # Who has no counter is not asked: the number is an estimate then.
    assert (few == 3) == (talk.upstream_format != "chat")


SEED = 4711


@pytest.mark.clients("chat", "native")
def test_a_parameter_without_counterpart_is_reported(talk):
    headers = talk.speak.headers(talk.client, talk.model, "hello", seed=SEED)
    lost = talk.upstream_format in ("messages", "responses")
    assert ("seed" in headers.get("x-omniglot-dropped", "")) == lost


@pytest.mark.clients("chat", "native")
def test_a_seed_arrives_where_there_is_one(talk):
    reply = talk.speak.ask(talk.client, talk.model, "mock:echo", seed=SEED)
    known = talk.upstream_format in ("chat", "native")
    assert (str(SEED) in talk.speak.text(reply)) == known
