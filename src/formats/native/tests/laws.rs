//! Laws of decoding: by the cases of translation, and by what the format itself encodes.

use serde_json::{Value, json};

use super::upstream::{decode_body, decode_stream, response};
use super::{encode, part, rich, signature, text};
use crate::formats::native::validation::{parse, validate};
use crate::formats::tests::case_inputs;
use crate::model::{Format, Issuer, PartKind, Signature, Usage};

/// A request that passes through is refused with the same error as one that is translated.
#[test]
fn validation_refuses_what_decoding_refuses() {
    let inputs = case_inputs(Format::Native, "request");
    assert!(inputs.len() > 100, "{} cases", inputs.len());
    for body in inputs {
        let validated = validate(body.as_bytes(), false).map(drop);
        let parsed = parse(body.as_bytes(), false).map(drop);
        assert_eq!(validated, parsed, "{body}");
    }
}

#[test]
fn a_stream_of_one_chunk_decodes_to_the_same_response_as_its_json() {
    let inputs = case_inputs(Format::Native, "response");
    assert!(inputs.len() > 40, "{} cases", inputs.len());
    for body in inputs {
        let body: Value = serde_json::from_str(&body).unwrap();
        // Candidates share a chunk, so that their blocks overlap.
        let has_one = body["candidates"]
            .as_array()
            .is_none_or(|list| list.len() < 2);
        if let Ok((whole, _)) = decode_body(&body)
            && has_one
        {
            let streamed = decode_stream(std::slice::from_ref(&body)).unwrap();
            assert_eq!(streamed, whole, "{body}");
        }
    }
}

#[test]
fn a_stream_decodes_to_the_same_response_as_its_json() {
    let signed = json!({"text": "", "thoughtSignature": "c2ln"});
    for list in [
        json!([{"text": "Hm.", "thought": true}, {"text": "42", "thoughtSignature": "c2ln"}]),
        json!([{"text": "Hm.", "thought": true, "thoughtSignature": "c2ln"}, {"text": "42"}]),
        json!([{"text": "H", "thought": true}, {"text": "m", "thought": true}, {"text": "42"}, signed]),
        json!([{"functionCall": {"name": "f"}, "thoughtSignature": "c2ln"}, {"functionCall": {"name": "f", "args": {"b": 1, "a": 2}}}]),
        json!([{"text": "A"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "c2ln"}]),
        json!([{"text": "A", "thoughtSignature": "c2ln"}, {"text": "B", "thoughtSignature": "c2ln"}]),
        json!([{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1\n"}}]),
    ] {
        let whole = response(list.clone(), "STOP");
        let mut chunks: Vec<Value> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|part| {
                let content = json!({"role": "model", "parts": [part]});
                json!({"candidates": [{"content": content}], "responseId": "r", "modelVersion": "m"})
            })
            .collect();
        chunks.push(json!({"candidates": [{"finishReason": "STOP"}]}));
        let (decoded, _) = decode_body(&whole).unwrap();
        assert_eq!(decode_stream(&chunks).unwrap(), decoded, "{list}");
        assert_eq!(decode_stream(&[whole]).unwrap(), decoded, "{list}");
    }
}

#[test]
fn an_encoded_response_is_decoded_again() {
    let body = encode(&rich());
    let (decoded, _) = decode_body(&body).unwrap();
    let mut same = rich();
    // Signatures of other formats come back wrapped, and a refusal as text.
    let wrapped = signature(Issuer::Thinking, "RXJVQkNrWUlB").wrap();
    same.choices[0].parts[0] = part(PartKind::Reasoning {
        text: "Let me think.".into(),
        signature: Some(Signature {
            issuer: Issuer::Native,
            data: wrapped.into(),
        }),
    });
    same.choices[1].parts[0] = text("I cannot.");
    same.usage = same.usage.map(|usage| Usage {
        cache_written: 0,
        ..usage
    });
    assert_eq!(decoded, same);
}
