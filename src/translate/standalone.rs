//! Translates one body by itself, with no gateway around it: for the command line and the console.

use bytes::Bytes;

use super::json_body;
use super::passthrough_request::without_refused;
use super::request;
use super::request_summary::{ModelTraits, RequestSummary};
use super::stream::stream_with_losses;
use super::upstream_error;
use crate::formats::{
    Capabilities, Framing, Operation, RequestHead, ResponseOptions, UpstreamTarget,
};
use crate::model::{ApiError, Format, Losses, TranslationState};

/// The vendor's name in the names of the upstream's own tools.
const BRAND: &str = "google";

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    Request,
    Response,
    Stream,
    Error { status: u16 },
}

/// The translation of one body.
#[derive(Debug, Clone, Copy)]
pub struct StandaloneTranslation<'a> {
    pub from: Format,
    pub to: Format,
    pub kind: BodyKind,
    /// Of a request: the upstream's model id; of a response: the client's. Absent: as in the body.
    pub model: Option<&'a str>,
    /// The request is for a stream, also where its body does not say so.
    pub stream: bool,
    /// The client asked for usage in its stream.
    pub include_usage: bool,
    /// Of the upstream's model.
    pub max_output_tokens: Option<u64>,
    pub capabilities: &'a Capabilities,
    pub request_id: &'a str,
    /// Unix seconds.
    pub created_at: i64,
}

impl StandaloneTranslation<'_> {
    /// Returns the format of the client, which names fields and reads errors.
    pub const fn client(&self) -> Format {
        match self.kind {
            BodyKind::Request => self.from,
            BodyKind::Response | BodyKind::Stream | BodyKind::Error { .. } => self.to,
        }
    }

    /// Translates the body. `Err`: what the client gets in place of a response.
    pub fn translate(&self, body: &[u8], losses: &mut Losses) -> Result<Vec<u8>, ApiError> {
        let (from, to) = (self.from, self.to);
        match self.kind {
            BodyKind::Request => self.translate_request(body, losses),
            BodyKind::Response => {
                json_body::response(from, to, body, &self.response_options(), losses)
            }
            BodyKind::Stream => {
                let (stream, found) = stream_with_losses(from, to, body, &self.response_options());
                *losses = found;
                Ok(stream)
            }
            BodyKind::Error { status } => {
                let (_, error) = upstream_error::error(from, to, status, body, self.request_id);
                Ok(error)
            }
        }
    }

    fn translate_request(&self, body: &[u8], losses: &mut Losses) -> Result<Vec<u8>, ApiError> {
        let fields = self.from.codec().decode_routing_fields(body)?;
        let named = fields.model.map(|model| model.name);
        let model = self.model.or(named.as_deref()).unwrap_or_default();
        let stream = self.stream || fields.stream;
        let head = RequestHead {
            path_model: (self.from == Format::Native).then_some(model),
            stream,
            ..RequestHead::default()
        };
        let target = UpstreamTarget {
            model,
            stream,
            max_output_tokens: self.max_output_tokens,
            capabilities: self.capabilities,
            brand: BRAND,
            images_only: false,
        };
        let translated = request::request(self.from, self.to, &head, body, &target, losses)?;
        Ok(translated.body)
    }

    /// Returns the body as it passes through to an upstream of the client's own format, or to a client of the
    /// upstream's.
    pub fn pass_through(&self, body: &[u8], losses: &mut Losses) -> Result<Vec<u8>, ApiError> {
        if self.kind != BodyKind::Request {
            return Ok(body.to_vec());
        }
        let codec = self.from.codec();
        let (operation, path_model) = match (self.from, self.stream) {
            (Format::Native, true) => (Operation::Stream(Framing::Sse), self.model),
            (Format::Native, false) => (Operation::Generate, self.model),
            _ => (Operation::Generate, None),
        };
        let mut summary = RequestSummary::new(codec, operation, path_model, body)?;
        summary.check_passthrough(codec, body, &ModelTraits::default(), true)?;
        let model = self.model.unwrap_or(&summary.model).to_owned();
        let body = Bytes::copy_from_slice(body);
        let edited = summary.passthrough_body(codec, &body, &model, BRAND);
        let sent = without_refused(codec, &body, edited, self.capabilities, losses);
        Ok(sent.into_bytes().to_vec())
    }

    fn response_options(&self) -> ResponseOptions {
        ResponseOptions {
            model: self.model.unwrap_or_default().to_owned(),
            stream: self.kind == BodyKind::Stream,
            framing: Framing::Sse,
            include_usage: self.include_usage,
            request_id: self.request_id.to_owned(),
            created_at: self.created_at,
            translation_state: TranslationState {
                think_tags: self.capabilities.chat_think_tags && self.from == Format::Chat,
                ..TranslationState::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Action, FieldLocation};

    fn translation(kind: BodyKind, capabilities: &Capabilities) -> StandaloneTranslation<'_> {
        StandaloneTranslation {
            from: Format::Chat,
            to: Format::Chat,
            kind,
            model: None,
            stream: false,
            include_usage: false,
            max_output_tokens: None,
            capabilities,
            request_id: "req_1",
            created_at: 1,
        }
    }

    #[test]
    fn a_body_of_the_same_format_passes_through_without_what_the_upstream_refuses() {
        let mut capabilities = Capabilities::default();
        capabilities
            .set("chat_unsupported", "seed")
            .expect("a capability");
        let body = br#"{ "model":"m", "seed": 7,"unknown":1, "messages":[] }"#;
        let mut losses = Losses::default();
        let single = StandaloneTranslation {
            model: Some("other"),
            ..translation(BodyKind::Request, &capabilities)
        };
        let sent = single.pass_through(body, &mut losses).expect("a body");
        let sent = String::from_utf8(sent).expect("text");
        assert_eq!(sent, r#"{"model":"other","unknown":1,"messages":[]}"#);
        assert_eq!(losses.0.len(), 1);
        assert_eq!(losses.0[0].action, Action::Dropped);
        assert_eq!(losses.0[0].location, FieldLocation::Path("seed".into()));
        let response = translation(BodyKind::Response, &capabilities);
        let same = response.pass_through(b"{ }", &mut losses).expect("a body");
        assert_eq!(same, b"{ }");
    }

    #[test]
    fn the_losses_of_a_stream_are_reported() {
        let capabilities = Capabilities::default();
        let single = StandaloneTranslation {
            from: Format::Native,
            ..translation(BodyKind::Stream, &capabilities)
        };
        let event = r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":"OTHER"}]}"#;
        let stream = format!("data: {event}\n\n");
        let mut losses = Losses::default();
        let sent = single.translate(stream.as_bytes(), &mut losses);
        assert!(sent.expect("a stream").ends_with(b"data: [DONE]\n\n"));
        assert_eq!(losses.0.len(), 1, "{losses:?}");
    }
}
