//! Image requests: every family of upstreams, every kind of client, every refusal.

mod clients;
mod files;
mod inputs;
mod memory;
mod restart;
mod shares;
mod tasks;

use omniglot_test_support::{Gateway, KEY, Mock, new_client};
use reqwest::Response;
use serde_json::{Value, json};

/// The mock as an upstream of the images format, of the native one and of chat.
pub fn config(mock: &Mock) -> String {
    let at = mock.address;
    format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\n\
         keys: [{{name: all, secret: {KEY}}}, {{name: other, secret: key-of-other}}]\n\
         upstreams:\n\
         - {{name: painter, format: images, base_url: \"http://{at}/v1\", auth: {{bearer: theirs}}}}\n\
         - {{name: google, format: native, base_url: \"http://{at}\"}}\n\
         - {{name: talker, format: chat, base_url: \"http://{at}/v1\"}}\n\
         - {{name: writer, format: messages, base_url: \"http://{at}\"}}\n\
         - {{name: answerer, format: responses, base_url: \"http://{at}/v1\"}}\n\
         - {{name: nobody, format: images, base_url: \"http://127.0.0.1:9\"}}\n\
         models:\n\
         - {{id: art, model_type: image, upstreams: [{{name: painter, model: theirs-art}}]}}\n\
         - {{id: sized, model_type: image, capabilities: {{image_sizes: [1024x1024, 512x1024]}}, \
             upstreams: [{{name: painter}}]}}\n\
         - {{id: native-art, model_type: image, upstreams: [{{name: google, model: their-native}}]}}\n\
         - {{id: chat-art, features: [image_output], upstreams: [{{name: talker}}]}}\n\
         - {{id: images-at-chat, model_type: image, upstreams: [{{name: talker}}]}}\n\
         - {{id: images-at-messages, model_type: image, upstreams: [{{name: writer}}]}}\n\
         - {{id: images-at-responses, model_type: image, upstreams: [{{name: answerer}}]}}\n\
         - {{id: failing, model_type: image, upstreams: [{{name: nobody}}], fallbacks: [art]}}\n\
         - {{id: priced, model_type: image, pricing: {{input: 1000000, image_output: 2000000, per_request: 5}}, \
             upstreams: [{{name: painter}}]}}\n\
         - {{id: words, upstreams: [{{name: talker}}]}}\n"
    )
}

pub struct ImageGateway {
    pub mock: Mock,
    pub gateway: Gateway,
}

impl ImageGateway {
    pub fn start() -> ImageGateway {
        let mock = Mock::start();
        let gateway = Gateway::start(&config(&mock));
        ImageGateway { mock, gateway }
    }

    pub async fn post(&self, path: &str, body: &Value) -> Response {
        let request = new_client().post(self.gateway.url(path)).bearer_auth(KEY);
        request.json(body).send().await.expect("an answer")
    }

    pub async fn generate(&self, body: &Value) -> Response {
        self.post("/v1/images/generations", body).await
    }

    /// Status, code and message of a refusal.
    pub async fn refused(&self, path: &str, body: &Value) -> (u16, String, String) {
        refusal(self.post(path, body).await).await
    }
}

pub async fn refusal(response: Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.expect("JSON");
    let error = &body["error"];
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    assert!(!text("type").is_empty(), "{body}");
    (status, text("code"), text("message"))
}

pub fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    let value = response.headers().get(name);
    value.map_or("", |value| value.to_str().expect("text"))
}

/// What the upstream got, told by its echo.
pub fn echoed(body: &Value) -> Value {
    let words = body["data"][0]["revised_prompt"].as_str().expect("an echo");
    serde_json::from_str(words).expect("JSON")
}

/// An image of one pixel, as the mock paints it.
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQazsIAAJbAXYK9nzKAAAAAElFTkSuQmCC";

