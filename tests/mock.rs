//! The mock over a real socket: its responses, its failures, and its counts of requests.

use std::future::Future;
use std::io::Read as _;
use std::time::Duration;

use omniglot::mock;
use omniglot::model::Format;
use reqwest::{Client, ClientBuilder, Response, Version};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

/// Decides no test; it only keeps a broken one from hanging.
const TIMEOUT: Duration = Duration::from_secs(60);

struct Mock {
    base: String,
    client: Client,
}

fn client() -> ClientBuilder {
    // A client without a provider cannot be built, although nothing here is encrypted.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let none = reqwest::redirect::Policy::none();
    Client::builder().redirect(none).no_proxy()
}

impl Mock {
    async fn start() -> Mock {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(mock::serve(listener, std::future::pending()));
        let client = client().build().unwrap();
        Mock { base, client }
    }

    async fn post(&self, path: &str, body: &Value) -> Response {
        let url = format!("{}{path}", self.base);
        self.client.post(url).json(body).send().await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.base);
        let response = self.client.get(url).send().await.unwrap();
        response.json().await.unwrap()
    }

    async fn send_request(
        &self,
        format: Format,
        model: &str,
        prompt: &str,
        stream: bool,
    ) -> Response {
        let (path, body) = request_body(format, model, prompt, stream);
        self.post(&path, &body).await
    }

    async fn chat(&self, prompt: &str) -> Response {
        self.send_request(Format::Chat, "demo", prompt, false).await
    }

    async fn chat_stream(&self, prompt: &str) -> Response {
        self.send_request(Format::Chat, "demo", prompt, true).await
    }

    /// The text of a chat answer.
    async fn chat_text(&self, prompt: &str) -> String {
        let body: Value = self.chat(prompt).await.json().await.unwrap();
        let text = body["choices"][0]["message"]["content"].as_str();
        text.unwrap_or_else(|| panic!("no text in {body}"))
            .to_owned()
    }

    async fn until_seen(&self, name: &str, field: &str, count: u64) {
        while self.get(&format!("/mock/seen/{name}")).await[field] != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn request_body(format: Format, model: &str, prompt: &str, stream: bool) -> (String, Value) {
    let messages = json!([{"role": "user", "content": prompt}]);
    match format {
        Format::Chat => (
            "/v1/chat/completions".to_owned(),
            json!({"model": model, "messages": messages, "stream": stream}),
        ),
        Format::Messages => (
            "/v1/messages".to_owned(),
            json!({"model": model, "messages": messages, "max_tokens": 100, "stream": stream}),
        ),
        Format::Responses => (
            "/v1/responses".to_owned(),
            json!({"model": model, "input": prompt, "stream": stream}),
        ),
        Format::Images => (
            "/v1/images/generations".to_owned(),
            json!({"model": model, "prompt": prompt, "stream": stream}),
        ),
        Format::Native => {
            let verb = if stream {
                "streamGenerateContent?alt=sse"
            } else {
                "generateContent"
            };
            let contents = json!([{"role": "user", "parts": [{"text": prompt}]}]);
            (
                format!("/v1beta/models/{model}:{verb}"),
                json!({"contents": contents}),
            )
        }
    }
}

async fn with_timeout(test: impl Future<Output = ()>) {
    tokio::time::timeout(TIMEOUT, test).await.expect("it hangs");
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    let value = response.headers().get(name);
    value.map_or("", |value| value.to_str().unwrap())
}

fn digest(body: &str) -> String {
    let digest = Sha256::digest(body);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn every_format_responds_with_json_and_with_events() {
    with_timeout(async {
        let mock = Mock::start().await;
        for format in Format::ALL {
            let response = mock.send_request(format, "demo", "hello", false).await;
            assert_eq!(response.status(), 200, "{format:?}");
            assert_eq!(header(&response, "content-type"), "application/json");
            let body = response.text().await.unwrap();
            assert!(body.contains("You said: hello"), "{format:?}: {body}");
            serde_json::from_str::<Value>(&body).unwrap();
            let response = mock.send_request(format, "demo", "hello", true).await;
            assert_eq!(header(&response, "content-type"), "text/event-stream");
            let body = response.text().await.unwrap();
            assert!(body.contains("\"said: \""), "{format:?}: {body}");
        }
    })
    .await;
}

#[tokio::test]
async fn native_paths_take_escapes_slashes_and_array_framing() {
    with_timeout(async {
        let mock = Mock::start().await;
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]});
        for path in [
            "/v1beta/models/acme/demo:generateContent",
            "/v1/models/demo%3AgenerateContent",
        ] {
            assert_eq!(mock.post(path, &body).await.status(), 200, "{path}");
        }
        let path = "/v1beta/models/demo:streamGenerateContent";
        let response = mock.post(path, &body).await;
        assert_eq!(header(&response, "content-type"), "application/json");
        let chunks: Vec<Value> = response.json().await.unwrap();
        assert!(chunks.len() > 1);
        let path = "/v1beta/models/demo+status_200_error:streamGenerateContent";
        let chunks: Vec<Value> = mock.post(path, &body).await.json().await.unwrap();
        assert_eq!(chunks[0]["error"]["code"], 500);
        let path = "/v1beta/models/demo:sing";
        assert_eq!(mock.post(path, &body).await.status(), 404);
    })
    .await;
}

