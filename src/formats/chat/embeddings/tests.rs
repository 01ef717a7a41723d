//! Tests requests and responses of both shapes for embeddings.

use serde_json::{Value, json};

use crate::formats::{
    Capabilities, EmbedMethod, EmbeddingCodec, EmbeddingOptions, EmbeddingSummary, UpstreamTarget,
};
use crate::model::{Action, ApiError, Format, Losses};

fn codec(format: Format) -> &'static dyn EmbeddingCodec {
    format.codec().embedding_codec().expect("it has embeddings")
}

/// The request for the other shape, and what was lost.
fn translated(
    from: Format,
    method: EmbedMethod,
    body: &Value,
) -> Result<(Value, Vec<String>), ApiError> {
    let to = match from {
        Format::Native => Format::Chat,
        _ => Format::Native,
    };
    let (mut losses, capabilities) = (Losses::default(), Capabilities::default());
    let body = body.to_string();
    let decoded = codec(from).decode_embedding_request(method, body.as_bytes(), &mut losses)?;
    // The upstream has no place for them, as translation finds.
    for hints in &decoded.hints {
        hints.report_dropped(&mut losses);
    }
    let target = UpstreamTarget {
        model: "theirs",
        stream: false,
        max_output_tokens: None,
        capabilities: &capabilities,
        brand: "google",
        images_only: false,
    };
    let encoded = codec(to).encode_embedding_request(&decoded, &target);
    let lost = losses.0.iter().map(|loss| {
        let sign = if loss.action == Action::Dropped {
            "-"
        } else {
            "~"
        };
        format!("{sign}{}", from.codec().path_of(&loss.location))
    });
    let lost = lost.collect();
    Ok((serde_json::from_slice(&encoded).expect("JSON"), lost))
}

