"""What the gateway sends to clouds is what their official clients send: target, body and headers, field by field."""

import contextlib
import http.server
import json
import pathlib
import tempfile
import threading
import types

import anthropic
import google.auth.credentials
import openai
import pytest
from google import genai

import processes

KEY_OF_CLOUD = "key-of-the-cloud"
MESSAGE = [{"role": "user", "content": "good morning"}]

# The headers that decide what a request means; others are those of a program.
HEADERS = ("authorization", "api-key", "x-api-key", "x-goog-api-key", "anthropic-version", "anthropic-beta", "content-type")


class Token(google.auth.credentials.Credentials):
    def __init__(self):
        super().__init__()
        self.token = KEY_OF_CLOUD

    def refresh(self, request):
        raise AssertionError("it does not expire")


def chat(model):
    choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage}


def message(model):
    return {
        "id": "1", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": "hello"}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def content():
    candidate = {"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}
    return {"candidates": [candidate]}


class Recorder(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.path, headers, json.loads(body)))
        if "count" in self.path:
            reply = {"input_tokens": 7, "totalTokens": 7}
        elif "anthropic" in self.path:
            reply = message("m")
        elif "generateContent" in self.path:
            reply = content()
        else:
            reply = chat("m")
        encoded = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *arguments):
        pass


