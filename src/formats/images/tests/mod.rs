//! Responses and streams of images, and the operation of a request.

use serde_json::{Value, json};

use crate::formats::{Framing, Operation, RequestHead, ResponseOptions};
use crate::model::{Event, Format, Losses, TranslationState};
use crate::sse::SseWriter;

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQazsIAAJbAXYK9nzKAAAAAElFTkSuQmCC";

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
fn input_images_make_a_request_an_edit() {
    let url = format!("data:image/png;base64,{PIXEL}");
    let body = json!({"model": "art", "modalities": ["image"], "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a hat"},
            {"type": "image_url", "image_url": {"url": url}}]}]});
    let text = body.to_string();
    let mut losses = Losses::default();
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
