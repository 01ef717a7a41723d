"""Embeddings by the official SDKs, on upstreams of every format that has them."""

import math

import openai
import pytest
from google import genai
from google.genai import errors, types

import processes

MODELS = pytest.mark.parametrize("model", processes.EMBEDDING_MODELS)
TEXTS = ["cat", "a dog says \"wow\"", "日本語"]


@pytest.fixture(scope="module")
def client(servers):
    address = f"{servers.gateway}/v1"
    with openai.OpenAI(base_url=address, api_key=processes.KEY, max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def native(servers):
    options = types.HttpOptions(base_url=servers.gateway, timeout=60_000)
    with genai.Client(api_key=processes.KEY, http_options=options) as client:
        yield client


def vectors(response):
    assert [item.index for item in response.data] == list(range(len(response.data)))
    return [item.embedding for item in response.data]


def is_close(one, other):
    return len(one) == len(other) and all(map(lambda a, b: math.isclose(a, b, abs_tol=1e-6), one, other))


@MODELS
def test_a_text(client, model):
    response = client.embeddings.create(model=model, input="cat")
    [vector] = vectors(response)
    assert len(vector) == 16
    assert math.isclose(sum(number * number for number in vector), 1, abs_tol=1e-4)
    assert response.model == model
    assert response.usage.prompt_tokens == response.usage.total_tokens > 0


@MODELS
def test_every_encoding_gives_the_same(client, model):
    default = vectors(client.embeddings.create(model=model, input=TEXTS))
    floats = vectors(client.embeddings.create(model=model, input=TEXTS, encoding_format="float"))
    raw = client.embeddings.create(model=model, input=TEXTS, encoding_format="base64")
    assert len(default) == len(floats) == len(raw.data) == len(TEXTS)
    assert all(map(is_close, default, floats))
    assert all(isinstance(item.embedding, str) for item in raw.data)


@MODELS
def test_dimensions(client, model):
    [vector] = vectors(client.embeddings.create(model=model, input="cat", dimensions=5))
    assert len(vector) == 5


@MODELS
def test_many_inputs_keep_their_order(client, model):
    texts = [f"text {number}" for number in range(300)]
    found = vectors(client.embeddings.create(model=model, input=texts))
    [last] = vectors(client.embeddings.create(model=model, input=texts[-1:]))
    assert len(found) == 300
    assert is_close(found[-1], last)


@pytest.mark.parametrize("model", [model for model in processes.EMBEDDING_MODELS if "native" not in model])
def test_tokens(client, model):
    response = client.embeddings.create(model=model, input=[[1, 2, 3], [4]])
    assert len(vectors(response)) == 2
    assert response.usage.prompt_tokens == 4
    assert len(vectors(client.embeddings.create(model=model, input=[1, 2, 3]))) == 1


def test_tokens_are_refused_where_the_upstream_has_none(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="vector-native", input=[1, 2, 3])
    assert caught.value.param == "input[0]"


def test_a_model_of_another_type_is_refused(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model=processes.first_model("chat"), input="cat")
    assert caught.value.code == "invalid_model"


@MODELS
def test_the_native_client(native, client, model):
    config = types.EmbedContentConfig(task_type="RETRIEVAL_DOCUMENT", output_dimensionality=7, title="t")
    response = native.models.embed_content(model=model, contents=TEXTS, config=config)
    found = [item.values for item in response.embeddings]
    expected = vectors(client.embeddings.create(model=model, input=TEXTS, dimensions=7))
    assert len(found) == len(TEXTS)
    assert all(map(is_close, found, expected))


@MODELS
def test_the_native_client_with_one_text(native, model):
    response = native.models.embed_content(model=model, contents="cat")
    [embedding] = response.embeddings
    assert len(embedding.values) == 16


@MODELS
def test_the_native_client_gets_native_errors(native, model):
    with pytest.raises(errors.ClientError) as caught:
        native.models.embed_content(model=model, contents="mock:error=429")
    assert caught.value.code == 429
    assert caught.value.status == "RESOURCE_EXHAUSTED"


def test_the_azure_client(servers):
    with openai.AzureOpenAI(
        azure_endpoint=servers.gateway, api_key=processes.KEY, api_version="2024-10-21", max_retries=0
    ) as client:
        response = client.embeddings.create(model="vector-chat", input="cat")
        assert len(vectors(response)[0]) == 16