#[tokio::test]
async fn an_images_upstream_gets_the_request_and_its_response_passes_through() {
    let setup = ImageGateway::start();
    let body = json!({"model": "art", "prompt": "a cat mock:echo", "n": 2, "quality": "high", "size": "1024x1536",
        "output_format": "webp", "output_compression": 80, "background": "opaque", "moderation": "low",
        "response_format": "b64_json", "user": "u", "seed": 7, "steps": 20});
    let response = setup.generate(&body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "x-omniglot-upstream"), "painter");
    assert_eq!(header(&response, "x-omniglot-dropped"), "");
    let message: Value = response.json().await.expect("JSON");
    assert_eq!(message["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(message["data"][0]["b64_json"], PIXEL);
    for (field, value) in [
        ("background", json!("opaque")),
        ("output_format", json!("png")),
        ("quality", json!("low")),
        ("size", json!("1024x1536")),
        ("created", json!(1_760_000_000)),
    ] {
        assert_eq!(message[field], value, "{field}");
    }
    assert_eq!(
        message["usage"]["output_tokens_details"]["image_tokens"],
        544
    );
    let echo = echoed(&message);
    assert_eq!(echo["path"], "/v1/images/generations");
    assert_eq!(echo["headers"]["authorization"], "Bearer theirs");
    let sent: Value = serde_json::from_str(echo["body"].as_str().expect("a body")).expect("JSON");
    let mut expected = body;
    expected["model"] = "theirs-art".into();
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_native_model_gets_the_nearest_aspect_ratio_and_its_image_comes_back() {
    let setup = ImageGateway::start();
    let body = json!({"model": "native-art", "prompt": "a cat", "size": "1920x1080", "quality": "high", "user": "u"});
    let response = setup.generate(&body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "x-omniglot-adjusted"), "size");
    assert_eq!(header(&response, "x-omniglot-dropped"), "quality, user");
    let told: Value = response.json().await.expect("JSON");
    let data = json!([{"b64_json": PIXEL}]);
    assert_eq!(told["data"], data);
    assert_eq!(
        (&told["output_format"], &told["size"]),
        (&json!("png"), &json!("1x1"))
    );
    assert!(told["usage"]["output_tokens"].as_u64() > Some(0), "{told}");
    assert!(told["created"].as_i64() > Some(0), "{told}");

    let echo =
        json!({"model": "native-art", "prompt": "mock:error=400,x mock:echo", "size": "2048x2048"});
    let (status, _, message) = setup.refused("/v1/images/generations", &echo).await;
    assert_eq!((status, &*message), (400, "x"));
}

#[tokio::test]
async fn a_chat_model_that_makes_images_is_supported() {
    let setup = ImageGateway::start();
    let response = setup
        .generate(&json!({"model": "chat-art", "prompt": "a cat"}))
        .await;
    assert_eq!(response.status(), 200);
    let message: Value = response.json().await.expect("JSON");
    assert_eq!(message["data"][0]["b64_json"], PIXEL);
}

#[tokio::test]
async fn urls_are_returned_when_requested() {
    let setup = ImageGateway::start();
    let body = json!({"model": "art", "prompt": "a cat", "response_format": "url"});
    let message: Value = setup.generate(&body).await.json().await.expect("JSON");
    let url = message["data"][0]["url"].as_str().expect("an address");
    assert!(url.contains("/mock/files/"), "{url}");
    let body = json!({"model": "native-art", "prompt": "a cat", "response_format": "url"});
    let response = setup.generate(&body).await;
    assert_eq!(header(&response, "x-omniglot-dropped"), "response_format");
}

#[tokio::test]
async fn partial_images_are_streamed_and_native_streams_end_with_an_image() {
    let setup = ImageGateway::start();
    let body = json!({"model": "art", "prompt": "a cat", "stream": true, "partial_images": 2});
    let response = setup.generate(&body).await;
    assert_eq!(header(&response, "content-type"), "text/event-stream");
    let text = response.text().await.expect("a stream");
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    let draft = "image_generation.partial_image";
    assert_eq!(names, [draft, draft, "image_generation.completed"]);

    let body = json!({"model": "native-art", "prompt": "a cat", "stream": true});
    let text = setup.generate(&body).await.text().await.expect("a stream");
    let data = text
        .strip_prefix("event: image_generation.completed\ndata: ")
        .expect("one event");
    let event: Value = serde_json::from_str(data.trim()).expect("JSON");
    assert_eq!(
        (&event["type"], &event["b64_json"]),
        (&json!("image_generation.completed"), &json!(PIXEL))
    );
    assert!(event["usage"]["total_tokens"].as_u64() > Some(0), "{event}");

    for (model, end) in [
        ("art", "mock:no_end"),
        ("native-art", "mock:no_end"),
        ("native-art", "mock:filtered"),
    ] {
        let body = json!({"model": model, "prompt": end, "stream": true, "partial_images": 1});
        let response = setup.generate(&body).await;
        let text = response.text().await.expect("a stream");
        assert!(text.contains("\"error\""), "{model} {end}: {text}");
        assert!(!text.contains("completed"), "{model} {end}: {text}");
    }
}

#[tokio::test]
async fn a_failing_upstream_is_followed_by_the_next() {
    let setup = ImageGateway::start();
    let response = setup
        .generate(&json!({"model": "failing", "prompt": "a cat"}))
        .await;
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "x-omniglot-attempts"), "2");
    assert_eq!(header(&response, "x-omniglot-upstream"), "painter");
}

