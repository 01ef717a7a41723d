"""AWS Bedrock: the mock as the SDKs of AWS and Anthropic see it, and the gateway's requests beside those of the SDKs."""

import base64
import contextlib
import datetime
import http.server
import json
import pathlib
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request

import anthropic
import boto3
import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
import botocore.exceptions
import pytest

import processes

REGION = "us-east-1"
ACCESS_KEY = "AKIDEXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SESSION_TOKEN = "session-token"

# An inference profile, and an ARN with all that a path must escape.
MODELS = {
    "profile": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "arn": "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-v1:0",
}
ALIASES = pytest.mark.parametrize("alias", MODELS)
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
REQUEST = {
    "max_tokens": 100,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "grüße 🌍"}],
    "tools": [{"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}],
}


class Recorder(http.server.BaseHTTPRequestHandler):
    """Keeps every request, and has the mock answer it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, list(self.headers.items()), body))
        request = urllib.request.Request(self.server.mock + self.path, body, {"content-type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=processes.TIMEOUT) as response:
                self.answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            self.answer(error.code, error.headers, error.read())

    def answer(self, status, headers, body):
        self.send_response(status)
        for name in ("content-type", "x-amzn-errortype"):
            if headers[name]:
                self.send_header(name, headers[name])
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def recorder(mock):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.seen, server.mock = [], mock
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(processes.TIMEOUT)


def url_of(server):
    return "http://127.0.0.1:{}".format(server.server_address[1])


@pytest.fixture(scope="module")
def bedrock(servers):
    """A gateway whose upstream is a recorder in place of Bedrock, and the recorder."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(recorder(servers.mock))
        listen, admin = processes.free_addresses(2)
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        file = directory / "gateway.yaml"
        upstream = f"{{provider: bedrock, region: {REGION}, base_url: '{url_of(server)}', auth: {{aws: {{access_key_id: {ACCESS_KEY}, secret_access_key: {SECRET_KEY}, session_token: {SESSION_TOKEN}}}}}}}"
        models = [f"  - {{id: {alias}, upstreams: [{{name: bedrock, model: '{id}'}}]}}" for alias, id in MODELS.items()]
        lines = [
            f"server: {{listen: '{listen}', admin: '{admin}'}}",
            f"keys: [{{name: all, secret: {processes.KEY}}}]",
            f"upstreams: [{upstream}]",
            "models:",
            *models,
        ]
        file.write_text("\n".join(lines) + "\n")
        gateway = stack.enter_context(processes.process("run", "-c", str(file)))
        processes.wait_until_ready(gateway, admin)
        server.gateway = f"http://{listen}"
        yield server


def anthropic_bedrock(url):
    return anthropic.AnthropicBedrock(
        base_url=url,
        aws_region=REGION,
        aws_access_key=ACCESS_KEY,
        aws_secret_key=SECRET_KEY,
        aws_session_token=SESSION_TOKEN,
        max_retries=0,
    )


def boto(url):
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        aws_session_token=SESSION_TOKEN,
        config=botocore.config.Config(retries={"total_max_attempts": 1}, proxies={}),
    )


def last(server, call):
    """Makes a call and returns the one request that it sent."""
    server.seen.clear()
    call()
    [request] = server.seen
    return request


def send_to_gateway(server, alias, stream, version="2023-06-01", betas=()):
    client = anthropic.Anthropic(base_url=server.gateway, api_key=processes.KEY, max_retries=0)
    headers = {"anthropic-version": version}
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    with client:
        response = client.messages.create(model=alias, stream=stream, extra_headers=headers, **REQUEST)
        if stream:
            list(response)