#[test]
fn texts_are_translated_to_native_and_tokens_are_refused() {
    let native = |texts: &[&str], dimensions: Option<u64>| {
        let request = |text: &&str| {
            let mut request =
                json!({"model": "models/theirs", "content": {"parts": [{"text": text}]}});
            if let Some(dimensions) = dimensions {
                request["outputDimensionality"] = dimensions.into();
            }
            request
        };
        json!({"requests": texts.iter().map(request).collect::<Vec<_>>()})
    };
    for (body, expected, lost) in [
        (
            json!({"model": "m", "input": "a"}),
            native(&["a"], None),
            vec![],
        ),
        (
            json!({"model": "m", "input": ["b", "a\"\n"], "encoding_format": "base64", "dimensions": 7}),
            native(&["b", "a\"\n"], Some(7)),
            vec![],
        ),
        (
            json!({"model": "m", "input": ["a"], "user": "u", "x": {"y": 1}, "dimensions": null}),
            native(&["a"], None),
            vec!["-user", "-x"],
        ),
    ] {
        let sent = translated(Format::Chat, EmbedMethod::Batch, &body).expect("a request");
        assert_eq!(sent.0, expected);
        assert_eq!(sent.1, lost, "{body}");
    }
    for (body, param) in [
        (json!({"input": [1, 2]}), "input[0]"),
        (json!({"input": ["a", [1, 2]]}), "input[1]"),
        (json!({"input": {"a": 1}}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": vec!["a"; 2049]}), "input"),
        (json!({}), "input"),
        (json!({"input": "a", "dimensions": 0}), "dimensions"),
        (json!({"input": "a", "dimensions": "7"}), "dimensions"),
        (
            json!({"input": "a", "encoding_format": "int8"}),
            "encoding_format",
        ),
    ] {
        let refused = translated(Format::Chat, EmbedMethod::Batch, &body);
        let api_error = refused.expect_err(param);
        assert_eq!(api_error.param.as_deref(), Some(param), "{body}");
        assert_eq!(api_error.status, 400);
    }
}

#[test]
fn contents_are_translated_and_their_settings_are_reported() {
    let content = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let batch = |requests: Value| json!({"requests": requests});
    for (method, body, expected, lost) in [
        (
            EmbedMethod::Single,
            json!({"content": content("a"), "taskType": "CLUSTERING", "title": "t", "outputDimensionality": 5}),
            json!({"model": "theirs", "input": ["a"], "dimensions": 5}),
            vec!["-taskType", "-title"],
        ),
        (
            EmbedMethod::Batch,
            batch(json!([
                {"model": "models/m", "content": content("a"), "output_dimensionality": 5},
                {"content": content("b"), "embedContentConfig": {"outputDimensionality": 5, "autoTruncate": true, "z": 1}},
            ])),
            json!({"model": "theirs", "input": ["a", "b"], "dimensions": 5}),
            vec![
                "-requests[1].embedContentConfig.z",
                "-requests[1].embedContentConfig.autoTruncate",
            ],
        ),
        (
            EmbedMethod::Single,
            json!({"content": {"parts": [{"text": "a"}, {"text": "b"}]}}),
            json!({"model": "theirs", "input": ["ab"]}),
            vec!["~content.parts"],
        ),
    ] {
        let sent = translated(Format::Native, method, &body).expect("a request");
        assert_eq!(sent.0, expected);
        assert_eq!(sent.1, lost, "{body}");
    }
    let image = json!({"parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]});
    for (body, param) in [
        (
            batch(json!([{"content": image}])),
            "requests[0].content.parts[0]",
        ),
        (
            batch(json!([{"content": {"parts": []}}])),
            "requests[0].content.parts",
        ),
        (batch(json!([{}])), "requests[0].content"),
        (batch(json!([])), "requests"),
        (json!({"content": content("a")}), "requests"),
        (
            batch(json!([
                {"content": content("a"), "outputDimensionality": 5},
                {"content": content("b")},
            ])),
            "requests[1].outputDimensionality",
        ),
    ] {
        let refused = translated(Format::Native, EmbedMethod::Batch, &body);
        let api_error = refused.expect_err(param);
        assert_eq!(api_error.param.as_deref(), Some(param), "{body}");
    }
}

fn summary(format: Format, body: &str) -> Result<EmbeddingSummary, ApiError> {
    let summarized = codec(format).summarize(EmbedMethod::Batch, Some("m"), body.as_bytes());
    summarized.map(|(_, summary)| summary)
}

#[test]
fn inputs_are_counted_in_every_shape() {
    for (input, inputs, token_ids, has_unseen) in [
        (r#""a""#, Some(1), 0, false),
        (r#"["a","b"]"#, Some(2), 0, false),
        ("[1,2,3]", Some(1), 3, false),
        ("[[1,2,3],[4]]", Some(2), 4, false),
        (r#"["a",1]"#, None, 0, true),
        (r#"[["a"]]"#, None, 0, true),
        (r#"[{"type":"text"}]"#, None, 0, true),
        ("{}", None, 0, true),
        ("null", None, 0, true),
    ] {
        let body = format!(r#"{{"model":"m","input":{input}}}"#);
        let summary = summary(Format::Chat, &body).expect(input);
        let found = (
            summary.inputs,
            summary.input.token_ids,
            summary.input.has_unseen,
        );
        assert_eq!(found, (inputs, token_ids, has_unseen), "{input}");
        let bytes = if token_ids > 0 { input.len() } else { 0 };
        assert_eq!(summary.input.token_bytes, bytes as u64);
        assert!(!summary.base64 && !summary.has_unknown_fields);
    }
    let many = vec!["1"; 2049].join(",");
    assert!(summary(Format::Chat, &format!(r#"{{"input":[{many}]}}"#)).is_ok());
    let many = vec!["[1]"; 2049].join(",");
    assert!(summary(Format::Chat, &format!(r#"{{"input":[{many}]}}"#)).is_err());
    for body in [
        r#"{"input":"a","input":"b"}"#,
        r#"{"model":"a","Model":"b","input":"b"}"#,
        r#"{"input":[]}"#,
        r#"["input"]"#,
    ] {
        assert!(summary(Format::Chat, body).is_err(), "{body}");
    }
    let other = r#"{"input":"a","encoding_format":"base64","output_dtype":"int8"}"#;
    let other = summary(Format::Chat, other).expect("a request");
    assert!(other.base64 && other.has_unknown_fields);
}

#[test]
fn every_model_in_a_native_body_must_be_that_of_the_path() {
    let content = r#""content":{"parts":[{"text":"a"}]}"#;
    let body = format!(r#"{{"requests":[{{"model":"models/m",{content}}},{{{content}}}]}}"#);
    let found = summary(Format::Native, &body).expect("a request");
    assert_eq!(found.inputs, Some(2));
    assert!(!found.input.has_unseen);
    let [range] = &found.model_ranges[..] else {
        panic!("{found:?}");
    };
    assert_eq!(&body[range.clone()], r#""models/m""#);
    for bad in [
        format!(r#"{{"requests":[{{"model":"models/other",{content}}}]}}"#),
        format!(r#"{{"model":"other","requests":[{{{content}}}]}}"#),
        format!(r#"{{"requests":[{{"model":"m","model":"x",{content}}}]}}"#),
        format!(r#"{{"requests":[{{"model":"m","Model":"x",{content}}}]}}"#),
        r#"{"requests":{}}"#.to_owned(),
        r#"{"requests":["a"]}"#.to_owned(),
        "{}".to_owned(),
    ] {
        assert!(summary(Format::Native, &bad).is_err(), "{bad}");
    }
    let file = r#"{"requests":[{"content":{"parts":[{"fileData":{"fileUri":"x"}}]}}]}"#;
    assert!(
        summary(Format::Native, file)
            .expect("a request")
            .input
            .has_unseen
    );
}

#[test]
fn responses_are_translated_in_order_and_with_both_encodings() {
    let openai = json!({
        "object": "list", "model": "theirs", "usage": {"prompt_tokens": 3, "total_tokens": 3},
        "data": [{"index": 1, "embedding": [0.5]}, {"index": 0, "embedding": "AACAvw=="}],
    });
    let decoded = codec(Format::Chat).decode_embeddings(openai.to_string().as_bytes());
    let decoded = decoded.expect("a response");
    assert_eq!(decoded.vectors, [[-1.0], [0.5]]);
    let options = |base64, method| EmbeddingOptions {
        model: "m".to_owned(),
        method,
        base64,
        estimated_tokens: 9,
    };
    let encoded = |format, embeddings, options| -> Value {
        let body = codec(format).encode_embeddings(embeddings, &options);
        serde_json::from_slice(&body).expect("JSON")
    };
    let batch = encoded(Format::Native, &decoded, options(false, EmbedMethod::Batch));
    let usage = json!({"promptTokenCount": 3, "totalTokenCount": 3});
    let vectors = json!([{"values": [-1.0]}, {"values": [0.5]}]);
    assert_eq!(
        batch,
        json!({"embeddings": vectors, "usageMetadata": usage})
    );
    let native = json!({"embedding": {"values": [0.5, -1e-3]}});
    let native = codec(Format::Native).decode_embeddings(native.to_string().as_bytes());
    let native = native.expect("a response");
    let single = encoded(Format::Native, &native, options(false, EmbedMethod::Single));
    assert_eq!(single, json!({"embedding": {"values": [0.5, -0.001]}}));
    for (base64, vector) in [(false, json!([0.5, -0.001])), (true, json!("AAAAP28Sg7o="))] {
        let shown = encoded(Format::Chat, &native, options(base64, EmbedMethod::Batch));
        let expected = json!({
            "object": "list", "model": "m", "usage": {"prompt_tokens": 9, "total_tokens": 9},
            "data": [{"object": "embedding", "index": 0, "embedding": vector}],
        });
        assert_eq!(shown, expected);
    }
}

#[test]
fn incomplete_responses_are_errors() {
    let plain = EmbeddingSummary::default();
    for (format, body) in [
        (Format::Chat, "{}"),
        (Format::Chat, r#"{"data":[{"index":0}]}"#),
        (Format::Chat, r#"{"data":[{"index":1,"embedding":[1]}]}"#),
        (
            Format::Chat,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
        ),
        (
            Format::Chat,
            r#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#,
        ),
        (Format::Chat, r#"{"data":[{"embedding":[]}]}"#),
        (Format::Chat, r#"{"data":[{"embedding":["x"]}]}"#),
        (Format::Chat, r#"{"data":[{"embedding":"AADAfw=="}]}"#),
        (Format::Chat, r#"{"data":[{"embedding":[1]}]"#),
        (Format::Chat, r#"{"error":{"message":"no"}}"#),
        (Format::Native, "{}"),
        (Format::Native, r#"{"embeddings":[{}]}"#),
        (
            Format::Native,
            r#"{"embeddings":[{"values":[1]},{"values":[1,2]}]}"#,
        ),
        (Format::Native, r#"{"embedding":{"values":[1e99]}}"#),
        (Format::Native, r#"{"error":{"code":429,"message":"no"}}"#),
    ] {
        let decoded = codec(format).decode_embeddings(body.as_bytes());
        assert!(decoded.is_err(), "{body}");
        let observed = codec(format).observe_embeddings(body.as_bytes(), &plain);
        assert!(observed.is_err(), "{body}");
    }
}
