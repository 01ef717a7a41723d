//! Speech and the texts of recordings, which pass through.

use std::net::SocketAddr;

use omniglot_test_support::{Gateway, KEY, Mock, Response, client, post, send, sse_events};
use serde_json::{Value, json};

const FORMS: [&str; 2] = ["/v1/audio/transcriptions", "/v1/audio/translations"];
const SPEECH: &str = "/v1/audio/speech";

/// Models of the type, which their upstream calls otherwise, and more models as given.
fn config(mock: SocketAddr, keys: &str, models: &str) -> String {
    format!(
        "server: {{listen: LISTEN, admin: ADMIN, access_log: json}}\n\
         keys: [{{name: all, secret: {KEY}}}{keys}]\nupstreams:\n  \
         - {{name: chat, format: chat, base_url: \"http://{mock}/v1\"}}\n  \
         - {{name: responses, format: responses, base_url: \"http://{mock}/v1\"}}\n  \
         - {{name: messages, format: messages, base_url: \"http://{mock}\"}}\nmodels:\n  \
         - {{id: talker, upstreams: [{{name: chat}}]}}\n  \
         - {{id: voice-chat, model_type: audio, max_input_tokens: 500, max_output_tokens: 100, \
             pricing: {{input: 1000, output: 2000, per_request: 1}}, upstreams: [{{name: chat, model: theirs}}]}}\n  \
         - {{id: voice-responses, model_type: audio, upstreams: [{{name: responses, model: theirs}}]}}\n{models}"
    )
}

/// A form as SDKs write it: the recording, and values before it.
fn form(fields: &[(&str, &str)]) -> String {
    let parts: String = fields
        .iter()
        .map(|(name, value)| {
            let file = match *name {
                "file" => "; filename=\"a.wav\"\r\nContent-Type: audio/wav",
                _ => "",
            };
            format!(
                "--cut\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n"
            )
        })
        .collect();
    parts + "--cut--\r\n"
}

async fn send_form(gateway: &Gateway, path: &str, key: &str, fields: &[(&str, &str)]) -> Response {
    let request = client().post(gateway.url(path)).bearer_auth(key);
    let request = request.header("content-type", "multipart/form-data; boundary=cut");
    send(request.body(form(fields))).await
}

async fn transcribe(gateway: &Gateway, path: &str, fields: &[(&str, &str)]) -> Response {
    let file = [("file", "RIFF\r\n--other\r\n")];
    send_form(gateway, path, KEY, &[fields, &file].concat()).await
}

fn speech(model: &str, input: &str) -> Value {
    json!({"model": model, "input": input, "voice": "alloy"})
}

/// What the mock says for this text.
fn spoken(text: &str) -> Vec<u8> {
    let words = text.split_inclusive(' ');
    words
        .flat_map(|word| [b"\xff", word.as_bytes()].concat())
        .collect()
}

#[tokio::test]
async fn speech_passes_as_bytes_and_as_events() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    for model in ["voice-chat", "voice-responses"] {
        let mut body = speech(model, "mock:text=one two three");
        for (format, content_type) in [
            ("mp3", "audio/mpeg"),
            ("wav", "audio/wav"),
            ("pcm", "application/octet-stream"),
        ] {
            body["response_format"] = format.into();
            let response = post(gateway.url(SPEECH), body.to_string()).await;
            assert_eq!(response.status, 200, "{}", response.text());
            assert_eq!(response.header("content-type"), content_type);
            assert_eq!(&response.body[..], spoken("one two three"));
        }
        body["stream_format"] = "sse".into();
        let response = post(gateway.url(SPEECH), body.to_string()).await;
        assert_eq!(response.header("content-type"), "text/event-stream");
        let events = sse_events(response.text());
        assert_eq!(events.len(), 4, "{events:?}");
        assert!(events[3].1.contains("speech.audio.done"));
    }
    let echo = post(
        gateway.url(SPEECH),
        speech("voice-chat", "mock:echo").to_string(),
    )
    .await;
    let echo: Vec<u8> = echo
        .body
        .iter()
        .copied()
        .filter(|byte| *byte != 0xff)
        .collect();
    let echo: Value = serde_json::from_slice(&echo).expect("an echo");
    assert_eq!(echo["path"], SPEECH);
    assert_eq!(echo["body"], speech("theirs", "mock:echo").to_string());
}