#[tokio::test]
async fn tokens_are_counted_in_words() {
    with_timeout(async {
        let mock = Mock::start().await;
        let messages = json!([{"role": "user", "content": "three short words"}]);
        let counted = mock
            .post(
                "/v1/messages/count_tokens",
                &json!({"model": "demo", "messages": messages}),
            )
            .await;
        let counted: Value = counted.json().await.unwrap();
        assert_eq!(counted, json!({"input_tokens": 3}));
        let counted = mock
            .post(
                "/v1/responses/input_tokens",
                &json!({"model": "demo", "input": "three short words"}),
            )
            .await;
        let counted: Value = counted.json().await.unwrap();
        assert_eq!(counted["input_tokens"], 3);
        let contents = json!([{"role": "user", "parts": [{"text": "three short words"}]}]);
        for body in [
            json!({"contents": contents}),
            json!({"generateContentRequest": {"model": "models/demo", "contents": contents}}),
        ] {
            let counted = mock.post("/v1beta/models/demo:countTokens", &body).await;
            let counted: Value = counted.json().await.unwrap();
            assert_eq!(counted, json!({"totalTokens": 3}), "{body}");
        }
    })
    .await;
}

#[tokio::test]
async fn token_counting_refuses_unknown_fields() {
    with_timeout(async {
        let mock = Mock::start().await;
        let messages = json!([{"role": "user", "content": "Hi"}]);
        let contents = json!([{"parts": [{"text": "Hi"}]}]);
        let native = "/v1beta/models/demo:countTokens";
        for (path, body, words) in [
            (
                "/v1/messages/count_tokens",
                json!({"model": "demo", "messages": messages, "max_tokens": 9}),
                "max_tokens: Extra inputs are not permitted",
            ),
            (
                "/v1/responses/input_tokens",
                json!({"model": "demo", "input": "Hi", "store": false}),
                "Unknown parameter: 'store'.",
            ),
            (
                native,
                json!({"contents": contents, "systemInstruction": {"parts": []}}),
                "Unknown name \"systemInstruction\"",
            ),
            (
                native,
                json!({"generateContentRequest": {"contents": contents}}),
                "GenerateContentRequest.model",
            ),
            (
                native,
                json!({"generateContentRequest": {"model": "models/other"}}),
                "GenerateContentRequest.model",
            ),
            (
                native,
                json!({"generateContentRequest": {"model": "models/demo", "stream": 1}}),
                "Unknown name \"stream\"",
            ),
        ] {
            let refused = mock.post(path, &body).await;
            assert_eq!(refused.status(), 400, "{body}");
            let refused: Value = refused.json().await.unwrap();
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains(words), "{message}");
        }
    })
    .await;
}

#[tokio::test]
async fn models_are_listed_in_the_clients_format() {
    with_timeout(async {
        let mock = Mock::start().await;
        assert_eq!(mock.get("/v1/models").await["data"][0]["object"], "model");
        assert_eq!(mock.get("/v1/models/a/b").await["id"], "a/b");
        let native = mock.get("/v1beta/models").await;
        assert_eq!(native["models"][0]["name"], "models/demo-chat");
        let request = mock.client.get(format!("{}/v1/models", mock.base));
        let response = request.header("anthropic-version", "2023-06-01").send();
        let listed: Value = response.await.unwrap().json().await.unwrap();
        assert_eq!(listed["data"][0]["type"], "model");
    })
    .await;
}

