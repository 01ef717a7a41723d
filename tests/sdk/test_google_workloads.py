"""A workload on AWS shows Google the same request that Google's own library shows."""

import contextlib
import datetime
import http.server
import json
import pathlib
import tempfile
import threading
import types
import urllib.parse

import google.auth.aws
import google.auth.transport.requests
import openai
import pytest

import processes

AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/aws"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
REGION = "eu-west-2"
KEYS = google.auth.aws.AwsSecurityCredentials("AKIAWORKLOAD", "workload-secret", "session")
ENVIRONMENT = {
    "AWS_REGION": REGION,
    "AWS_ACCESS_KEY_ID": KEYS.access_key_id,
    "AWS_SECRET_ACCESS_KEY": KEYS.secret_access_key,
    "AWS_SESSION_TOKEN": KEYS.session_token,
}


class Recorder(http.server.BaseHTTPRequestHandler):
    """The token endpoint of Google, and the upstream that the token is for."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/sts":
            self.server.forms.append(dict(urllib.parse.parse_qsl(body.decode())))
            token_type = "urn:ietf:params:oauth:token-type:access_token"
            reply = {"access_token": "t", "issued_token_type": token_type, "token_type": "Bearer", "expires_in": 3600}
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
            reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        encoded = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *arguments):
        pass


def external_account(url):
    verification = "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"
    return {
        "type": "external_account",
        "audience": AUDIENCE,
        "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request",
        "token_url": f"{url}/sts",
        "credential_source": {"environment_id": "aws1", "regional_cred_verification_url": verification},
    }


@pytest.fixture
def google_tokens(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.forms = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield types.SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", forms=server.forms)
    server.shutdown()


def ask_through_gateway(url):
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        credentials = directory / "credentials.json"
        credentials.write_text(json.dumps(external_account(url)))
        listen, admin = processes.free_addresses(2)
        file = directory / "gateway.yaml"
        file.write_text(
            f"server: {{listen: '{listen}', admin: '{admin}'}}\n"
            f"keys: [{{name: all, secret: {processes.KEY}}}]\n"
            f"upstreams: [{{name: u, format: chat, base_url: '{url}', auth: {{google: {{credentials: '{credentials}'}}}}}}]\n"
            "models: [{id: m, upstreams: [{name: u}]}]\n"
        )
        gateway = stack.enter_context(processes.process("run", "-c", str(file)))
        processes.wait_until_ready(gateway, admin)
        client = stack.enter_context(
            openai.OpenAI(base_url=f"http://{listen}/v1", api_key=processes.KEY, max_retries=0)
        )
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "good morning"}])


def subject(form):
    request = json.loads(urllib.parse.unquote(form.pop("subject_token")))
    headers = {header["key"].lower(): header["value"] for header in request.pop("headers")}
    return request, headers


def test_the_gateway_shows_what_the_library_of_google_shows(google_tokens, monkeypatch):
    credentials = google.auth.aws.Credentials.from_info(external_account(google_tokens.url), scopes=[SCOPE])
    credentials.refresh(google.auth.transport.requests.Request())
    ask_through_gateway(google_tokens.url)
    theirs, ours = google_tokens.forms
    (their_request, their_headers), (our_request, our_headers) = subject(theirs), subject(ours)
    theirs.pop("options", None)  # It tells of the library itself.
    assert ours == theirs
    assert our_request == their_request
    assert our_headers.keys() == their_headers.keys()
    for name in their_headers.keys() - {"authorization", "x-amz-date"}:
        assert our_headers[name] == their_headers[name], name
    # The library signs with the time of our signature, and the name of the pool as Google recommends.
    signed_at = datetime.datetime.strptime(our_headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    monkeypatch.setattr("google.auth._helpers.utcnow", lambda: signed_at)
    again = google.auth.aws.RequestSigner(REGION).get_request_options(
        KEYS, our_request["url"], "POST", additional_headers={"x-goog-cloud-target-resource": AUDIENCE}
    )
    assert our_headers["authorization"] == again["headers"]["Authorization"]