#[tokio::test]
async fn forms_are_written_anew_with_the_upstreams_name_of_the_model() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    for path in FORMS {
        for model in ["voice-chat", "voice-responses"] {
            let response = transcribe(
                &gateway,
                path,
                &[
                    ("model", model),
                    ("prompt", "mock:echo"),
                    ("include[]", "logprobs"),
                    ("include[]", "x"),
                ],
            )
            .await;
            assert_eq!(response.status, 200, "{}", response.text());
            let text = response.json()["text"].clone();
            let echo: Value = serde_json::from_str(text.as_str().expect("text")).expect("an echo");
            assert_eq!(echo["path"], path);
            let sent = echo["body"].as_str().expect("a form");
            assert!(!sent.contains("--cut") && !sent.contains(model), "{sent}");
            assert!(sent.contains("name=\"model\"\r\n\r\ntheirs\r\n"), "{sent}");
            assert_eq!(sent.matches("name=\"include[]\"").count(), 2);
            assert!(sent.contains("name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n--other\r\n\r\n"), "{sent}");
            let kind = echo["headers"]["content-type"].as_str().expect("a type");
            assert!(kind.starts_with("multipart/form-data; boundary="), "{kind}");
        }
        for (format, content_type) in [
            ("text", "text/plain; charset=utf-8"),
            ("srt", "application/x-subrip"),
            ("vtt", "text/vtt"),
        ] {
            let fields = [
                ("model", "voice-chat"),
                ("prompt", "mock:text=good morning"),
                ("response_format", format),
            ];
            let response = transcribe(&gateway, path, &fields).await;
            assert_eq!(
                (response.status, response.header("content-type")),
                (200, content_type)
            );
            assert!(
                response.text().contains("good morning"),
                "{}",
                response.text()
            );
        }
        let fields = [
            ("model", "voice-chat"),
            ("prompt", "mock:text=one two"),
            ("stream", "true"),
        ];
        let response = transcribe(&gateway, path, &fields).await;
        assert_eq!(response.header("content-type"), "text/event-stream");
        assert_eq!(sse_events(response.text()).len(), 3);
    }
    // The deployment of an Azure client's path counts.
    let azure = "/openai/deployments/voice-chat/audio/transcriptions?api-version=1";
    for fields in [
        vec![("prompt", "hello")],
        vec![("model", "other"), ("prompt", "hello")],
    ] {
        let response = transcribe(&gateway, azure, &fields).await;
        assert_eq!(response.status, 200, "{}", response.text());
    }
}

#[tokio::test]
async fn what_is_ambiguous_or_not_for_audio_is_refused() {
    let mock = Mock::start();
    let models = "  - {id: everything, features: [audio], upstreams: [{name: chat}]}\n  \
                  - {id: never, model_type: audio, upstreams: [{name: messages}]}\n";
    let keys = ", {name: bound, secret: key-bound, models: [voice-chat]}";
    let gateway = Gateway::start(&config(mock.address, keys, models));
    for path in FORMS {
        for (fields, message) in [
            (
                vec![("model", "voice-chat"), ("model", "talker")],
                "`model` stands in the form twice",
            ),
            (
                vec![("model", "voice-chat"), ("Model", "talker")],
                "must be spelled `model`",
            ),
            (
                vec![("model", "voice-chat"), ("stream", "perhaps")],
                "`stream` must be",
            ),
            (vec![("model", "talker")], "models of the type audio"),
            (vec![("model", "never")], path),
            (vec![("prompt", "a")], "model"),
        ] {
            let response = transcribe(&gateway, path, &fields).await;
            assert_eq!(response.status, 400, "{}", response.text());
            assert!(
                response.error("chat").contains(message),
                "{}",
                response.text()
            );
        }
        assert_eq!(
            transcribe(&gateway, path, &[("model", "everything"), ("prompt", "a")])
                .await
                .status,
            200
        );
        let json = json!({"model": "voice-chat"}).to_string();
        let response = post(gateway.url(path), json).await;
        assert_eq!(response.status, 415, "{}", response.text());
        assert!(response.error("chat").contains("multipart/form-data"));
        let fields = [("model", "voice-chat"), ("fallback_model", "talker")];
        assert_eq!(
            send_form(&gateway, path, "key-bound", &fields).await.status,
            400
        );
        assert_eq!(
            send_form(&gateway, path, "key-bound", &[("model", "everything")])
                .await
                .status,
            403
        );
        for bad in [
            "mock:garbage",
            "mock:empty",
            "mock:html",
            "mock:status_200_error",
        ] {
            let response =
                transcribe(&gateway, path, &[("model", "voice-chat"), ("prompt", bad)]).await;
            assert_eq!(response.status / 100, 5, "{bad}: {}", response.text());
            response.error("chat");
        }
    }
    for (body, status) in [
        (speech("talker", "a").to_string(), 400),
        (
            r#"{"model":"voice-chat","model":"talker","input":"a"}"#.to_owned(),
            400,
        ),
        (speech("voice-chat", "mock:error=429").to_string(), 429),
        (speech("voice-chat", "mock:html").to_string(), 502),
        (speech("voice-chat", "mock:empty").to_string(), 502),
        (
            speech("voice-chat", "mock:status_200_error").to_string(),
            502,
        ),
    ] {
        let response = post(gateway.url(SPEECH), body.clone()).await;
        assert_eq!(response.status, status, "{body}: {}", response.text());
        response.error("chat");
    }
}

