"""Conversations that continue a stored response by its id, with the official client."""

import openai
import pytest

from processes import KEY, LIMITED_KEY, first_model

# Upstreams that store no responses.
STATELESS = ("chat", "messages", "native")


@pytest.fixture(params=STATELESS)
def model(request):
    return first_model(request.param)


@pytest.fixture
def client(connect):
    return connect("responses", KEY)


@pytest.fixture(params=[False, True], ids=["json", "stream"])
def send(request, client):
    """Sends a request and returns the whole response, of JSON or of a stream."""

    def json(**fields):
        return client.responses.create(**fields)

    def streamed(**fields):
        with client.responses.stream(**fields) as stream:
            return stream.get_final_response()

    return streamed if request.param else json


def test_previous_response_id(send, model):
    first = send(model=model, input="My name is Ada.")
    assert first.store
    second = send(model=model, input="mock:echo Who am I?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert "My name is Ada." in second.output_text
    assert "You said: My name is Ada." in second.output_text


def test_retrieve_list_and_delete(send, client, model):
    first = send(model=model, input="One.")
    second = send(model=model, input="Two.", previous_response_id=first.id)
    fetched = client.responses.retrieve(second.id)
    assert (fetched.id, fetched.output_text) == (second.id, "You said: Two.")
    assert fetched.usage == second.usage
    items = list(client.responses.input_items.list(second.id, limit=2, order="asc"))
    assert [item.content[0].text for item in items] == ["One.", "You said: One.", "Two."]
    assert len({item.id for item in items}) == 3
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)


def test_a_response_that_is_not_stored_is_refused(send, connect, client, model):
    unstored = send(model=model, input="Forget this.", store=False)
    stored = send(model=model, input="Keep this.")
    for sender, previous in [(client, unstored.id), (connect("responses", LIMITED_KEY), stored.id)]:
        with pytest.raises(openai.BadRequestError) as refused:
            sender.responses.create(model=model, input="Go on.", previous_response_id=previous)
        assert refused.value.code == "previous_response_not_found"
        assert refused.value.param == "previous_response_id"
