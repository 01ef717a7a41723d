//! The image endpoints, whose shape belongs to none of the four formats.

use memchr::memmem;
use serde::Deserialize;
use serde_json::json;

use super::answer::Fingerprint;
use super::script::{Answer, Plan};
use crate::model::Fault;

/// A valid PNG of one blue pixel, in base64.
pub(super) const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQazsIAAJbAXYK9nzKAAAAAElFTkSuQmCC";
const MOST_PICTURES: usize = 10;
const PICTURE_TOKENS: usize = 272;

/// What a request for pictures says, as far as the mock cares.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    pub model: String,
    pub prompt: String,
    n: Option<usize>,
}

impl Wanted {
    pub(super) fn read(content_type: &str, body: &[u8]) -> Result<Wanted, Fault> {
        if content_type.starts_with("multipart/") {
            return Ok(Wanted {
                model: form_field(body, "model").unwrap_or_default(),
                prompt: form_field(body, "prompt").unwrap_or_default(),
                n: form_field(body, "n").and_then(|n| n.parse().ok()),
            });
        }
        serde_json::from_slice(body)
            .map_err(|error| Fault::invalid(format!("the body is not valid JSON: {error}")))
    }
}

pub(super) fn answer(
    wanted: &Wanted,
    plan: &Plan,
    fingerprint: &Fingerprint,
    created: i64,
    echo: &dyn Fn() -> String,
) -> Vec<u8> {
    let revised = match &plan.answer {
        Answer::Echo => echo(),
        Answer::Digest => fingerprint.told(),
        Answer::Text(text) => text.clone(),
        _ => wanted.prompt.clone(),
    };
    let count = wanted.n.unwrap_or(1).clamp(1, MOST_PICTURES);
    let picture = json!({"b64_json": PICTURE, "revised_prompt": revised});
    let input = wanted.prompt.split_whitespace().count();
    let output = PICTURE_TOKENS * count;
    let body = json!({
        "created": created,
        "background": "opaque",
        "output_format": "png",
        "quality": "low",
        "size": "1024x1024",
        "data": vec![picture; count],
        "usage": {
            "input_tokens": input,
            "input_tokens_details": {"image_tokens": 0, "text_tokens": input},
            "output_tokens": output,
            "total_tokens": input + output,
        },
    });
    body.to_string().into_bytes()
}

/// A short text field of a form. Pictures are stepped over unread: nothing here needs them.
fn form_field(body: &[u8], name: &str) -> Option<String> {
    let mark = format!("name=\"{name}\"\r\n");
    let head = memmem::find(body, mark.as_bytes())?;
    let start = head + memmem::find(&body[head..], b"\r\n\r\n")? + 4;
    let end = start + memmem::find(&body[start..], b"\r\n--")?;
    String::from_utf8(body[start..end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_json_say_the_same() {
        let form = "--x\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\
                    Content-Type: image/png\r\n\r\n\u{1}\u{2}\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na cat\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n2\r\n--x--\r\n";
        let from_form = Wanted::read("multipart/form-data; boundary=x", form.as_bytes()).unwrap();
        let from_json = Wanted::read("application/json", br#"{"prompt":"a cat","n":2}"#).unwrap();
        assert_eq!(from_form, from_json);
        assert!(Wanted::read("application/json", b"{").is_err());
    }

    #[test]
    fn the_picture_is_a_png() {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(PICTURE)
            .unwrap();
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xaeB`\x82"));
    }
}