#[tokio::test]
async fn deployments_of_azure_are_asked_at_their_paths() {
    let mock = Mock::start();
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n  \
         - {{provider: azure-classic, base_url: \"http://{0}\", auth: {{header: {{name: api-key, value: key-of-azure}}}}}}\n  \
         - {{provider: vertex-openai, base_url: \"http://{0}\", project: p, location: eu, auth: {{bearer: token}}}}\nmodels:\n  \
         - {{id: voice, model_type: audio, upstreams: [{{name: azure-classic, model: my voice}}]}}\n  \
         - {{id: text, model_type: completion, upstreams: [{{name: azure-classic, model: my text}}]}}\n  \
         - {{id: none, model_type: audio, upstreams: [{{name: vertex-openai, model: m}}]}}\n",
        mock.address
    ));
    for path in FORMS {
        let fields = [("model", "voice"), ("prompt", "mock:echo")];
        let response = transcribe(&gateway, path, &fields).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let text = response.json()["text"].clone();
        let echo: Value = serde_json::from_str(text.as_str().expect("text")).expect("an echo");
        let name = path.rsplit('/').next().expect("a name");
        let expected =
            format!("/openai/deployments/my%20voice/audio/{name}?api-version=2024-10-21");
        assert_eq!(echo["path"], expected);
        assert_eq!(echo["headers"]["api-key"], "key-of-azure");
        let refused = transcribe(&gateway, path, &[("model", "none"), ("prompt", "a")]).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.error("chat").contains(path), "{}", refused.text());
    }
    let body = speech("voice", "mock:text=one two").to_string();
    let response = post(gateway.url(SPEECH), body).await;
    assert_eq!(&response.body[..], spoken("one two"));
    let body = json!({"model": "text", "prompt": "mock:echo"}).to_string();
    let response = post(gateway.url("/v1/completions"), body).await;
    let path = "/openai/deployments/my%20text/completions?api-version=2024-10-21";
    assert!(response.text().contains(path), "{}", response.text());
}

#[tokio::test]
async fn minutes_of_recordings_are_billed_and_reserved() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 13}, {name: poor, secret: key-poor, spending_cap: 5.9}";
    let models = "  - {id: by-minute, model_type: audio, max_audio_minutes: 10, pricing: {per_audio_minute: 0.6}, upstreams: [{name: chat}]}\n  \
                  - {id: endless, model_type: audio, pricing: {per_audio_minute: 0.6}, upstreams: [{name: chat}]}\n";
    let mut gateway = Gateway::start(&config(mock.address, keys, models));
    let recording = "x".repeat(64 << 10);
    let ask = async |key: &str, model: &str, format: &str| {
        let fields = [
            ("model", model),
            ("prompt", "mock:text=hi"),
            ("response_format", format),
            ("file", &recording),
        ];
        send_form(&gateway, FORMS[0], key, &fields).await
    };
    let mut ids = Vec::new();
    // Nine seconds by `usage`, 8.47 by `duration`; 64 KiB are estimated as 4.096 seconds or a little more.
    for (key, format, cost, estimated, milliseconds) in [
        (KEY, "json", "0.09", "", 9000),
        (KEY, "verbose_json", "0.0847", "", 8470),
        ("key-capped", "json", "0.09", "", 9000),
        // The upstream does not say how long it is: a key with a cap pays for all that was reserved.
        ("key-capped", "text", "6", "true", 600_000),
    ] {
        let response = ask(key, "by-minute", format).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-omniglot-cost"), cost, "{key} {format}");
        assert_eq!(response.header("x-omniglot-estimated"), estimated);
        ids.push((response.header("x-request-id").to_owned(), milliseconds));
    }
    let response = ask(KEY, "by-minute", "srt").await;
    assert_eq!(response.header("x-omniglot-estimated"), "true");
    let cost: f64 = response.header("x-omniglot-cost").parse().expect("a cost");
    assert!((0.04096..0.045).contains(&cost), "{cost}");
    // An upstream that counts tokens is billed for these too, which have no price here.
    let fields = [
        ("model", "by-minute"),
        ("prompt", "mock:usage=50,0,4,0 mock:text=hi"),
        ("file", "x"),
    ];
    let response = send_form(&gateway, FORMS[0], KEY, &fields).await;
    assert_eq!(response.status, 200, "{}", response.text());
    // Ten minutes are reserved.
    assert_eq!(ask("key-poor", "by-minute", "json").await.status, 429);
    let refused = ask("key-capped", "endless", "json").await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(
        refused.error("chat").contains("max_audio_minutes"),
        "{}",
        refused.text()
    );
    assert_eq!(ask(KEY, "endless", "json").await.status, 200);
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
    let lines = gateway.process.lines_to_the_end();
    for (id, milliseconds) in ids {
        let mut lines = lines.iter();
        let line = lines.find(|line| line.contains(&id)).expect("a line");
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["audio_ms"], milliseconds, "{line}");
        assert_eq!(
            (&line["input_tokens"], &line["output_tokens"]),
            (&json!(0), &json!(0))
        );
    }
}

