"""Text as JSON and as a stream: content, usage and finish reasons."""

import json

import pytest

import processes

METHODS = pytest.mark.parametrize("method", ["send", "collect_stream"])
OUTCOMES = pytest.mark.parametrize("method", ["send", "stream"])

# Emoji of several code points, combining marks, right to left, and line separators that JSON
# leaves alone but some line readers do not.
UNUSUAL_TEXT = "👩‍👩‍👧‍👦 e\u0301 \u05e9\u05dc\u05d5\u05dd z\u0335a\u0335 a\u2028b\u2029c\u0085d 𝔘 «\\\"»"


def send(case, prompt, method="send"):
    """Sends a prompt and returns the whole response, of JSON or of a stream."""
    return getattr(case.adapter, method)(case.client, case.model, prompt)


def stream_deltas(case, prompt):
    events = case.adapter.stream(case.client, case.model, prompt)
    return [delta for delta in map(case.adapter.delta, events) if delta]


def test_text(case):
    response = send(case, "good morning")
    assert case.adapter.text(response) == "You said: good morning"


@pytest.mark.clients("chat", "messages", "responses")
def test_the_model_is_the_requested_one(case):
    response = case.adapter.send(case.client, case.other_model, "hello")
    assert case.adapter.model_of(response) == case.other_model
    streamed = case.adapter.collect_stream(case.client, case.other_model, "hello")
    assert case.adapter.model_of(streamed) == case.other_model


@pytest.mark.clients("native")
def test_the_model_version_is_the_upstreams(case):
    response = case.adapter.send(case.client, case.other_model, "hello")
    assert case.adapter.model_of(response) == "theirs"


def test_unicode(case):
    assert case.adapter.text(send(case, UNUSUAL_TEXT)) == f"You said: {UNUSUAL_TEXT}"


def test_unicode_in_a_stream(case):
    assert "".join(stream_deltas(case, UNUSUAL_TEXT)) == f"You said: {UNUSUAL_TEXT}"


def test_a_stream_has_the_text_of_the_whole_response(case):
    deltas = stream_deltas(case, "mock:long=30")
    assert len(deltas) == 30
    assert "".join(deltas) == case.adapter.text(send(case, "mock:long=30"))


def test_a_stream_that_pauses(case):
    prompt = "mock:long=4 mock:pace=100ms"
    whole = case.adapter.text(send(case, "mock:long=4"))
    assert "".join(stream_deltas(case, prompt)) == whole
    assert case.adapter.text(send(case, prompt, "collect_stream")) == whole


# The field of the system instructions, by the upstream's format.
INSTRUCTIONS = {
    "chat": lambda body: body["messages"][0]["content"],
    "messages": lambda body: body["system"],
    "native": lambda body: body["systemInstruction"]["parts"][0]["text"],
    "responses": lambda body: body["instructions"],
}


@METHODS
def test_instructions(case, method):
    turns, more = case.adapter.with_instructions("Be brief.", "mock:echo")
    response = getattr(case.adapter, method)(case.client, case.model, turns, **more)
    body = json.loads(json.loads(case.adapter.text(response))["body"])
    assert INSTRUCTIONS[case.upstream_format](body) == "Be brief."


def test_a_collected_stream(case):
    collected = case.adapter.collect_stream(case.client, case.model, "mock:long=30")
    assert case.adapter.text(collected) == case.adapter.text(send(case, "mock:long=30"))


def test_token_counts_are_the_same_in_a_stream(case):
    prompt = "count me mock:usage=11,0,7,0"
    events = case.adapter.stream(case.client, case.model, prompt)
    streamed = [token_counts for token_counts in map(case.adapter.event_token_counts, events) if token_counts]
    assert case.adapter.token_counts(send(case, prompt)) == (11, 7)
    assert streamed[-1] == (11, 7)


@METHODS
def test_usage_details(case, method):
    response = send(case, "count me mock:thinking mock:usage=11,4,7,3", method)
    assert case.adapter.usage_details(response) == (11, 4, 7, 3)


def outcome(case, prompt, method):
    """Returns the finish reason, the refusal if the format has a field for it, and the text."""
    if method == "send":
        return case.adapter.outcome(send(case, prompt))
    return case.adapter.stream_outcome(case.client, case.model, prompt)


@OUTCOMES
@pytest.mark.parametrize("end", ["length", "filtered", "end"])
def test_finish_reasons(case, end, method):
    prompt = "a tale" if end == "end" else f"a tale mock:{end}"
    expected = (case.adapter.FINISH_REASONS[end], None, "You said: a tale")
    assert outcome(case, prompt, method) == expected


# The finish reason of a refusal, by the upstream's format: chat and responses have a field for its
# text, messages has a finish reason that a content filter has too, native has neither.
REFUSAL_REASONS = {"chat": "refused", "responses": "refused", "messages": "filtered", "native": "end"}


@OUTCOMES
def test_refusal(case, method):
    words = "I cannot help with that."
    reason = "refused"
    if case.client_format != case.upstream_format:
        reason = REFUSAL_REASONS[case.upstream_format]
    both_have_a_field = {case.client_format, case.upstream_format} <= {"chat", "responses"}
    content = (words, "") if both_have_a_field else (None, words)
    expected = (case.adapter.FINISH_REASONS[reason], *content)
    assert outcome(case, "mock:refusal something bad", method) == expected


def test_response_headers(case):
    headers = case.adapter.headers(case.client, case.model, "hello")
    assert headers["x-request-id"]
    assert headers["x-omniglot-upstream"] == f"mock-{case.upstream_format}"
    assert headers["x-omniglot-attempts"] == "1"


def test_models(case):
    model_names = (processes.first_model, processes.second_model)
    every = [model_name(name) for name in processes.FORMATS for model_name in model_names]
    assert sorted(case.adapter.list_models(case.client)) == sorted([*every, *processes.IMAGE_MODELS, *processes.EMBEDDING_MODELS, *processes.ENDPOINT_MODELS])
    assert case.adapter.get_model(case.client, case.model) == case.model


def test_models_that_the_key_may_not_use_are_not_listed(case):
    listed = case.adapter.list_models(case.connect(processes.LIMITED_KEY))
    assert sorted(listed) == sorted(processes.first_model(name) for name in processes.FORMATS)


@pytest.mark.clients("messages", "native", "responses")
def test_count_tokens(case):
    few = case.adapter.count_tokens(case.client, case.model, "one two three")
    many = case.adapter.count_tokens(case.client, case.other_model, "one two three four five six seven")
    assert 0 < few < many
    # Chat has no endpoint that counts tokens, so the number is an estimate.
    assert (few == 3) == (case.upstream_format != "chat")


SEED = 4711


@pytest.mark.clients("chat", "native")
def test_a_parameter_without_counterpart_is_reported(case):
    headers = case.adapter.headers(case.client, case.model, "hello", seed=SEED)
    lost = case.upstream_format in ("messages", "responses")
    assert ("seed" in headers.get("x-omniglot-dropped", "")) == lost


@pytest.mark.clients("chat", "native")
def test_a_seed_is_sent_where_the_format_has_one(case):
    response = case.adapter.send(case.client, case.model, "mock:echo", seed=SEED)
    is_sent = case.upstream_format in ("chat", "native")
    assert (str(SEED) in case.adapter.text(response)) == is_sent
