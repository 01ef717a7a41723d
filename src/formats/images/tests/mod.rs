//! Translation between the images format and the others.

use serde_json::{Value, json};

use crate::formats::{
    Capabilities, Framing, Operation, RequestHead, ResponseOptions, UpstreamTarget,
};
use crate::model::{Action, ApiError, Event, Format, Losses, Request, TranslationState};
use crate::sse::SseWriter;

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQazsIAAJbAXYK9nzKAAAAAElFTkSuQmCC";

/// The body for an upstream, and the losses with their paths in the client's format.
fn translated(from: Format, to: Format, body: &Value) -> Result<(Value, Vec<String>), ApiError> {
    let body = body.to_string();
    let mut losses = Losses::default();
    let request =
        from.codec()
            .decode_request(&RequestHead::default(), body.as_bytes(), &mut losses)?;
    let body = encode(to, &request, &mut losses)?;
    let paths = losses.0.iter().map(|loss| {
        let sign = match loss.action {
            Action::Dropped => '-',
            Action::Approximated => '~',
            Action::Added => '+',
        };
        format!("{sign}{}", from.codec().path_of(&loss.location))
    });
    let body = serde_json::from_slice(&body).expect("JSON");
    Ok((body, paths.collect()))
}

fn encode(to: Format, request: &Request<'_>, losses: &mut Losses) -> Result<Vec<u8>, ApiError> {
    let target = UpstreamTarget {
        model: "theirs",
        stream: false,
        max_output_tokens: None,
        capabilities: &Capabilities::default(),
        brand: "google",
        images_only: true,
    };
    to.codec().encode_request(request, &target, losses)
}

fn options(edits: bool) -> ResponseOptions {
    ResponseOptions {
        model: "art".to_owned(),
        stream: true,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req_1".to_owned(),
        created_at: 7,
        translation_state: TranslationState {
            image_edit: edits,
            ..TranslationState::default()
        },
    }
}

#[test]
fn a_native_upstream_gets_every_setting_it_has() {
    let url = format!("data:image/jpeg;base64,{PIXEL}");
    let body = json!({"model": "art", "prompt": "a hat", "n": 2, "size": "2048x2048", "seed": 7,
        "background": "opaque", "output_format": "webp", "image": [url, "https://example.com/cat.webp"]});
    let (sent, losses) = translated(Format::Images, Format::Native, &body).expect("a request");
    let expected = json!({
        "contents": [{"role": "user", "parts": [{"text": "a hat"},
            // By its first bytes it is no JPEG.
            {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
            {"fileData": {"mimeType": "image/webp", "fileUri": "https://example.com/cat.webp"}}]}],
        "generationConfig": {"seed": 7, "candidateCount": 2, "responseModalities": ["TEXT", "IMAGE"],
            "imageConfig": {"aspectRatio": "1:1", "imageSize": "2K"}},
    });
    assert_eq!(sent, expected);
    assert_eq!(losses, ["-output_format", "-background"]);
}

#[test]
fn a_conversation_becomes_a_prompt_and_input_images() {
    let url = format!("data:image/png;base64,{PIXEL}");
    let body = json!({"model": "art", "modalities": ["image"], "temperature": 1, "user": "u", "messages": [
        {"role": "system", "content": "In oil."},
        {"role": "user", "content": [{"type": "text", "text": "a hat"},
            {"type": "image_url", "image_url": {"url": url}}]}]});
    let (sent, losses) = translated(Format::Chat, Format::Images, &body).expect("a request");
    let expected = json!({"model": "theirs", "prompt": "In oil.\n\na hat", "images": [{"image_url": url}], "user": "u"});
    assert_eq!(sent, expected);
    assert_eq!(losses, ["~messages[0]", "-temperature"]);
    let mut losses = Losses::default();
    let text = body.to_string();
    let chat = Format::Chat.codec();
    let request = chat.decode_request(&RequestHead::default(), text.as_bytes(), &mut losses);
    let codec = Format::Images.codec();
    let request = request.expect("a request");
    assert_eq!(codec.upstream_operation(&request, false), Operation::Edit);
    assert_eq!(codec.upstream_path(Operation::Edit, "m"), "/images/edits");
    assert_eq!(
        codec.upstream_path(Operation::Generate, "m"),
        "/images/generations"
    );
}

#[test]
fn content_that_cannot_become_an_image_is_refused() {
    let ask = |messages: Value| {
        let body = json!({"model": "art", "modalities": ["image"], "messages": messages});
        let refused = translated(Format::Chat, Format::Images, &body);
        refused.err().map(|api_error| api_error.message.clone())
    };
    let sound = json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}});
    let refused = ask(json!([{"role": "user", "content": [{"type": "text", "text": "a"}, sound]}]));
    assert!(refused.expect("a refusal").contains("only images"));
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let refused = ask(json!([{"role": "assistant", "tool_calls": [call]}]));
    assert!(
        refused
            .expect("a refusal")
            .contains("does not accept tool calls")
    );
    assert!(
        ask(json!([{"role": "user", "content": " "}]))
            .expect("a refusal")
            .contains("needs a text")
    );
    let body = json!({"model": "art", "messages": [{"role": "user", "content": "hello"}]});
    let api_error = translated(Format::Chat, Format::Images, &body).expect_err("a refusal");
    assert_eq!(api_error.code.as_deref(), Some("invalid_model"));
}

