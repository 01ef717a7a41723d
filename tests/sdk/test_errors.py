"""Every failure is an error of the SDK, with status, message and headers."""

import asyncio

import pytest

import processes

UPSTREAM_STATUSES = [400, 404, 413, 429, 500, 503]
METHODS = pytest.mark.parametrize("method", ["send", "drain"])


def drain(case, client, model, prompt):
    """Reads a stream to its end, and stores the deltas before an error."""
    case.deltas = []
    for event in case.adapter.stream(client, model, prompt):
        case.deltas.append(case.adapter.delta(event))


def failure(case, method, prompt="hello", key=processes.KEY, model=None):
    """Returns the error that a request raises."""
    client, model = case.connect(key), model or case.model
    with pytest.raises(case.adapter.ERROR) as caught:
        if method == "send":
            case.adapter.send(client, model, prompt)
        else:
            drain(case, client, model, prompt)
    return caught.value


def assert_error(case, error, status, text):
    assert isinstance(error, case.adapter.ERRORS[status])
    assert case.adapter.status(error) == status
    assert case.adapter.error_type(error) == case.adapter.ERROR_TYPES[status]
    assert text in str(error)
    assert case.adapter.error_headers(error)["x-request-id"]


def expected_status(case, status):
    """Returns the status that the client sees: only messages has 529; without translation a status is kept."""
    if status in (503, 529) and case.client_format != case.upstream_format:
        return 529 if case.client_format == "messages" else 503
    return status


@METHODS
@pytest.mark.parametrize("status", UPSTREAM_STATUSES)
def test_errors_of_the_upstream(case, status, method):
    error = failure(case, method, f"mock:error={status},as-it-was-told")
    assert_error(case, error, expected_status(case, status), "as-it-was-told")
    assert case.adapter.error_headers(error)["x-omniglot-upstream"] == f"mock-{case.upstream_format}"


@METHODS
def test_overloaded(case, method):
    error = failure(case, method, "mock:error=529,as-it-was-told")
    assert_error(case, error, expected_status(case, 529), "as-it-was-told")


@METHODS
def test_too_many_requests_have_retry_after(case, method):
    error = failure(case, method, "mock:error=429")
    assert_error(case, error, 429, "")
    assert case.adapter.error_headers(error)["retry-after"] == "7"


@METHODS
@pytest.mark.parametrize("status", [401, 403])
def test_errors_of_the_upstream_credentials_are_502(case, status, method):
    error = failure(case, method, f"mock:error={status},secret-words")
    assert_error(case, error, 502, "credentials")
    assert "secret-words" not in str(error)


@METHODS
def test_bad_request(case, method):
    error = failure(case, method, "mock:no-such-word")
    assert_error(case, error, 400, "no-such-word")


@METHODS
def test_wrong_key(case, method):
    assert_error(case, failure(case, method, key=processes.UNKNOWN_KEY), 401, "key")


@METHODS
def test_key_without_the_model(case, method):
    error = failure(case, method, key=processes.LIMITED_KEY, model=case.other_model)
    assert_error(case, error, 403, case.other_model)


@METHODS
def test_unknown_model(case, method):
    assert_error(case, failure(case, method, model="no-such-model"), 404, "no-such-model")


@METHODS
def test_too_large(case, method):
    assert_error(case, failure(case, method, "x" * processes.BODY_LIMIT), 413, "")


def test_unknown_single_model(case):
    with pytest.raises(case.adapter.ERRORS[404]) as caught:
        case.adapter.get_model(case.client, "no-such-model")
    assert case.adapter.status(caught.value) == 404


@pytest.mark.parametrize("fault", ["cut=8", "no_end", "stream_error=4", "garbage=8"])
def test_a_broken_stream_ends_with_an_error(case, fault):
    error = failure(case, "drain", f"mock:long=20 mock:{fault}")
    assert "".join(case.deltas), "no content before the error"
    # The gateway sends an error event; the connection does not break.
    assert "Connection" not in type(error).__name__
    assert str(error)
    if fault.startswith("stream_error"):
        assert "as it was told" in str(error), "the upstream's message is missing"


@pytest.mark.parametrize("fault", ["cut", "garbage", "stream_error"])
def test_a_stream_broken_after_any_event_ends_with_an_error(case, fault):
    # Twenty words are at least twenty deltas, so each of these comes before the end.
    for count in range(21):
        error = failure(case, "drain", f"mock:long=20 mock:{fault}={count}")
        assert "Connection" not in type(error).__name__, count
        assert str(error), count


@pytest.mark.parametrize("fault", ["cut=0", "garbage=0", "stream_error=0", "empty", "html"])
def test_a_stream_without_content_is_an_http_error(case, fault):
    error = failure(case, "drain", f"mock:long=20 mock:{fault}")
    assert case.deltas == []
    # An error event of the upstream keeps its status, which a chat stream does not have;
    # everything else is an invalid response of the upstream.
    has_status = fault == "stream_error=0" and case.upstream_format != "chat"
    assert case.adapter.status(error) == (500 if has_status else 502)


@pytest.mark.parametrize("fault", ["cut", "garbage", "empty", "html", "status_200_error"])
def test_an_invalid_response(case, fault):
    error = failure(case, "send", f"hello mock:{fault}")
    assert isinstance(error, case.adapter.ERRORS[500])


@pytest.mark.parametrize("fault", ["cut=8", "no_end", "stream_error=4"])
def test_the_sdk_helper_raises_for_an_incomplete_stream(case, fault):
    with pytest.raises(case.adapter.ERROR):
        case.adapter.collect_stream(case.client, case.model, f"mock:long=20 mock:{fault}")


async def exchange(case):
    async with case.adapter.connect_async(case.gateway, processes.KEY) as client:
        response = await case.adapter.send_async(client, case.model, "good morning")
        events = await case.adapter.stream_async(client, case.model, "good morning")
        deltas = [case.adapter.delta(event) async for event in events]
        with pytest.raises(case.adapter.ERRORS[404]):
            await case.adapter.send_async(client, "no-such-model", "good morning")
        with pytest.raises(case.adapter.ERROR):
            events = await case.adapter.stream_async(client, case.model, "mock:long=20 mock:cut=8")
            async for _ in events:
                pass
        return case.adapter.text(response), "".join(deltas)


def test_async(case):
    whole, streamed = asyncio.run(asyncio.wait_for(exchange(case), processes.TIMEOUT))
    assert whole == streamed == "You said: good morning"
