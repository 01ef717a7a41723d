"""The endpoints that only pass through, by the official SDK."""

import openai
import pytest

import processes


@pytest.fixture(scope="module")
def client(servers):
    address = f"{servers.gateway}/v1"
    with openai.OpenAI(base_url=address, api_key=processes.KEY, max_retries=0) as client:
        yield client


UPSTREAMS = pytest.mark.parametrize("upstream", ["chat", "responses"])


@UPSTREAMS
def test_a_completion(client, upstream):
    model = f"completion-{upstream}"
    completion = client.completions.create(model=model, prompt="good morning", max_tokens=9)
    assert completion.choices[0].text == "You said: good morning"
    assert completion.model == model
    assert completion.usage.total_tokens > 0


@UPSTREAMS
def test_a_completion_as_a_stream(client, upstream):
    model = f"completion-{upstream}"
    chunks = list(client.completions.create(model=model, prompt="good morning", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == "You said: good morning"
    assert {chunk.model for chunk in chunks} == {model}
    assert all(chunk.usage is None for chunk in chunks)


@UPSTREAMS
def test_a_moderation(client, upstream):
    moderation = client.moderations.create(model=f"moderation-{upstream}", input=["peace", "violence"])
    assert [result.flagged for result in moderation.results] == [False, True]


def test_a_model_of_another_type_is_refused(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=processes.first_model("chat"), prompt="a")
    assert caught.value.code == "invalid_model"
