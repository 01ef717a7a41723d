"""Every failure is the SDK's own error, with the status, the words and the headers it needs."""

import asyncio

import pytest

import stage

FROM_UPSTREAM = [400, 404, 413, 429, 500, 503]
WAYS = pytest.mark.parametrize("way", ["ask", "drain"])


def drain(talk, client, model, prompt):
    """A stream to its end; what came before an error is noted."""
    talk.pieces = []
    for event in talk.speak.stream(client, model, prompt):
        talk.pieces.append(talk.speak.delta(event))


def failure(talk, way, prompt="hello", key=stage.KEY, model=None):
    """The error that a request ends in."""
    client, model = talk.connect(key), model or talk.model
    with pytest.raises(talk.speak.ERROR) as caught:
        if way == "ask":
            talk.speak.ask(client, model, prompt)
        else:
            drain(talk, client, model, prompt)
    return caught.value


def check(talk, error, status, words):
    assert isinstance(error, talk.speak.ERRORS[status])
    assert talk.speak.status(error) == status
    assert talk.speak.error_kind(error) == talk.speak.KINDS[status]
    assert words in str(error)
    assert talk.speak.error_headers(error)["x-request-id"]


def seen(talk, status):
    """Only messages has a status of its own for too much to do; what is not translated is kept."""
    if status in (503, 529) and talk.client_format != talk.upstream_format:
        return 529 if talk.client_format == "messages" else 503
    return status


@WAYS
@pytest.mark.parametrize("status", FROM_UPSTREAM)
def test_errors_of_the_upstream(talk, status, way):
    error = failure(talk, way, f"mock:error={status},as-it-was-told")
    check(talk, error, seen(talk, status), "as-it-was-told")
    assert talk.speak.error_headers(error)["x-omniglot-upstream"] == f"mock-{talk.upstream_format}"


@WAYS
def test_overloaded(talk, way):
    error = failure(talk, way, "mock:error=529,as-it-was-told")
    check(talk, error, seen(talk, 529), "as-it-was-told")


@WAYS
def test_too_many_requests_say_when_to_come_back(talk, way):
    error = failure(talk, way, "mock:error=429")
    check(talk, error, 429, "")
    assert talk.speak.error_headers(error)["retry-after"] == "7"


@WAYS
@pytest.mark.parametrize("status", [401, 403])
def test_the_gateways_own_credentials_are_not_the_clients_fault(talk, status, way):
    error = failure(talk, way, f"mock:error={status},secret-words")
    check(talk, error, 502, "credentials")
    assert "secret-words" not in str(error)


@WAYS
def test_bad_request(talk, way):
    error = failure(talk, way, "mock:no-such-word")
    check(talk, error, 400, "no-such-word")


@WAYS
def test_wrong_key(talk, way):
    check(talk, failure(talk, way, key=stage.KEY_OF_NOBODY), 401, "key")


@WAYS
def test_key_without_the_model(talk, way):
    error = failure(talk, way, key=stage.KEY_OF_SOME, model=talk.other_model)
    check(talk, error, 403, talk.other_model)


@WAYS
def test_unknown_model(talk, way):
    check(talk, failure(talk, way, model="no-such-model"), 404, "no-such-model")


@WAYS
def test_too_large(talk, way):
    check(talk, failure(talk, way, "x" * stage.BODY_LIMIT), 413, "")


def test_unknown_single_model(talk):
    with pytest.raises(talk.speak.ERRORS[404]) as caught:
        talk.speak.get_model(talk.client, "no-such-model")
    assert talk.speak.status(caught.value) == 404


@pytest.mark.parametrize("fault", ["cut=8", "no_end", "stream_error=4", "garbage=8"])
def test_a_stream_that_dies_never_ends_cleanly(talk, fault):
    error = failure(talk, "drain", f"mock:long=20 mock:{fault}")
    assert "".join(talk.pieces), "content came before"
    # Told by the gateway, not by a connection that breaks.
    assert "Connection" not in type(error).__name__
    assert str(error)
    if fault.startswith("stream_error"):
        assert "as it was told" in str(error), "in the upstream's own words"


@pytest.mark.parametrize("fault", ["cut", "garbage", "stream_error"])
def test_a_stream_that_dies_after_any_event_is_an_error(talk, fault):
    # Twenty words are twenty deltas at least: none of these comes behind the end.
    for count in range(21):
        error = failure(talk, "drain", f"mock:long=20 mock:{fault}={count}")
        assert "Connection" not in type(error).__name__, count
        assert str(error), count


@pytest.mark.parametrize("fault", ["cut=0", "garbage=0", "stream_error=0", "empty", "html"])
def test_a_stream_that_never_begins_is_a_plain_error(talk, fault):
    error = failure(talk, "drain", f"mock:long=20 mock:{fault}")
    assert talk.pieces == []
    # An error that the upstream tells is kept, but in a chat stream it has no code to be known by;
    # all else is an upstream that cannot be read.
    known = fault == "stream_error=0" and talk.upstream_format != "chat"
    assert talk.speak.status(error) == (500 if known else 502)


@pytest.mark.parametrize("fault", ["cut", "garbage", "empty", "html", "status_200_error"])
def test_a_reply_that_cannot_be_read(talk, fault):
    error = failure(talk, "ask", f"hello mock:{fault}")
    assert isinstance(error, talk.speak.ERRORS[500])


@pytest.mark.parametrize("fault", ["cut=8", "no_end", "stream_error=4"])
def test_the_helper_does_not_make_a_whole_of_a_part(talk, fault):
    with pytest.raises(talk.speak.ERROR):
        talk.speak.gather(talk.client, talk.model, f"mock:long=20 mock:{fault}")


async def converse(talk):
    async with talk.speak.connect_async(talk.gateway, stage.KEY) as client:
        reply = await talk.speak.ask_async(client, talk.model, "good morning")
        events = await talk.speak.stream_async(client, talk.model, "good morning")
        pieces = [talk.speak.delta(event) async for event in events]
        with pytest.raises(talk.speak.ERRORS[404]):
            await talk.speak.ask_async(client, "no-such-model", "good morning")
        with pytest.raises(talk.speak.ERROR):
            events = await talk.speak.stream_async(client, talk.model, "mock:long=20 mock:cut=8")
            async for _ in events:
                pass
        return talk.speak.text(reply), "".join(pieces)


def test_async(talk):
    whole, streamed = asyncio.run(asyncio.wait_for(converse(talk), stage.PATIENCE))
    assert whole == streamed == "You said: good morning"