#[tokio::test]
async fn images_are_generated_and_edited() {
    with_timeout(async {
        let mock = Mock::start().await;
        let expected = json!({"model": "demo-image", "prompt": "a cat", "n": 2});
        let painted = mock.post("/v1/images/generations", &expected).await;
        let painted: Value = painted.json().await.unwrap();
        assert_eq!(painted["data"].as_array().unwrap().len(), 2);
        assert!(
            painted["data"][1]["b64_json"]
                .as_str()
                .unwrap()
                .starts_with("iVBORw0")
        );
        assert_eq!(painted["usage"]["input_tokens"], 2);
        let form = "--x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n\
                    mock:error=429 a cat\r\n--x--\r\n";
        let edit = mock.client.post(format!("{}/v1/images/edits", mock.base));
        let edit = edit.header("content-type", "multipart/form-data; boundary=x");
        assert_eq!(edit.body(form).send().await.unwrap().status(), 429);
    })
    .await;
}

#[tokio::test]
async fn errors_have_the_status_asked_for_and_the_shape_of_the_format() {
    with_timeout(async {
        let mock = Mock::start().await;
        for format in Format::ALL {
            for status in [400, 401, 429, 500, 503, 529] {
                let model = format!("demo+error={status},because");
                let response = mock.send_request(format, &model, "hello", true).await;
                assert_eq!(response.status(), status, "{format:?}");
                let retry = if status == 429 { "7" } else { "" };
                assert_eq!(header(&response, "retry-after"), retry);
                let body: Value = response.json().await.unwrap();
                assert_eq!(body["error"]["message"], "because", "{format:?}");
            }
            let response = mock
                .send_request(format, "demo+nonsense", "hello", false)
                .await;
            assert_eq!(response.status(), 400, "{format:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn unreadable_responses_can_be_requested() {
    with_timeout(async {
        let mock = Mock::start().await;
        for (format, stream) in Format::ALL
            .into_iter()
            .flat_map(|f| [(f, false), (f, true)])
        {
            let send_request =
                async |model: &str| mock.send_request(format, model, "hello", stream).await;
            let page = send_request("demo+html").await;
            assert_eq!(page.status(), 200);
            assert!(header(&page, "content-type").starts_with("text/html"));
            let empty = send_request("demo+empty").await;
            assert_eq!(empty.status(), 200);
            assert_eq!(empty.text().await.unwrap(), "");
            let elsewhere = send_request("demo+redirect").await;
            assert_eq!(elsewhere.status(), 302);
            assert_ne!(header(&elsewhere, "location"), "");
            let garbage = send_request("demo+garbage").await;
            assert_eq!(garbage.status(), 200);
            let garbage = garbage.text().await.unwrap();
            let payload = garbage.trim_start_matches("data: ");
            assert!(serde_json::from_str::<Value>(payload).is_err());
            let failed = send_request("demo+status_200_error").await;
            assert_eq!(failed.status(), 200);
            let failed = failed.text().await.unwrap();
            assert!(
                failed.contains("The mock broke off"),
                "{format:?}: {failed}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused() {
    with_timeout(async {
        let mock = Mock::start().await;
        assert_eq!(mock.post("/v1/nothing", &json!({})).await.status(), 404);
        let get = mock.client.get(format!("{}/v1/messages", mock.base));
        assert_eq!(get.send().await.unwrap().status(), 405);
        let bad = mock.client.post(format!("{}/v1/messages", mock.base));
        assert_eq!(bad.body("{").send().await.unwrap().status(), 400);
    })
    .await;
}

#[tokio::test]
async fn the_connection_is_cut_where_requested() {
    with_timeout(async {
        let mock = Mock::start().await;
        let half = mock.chat("mock:cut").await;
        assert_eq!(half.status(), 200);
        assert!(half.content_length().unwrap() > 0);
        half.bytes().await.expect_err("half of what was promised");
        for events in 0..4 {
            let mut response = mock
                .chat_stream(&format!("mock:cut={events} one two three"))
                .await;
            let mut received = String::new();
            let broken = loop {
                match response.chunk().await {
                    Ok(Some(chunk)) => received.push_str(std::str::from_utf8(&chunk).unwrap()),
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            assert!(broken, "not a clean end");
            assert_eq!(received.matches("\n\n").count(), events);
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_can_fail_or_end_early() {
    with_timeout(async {
        let mock = Mock::start().await;
        let failed = mock
            .chat_stream("mock:stream_error=2 mock:text=a b c")
            .await;
        let failed = failed.text().await.unwrap();
        assert!(failed.contains("\"b \"") && !failed.contains("\"c\""));
        assert!(failed.contains("The mock broke off"), "{failed}");
        let endless = mock.chat_stream("mock:no_end mock:text=a b c").await;
        let endless = endless.text().await.unwrap();
        assert!(endless.contains("\"c\""));
        assert!(!endless.contains("[DONE]") && !endless.contains("\"stop\""));
    })
    .await;
}

#[tokio::test]
async fn a_stream_has_as_many_deltas_as_asked_for() {
    with_timeout(async {
        let mock = Mock::start().await;
        for events in [1, 7, 300] {
            let response = mock.chat_stream(&format!("mock:events={events}")).await;
            let text = response.text().await.unwrap();
            let frames = text
                .split("\n\n")
                .filter_map(|frame| frame.strip_prefix("data: "));
            let deltas = frames
                .filter_map(|data| serde_json::from_str::<Value>(data).ok())
                .filter(|chunk| {
                    let content = chunk["choices"][0]["delta"]["content"].as_str();
                    content.is_some_and(|content| !content.is_empty())
                });
            assert_eq!(deltas.count(), events);
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_goes_on_only_when_signalled() {
    with_timeout(async {
        let mock = Mock::start().await;
        let prompt = "mock:wait=go mock:name=held mock:text=one two three";
        let mut response = mock.chat_stream(prompt).await;
        response.chunk().await.unwrap().expect("the first event");
        let mut events = 1;
        loop {
            let seen = loop {
                let seen = mock.get("/mock/seen/held").await;
                if seen["waiting"] == 1 || seen["finished"] == 1 {
                    break seen;
                }
            };
            if seen["finished"] == 1 {
                break;
            }
            let signalled = mock.post("/mock/signal/go", &json!({})).await;
            assert_eq!(signalled.status(), 204);
            let chunk = response.chunk().await.unwrap().expect("one event a signal");
            assert_eq!(chunk.windows(2).filter(|pair| pair == b"\n\n").count(), 1);
            events += 1;
        }
        assert!(events >= 4, "{events}");
        assert!(response.chunk().await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn clients_that_disconnect_are_counted() {
    with_timeout(async {
        let mock = Mock::start().await;
        let prompt = "mock:wait=never mock:name=left hello";
        let mut response = mock.chat_stream(prompt).await;
        response.chunk().await.unwrap().expect("the first event");
        assert_eq!(mock.get("/mock/stats").await["in_flight"], 1);
        drop(response);
        mock.until_seen("left", "cancelled", 1).await;
        let (path, body) = request_body(Format::Chat, "demo", prompt, false);
        let url = format!("{}{path}", mock.base);
        let asking = tokio::spawn(mock.client.post(url).json(&body).send());
        mock.until_seen("left", "waiting", 1).await;
        asking.abort();
        mock.until_seen("left", "cancelled", 2).await;
        let seen = mock.get("/mock/seen/left").await;
        let expected = json!({"started": 2, "finished": 0, "cancelled": 2, "waiting": 0});
        assert_eq!(seen, expected);
        assert_eq!(mock.get("/mock/stats").await["in_flight"], 0);
    })
    .await;
}

#[tokio::test]
async fn the_same_request_gives_the_same_bytes() {
    with_timeout(async {
        let (one, other) = (Mock::start().await, Mock::start().await);
        for (format, stream) in Format::ALL
            .into_iter()
            .flat_map(|f| [(f, false), (f, true)])
        {
            for words in ["hello", "mock:thinking mock:parallel", "mock:long"] {
                let first = one.send_request(format, "demo", words, stream).await;
                let second = other.send_request(format, "demo", words, stream).await;
                let bytes = first.bytes().await.unwrap();
                assert_eq!(bytes, second.bytes().await.unwrap(), "{format:?} {words}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn reasoning_is_signed_alike_in_json_and_in_events() {
    with_timeout(async {
        let mock = Mock::start().await;
        for (format, stream) in Format::ALL
            .into_iter()
            .flat_map(|f| [(f, false), (f, true)])
        {
            let (path, body) = request_body(format, "demo", "mock:thinking hello", stream);
            let mark = &digest(&body.to_string())[..12];
            let response = mock.post(&path, &body).await.text().await.unwrap();
            let signed = response.contains(&format!("\"mock{mark}"));
            assert_eq!(signed, format != Format::Chat, "{format:?}: {response}");
        }
    })
    .await;
}

#[tokio::test]
async fn http2_works_without_tls() {
    with_timeout(async {
        let mock = Mock::start().await;
        let client = client().http2_prior_knowledge().build().unwrap();
        let (path, body) = request_body(Format::Chat, "demo", "hello", true);
        let request = client.post(format!("{}{path}", mock.base)).json(&body);
        let response = request.send().await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        assert!(response.text().await.unwrap().contains("[DONE]"));
    })
    .await;
}

#[tokio::test]
async fn requests_that_arrived_can_be_inspected() {
    with_timeout(async {
        let mock = Mock::start().await;
        let (path, body) = request_body(Format::Chat, "demo", "mock:echo hi", false);
        let request = mock.client.post(format!("{}{path}?beta=true", mock.base));
        let response = request.bearer_auth("secret").json(&body).send();
        let response: Value = response.await.unwrap().json().await.unwrap();
        let echo = response["choices"][0]["message"]["content"]
            .as_str()
            .unwrap();
        let echo: Value = serde_json::from_str(echo).unwrap();
        assert_eq!(echo["path"], "/v1/chat/completions?beta=true");
        assert_eq!(echo["headers"]["authorization"], "Bearer secret");
        assert_eq!(echo["body"], body.to_string());
    })
    .await;
}

#[tokio::test]
async fn large_bodies_arrive_whole() {
    with_timeout(async {
        let mock = Mock::start().await;
        let prompt = format!("{} mock:sha256", "many words ".repeat(300_000));
        let (_, body) = request_body(Format::Chat, "demo", &prompt, false);
        let body = body.to_string();
        let expected = format!("{} bytes {}", digest(&body), body.len());
        assert_eq!(mock.chat_text(&prompt).await, expected);
    })
    .await;
}

#[tokio::test]
async fn vendor_headers_and_compression_are_sent_on_request() {
    with_timeout(async {
        let mock = Mock::start().await;
        let plain = mock.chat("hello").await;
        assert!(!plain.headers().contains_key("set-cookie"));
        let dressed = mock.chat("mock:headers hello").await;
        for name in [
            "openai-organization",
            "request-id",
            "cf-ray",
            "set-cookie",
            "server",
        ] {
            assert_ne!(header(&dressed, name), "", "{name}");
        }
        let packed = mock.chat_stream("mock:gzip hello").await;
        assert_eq!(header(&packed, "content-encoding"), "gzip");
        let packed = packed.bytes().await.unwrap();
        let mut text = String::new();
        let mut reader = flate2::read::GzDecoder::new(&packed[..]);
        reader.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("data: [DONE]\n\n"));
    })
    .await;
}

#[tokio::test]
async fn tool_loops_end() {
    with_timeout(async {
        let mock = Mock::start().await;
        let called: Value = mock.chat("mock:tool hello").await.json().await.unwrap();
        let message = &called["choices"][0]["message"];
        let call = &message["tool_calls"][0];
        assert_eq!(call["function"]["name"], "get_weather");
        let messages = json!([
            {"role": "user", "content": "mock:tool hello"},
            message,
            {"role": "tool", "tool_call_id": call["id"], "content": "sunny"},
        ]);
        let body = json!({"model": "demo", "messages": messages});
        let ended = mock.post("/v1/chat/completions", &body).await;
        let ended: Value = ended.json().await.unwrap();
        assert_eq!(ended["choices"][0]["finish_reason"], "stop");
        let text = ended["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(text.contains("sunny"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn a_response_that_it_was_to_store_is_refused_in_its_own_words() {
    let mock = Mock::start().await;
    let body = json!({"model": "demo", "input": "Hi", "previous_response_id": "resp_1"});
    let refused = mock.post("/v1/responses", &body).await;
    assert_eq!(refused.status(), 400);
    let refused: Value = refused.json().await.unwrap();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the mock stores no responses"),
        "{message}"
    );
    assert!(!message.contains("server."), "{message}");
}
