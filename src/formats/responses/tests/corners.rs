//! What other formats do not show: own signatures, the order of fields, and counts.

use super::options;
use crate::formats::responses::Responses;
use crate::formats::responses::count_tokens::ResponsesTokenCounter;
use crate::formats::{RequestCodec as _, RequestHead, ResponseCodec as _, TokenCounter as _};
use crate::model::{Choice, Finish, Issuer, Losses, Part, PartKind, Response, Usage};

#[test]
fn wrapped_signatures_are_unwrapped_and_others_are_of_the_format() {
    let signature_of = |encrypted: &str| {
        let body = format!(
            r#"{{"input":[{{"type":"reasoning","id":"rs_x","summary":[],"encrypted_content":"{encrypted}"}}]}}"#
        );
        let mut losses = Losses::default();
        let request = Responses
            .decode_request(&RequestHead::default(), body.as_bytes(), &mut losses)
            .expect("a valid request");
        assert_eq!(losses, Losses::default());
        match &request.turns[0].parts[0].kind {
            PartKind::Reasoning { text, signature } if text.is_empty() => {
                let signature = signature.as_ref().expect("a signature");
                (signature.issuer, signature.data.to_string())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        signature_of("b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ=="),
        (Issuer::Native, "Q2lRQmU5L2U=".to_owned())
    );
    assert_eq!(
        signature_of("gAAAAABraw"),
        (Issuer::Responses, "rs_x\ngAAAAABraw".to_owned())
    );
}

#[test]
fn a_response_has_every_field_in_the_usual_order() {
    let part = Part {
        kind: PartKind::Text("Hi there.".into()),
        at: None,
    };
    let choice = Choice {
        parts: vec![part],
        citations: Vec::new(),
        logprobs: Vec::new(),
        finish: Finish::Stop,
    };
    let usage = Usage {
        input: 100,
        cached: 80,
        cache_written: 15,
        output: 30,
        thinking: 20,
        ..Usage::default()
    };
    let response = Response {
        id: "chatcmpl-1".into(),
        model: "upstream-name".into(),
        created: 1_760_000_000,
        choices: vec![choice],
        usage: Some(usage),
    };
    let bytes = Responses.encode_response(&response, &options("m-1"), &mut Losses::default());
    assert_eq!(
        String::from_utf8(bytes).expect("text"),
        concat!(
            r#"{"id":"resp_1","object":"response","created_at":1760000000,"status":"completed","#,
            r#""error":null,"incomplete_details":null,"model":"m-1","output":[{"type":"message","#,
            r#""id":"msg_1_0","status":"completed","role":"assistant","content":[{"#,
            r#""type":"output_text","text":"Hi there.","annotations":[]}]}],"#,
            r#""parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{"#,
            r#""input_tokens":100,"input_tokens_details":{"cached_tokens":80,"#,
            r#""cache_write_tokens":15},"output_tokens":30,"output_tokens_details":{"#,
            r#""reasoning_tokens":20},"total_tokens":130}}"#
        )
    );
}

#[test]
fn a_count_must_be_a_number() {
    assert_eq!(
        ResponsesTokenCounter.encode_count(7),
        br#"{"object":"response.input_tokens","input_tokens":7}"#
    );
    assert_eq!(
        ResponsesTokenCounter.decode_count(&ResponsesTokenCounter.encode_count(7)),
        Ok(7)
    );
    let error = br#"{"error":{"message":"m","type":"server_error","code":"overloaded"}}"#;
    assert_eq!(
        ResponsesTokenCounter
            .decode_count(error)
            .unwrap_err()
            .status,
        503
    );
    for bad in [&b"{}"[..], b"7", b"", br#"{"input_tokens":-7}"#] {
        assert_eq!(
            ResponsesTokenCounter.decode_count(bad).unwrap_err().status,
            502
        );
    }
}
