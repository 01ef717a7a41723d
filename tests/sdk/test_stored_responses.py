"""Conversations that go on from a reply by its id, with the official client's own calls."""

import openai
import pytest

from stage import KEY, KEY_OF_SOME, first_model

# Upstreams that keep nothing themselves.
STATELESS = ("chat", "messages", "native")


@pytest.fixture(params=STATELESS)
def model(request):
    return first_model(request.param)


@pytest.fixture
def client(connect):
    return connect("responses", KEY)


@pytest.fixture(params=[False, True], ids=["json", "stream"])
def ask(request, client):
    """Whole, or as a stream that the client puts together itself."""

    def whole(**fields):
        return client.responses.create(**fields)

    def streamed(**fields):
        with client.responses.stream(**fields) as stream:
            return stream.get_final_response()

    return streamed if request.param else whole


def test_going_on_by_id(ask, model):
    first = ask(model=model, input="My name is Ada.")
    assert first.store
    second = ask(model=model, input="mock:echo Who am I?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert "My name is Ada." in second.output_text
    assert "You said: My name is Ada." in second.output_text


def test_fetched_listed_and_deleted(ask, client, model):
    first = ask(model=model, input="One.")
    second = ask(model=model, input="Two.", previous_response_id=first.id)
    fetched = client.responses.retrieve(second.id)
    assert (fetched.id, fetched.output_text) == (second.id, "You said: Two.")
    assert fetched.usage == second.usage
    items = list(client.responses.input_items.list(second.id, limit=2, order="asc"))
    assert [item.content[0].text for item in items] == ["One.", "You said: One.", "Two."]
    assert len({item.id for item in items}) == 3
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)


def test_what_is_not_kept_is_refused(ask, connect, client, model):
    forgotten = ask(model=model, input="Forget this.", store=False)
    kept = ask(model=model, input="Keep this.")
    for asking, previous in [(client, forgotten.id), (connect("responses", KEY_OF_SOME), kept.id)]:
        with pytest.raises(openai.BadRequestError) as refused:
            asking.responses.create(model=model, input="Go on.", previous_response_id=previous)
        assert refused.value.code == "previous_response_not_found"
        assert refused.value.param == "previous_response_id"