def check_signature(request):
    """Signs what arrived with botocore's signer, and compares."""
    path, headers, body = request
    values = {name.lower(): value for name, value in headers}
    authorization = values["authorization"]
    scope = authorization.split("Credential=")[1].split(",")[0].split("/")
    signed = authorization.split("SignedHeaders=")[1].split(",")[0].split(";")
    assert scope[0] == ACCESS_KEY and scope[2:] == [REGION, "bedrock", "aws4_request"]
    for name in values:
        if name.startswith("x-amz") or name in ("host", "content-type"):
            assert name in signed, name
    again = botocore.awsrequest.AWSRequest("POST", "http://" + values["host"] + path, data=body)
    for name in signed:
        if name not in ("x-amz-date", "x-amz-security-token"):
            again.headers[name] = values[name]
    credentials = botocore.credentials.Credentials(ACCESS_KEY, SECRET_KEY, values.get("x-amz-security-token"))
    signer = botocore.auth.SigV4Auth(credentials, "bedrock", REGION)
    again.context["timestamp"] = values["x-amz-date"]
    again.headers["X-Amz-Date"] = values["x-amz-date"]
    if credentials.token:
        again.headers["X-Amz-Security-Token"] = credentials.token
    canonical = signer.canonical_request(again)
    text = signer.string_to_sign(again, canonical)
    assert authorization.rsplit("Signature=", 1)[1] == signer.signature(text, again)
    moment = datetime.datetime.strptime(values["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    assert abs((datetime.datetime.now(datetime.timezone.utc) - moment).total_seconds()) < 300


@STREAMS
@ALIASES
def test_the_gateway_sends_what_the_anthropic_sdk_sends(bedrock, alias, stream):
    ours = last(bedrock, lambda: send_to_gateway(bedrock, alias, stream, "2026-10-21", ["a-1", "b-2"]))

    def theirs():
        with anthropic_bedrock(url_of(bedrock)) as client:
            response = client.messages.create(
                model=MODELS[alias], stream=stream, extra_headers={"anthropic-beta": "a-1,b-2"}, **REQUEST
            )
            if stream:
                list(response)

    theirs = last(bedrock, theirs)
    # The SDK leaves colons as they are; both are the same path.
    assert urllib.parse.unquote(ours[0]) == urllib.parse.unquote(theirs[0])
    assert ours[0].count("/") == theirs[0].count("/") == 3
    assert json.loads(ours[2]) == json.loads(theirs[2])
    check_signature(ours)
    check_signature(theirs)
    names = {name.lower() for name, _ in ours[1]}
    assert not names & {"x-api-key", "anthropic-version", "anthropic-beta"}


@STREAMS
@ALIASES
def test_the_gateway_sends_what_boto3_sends(bedrock, alias, stream):
    ours = last(bedrock, lambda: send_to_gateway(bedrock, alias, stream))
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", **REQUEST})

    def theirs():
        client = boto(url_of(bedrock))
        if stream:
            list(client.invoke_model_with_response_stream(modelId=MODELS[alias], body=body)["body"])
        else:
            client.invoke_model(modelId=MODELS[alias], body=body)["body"].read()

    theirs = last(bedrock, theirs)
    assert ours[0] == theirs[0]
    assert json.loads(ours[2]) == json.loads(theirs[2])
    check_signature(ours)
    check_signature(theirs)


def test_a_large_body_is_signed(bedrock):
    request = {"max_tokens": 1, "messages": [{"role": "user", "content": "mock:text=ok " + "x" * (1 << 20)}]}

    def ours():
        with anthropic.Anthropic(base_url=bedrock.gateway, api_key=processes.KEY, max_retries=0) as client:
            client.messages.create(model="profile", **request)

    check_signature(last(bedrock, ours))


def test_a_count_is_what_boto3_sends(bedrock):
    messages = [{"role": "user", "content": "one two three"}]

    def ours():
        with anthropic.Anthropic(base_url=bedrock.gateway, api_key=processes.KEY, max_retries=0) as client:
            assert client.messages.count_tokens(model="profile", messages=messages).input_tokens == 3

    ours = last(bedrock, ours)
    inside = base64.b64decode(json.loads(ours[2])["input"]["invokeModel"]["body"])
    model = MODELS["profile"].removeprefix("us.")

    def theirs():
        counted = boto(url_of(bedrock)).count_tokens(modelId=model, input={"invokeModel": {"body": inside}})
        assert counted["inputTokens"] == 3

    theirs = last(bedrock, theirs)
    assert ours[0] == theirs[0]
    assert json.loads(ours[2]) == json.loads(theirs[2])
    check_signature(ours)


def test_the_mock_streams_as_bedrock_does(servers):
    with anthropic_bedrock(servers.mock) as client:
        with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "good morning"}]) as stream:
            assert stream.get_final_message().content[0].text == "You said: good morning"
        with pytest.raises(anthropic.APIStatusError):
            list(
                client.messages.create(
                    model="m", max_tokens=9, stream=True, messages=[{"role": "user", "content": "a b mock:stream_error=1"}]
                )
            )
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9}
    client = boto(servers.mock)
    said = json.dumps({**body, "messages": [{"role": "user", "content": "good morning"}]})
    events = list(client.invoke_model_with_response_stream(modelId="m", body=said)["body"])
    events = [json.loads(event["chunk"]["bytes"]) for event in events]
    assert "".join(event.get("delta", {}).get("text", "") for event in events) == "You said: good morning"
    assert events[-1]["amazon-bedrock-invocationMetrics"]
    failing = json.dumps({**body, "messages": [{"role": "user", "content": "a b mock:stream_error=1"}]})
    with pytest.raises(botocore.exceptions.EventStreamError):
        list(client.invoke_model_with_response_stream(modelId="m", body=failing)["body"])
    with pytest.raises(client.exceptions.ThrottlingException):
        refused = json.dumps({**body, "messages": [{"role": "user", "content": "mock:error=429"}]})
        client.invoke_model(modelId="m", body=refused)
