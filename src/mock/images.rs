//! The image endpoints, spelled here a second time: what checks a format must not be made of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Fingerprint;
use super::received::Received;
use super::script::{Answer, Plan};
use crate::model::ApiError;
use crate::sse::SseWriter;

/// A valid PNG of one blue pixel, in base64.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQazsIAAJbAXYK9nzKAAAAAElFTkSuQmCC";
const MOST_PICTURES: usize = 10;
const PICTURE_TOKENS: usize = 272;

/// The image, made heavier by what readers of such files skip.
pub(super) fn picture(plan: &Plan) -> String {
    let mut text = PICTURE.to_owned();
    let more = plan.weight.saturating_sub(text.len()).div_ceil(4);
    text.reserve(more * 4);
    (0..more).for_each(|_| text.push_str("AAAA"));
    text
}

pub(super) fn file() -> Vec<u8> {
    STANDARD
        .decode(PICTURE)
        .expect("base64, as it stands above")
}

pub(super) fn refused() -> ApiError {
    let mut api_error = ApiError::invalid("Your request was rejected by the safety system.");
    api_error.code = Some("moderation_blocked".to_owned());
    api_error
}

/// What a request for images says, as far as the mock cares.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    pub model: String,
    pub prompt: String,
    n: Option<usize>,
    size: Option<String>,
    response_format: Option<String>,
    pub stream: bool,
    partial_images: Option<usize>,
}

impl Wanted {
    pub(super) fn read(content_type: &str, body: &[u8]) -> Result<Wanted, ApiError> {
        if content_type.starts_with("multipart/") {
            let field = |name| form_field(body, name);
            return Ok(Wanted {
                model: field("model").unwrap_or_default(),
                prompt: field("prompt").unwrap_or_default(),
                n: field("n").and_then(|n| n.parse().ok()),
                size: field("size"),
                response_format: field("response_format"),
                stream: field("stream").as_deref() == Some("true"),
                partial_images: field("partial_images").and_then(|count| count.parse().ok()),
            });
        }
        serde_json::from_slice(body)
            .map_err(|error| ApiError::invalid(format!("the body is not valid JSON: {error}")))
    }
}

/// A request for images about to be answered.
pub(super) struct Painting<'p> {
    pub wanted: &'p Wanted,
    pub plan: &'p Plan,
    pub key_hash: &'p Fingerprint,
    pub created: i64,
    pub received: &'p Received,
}

impl Painting<'_> {
    pub(super) fn whole(&self) -> Vec<u8> {
        let count = self.wanted.n.unwrap_or(1).clamp(1, MOST_PICTURES);
        let datum = match self.wanted.response_format.as_deref() {
            Some("url") => json!({"url": self.address(), "revised_prompt": self.revised()}),
            _ => json!({"b64_json": picture(self.plan), "revised_prompt": self.revised()}),
        };
        let mut body = self.look();
        body["created"] = self.created.into();
        body["data"] = vec![datum; count].into();
        body["usage"] = self.usage(count);
        body.to_string().into_bytes()
    }

    /// The drafts, then the image.
    pub(super) fn pieces(&self) -> Vec<Bytes> {
        let edits = self.received.head.uri.path().ends_with("/edits");
        let kind = if edits {
            "image_edit"
        } else {
            "image_generation"
        };
        let mut pieces = Vec::new();
        let mut tell = |name: String, mut event: Value| {
            let mut writer = SseWriter::default();
            event["type"] = name.as_str().into();
            event["created_at"] = self.created.into();
            event["b64_json"] = picture(self.plan).into();
            writer.event(&name, &event);
            pieces.push(writer.take());
        };
        for number in 0..self.wanted.partial_images.unwrap_or(0) {
            let mut draft = self.look();
            draft["partial_image_index"] = number.into();
            tell(format!("{kind}.partial_image"), draft);
        }
        if !self.plan.no_end {
            let mut whole = self.look();
            whole["usage"] = self.usage(1);
            tell(format!("{kind}.completed"), whole);
        }
        pieces
    }

    fn look(&self) -> Value {
        let size = self.wanted.size.as_deref().unwrap_or("1024x1024");
        json!({"background": "opaque", "output_format": "png", "quality": "low", "size": size})
    }

    fn usage(&self, count: usize) -> Value {
        let (input, output) = match self.plan.usage {
            Some(usage) => (usage.input, usage.output),
            None => {
                let words = self.wanted.prompt.split_whitespace().count();
                (words as u64, (PICTURE_TOKENS * count) as u64)
            }
        };
        json!({
            "input_tokens": input,
            "input_tokens_details": {"image_tokens": 0, "text_tokens": input},
            "output_tokens": output,
            "output_tokens_details": {"image_tokens": output, "text_tokens": 0},
            "total_tokens": input + output,
        })
    }

    fn revised(&self) -> String {
        match &self.plan.answer {
            Answer::Echo => self.received.echo(),
            Answer::Digest => self.key_hash.told(),
            Answer::Text(text) => text.clone(),
            _ => self.wanted.prompt.clone(),
        }
    }

    /// Where the image can be fetched; `mock:text=gone` names one that cannot.
    fn address(&self) -> String {
        let host = self.received.head.headers.get(http::header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or("mock");
        let name = match &self.plan.answer {
            Answer::Text(text) if text == "gone" => "gone",
            _ => self.key_hash.short(),
        };
        format!("http://{host}/mock/files/{name}.png")
    }
}

/// A short text field of a form. Images are stepped over unread: nothing here needs them.
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
        let bytes = file();
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xaeB`\x82"));
    }
}