#[tokio::test]
async fn a_recording_that_breaks_off_does_not_look_whole() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    let body = speech("voice-chat", "mock:text=one two three mock:cut=2");
    let request = client()
        .post(gateway.url(SPEECH))
        .bearer_auth(KEY)
        .json(&body);
    let mut response = request.send().await.expect("a header");
    assert_eq!(response.status(), 200);
    let mut received = Vec::new();
    let error = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => received.extend_from_slice(&chunk),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert_eq!(received, spoken("one two "));
    assert!(error.is_some(), "the client must see that it is cut");
}

#[tokio::test]
async fn usage_is_metered_and_caps_hold() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 4}, {name: poor, secret: key-poor, spending_cap: 1.5}";
    let models = "  - {id: endless, model_type: audio, pricing: {output: 1}, upstreams: [{name: chat}]}\n  \
                  - {id: by-request, model_type: audio, pricing: {per_request: 1}, upstreams: [{name: chat}]}\n";
    let mut gateway = Gateway::start(&config(mock.address, keys, models));
    // A thousandth for each token of the input, two for each of the output, and one for the request.
    let fields = [
        ("model", "voice-chat"),
        ("prompt", "mock:usage=50,0,4,0 mock:text=hi"),
    ];
    let response = transcribe(&gateway, FORMS[0], &fields).await;
    assert_eq!(response.header("x-omniglot-cost"), "1.058");
    assert_eq!(response.header("x-omniglot-estimated"), "");
    let mut ids = vec![(
        response.header("x-request-id").to_owned(),
        "transcriptions",
        50,
        4,
    )];
    let fields = [
        ("model", "voice-chat"),
        ("prompt", "mock:usage=7,0,3,0 mock:text=hi"),
        ("stream", "true"),
    ];
    let response = transcribe(&gateway, FORMS[1], &fields).await;
    ids.push((
        response.header("x-request-id").to_owned(),
        "translations",
        7,
        3,
    ));
    let mut body = speech("voice-chat", "mock:usage=8,0,2,0 mock:text=hi");
    body["stream_format"] = "sse".into();
    let response = post(gateway.url(SPEECH), body.to_string()).await;
    ids.push((response.header("x-request-id").to_owned(), "speech", 8, 2));
    // A duration is no number of tokens, and text has no usage: both are estimated, a token for a KiB of the recording.
    for format in ["json", "text"] {
        let fields = [
            ("model", "voice-chat"),
            ("prompt", "mock:text=hi"),
            ("response_format", format),
        ];
        let response = transcribe(&gateway, FORMS[0], &fields).await;
        assert_eq!(response.header("x-omniglot-estimated"), "true");
    }
    let ask = async |key: &str, model: &str| {
        send_form(
            &gateway,
            FORMS[0],
            key,
            &[
                ("model", model),
                ("prompt", "mock:usage=50,0,4,0"),
                ("file", "x"),
            ],
        )
        .await
    };
    // 1.7 is reserved: the most input and output of the model.
    assert_eq!(ask("key-poor", "voice-chat").await.status, 429);
    assert_eq!(ask("key-poor", "by-request").await.status, 200);
    for _ in 0..2 {
        let response = ask("key-capped", "voice-chat").await;
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let response = ask("key-capped", "endless").await;
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(
        response.error("chat").contains("max_output_tokens"),
        "{}",
        response.text()
    );
    assert_eq!(ask(KEY, "endless").await.status, 200);
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
    let lines = gateway.process.lines_to_the_end();
    for (id, format, input, output) in ids {
        let line = lines
            .iter()
            .find(|line| line.contains(&id))
            .expect("a line");
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(
            (&line["format"], &line["estimated"]),
            (&json!(format), &json!(false)),
            "{line}"
        );
        assert_eq!(
            (&line["input_tokens"], &line["output_tokens"]),
            (&json!(input), &json!(output)),
            "{line}"
        );
    }
}