#[tokio::test]
async fn images_are_billed_by_their_own_tokens() {
    let setup = ImageGateway::start();
    let body = json!({"model": "priced", "prompt": "mock:usage=3,0,100,0"});
    let response = setup.generate(&body).await;
    assert_eq!(header(&response, "x-omniglot-cost"), "208");
}

#[tokio::test]
async fn invalid_requests_are_refused_before_an_upstream_is_used() {
    let setup = ImageGateway::start();
    let path = "/v1/images/generations";
    for (body, status, code, words) in [
        (
            json!({"model": "words", "prompt": "a"}),
            400,
            "invalid_model",
            "invalid model",
        ),
        (
            json!({"model": "none", "prompt": "a"}),
            404,
            "model_not_found",
            "none",
        ),
        (json!({"prompt": "a"}), 400, "", "model"),
        (json!({"model": "art"}), 400, "", "prompt"),
        (json!({"model": "art", "prompt": " "}), 400, "", "prompt"),
        (json!({"model": "art", "prompt": 5}), 400, "", "prompt"),
        (
            json!({"model": "art", "prompt": "a", "n": 0}),
            400,
            "",
            "n: expected 1 to 10",
        ),
        (
            json!({"model": "native-art", "prompt": "a", "n": 11}),
            400,
            "",
            "n: expected 1 to 10",
        ),
        (
            json!({"model": "art", "prompt": "a", "size": "big"}),
            400,
            "unsupported_size",
            "like 1024x1536",
        ),
        (
            json!({"model": "sized", "prompt": "a", "size": "300x300"}),
            400,
            "unsupported_size",
            "use 1024x1024, 512x1024, or auto",
        ),
        (
            json!({"model": "art", "prompt": "a", "output_format": "bmp"}),
            400,
            "",
            "png, jpeg, webp",
        ),
        (
            json!({"model": "art", "prompt": "a", "output_compression": 101}),
            400,
            "",
            "0 to 100",
        ),
        (
            json!({"model": "art", "prompt": "a", "partial_images": 4}),
            400,
            "",
            "0 to 3",
        ),
        (
            json!({"model": "art", "prompt": "a", "response_format": "png"}),
            400,
            "",
            "url, b64_json",
        ),
        (
            json!({"model": "art", "prompt": "a".repeat(32_001)}),
            400,
            "",
            "at most 32000",
        ),
        // What upstreams refuse.
        (
            json!({"model": "art", "prompt": "mock:filtered"}),
            400,
            "moderation_blocked",
            "safety",
        ),
        (
            json!({"model": "native-art", "prompt": "mock:filtered"}),
            400,
            "content_policy_violation",
            "refused",
        ),
        (
            json!({"model": "native-art", "prompt": "mock:text=no"}),
            400,
            "no_image",
            "no",
        ),
        (
            json!({"model": "art", "prompt": "mock:error=401"}),
            502,
            "",
            "credentials",
        ),
        (
            json!({"model": "art", "prompt": "mock:empty"}),
            502,
            "",
            "cannot be decoded",
        ),
        (
            json!({"model": "art", "prompt": "mock:error=503"}),
            503,
            "overloaded",
            "overloaded",
        ),
    ] {
        let (got, said, message) = setup.refused(path, &body).await;
        assert_eq!((got, &*said), (status, code), "{body}: {message}");
        assert!(message.contains(words), "{body}: {message}");
    }
    let large = json!({"model": "sized", "prompt": "a", "size": "auto"});
    assert_eq!(setup.generate(&large).await.status(), 200);
    let get = new_client()
        .get(setup.gateway.url(path))
        .bearer_auth(KEY)
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        (get.status().as_u16(), header(&get, "allow")),
        (405, "POST")
    );
    let nobody = new_client()
        .post(setup.gateway.url(path))
        .json(&large)
        .send()
        .await
        .expect("an answer");
    assert_eq!(refusal(nobody).await.0, 401);
    let nowhere = new_client()
        .post(setup.gateway.url("/v1/images/nowhere"))
        .bearer_auth(KEY);
    assert_eq!(
        refusal(nowhere.send().await.expect("an answer")).await.0,
        404
    );
}
