//! OpenAI Audio: speech that is made of text, and the texts of recordings, which are sent as forms.

use std::sync::LazyLock;

use bytes::Bytes;

use crate::formats::chat::decode_error;
use crate::formats::chosen_host::chosen_host_in_form;
use crate::formats::dearer_setting::{USUAL_TIERS, find_dearer_in_form};
use crate::formats::multipart::{self, FormRules, MultipartField};
use crate::formats::other_model::model_in_form;
use crate::formats::{
    InputSummary, Observation, RequestFindings, ResponseObserver, RoutingFields, decode_event_data,
    decode_model_name, decode_unique_fields, missing_content,
};
use crate::json::{Edit, FieldIndex, Present, RawJson, from_json, replace};
use crate::model::{ApiError, Text};

use super::endpoint_fields::index_fields;
use super::response::ObservedUsage;

static SPEECH_FIELDS: LazyLock<FieldIndex> = LazyLock::new(|| {
    const NAMES: &[&str] = &[
        "model",
        "input",
        "voice",
        "instructions",
        "response_format",
        "speed",
        "stream_format",
        "service_tier",
        "inference_geo",
    ];
    index_fields(NAMES, &[&["service_tier"], &["inference_geo"]])
});

const FILE: &str = "file";

/// `chunking_strategy` is no list and no single value: SDKs write the fields of an object as `chunking_strategy[type]`.
const FORM: FormRules = FormRules {
    lists: &[
        "include",
        "include[]",
        "timestamp_granularities",
        "timestamp_granularities[]",
        "known_speaker_names",
        "known_speaker_names[]",
        "known_speaker_references",
        "known_speaker_references[]",
    ],
    single: &[
        "model",
        FILE,
        "stream",
        "response_format",
        "language",
        "prompt",
        "temperature",
    ],
    files: &[FILE],
};

/// How many bytes of a recording are estimated as a token.
const BYTES_PER_TOKEN: u64 = 1 << 10;

/// How many bytes of speech are estimated as a token, by its content type in small letters. A second has about 20 tokens,
/// and 48 KB as samples, 16 KB as MP3, 8 KB as AAC, 4 KB as Opus.
pub(super) fn bytes_per_token(mime: &str) -> u64 {
    match mime {
        "audio/mpeg" | "audio/mp3" => 512,
        "audio/aac" | "audio/mp4" | "audio/x-m4a" => 256,
        "audio/opus" | "audio/ogg" | "audio/webm" => 128,
        _ => BYTES_PER_TOKEN,
    }
}

/// Decodes the fields of a request for speech.
pub(super) fn decode_speech_fields(body: &[u8]) -> Result<RoutingFields<'_>, ApiError> {
    let [model, stream_format] = decode_unique_fields(body, [&["model"], &["stream_format"]])?;
    let is_sse = |raw: RawJson<'_>| raw.get() == "\"sse\"";
    Ok(RoutingFields {
        stream: stream_format.value().is_some_and(is_sse),
        ..RoutingFields::of_model(decode_model_name(body, &model)?)
    })
}

/// Returns what of a request for speech decides access and money.
pub(super) fn speech_findings(body: &[u8]) -> RequestFindings {
    RequestFindings::of(body, &SPEECH_FIELDS, &[USUAL_TIERS, &["global"]])
}

fn decode(body: &[u8]) -> Result<Vec<MultipartField<'_>>, ApiError> {
    multipart::decode(body, &FORM)
}

/// Decodes the fields of a form.
pub(super) fn decode_form_fields(body: &[u8]) -> Result<RoutingFields<'_>, ApiError> {
    let fields = decode(body)?;
    let stream = fields.iter().find(|field| field.name == "stream");
    Ok(RoutingFields {
        stream: stream
            .map(MultipartField::flag)
            .transpose()?
            .unwrap_or(false),
        ..RoutingFields::of_model(multipart::model_of(&fields)?)
    })
}

/// Writes a client's form anew.
pub(super) fn rewrite_form(body: &[u8]) -> Result<Vec<u8>, ApiError> {
    multipart::rewrite(body, multipart::own_boundary(), &FORM)
}

