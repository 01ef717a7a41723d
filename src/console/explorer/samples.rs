//! Bodies to begin with: one of each kind in every format.

use crate::model::Format;
use crate::translate::BodyKind;

/// A body by the name of its format.
struct Sample {
    format: &'static str,
    title: &'static str,
    request: &'static str,
    response: &'static str,
    stream: &'static str,
}

const SAMPLES: [Sample; 5] = [
    Sample {
        format: "chat",
        title: "OpenAI Chat Completions",
        request: include_str!("samples/chat-request.json"),
        response: include_str!("samples/chat-response.json"),
        stream: include_str!("samples/chat-stream.txt"),
    },
    Sample {
        format: "responses",
        title: "OpenAI Responses",
        request: include_str!("samples/responses-request.json"),
        response: include_str!("samples/responses-response.json"),
        stream: include_str!("samples/responses-stream.txt"),
    },
    Sample {
        format: "messages",
        title: "Anthropic Messages",
        request: include_str!("samples/messages-request.json"),
        response: include_str!("samples/messages-response.json"),
        stream: include_str!("samples/messages-stream.txt"),
    },
    Sample {
        format: "native",
        title: "Gemini generateContent",
        request: include_str!("samples/native-request.json"),
        response: include_str!("samples/native-response.json"),
        stream: include_str!("samples/native-stream.txt"),
    },
    Sample {
        format: "images",
        title: "OpenAI Images",
        request: include_str!("samples/images-request.json"),
        response: include_str!("samples/images-response.json"),
        stream: include_str!("samples/images-stream.txt"),
    },
];

impl Sample {
    fn text(&self, kind: BodyKind) -> &'static str {
        let text = match kind {
            BodyKind::Request => self.request,
            BodyKind::Response | BodyKind::Error { .. } => self.response,
            BodyKind::Stream => self.stream,
        };
        text.trim_end()
    }
}

fn of(format: Format) -> Option<&'static Sample> {
    let mut samples = SAMPLES.iter();
    samples.find(|sample| sample.format == format.name())
}

/// The name of a format's API.
pub fn format_title(format: Format) -> &'static str {
    of(format).map_or(format.name(), |sample| sample.title)
}

/// A body of this kind and format.
pub fn sample(format: Format, kind: BodyKind) -> &'static str {
    of(format).map_or("", |sample| sample.text(kind))
}

/// Tells whether a text is one of the samples.
pub fn is_sample(text: &str) -> bool {
    let kinds = [BodyKind::Request, BodyKind::Response, BodyKind::Stream];
    let text = text.trim_end();
    let mut all = SAMPLES
        .iter()
        .flat_map(|sample| kinds.map(|kind| sample.text(kind)));
    all.any(|sample| sample == text)
}
