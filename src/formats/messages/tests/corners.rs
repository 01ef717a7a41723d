//! What other formats do not show: own signatures, paths, counts, and finishes that no other upstream has.

use serde_json::json;

use super::{call, encode, response, text};
use crate::formats::messages::Messages;
use crate::formats::{Codec as _, RequestCodec as _, RequestHead};
use crate::model::{FieldLocation, Finish, Format, Issuer, Losses, PartKind, Setting, Signature};

#[test]
fn locations_have_the_paths_of_the_format() {
    let part = |turn, part| FieldLocation::Part { turn, part };
    for (location, path) in [
        (FieldLocation::Path("a.b".into()), "a.b"),
        (FieldLocation::Setting(Setting::Stop), "stop_sequences"),
        (
            FieldLocation::Setting(Setting::OutputFormat),
            "output_config.format",
        ),
        (FieldLocation::Turn { turn: Some(3) }, "messages[3]"),
        (FieldLocation::Turn { turn: None }, "system"),
        (part(Some(3), Some(1)), "messages[3].content[1]"),
        (part(Some(3), None), "messages[3].content"),
        (part(None, Some(1)), "system[1]"),
        (part(None, None), "system"),
        (FieldLocation::Tool { tool: 2 }, "tools[2]"),
    ] {
        assert_eq!(Format::Messages.codec().path_of(&location), path);
    }
}

/// The reasoning in the only block of a request.
fn reasoning(block: &str) -> (String, Option<Signature<'static>>) {
    let body =
        format!(r#"{{"model":"m","messages":[{{"role":"assistant","content":[{block}]}}]}}"#);
    let mut losses = Losses::default();
    let request = Messages
        .decode_request(&RequestHead::default(), body.as_bytes(), &mut losses)
        .expect("a good request");
    assert_eq!(losses, Losses::default());
    let PartKind::Reasoning { text, signature } = &request.turns[0].parts[0].kind else {
        panic!("{request:?}");
    };
    let owned = |signature: &Signature<'_>| Signature {
        issuer: signature.issuer,
        data: signature.data.to_string().into(),
    };
    (text.to_string(), signature.as_ref().map(owned))
}

#[test]
fn reasoning_is_decoded_with_its_signature() {
    let foreign = Signature {
        issuer: Issuer::Responses,
        data: "rs_up1\ngAAAAABencrypted".into(),
    };
    for (wire, signature) in [
        (
            "RXJVQkNrWUlB",
            Some(Signature {
                issuer: Issuer::Thinking,
                data: "RXJVQkNrWUlB".into(),
            }),
        ),
        (
            "b21uaWdsb3QvMSBlCnJzX3VwMQpnQUFBQUFCZW5jcnlwdGVk",
            Some(foreign),
        ),
        ("", None),
    ] {
        let block = format!(r#"{{"type":"thinking","thinking":"So.","signature":"{wire}"}}"#);
        assert_eq!(reasoning(&block), ("So.".to_owned(), signature));
    }
    for (data, issuer, raw) in [
        ("EqQBCkYI", Issuer::Redacted, "EqQBCkYI"),
        (
            "b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ==",
            Issuer::Native,
            "Q2lRQmU5L2U=",
        ),
    ] {
        let block = format!(r#"{{"type":"redacted_thinking","data":"{data}"}}"#);
        let signature = Some(Signature {
            issuer,
            data: raw.into(),
        });
        assert_eq!(reasoning(&block), (String::new(), signature));
    }
}

#[test]
fn every_finish_has_its_stop_reason() {
    let words = || Some("because".into());
    for (finish, alone, beside_a_call) in [
        (Finish::Stop, "end_turn", "tool_use"),
        (Finish::StopSequence(words()), "stop_sequence", "tool_use"),
        (Finish::Length, "max_tokens", "max_tokens"),
        (
            Finish::ContextFull,
            "model_context_window_exceeded",
            "model_context_window_exceeded",
        ),
        (Finish::Tools, "tool_use", "tool_use"),
        (Finish::Filtered(words()), "refusal", "refusal"),
        (Finish::Refused, "refusal", "tool_use"),
        (Finish::Paused, "pause_turn", "tool_use"),
        (Finish::MalformedCall, "end_turn", "tool_use"),
        (Finish::Other, "end_turn", "tool_use"),
    ] {
        let encoded = encode(&response(vec![text("x")], finish.clone()));
        assert_eq!(encoded["stop_reason"], alone, "{finish:?}");
        let sequence = matches!(finish, Finish::StopSequence(_)).then_some("because");
        assert_eq!(encoded["stop_sequence"], json!(sequence));
        let details = matches!(finish, Finish::Filtered(_))
            .then(|| json!({"type": "refusal", "category": null, "explanation": "because"}));
        assert_eq!(encoded.get("stop_details"), details.as_ref());

        let parts = vec![PartKind::Call(call(Some("call_1"), "{}"))];
        let encoded = encode(&response(parts, finish.clone()));
        assert_eq!(encoded["stop_reason"], beside_a_call, "{finish:?}");
    }
}

#[test]
fn a_count_is_a_number() {
    let counter = Messages.token_counter().expect("a counter");
    assert_eq!(counter.encode_count(7), br#"{"input_tokens":7}"#);
    let more = br#"{"input_tokens":7,"context_management":{"original_input_tokens":9}}"#;
    assert_eq!(counter.decode_count(more), Ok(7));
    let error = br#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#;
    assert_eq!(counter.decode_count(error).unwrap_err().status, 503);
    for bad in [&b"{}"[..], b"[]", b"7", b"", br#"{"input_tokens":"7"}"#] {
        assert_eq!(counter.decode_count(bad).unwrap_err().status, 502);
    }
}
