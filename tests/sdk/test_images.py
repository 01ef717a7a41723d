"""Images by the official SDKs: generated, edited, streamed, refused; and tasks by plain HTTP."""

import base64
import io
import json
import time
import urllib.error
import urllib.request

import openai
import pytest
from google import genai
from google.genai import types

import processes

PNG = b"\x89PNG\r\n\x1a\n"
MODELS = pytest.mark.parametrize("model", ["art-images", "art-native"])


@pytest.fixture
def client(servers):
    address = f"{servers.gateway}/v1"
    with openai.OpenAI(base_url=address, api_key=processes.KEY, max_retries=0) as client:
        yield client


def image_bytes(response):
    """Returns the bytes of the first image of a response."""
    return base64.b64decode(response.data[0].b64_json)


@MODELS
def test_an_image_is_generated(client, model):
    response = client.images.generate(model=model, prompt="a cat", size="1024x1024")
    assert image_bytes(response).startswith(PNG)
    assert response.output_format == "png"
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


@MODELS
def test_images_are_edited(client, model):
    pixel = image_bytes(client.images.generate(model=model, prompt="a cat"))
    one = client.images.edit(model=model, prompt="a hat", image=("cat.png", io.BytesIO(pixel)))
    assert image_bytes(one).startswith(PNG)
    several = [("a.png", pixel, "image/png"), ("b.png", pixel, "image/png")]
    assert image_bytes(client.images.edit(model=model, prompt="a hat", image=several)).startswith(PNG)


def test_a_mask_is_sent_with_the_image(client):
    pixel = image_bytes(client.images.generate(model="art-images", prompt="a cat"))
    files = {"image": ("a.png", pixel), "mask": ("m.png", pixel)}
    assert image_bytes(client.images.edit(model="art-images", prompt="a hat", **files)).startswith(PNG)


def test_unknown_fields_are_passed_through(client):
    extra = {"seed": 7, "steps": 20}
    response = client.images.generate(model="art-images", prompt="mock:echo", extra_body=extra)
    sent = json.loads(json.loads(response.data[0].revised_prompt)["body"])
    assert (sent["seed"], sent["steps"]) == (7, 20)


def test_response_format_url(client):
    response = client.images.generate(model="art-images", prompt="a cat", response_format="url")
    assert response.data[0].url.startswith("http://")


def test_partial_images_come_before_the_image(client):
    events = client.images.generate(model="art-images", prompt="a cat", stream=True, partial_images=2)
    kinds = [event.type for event in events]
    assert kinds == ["image_generation.partial_image"] * 2 + ["image_generation.completed"]
    events = list(client.images.generate(model="art-native", prompt="a cat", stream=True))
    assert [event.type for event in events] == ["image_generation.completed"]
    assert base64.b64decode(events[0].b64_json).startswith(PNG)


@pytest.mark.parametrize(
    ("model", "prompt", "status", "code"),
    [
        ("first-chat", "a cat", 400, "invalid_model"),
        ("art-images", "mock:filtered", 400, "moderation_blocked"),
        ("art-native", "mock:filtered", 400, "content_policy_violation"),
        ("art-nowhere", "a cat", 404, "model_not_found"),
    ],
)
def test_refusals_are_errors_of_the_sdk(client, model, prompt, status, code):
    with pytest.raises(openai.APIStatusError) as caught:
        client.images.generate(model=model, prompt=prompt)
    assert (caught.value.status_code, caught.value.code) == (status, code)


def test_an_invalid_image_is_refused(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.images.edit(model="art-images", prompt="a hat", image=("cat.png", b"not a cat"))
    assert caught.value.code == "invalid_image"


def test_native_clients_get_images_from_an_images_upstream(servers):
    options = types.HttpOptions(base_url=servers.gateway)
    client = genai.Client(api_key=processes.KEY, http_options=options)
    settings = types.GenerateContentConfig(response_modalities=["IMAGE"])
    response = client.models.generate_content(model="art-images", contents="a cat", config=settings)
    assert response.candidates[0].content.parts[0].inline_data.data.startswith(PNG)


def send(servers, method, path, body=None):
    """Sends a request and returns status, headers and body of its response."""
    data = json.dumps(body).encode() if body is not None else None
    headers = {"authorization": f"Bearer {processes.KEY}", "content-type": "application/json"}
    request = urllib.request.Request(servers.gateway + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=processes.TIMEOUT) as response:
            return response.status, response.headers, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.load(error)


def test_a_task_is_created_and_retrieved(servers):
    body = {"model": "art-images", "prompt": "a cat", "async": True}
    status, headers, task = send(servers, "POST", "/v1/images/generations", body)
    assert (status, task["status"], task["object"]) == (202, "queued", "image.task")
    deadline = time.monotonic() + processes.TIMEOUT
    while task["status"] in ("queued", "running"):
        assert time.monotonic() < deadline
        _, _, task = send(servers, "GET", headers["location"])
    assert task["status"] == "succeeded"
    assert base64.b64decode(task["result"]["data"][0]["b64_json"]).startswith(PNG)
    assert send(servers, "DELETE", headers["location"])[0] == 409
    assert send(servers, "GET", "/v1/images/tasks/none")[0] == 404
