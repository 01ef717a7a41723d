//! Tests requests and responses of both shapes for embeddings.

use serde_json::{Value, json};

use crate::formats::{EmbedMethod, EmbeddingCodec, EmbeddingOptions, EmbeddingSummary};
use crate::model::{ApiError, Format, Losses};

fn codec(format: Format) -> &'static dyn EmbeddingCodec {
    format.codec().embedding_codec().expect("it has embeddings")
}

#[test]
fn too_many_texts_are_refused() {
    let body = json!({"model": "m", "input": vec!["a"; 2049]}).to_string();
    let mut losses = Losses::default();
    let codec = codec(Format::Chat);
    let refused = codec.decode_embedding_request(EmbedMethod::Batch, body.as_bytes(), &mut losses);
    let api_error = refused.expect_err("too many");
    assert_eq!(
        (api_error.status, api_error.param.as_deref()),
        (400, Some("input"))
    );
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
