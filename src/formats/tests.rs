//! Tests of all formats.

use super::{OutputLimit, ResponseObserver};
use crate::model::{Format, Losses};

#[test]
fn the_output_limit_is_decoded_in_every_format() {
    let limits = |format: Format, body: &str| {
        let fields = format.codec().decode_routing_fields(body.as_bytes());
        let OutputLimit { output, choices } = fields.expect(body).output_limit;
        (output, choices)
    };
    for (format, body, output, choices) in [
        (Format::Chat, r#"{"max_tokens":7}"#, Some(7), 1),
        (
            Format::Chat,
            r#"{"max_tokens":7,"max_completion_tokens":9,"n":3}"#,
            Some(9),
            3,
        ),
        (Format::Chat, r#"{"max_tokens":1e2,"n":null}"#, Some(100), 1),
        (
            Format::Chat,
            r#"{"max_tokens":9,"max_completion_tokens":7}"#,
            Some(9),
            1,
        ),
        (Format::Chat, r#"{"max_tokens":0,"n":0}"#, None, 1),
        (
            Format::Messages,
            r#"{"max_tokens":7,"messages":[]}"#,
            Some(7),
            1,
        ),
        (Format::Responses, r#"{"max_output_tokens":7}"#, Some(7), 1),
        (
            Format::Native,
            r#"{"generationConfig":{"maxOutputTokens":7,"candidateCount":2}}"#,
            Some(7),
            2,
        ),
        (
            Format::Native,
            r#"{"generation_config":{"max_output_tokens":"7","candidate_count":2}}"#,
            Some(7),
            2,
        ),
        (Format::Native, r#"{"generationConfig":null}"#, None, 1),
    ] {
        assert_eq!(limits(format, body), (output, choices), "{body}");
    }
}

#[test]
fn an_array_in_place_of_a_response_is_refused() {
    for codec in Format::ALL.map(Format::codec) {
        let list = r#"["m",null,null,null,null,null,null,null,null]"#;
        let observer = &mut ResponseObserver::default();
        let bytes = list.as_bytes();
        assert!(codec.observe_response(bytes, observer).is_err());
        assert!(codec.observe_event(list, observer).is_err());
        assert!(
            codec
                .decode_response(bytes, &mut Losses::default())
                .is_err()
        );
        assert!(
            codec
                .stream_decoder()
                .decode_event(list, &mut |_| {})
                .is_err()
        );
    }
}
