//! The image endpoints. They do not use the codec of the format: the mock is there to test it.

use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body_hash::BodyHash;
use super::plan::{PlannedContent, ResponsePlan};
use super::request::MockRequest;
use super::sample_image::base64_png;
use crate::model::ApiError;
use crate::sse::SseWriter;

const MAX_IMAGES: usize = 10;
const IMAGE_TOKENS: usize = 272;

/// The error for a prompt that the safety system rejects.
pub(super) fn moderation_error() -> ApiError {
    let mut api_error = ApiError::invalid("Your request was rejected by the safety system.");
    api_error.code = Some("moderation_blocked".to_owned());
    api_error
}

/// The fields of an image request that the mock uses.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct MockImageRequest {
    pub model: String,
    pub prompt: String,
    n: Option<usize>,
    size: Option<String>,
    response_format: Option<String>,
    pub stream: bool,
    partial_images: Option<usize>,
}

impl MockImageRequest {
    /// Decodes a JSON body or a form.
    pub(super) fn decode(content_type: &str, body: &[u8]) -> Result<MockImageRequest, ApiError> {
        if content_type.starts_with("multipart/") {
            let field = |name| form_field(body, name);
            return Ok(MockImageRequest {
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

/// Makes the response to an image request.
pub(super) struct MockImageResponse<'p> {
    pub image_request: &'p MockImageRequest,
    pub plan: &'p ResponsePlan,
    pub body_hash: &'p BodyHash,
    pub created: i64,
    pub request: &'p MockRequest,
}

impl MockImageResponse<'_> {
    /// Encodes the JSON response.
    pub(super) fn encode_json(&self) -> Vec<u8> {
        let count = self.image_request.n.unwrap_or(1).clamp(1, MAX_IMAGES);
        let datum = match self.image_request.response_format.as_deref() {
            Some("url") => json!({"url": self.url(), "revised_prompt": self.revised_prompt()}),
            _ => {
                json!({"b64_json": base64_png(self.plan.weight), "revised_prompt": self.revised_prompt()})
            }
        };
        let mut body = self.settings();
        body["created"] = self.created.into();
        body["data"] = vec![datum; count].into();
        body["usage"] = self.usage(count);
        body.to_string().into_bytes()
    }

    /// Encodes the events of a stream: partial images, then the image.
    pub(super) fn encode_events(&self) -> Vec<Bytes> {
        let edits = self.request.head.uri.path().ends_with("/edits");
        let kind = if edits {
            "image_edit"
        } else {
            "image_generation"
        };
        let mut events = Vec::new();
        let mut push = |name: String, mut event: Value| {
            let mut writer = SseWriter::default();
            event["type"] = name.as_str().into();
            event["created_at"] = self.created.into();
            event["b64_json"] = base64_png(self.plan.weight).into();
            writer.event(&name, &event);
            events.push(writer.take());
        };
        for number in 0..self.image_request.partial_images.unwrap_or(0) {
            let mut partial = self.settings();
            partial["partial_image_index"] = number.into();
            push(format!("{kind}.partial_image"), partial);
        }
        if !self.plan.no_end {
            let mut completed = self.settings();
            completed["usage"] = self.usage(1);
            push(format!("{kind}.completed"), completed);
        }
        events
    }

    fn settings(&self) -> Value {
        let size = self.image_request.size.as_deref().unwrap_or("1024x1024");
        json!({"background": "opaque", "output_format": "png", "quality": "low", "size": size})
    }

    fn usage(&self, count: usize) -> Value {
        let (input, output) = match self.plan.usage {
            Some(usage) => (usage.input, usage.output),
            None => {
                let words = self.image_request.prompt.split_whitespace().count();
                (words as u64, (IMAGE_TOKENS * count) as u64)
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

    fn revised_prompt(&self) -> String {
        match &self.plan.content {
            PlannedContent::Echo => self.request.echo(),
            PlannedContent::BodyHash => self.body_hash.to_text(),
            PlannedContent::Text(text) => text.clone(),
            _ => self.image_request.prompt.clone(),
        }
    }

    /// Returns the URL of the image; with `mock:text=gone` one that does not exist.
    fn url(&self) -> String {
        let host = self.request.head.headers.get(http::header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or("mock");
        let name = match &self.plan.content {
            PlannedContent::Text(text) if text == "gone" => "gone",
            _ => self.body_hash.short(),
        };
        format!("http://{host}/mock/files/{name}.png")
    }
}

/// Decodes a short text field of a form; files are skipped.
pub(super) fn form_field(body: &[u8], name: &str) -> Option<String> {
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
    fn forms_and_json_decode_to_the_same() {
        let form = "--x\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\
                    Content-Type: image/png\r\n\r\n\u{1}\u{2}\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na cat\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n2\r\n--x--\r\n";
        let from_form =
            MockImageRequest::decode("multipart/form-data; boundary=x", form.as_bytes()).unwrap();
        let from_json =
            MockImageRequest::decode("application/json", br#"{"prompt":"a cat","n":2}"#).unwrap();
        assert_eq!(from_form, from_json);
        assert!(MockImageRequest::decode("application/json", b"{").is_err());
    }
}