def config(url, listen, admin):
    google = f"base_url: '{url}', project: my-project, location: europe-west1, auth: {{bearer: {KEY_OF_CLOUD}}}"
    upstreams = {
        "azure": f"base_url: '{url}/openai/v1', auth: {{header: {{name: api-key, value: {KEY_OF_CLOUD}}}}}",
        "azure-classic": f"base_url: '{url}', auth: {{header: {{name: api-key, value: {KEY_OF_CLOUD}}}}}",
        "azure-anthropic": f"base_url: '{url}/anthropic', auth: {{header: {{name: x-api-key, value: {KEY_OF_CLOUD}}}}}",
        "vertex": google,
        "vertex-anthropic": google,
    }
    lines = [f"server: {{listen: '{listen}', admin: '{admin}'}}", f"keys: [{{name: all, secret: {processes.KEY}}}]"]
    lines.append("upstreams:")
    lines += [f"  - {{provider: {name}, {settings}}}" for name, settings in upstreams.items()]
    lines.append("models:")
    lines += [f"  - {{id: {name}, upstreams: [{{name: {name}, model: 'some@model'}}]}}" for name in upstreams]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def cloud():
    """A recorder in the place of every cloud, and a gateway in front of it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.requests = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    with contextlib.ExitStack() as stack:
        stack.callback(server.shutdown)
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        listen, admin = processes.free_addresses(2)
        file = directory / "gateway.yaml"
        file.write_text(config(url, listen, admin))
        gateway = stack.enter_context(processes.process("run", "-c", str(file)))
        processes.wait_until_ready(gateway, admin)
        yield types.SimpleNamespace(url=url, gateway=f"http://{listen}", requests=server.requests)


def compare(cloud, direct, through):
    """Lets a client ask the cloud, and another one the gateway, and compares what arrives."""
    cloud.requests.clear()
    direct()
    through()
    (path, headers, body), (own_path, own_headers, own_body) = cloud.requests
    assert own_path == path
    assert own_body == body
    for name in HEADERS:
        assert own_headers.get(name) == headers.get(name), name


def test_azure_deployments(cloud):
    direct = openai.AzureOpenAI(azure_endpoint=cloud.url, api_key=KEY_OF_CLOUD, api_version="2024-10-21", max_retries=0)
    plain = openai.OpenAI(base_url=f"{cloud.gateway}/v1", api_key=processes.KEY, max_retries=0)
    with direct, plain:
        compare(
            cloud,
            lambda: direct.chat.completions.create(model="some@model", messages=MESSAGE),
            lambda: plain.chat.completions.create(model="azure-classic", messages=MESSAGE),
        )


def test_azure_v1(cloud):
    direct = openai.OpenAI(
        base_url=f"{cloud.url}/openai/v1", api_key="unused", default_headers={"api-key": KEY_OF_CLOUD}, max_retries=0
    )
    plain = openai.OpenAI(base_url=f"{cloud.gateway}/v1", api_key=processes.KEY, max_retries=0)
    with direct, plain:
        cloud.requests.clear()
        direct.chat.completions.create(model="some@model", messages=MESSAGE)
        plain.chat.completions.create(model="azure", messages=MESSAGE)
        (path, _, body), (own_path, own_headers, own_body) = cloud.requests
        assert (own_path, own_body) == (path, body)
        assert own_headers["api-key"] == KEY_OF_CLOUD
        assert "authorization" not in own_headers


ASKED = {"max_tokens": 7, "messages": MESSAGE}


def test_claude_in_foundry(cloud):
    direct = anthropic.AnthropicFoundry(base_url=f"{cloud.url}/anthropic/", api_key=KEY_OF_CLOUD, max_retries=0)
    plain = anthropic.Anthropic(base_url=cloud.gateway, api_key=processes.KEY, max_retries=0)
    with direct, plain:
        cloud.requests.clear()
        direct.messages.create(model="some@model", **ASKED)
        plain.messages.create(model="azure-anthropic", **ASKED)
        (path, headers, body), (own_path, own_headers, own_body) = cloud.requests
        assert (own_path, own_body) == (path, body)
        # The client sends the key under both names; one suffices.
        for name in ("x-api-key", "anthropic-version", "anthropic-beta"):
            assert own_headers.get(name) == headers.get(name), name


def test_claude_on_vertex(cloud):
    direct = anthropic.AnthropicVertex(
        base_url=f"{cloud.url}/v1", access_token=KEY_OF_CLOUD, project_id="my-project", region="europe-west1", max_retries=0
    )
    plain = anthropic.Anthropic(base_url=cloud.gateway, api_key=processes.KEY, max_retries=0)
    with direct, plain:
        compare(
            cloud,
            lambda: direct.messages.create(model="some@model", **ASKED),
            lambda: plain.messages.create(model="vertex-anthropic", **ASKED),
        )
        betas = {"betas": ["context-1m-2025-08-07"]}
        compare_without_query(
            cloud,
            lambda: direct.beta.messages.create(model="some@model", **ASKED, **betas),
            lambda: plain.beta.messages.create(model="vertex-anthropic", **ASKED, **betas),
        )
        compare_without_query(
            cloud,
            lambda: direct.messages.count_tokens(model="some@model", messages=MESSAGE),
            lambda: plain.messages.count_tokens(model="vertex-anthropic", messages=MESSAGE),
        )


def compare_without_query(cloud, direct, through):
    """The same where the client of the cloud sends no query, and the other one marks its beta interface."""
    cloud.requests.clear()
    direct()
    through()
    (path, headers, body), (own_path, own_headers, own_body) = cloud.requests
    assert own_path.split("?")[0] == path.split("?")[0]
    assert own_body == body
    for name in HEADERS:
        assert own_headers.get(name) == headers.get(name), name


def test_gemini_on_vertex(cloud):
    direct = genai.Client(
        vertexai=True, project="my-project", location="europe-west1", credentials=Token(),
        http_options=genai.types.HttpOptions(base_url=cloud.url),
    )
    plain = genai.Client(api_key=processes.KEY, http_options=genai.types.HttpOptions(base_url=cloud.gateway))
    settings = genai.types.GenerateContentConfig(temperature=0.5, system_instruction="Be brief")
    compare(
        cloud,
        lambda: direct.models.generate_content(model="some@model", contents="good morning", config=settings),
        lambda: plain.models.generate_content(model="vertex", contents="good morning", config=settings),
    )
    compare(
        cloud,
        lambda: direct.models.count_tokens(model="some@model", contents="good morning"),
        lambda: plain.models.count_tokens(model="vertex", contents="good morning"),
    )