/// Returns a form that the gateway wrote with this model.
pub(super) fn set_model(body: &[u8], model: &str) -> Result<Bytes, ApiError> {
    let fields = decode(body)?;
    let edit = match multipart::model_of(&fields)? {
        Some(named) => Edit {
            range: named.range,
            with: model.as_bytes().to_vec(),
        },
        None => Edit {
            range: 0..0,
            with: multipart::encode_field(multipart::own_boundary(), "model", model),
        },
    };
    Ok(replace(body, &[edit]))
}

/// Returns what of a form decides access and money; how much input it is, is not known in any case.
pub(super) fn form_findings(body: &[u8]) -> RequestFindings {
    let fields = decode(body).unwrap_or_default();
    let is_known = |name: &str| FORM.single.contains(&name) || FORM.lists.contains(&name);
    RequestFindings {
        other_model: model_in_form(&fields, is_known),
        dearer: find_dearer_in_form(&fields),
        chosen_host: chosen_host_in_form(&fields),
        ..RequestFindings::default()
    }
}

/// Summarizes a form. Few bytes may be a long recording: what the upstream counts of it is not known before.
pub(super) fn summarize_form(body: &[u8]) -> InputSummary {
    let fields = decode(body).unwrap_or_default();
    let bytes_of = |name: &str| {
        let fields = fields.iter().filter(|field| field.name == name);
        fields.map(|field| field.value.len() as u64).sum::<u64>()
    };
    InputSummary {
        token_ids: bytes_of(FILE).div_ceil(BYTES_PER_TOKEN),
        // Of the rest only the prompt is text that a model reads.
        token_bytes: (body.len() as u64).saturating_sub(bytes_of("prompt")),
        has_unseen: true,
        ..InputSummary::default()
    }
}

from_json! {
    struct AudioEvent<'a> {
        "type" => kind: Option<Text<'a>>,
        /// Text of a transcription, or the delta of a completion, which some servers send in its place.
        "delta" => delta: Option<RawJson<'a>>,
        "audio" => audio: Option<RawJson<'a>>,
        "choices" => choices: Option<RawJson<'a>>,
        "model" => model: Option<RawJson<'a>>,
        "usage" => usage: Option<ObservedUsage>,
        "error" => error: Option<Present>,
    }
}