#[test]
fn aspect_ratios_become_the_nearest_size_of_the_model() {
    for (shape, size, count) in [
        (json!({"aspectRatio": "1:1"}), "1024x1024", 0),
        (json!({"aspectRatio": "21:9"}), "1536x1024", 1),
        (
            json!({"aspectRatio": "3:4", "imageSize": "2K"}),
            "1024x1536",
            1,
        ),
    ] {
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "a"}]}],
            "generationConfig": {"responseModalities": ["IMAGE"], "imageConfig": shape}});
        let (sent, losses) = translated(Format::Native, Format::Images, &body).expect("a request");
        assert_eq!(
            (&sent["size"], losses.len()),
            (&json!(size), count),
            "{shape}"
        );
    }
}

#[test]
fn responses_carry_the_properties_of_their_images() {
    let usage = json!({"promptTokenCount": 5, "candidatesTokenCount": 1290, "totalTokenCount": 1295,
        "promptTokensDetails": [{"modality": "IMAGE", "tokenCount": 2}],
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}]});
    let parts =
        json!([{"text": "Here."}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]);
    let response = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage});
    let body = response.to_string();
    let native = Format::Native.codec();
    let response = native.decode_response(body.as_bytes(), &mut Losses::default());
    let response = response.expect("a response");
    let images = Format::Images.codec();
    images.check_response(&response).expect("an image");
    let encoded = images.encode_response(&response, &options(false), &mut Losses::default());
    let encoded: Value = serde_json::from_slice(&encoded).expect("JSON");
    let expected = json!({"created": 7, "background": "opaque", "output_format": "png", "size": "1x1",
        "data": [{"b64_json": PIXEL}],
        "usage": {"input_tokens": 5, "input_tokens_details": {"image_tokens": 2, "text_tokens": 3},
            "output_tokens": 1290, "output_tokens_details": {"image_tokens": 1290, "text_tokens": 0},
            "total_tokens": 1295}});
    assert_eq!(encoded, expected);
    // The encoded response can be decoded again.
    let text = encoded.to_string();
    let again = images
        .decode_response(text.as_bytes(), &mut Losses::default())
        .expect("a response");
    let native = native.encode_response(&again, &options(false), &mut Losses::default());
    let native: Value = serde_json::from_slice(&native).expect("JSON");
    let part = &native["candidates"][0]["content"]["parts"][0];
    assert_eq!(
        part["inlineData"],
        json!({"mimeType": "image/png", "data": PIXEL})
    );
}

#[test]
fn a_response_without_an_image_is_an_error_with_the_reason() {
    let native = |response: Value| {
        let body = response.to_string();
        let codec = Format::Native.codec();
        let response = codec.decode_response(body.as_bytes(), &mut Losses::default());
        let api_error = Format::Images
            .codec()
            .check_response(&response.expect("a response"));
        let api_error = api_error.expect_err("no image");
        (
            api_error.status,
            api_error.code.clone().unwrap_or_default(),
            api_error.message.clone(),
        )
    };
    let (status, code, message) =
        native(json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}));
    assert_eq!((status, &*code), (400, "content_policy_violation"));
    assert!(message.contains("PROHIBITED_CONTENT"), "{message}");
    let words = json!({"parts": [{"text": "I would rather talk."}]});
    let (status, code, message) =
        native(json!({"candidates": [{"content": words, "finishReason": "STOP"}]}));
    assert_eq!((status, &*code), (400, "no_image"));
    assert!(message.contains("rather talk"), "{message}");
    let (_, code, _) = native(json!({"candidates": [{"finishReason": "IMAGE_SAFETY"}]}));
    assert_eq!(code, "content_policy_violation");
}

#[test]
fn streams_of_images_are_decoded_and_encoded() {
    let events = [
        json!({"type": "image_generation.partial_image", "b64_json": "AAAA", "partial_image_index": 0}),
        json!({"type": "image_generation.completed", "b64_json": PIXEL, "created_at": 9,
            "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}),
    ];
    let codec = Format::Images.codec();
    for (edits, name) in [
        (false, "image_generation.completed"),
        (true, "image_edit.completed"),
    ] {
        let mut decoder = codec.stream_decoder();
        let mut encoder = codec.stream_encoder(&options(edits));
        let mut out = SseWriter::default();
        let mut pass = |event: Event<'_>| encoder.encode_event(event, &mut out);
        for event in &events {
            decoder
                .decode_event(&event.to_string(), &mut pass)
                .expect("an event");
        }
        decoder.finish(&mut pass).expect("the end");
        let encoded = out.take();
        let encoded = std::str::from_utf8(&encoded).expect("text");
        let data = encoded
            .strip_prefix(&format!("event: {name}\ndata: "))
            .expect("one event");
        let event: Value = serde_json::from_str(data.trim()).expect("JSON");
        assert_eq!(
            (&event["b64_json"], &event["created_at"]),
            (&json!(PIXEL), &json!(9))
        );
        assert_eq!(event["usage"]["total_tokens"], 3);
    }
    let mut decoder = codec.stream_decoder();
    decoder
        .decode_event(&events[0].to_string(), &mut |_| {})
        .expect("a partial image");
    assert!(decoder.finish(&mut |_| {}).is_err());
    let error = json!({"type": "error", "error": {"message": "No.", "code": "moderation_blocked"}});
    let api_error = codec
        .stream_decoder()
        .decode_event(&error.to_string(), &mut |_| {});
    assert_eq!(api_error.expect_err("an error").message, "No.");
}
