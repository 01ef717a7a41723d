"""The official clients of Vertex AI: their paths and their bodies, with upstreams of every format."""

import anthropic
import google.auth.credentials
import pytest
from google import genai

import processes

UPSTREAMS = pytest.mark.parametrize("upstream", processes.FORMATS)
TOOL = {
    "name": "weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Credentials(google.auth.credentials.Credentials):
    """A key of the gateway, as the token that a client of Vertex AI sends."""

    def __init__(self):
        super().__init__()
        self.token = processes.KEY

    def refresh(self, request):
        raise AssertionError("a key does not expire")


@pytest.fixture(scope="module")
def claude(servers):
    with anthropic.AnthropicVertex(
        base_url=f"{servers.gateway}/v1",
        access_token=processes.KEY,
        project_id="any",
        region="global",
        max_retries=0,
    ) as client:
        yield client


@pytest.fixture(scope="module")
def gemini(servers):
    options = genai.types.HttpOptions(base_url=servers.gateway)
    with genai.Client(
        vertexai=True, project="any", location="global", credentials=Credentials(), http_options=options
    ) as client:
        yield client


def question(text):
    return [{"role": "user", "content": text}]


@UPSTREAMS
def test_claude_answers(claude, upstream):
    message = claude.messages.create(
        model=processes.first_model(upstream), max_tokens=64, messages=question("good morning")
    )
    assert message.content[0].text == "You said: good morning"
    assert message.model == processes.first_model(upstream)
    assert message.usage.output_tokens > 0


@UPSTREAMS
def test_claude_streams(claude, upstream):
    with claude.messages.stream(
        model=processes.first_model(upstream), max_tokens=64, messages=question("good morning")
    ) as stream:
        assert "".join(stream.text_stream) == "You said: good morning"


@UPSTREAMS
def test_claude_calls_a_tool(claude, upstream):
    message = claude.messages.create(
        model=processes.first_model(upstream),
        max_tokens=64,
        messages=question("mock:tool=weather"),
        tools=[TOOL],
    )
    assert message.stop_reason == "tool_use"
    assert message.content[-1].name == "weather"


@UPSTREAMS
def test_claude_counts(claude, upstream):
    counted = claude.messages.count_tokens(
        model=processes.first_model(upstream), messages=question("good morning")
    )
    assert counted.input_tokens > 0


def test_claude_is_refused_in_its_own_format(claude):
    with pytest.raises(anthropic.NotFoundError) as refused:
        claude.messages.create(model="nobody", max_tokens=64, messages=question("hello"))
    assert refused.value.body["error"]["type"] == "not_found_error"


@UPSTREAMS
def test_gemini_answers(gemini, upstream):
    response = gemini.models.generate_content(
        model=processes.first_model(upstream), contents="good morning"
    )
    assert response.text == "You said: good morning"


@UPSTREAMS
def test_gemini_streams(gemini, upstream):
    chunks = gemini.models.generate_content_stream(
        model=processes.first_model(upstream), contents="good morning"
    )
    assert "".join(chunk.text or "" for chunk in chunks) == "You said: good morning"


@UPSTREAMS
def test_gemini_calls_a_function(gemini, upstream):
    declaration = genai.types.FunctionDeclaration(
        name="weather", parameters_json_schema=TOOL["input_schema"]
    )
    response = gemini.models.generate_content(
        model=processes.first_model(upstream),
        contents="mock:tool=weather",
        config=genai.types.GenerateContentConfig(
            tools=[genai.types.Tool(function_declarations=[declaration])]
        ),
    )
    [call] = response.function_calls
    assert call.name == "weather"


def test_gemini_counts(gemini):
    counted = gemini.models.count_tokens(
        model=processes.first_model("native"), contents="good morning"
    )
    assert counted.total_tokens > 0


def test_gemini_is_refused_in_its_own_format(gemini):
    with pytest.raises(genai.errors.ClientError) as refused:
        gemini.models.generate_content(model="nobody", contents="hello")
    assert refused.value.status == "NOT_FOUND"
