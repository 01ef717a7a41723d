//! Clients of the other formats whose model makes images, on upstreams that make images.

use serde_json::{Value, json};

use super::{ImageGateway, PIXEL, header};

#[tokio::test]
async fn chat_clients_get_images_in_the_message() {
    let setup = ImageGateway::start();
    for (model, stream) in [
        ("art", false),
        ("native-art", false),
        ("art", true),
        ("native-art", true),
    ] {
        let body = json!({"model": model, "modalities": ["text", "image"], "stream": stream,
            "messages": [{"role": "user", "content": "a cat"}]});
        let response = setup.post("/v1/chat/completions", &body).await;
        assert_eq!(response.status(), 200, "{model} {stream}");
        let text = response.text().await.expect("a body");
        assert!(
            text.contains(&format!("data:image/png;base64,{PIXEL}")),
            "{model} {stream}: {text}"
        );
        assert_eq!(text.contains("[DONE]"), stream, "{text}");
    }
}

#[tokio::test]
async fn responses_clients_get_an_image_item_and_choose_its_settings() {
    let setup = ImageGateway::start();
    for stream in [false, true] {
        let body = json!({"model": "art", "input": "a cat", "stream": stream,
            "tools": [{"type": "image_generation", "size": "1024x1536", "quality": "high", "partial_images": 1}]});
        let response = setup.post("/v1/responses", &body).await;
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "x-omniglot-dropped"), "");
        let text = response.text().await.expect("a body");
        let item = "\"type\":\"image_generation_call\"";
        assert!(text.contains(item) && text.contains(PIXEL), "{text}");
    }
}

/// Two settings may stand in one place.
#[tokio::test]
async fn each_place_of_a_loss_is_named_once() {
    let setup = ImageGateway::start();
    let body = json!({"model": "art", "input": "a cat", "tools": [{"type": "image_generation"},
        {"type": "web_search"}, {"type": "code_interpreter", "container": {"type": "auto"}}]});
    let response = setup.post("/v1/responses", &body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "x-omniglot-dropped"), "tools");
}

#[tokio::test]
async fn native_clients_get_inline_data_and_their_aspect_ratio_becomes_a_size() {
    let setup = ImageGateway::start();
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "a cat"}]}],
        "generationConfig": {"responseModalities": ["IMAGE"], "imageConfig": {"aspectRatio": "16:9"}}});
    let response = setup
        .post("/v1beta/models/art:generateContent", &body)
        .await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        header(&response, "x-omniglot-adjusted"),
        "generationConfig.imageConfig"
    );
    let message: Value = response.json().await.expect("JSON");
    let part = &message["candidates"][0]["content"]["parts"][0]["inlineData"];
    assert_eq!(part, &json!({"mimeType": "image/png", "data": PIXEL}));
    assert_eq!(
        message["usageMetadata"]["candidatesTokensDetails"][0]["modality"],
        "IMAGE"
    );

    let parts = json!([{"text": "a hat mock:name=edit"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]);
    let body = json!({"contents": [{"role": "user", "parts": parts}],
        "generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}});
    let stream = setup
        .post("/v1beta/models/art:streamGenerateContent?alt=sse", &body)
        .await;
    let text = stream.text().await.expect("a stream");
    assert!(
        text.contains(PIXEL) && text.contains("\"finishReason\":\"STOP\""),
        "{text}"
    );
    setup.mock.until_seen("edit", "finished", 1).await;
}

#[tokio::test]
async fn an_image_model_refuses_text_requests() {
    let setup = ImageGateway::start();
    let user = json!([{"role": "user", "content": "hello"}]);
    for (path, body) in [
        (
            "/v1/chat/completions",
            json!({"model": "art", "messages": user}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "native-art", "messages": user}),
        ),
        ("/v1/responses", json!({"model": "art", "input": "hello"})),
    ] {
        let (status, code, message) = setup.refused(path, &body).await;
        assert_eq!(
            (status, &*code),
            (400, "invalid_model"),
            "{path}: {message}"
        );
    }
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]});
    let response = setup
        .post("/v1beta/models/art:generateContent", &body)
        .await;
    assert_eq!(response.status(), 400);
}

/// Whether the upstream has the client's own format or another one.
#[tokio::test]
async fn an_image_model_refuses_requests_for_text_alone_in_every_pair() {
    let setup = ImageGateway::start();
    let user = json!([{"role": "user", "content": "hello"}]);
    for model in [
        "art",
        "native-art",
        "images-at-chat",
        "images-at-messages",
        "images-at-responses",
    ] {
        let chat = json!({"model": model, "messages": user, "modalities": ["text"]});
        let responses =
            json!({"model": model, "input": "hello", "tools": [{"type": "web_search"}]});
        for (path, body, field) in [
            ("/v1/chat/completions", chat, "modalities: "),
            ("/v1/responses", responses, "tools: "),
        ] {
            let (status, code, message) = setup.refused(path, &body).await;
            assert_eq!((status, &*code), (400, "invalid_model"), "{model} {path}");
            assert!(message.starts_with(field), "{model} {path}: {message}");
        }
        let body = json!({"model": model, "max_tokens": 9, "messages": user});
        let response = setup.post("/v1/messages", &body).await;
        assert_eq!(response.status(), 400, "{model}");
        let message = response.text().await.expect("an error");
        assert!(message.contains("/v1/images/generations"), "{message}");
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}],
            "generation_config": {"response_modalities": ["Text"]}});
        let path = format!("/v1beta/models/{model}:streamGenerateContent");
        let response = setup.post(&path, &body).await;
        assert_eq!(response.status(), 400, "{model}");
        let message = response.text().await.expect("an error");
        assert!(message.contains("responseModalities"), "{message}");
    }
    // Native image models answer with images unasked.
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "a cat mock:image"}]}]});
    let response = setup
        .post("/v1beta/models/native-art:generateContent", &body)
        .await;
    assert_eq!(response.status(), 200);
}
