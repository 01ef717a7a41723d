"""The official Azure client: its paths and its header, with upstreams of every format."""

import openai
import pytest

import processes


@pytest.fixture(scope="module")
def client(servers):
    azure = openai.AzureOpenAI(
        azure_endpoint=servers.gateway,
        api_key=processes.KEY,
        api_version="2024-10-21",
        max_retries=0,
        timeout=60,
    )
    with azure:
        yield azure


UPSTREAMS = pytest.mark.parametrize("upstream", processes.FORMATS)
MESSAGES = [{"role": "user", "content": "good morning"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@UPSTREAMS
def test_the_deployment_is_the_model(client, upstream):
    model = processes.first_model(upstream)
    completion = client.chat.completions.create(model=model, messages=MESSAGES)
    assert completion.choices[0].message.content == "You said: good morning"
    assert completion.model == model
    assert completion.usage.total_tokens > 0


@UPSTREAMS
def test_a_deployment_of_its_own_wins_over_the_model(servers, upstream):
    with openai.AzureOpenAI(
        azure_endpoint=servers.gateway,
        azure_deployment=processes.first_model(upstream),
        api_key=processes.KEY,
        api_version="2024-10-21",
        max_retries=0,
    ) as client:
        completion = client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
        assert completion.model == processes.first_model(upstream)


@UPSTREAMS
def test_a_stream(client, upstream):
    chunks = client.chat.completions.create(
        model=processes.first_model(upstream), messages=MESSAGES, stream=True
    )
    deltas = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(deltas) == "You said: good morning"


@UPSTREAMS
def test_a_tool_call(client, upstream):
    completion = client.chat.completions.create(
        model=processes.first_model(upstream),
        messages=[{"role": "user", "content": "mock:tool=weather"}],
        tools=[TOOL],
    )
    [call] = completion.choices[0].message.tool_calls
    assert call.function.name == "weather"
    assert completion.choices[0].finish_reason == "tool_calls"


@UPSTREAMS
def test_responses(client, upstream):
    response = client.responses.create(model=processes.first_model(upstream), input="good morning")
    assert response.output_text == "You said: good morning"


def test_errors_are_those_of_the_client(servers, client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="unknown", messages=MESSAGES)
    assert caught.value.code == "model_not_found"
    with openai.AzureOpenAI(
        azure_endpoint=servers.gateway, api_key="wrong", api_version="2024-10-21", max_retries=0
    ) as stranger:
        with pytest.raises(openai.AuthenticationError):
            stranger.chat.completions.create(model="unknown", messages=MESSAGES)
