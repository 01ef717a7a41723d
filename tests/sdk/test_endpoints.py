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


@UPSTREAMS
def test_speech(client, upstream):
    speech = client.audio.speech.create(model=f"audio-{upstream}", voice="alloy", input="good morning")
    assert speech.read() == b"\xffYou \xffsaid: \xffgood \xffmorning"
    assert speech.response.headers["content-type"] == "audio/mpeg"
    streaming = client.audio.speech.with_streaming_response
    with streaming.create(model=f"audio-{upstream}", voice="alloy", input="good morning") as speech:
        assert b"".join(speech.iter_bytes()).endswith(b"morning")


RECORDING = ("\u00fc.wav", b"RIFF\r\n--\r\n" + bytes(range(256)), "audio/wav")


@UPSTREAMS
def test_a_transcription(client, upstream):
    create = client.audio.transcriptions.create
    common = {"model": f"audio-{upstream}", "file": RECORDING, "prompt": "good morning"}
    transcription = create(**common)
    assert transcription.text == "You said: good morning"
    assert transcription.usage.type == "duration"
    verbose = create(**common, timestamp_granularities=["word", "segment"], chunking_strategy={"type": "server_vad"})
    assert verbose.text == transcription.text
    assert "good morning" in create(**common, response_format="srt")
    events = list(create(**common, stream=True))
    assert "".join(event.delta for event in events[:-1]) == "You said: good morning"
    assert events[-1].text == "You said: good morning"


@UPSTREAMS
def test_a_translation(client, upstream):
    create = client.audio.translations.create
    translation = create(model=f"audio-{upstream}", file=RECORDING, prompt="good morning")
    assert translation.text == "You said: good morning"


def test_a_model_of_another_type_is_refused(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=processes.first_model("chat"), prompt="a")
    assert caught.value.code == "invalid_model"
