"""Clients of AWS Bedrock that speak to the gateway: the SDK of Anthropic, with upstreams of every format."""

import anthropic
import pytest

import processes

UPSTREAMS = pytest.mark.parametrize("upstream", processes.FORMATS)
TOOL = {
    "name": "weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def bedrock(servers, **options):
    return anthropic.AnthropicBedrock(base_url=servers.gateway, aws_region="us-east-1", max_retries=0, **options)


@pytest.fixture(scope="module")
def client(servers):
    with bedrock(servers, api_key=processes.KEY) as client:
        yield client


def question(text):
    return [{"role": "user", "content": text}]


@UPSTREAMS
def test_a_model_answers(client, upstream):
    model = processes.first_model(upstream)
    message = client.messages.create(model=model, max_tokens=64, messages=question("good morning"))
    assert message.content[0].text == "You said: good morning"
    assert message.model == model
    assert message.usage.output_tokens > 0


@UPSTREAMS
def test_a_model_streams(client, upstream):
    model = processes.first_model(upstream)
    with client.messages.stream(model=model, max_tokens=64, messages=question("good morning")) as stream:
        assert "".join(stream.text_stream) == "You said: good morning"
        assert stream.get_final_message().stop_reason == "end_turn"


@UPSTREAMS
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_a_model_calls_a_tool(client, upstream, stream):
    request = {
        "model": processes.first_model(upstream),
        "max_tokens": 64,
        "messages": question("mock:tool=weather"),
        "tools": [TOOL],
    }
    if stream:
        with client.messages.stream(**request) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**request)
    assert message.stop_reason == "tool_use"
    assert message.content[-1].name == "weather"


@UPSTREAMS
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_errors_are_raised(client, upstream, stream):
    model = processes.first_model(upstream)
    with pytest.raises(anthropic.RateLimitError):
        client.messages.create(model=model, max_tokens=64, messages=question("mock:error=429"), stream=stream)
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model=model, max_tokens=64, messages=question("mock:error=400"), stream=stream)


@UPSTREAMS
def test_a_stream_that_breaks_off_is_an_error(client, upstream):
    request = {"model": processes.first_model(upstream), "max_tokens": 64, "stream": True}
    events = client.messages.create(messages=question("mock:long=100 mock:cut=8"), **request)
    with pytest.raises(anthropic.APIStatusError):
        list(events)


def test_a_signature_is_no_key(servers):
    with bedrock(servers, aws_access_key="AKIDEXAMPLE", aws_secret_key="secret") as client:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            client.messages.create(model="m", max_tokens=64, messages=question("a"))
    assert "AWS_BEARER_TOKEN_BEDROCK" in str(caught.value)