/// Observes one event of a stream.
pub(super) fn observe_event(
    data: &str,
    observer: &mut ResponseObserver,
) -> Result<Observation, ApiError> {
    if data == "[DONE]" {
        if !observer.has_content && observer.api_error.is_none() {
            return Err(missing_content());
        }
        (observer.ended, observer.closed) = (true, true);
        return Ok(Observation::default());
    }
    let event: AudioEvent<'_> = decode_event_data(data)?;
    let kind = event.kind.as_deref().unwrap_or_default();
    if event.error.is_some() || kind == "error" {
        observer.api_error = Some(decode_error(200, data.as_bytes()));
        observer.ended = true;
        return Ok(Observation::default());
    }
    observer.uncounted.add_text(event.delta);
    observer.uncounted.add_audio(event.audio);
    observer.uncounted.add_value(event.choices);
    let duration = event
        .usage
        .as_ref()
        .and_then(ObservedUsage::audio_milliseconds);
    observer.audio_milliseconds = duration.or(observer.audio_milliseconds);
    let report = event.usage.map(|usage| usage.report());
    if let Some(report) = report.filter(|report| !report.usage.is_blank()) {
        observer.record_usage(report);
    }
    let is_done = kind.ends_with(".done");
    let content = [event.delta, event.audio, event.choices];
    observer.has_content |= is_done || content.iter().any(Option::is_some);
    if is_done {
        (observer.ended, observer.closed) = (true, true);
    }
    Ok(Observation::of_model(event.model, data.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> String {
        let part = |(name, value): &(&str, &str)| {
            let file = if *name == FILE {
                "; filename=\"a.wav\""
            } else {
                ""
            };
            format!(
                "--b\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n"
            )
        };
        fields.iter().map(part).collect::<String>() + "--b--\r\n"
    }

    #[test]
    fn a_form_names_one_model_and_its_recording_is_no_text() {
        let recording = "x".repeat(3000);
        let body = form(&[
            ("model", "m"),
            ("stream", "True"),
            ("include[]", "a"),
            ("include[]", "b"),
            (FILE, &recording),
        ]);
        let fields = decode_form_fields(body.as_bytes()).expect("a form");
        let named = fields.model.expect("a model");
        assert_eq!(
            (&*named.name, &body[named.range], fields.stream),
            ("m", "m", true)
        );
        let summary = summarize_form(body.as_bytes());
        assert_eq!((summary.token_ids, summary.has_unseen), (3, true));
        assert_eq!(summary.token_bytes, body.len() as u64);
        for bad in [
            form(&[("model", "m"), ("model", "n")]),
            form(&[("model", "m"), ("Model", "n")]),
            form(&[("model", "m"), ("stream", "maybe")]),
            form(&[("model", "m"), ("language", "a"), ("language", "b")]),
            r#"{"model":"m"}"#.to_owned(),
        ] {
            assert!(decode_form_fields(bad.as_bytes()).is_err(), "{bad}");
        }
        let object = form(&[("model", "m"), ("chunking_strategy[type]", "server_vad")]);
        assert!(decode_form_fields(object.as_bytes()).is_ok());
        assert_eq!(form_findings(object.as_bytes()).other_model, None);
        let second = form(&[("model", "m"), ("fallback_model", "n")]);
        assert_eq!(
            form_findings(second.as_bytes()).other_model.as_deref(),
            Some("fallback_model")
        );
        for name in ["extra_body", "engine", "deployment_id", "loraAdapter"] {
            let routed = form(&[("model", "m"), (name, r#"{"a":1}"#)]);
            let found = form_findings(routed.as_bytes()).other_model;
            assert_eq!(found.as_deref(), Some(name));
        }
        for name in [
            "preset[]",
            "Preset[0]",
            "engine.id",
            "extra_body[engine]",
            "extra_body.engine",
            "[engine]",
            "options[model]",
        ] {
            let routed = form(&[("model", "m"), (name, "x")]);
            let found = form_findings(routed.as_bytes()).other_model;
            assert_eq!(found.as_deref(), Some(name));
        }
        for (name, value, is_dearer) in [
            ("service_tier[0]", "priority", true),
            ("service-tier", "priority", true),
            ("service_tier", "priority", true),
            ("Service_tier", "priority", true),
            ("speed", "fast", true),
            ("service_tier", "default", false),
        ] {
            let form = form(&[("model", "m"), (name, value)]);
            let findings = form_findings(form.as_bytes());
            let setting = findings.dearer_setting().expect("a form");
            assert_eq!(setting.is_some(), is_dearer, "{name}={value}");
        }
    }

    #[test]
    fn the_model_of_a_path_is_written_into_the_form() {
        for fields in [vec![("model", "m"), (FILE, "x")], vec![(FILE, "x")]] {
            let written = rewrite_form(form(&fields).as_bytes()).expect("a form");
            let named = set_model(&written, "other").expect("a form");
            let decoded = decode_form_fields(&named).expect("a form");
            assert_eq!(decoded.model.expect("a model").name, "other");
        }
    }

    #[test]
    fn a_stream_ends_with_its_last_event() {
        let mut observer = ResponseObserver::default();
        observe_event(
            r#"{"type":"transcript.text.delta","delta":"abcdefgh"}"#,
            &mut observer,
        )
        .expect("an event");
        assert!(observer.has_content && !observer.ended);
        assert_eq!(observer.uncounted.text_tokens(), 2);
        let done = r#"{"type":"transcript.text.done","text":"abcdefgh","usage":{"type":"tokens","input_tokens":7,"output_tokens":2,"total_tokens":9}}"#;
        observe_event(done, &mut observer).expect("an event");
        assert!(observer.ended && observer.closed);
        let usage = observer.usage.expect("a usage");
        assert_eq!(
            (usage.input, usage.output, observer.uncounted.text_tokens()),
            (7, 2, 0)
        );
        let mut observer = ResponseObserver::default();
        let audio = format!(
            r#"{{"type":"speech.audio.delta","audio":"{}"}}"#,
            "A".repeat(341 * 4)
        );
        observe_event(&audio, &mut observer).expect("an event");
        assert_eq!(observer.uncounted.text_tokens(), 1);
        observe_event(
            r#"{"type":"error","error":{"message":"No."}}"#,
            &mut observer,
        )
        .expect("an event");
        assert!(observer.api_error.is_some());
        assert!(observe_event("[DONE]", &mut ResponseObserver::default()).is_err());
    }
}
