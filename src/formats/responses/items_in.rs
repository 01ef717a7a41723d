//! The output items of an upstream's reply, read leniently: what is missing or unknown says nothing.

use std::borrow::Cow;

use crate::model::{
    Arguments, Call, Citation, Issuer, Json, Logprob, Media, Signature, Source, Text, ToolKind,
};

/// What one item says.
pub(super) enum Said<'a> {
    Message(Vec<Spoken<'a>>),
    Reasoning {
        text: Text<'a>,
        signature: Option<Signature<'a>>,
    },
    Call(Call<'a>),
    Image(Media<'a>),
    /// What tools of the upstream did; what came of it stands in the message that follows.
    Hosted,
}

pub(super) enum Spoken<'a> {
    Text {
        text: Text<'a>,
        /// Counted from the start of this text; `None`: a source without an address.
        sources: Vec<Option<Citation<'a>>>,
        logprobs: Vec<Logprob<'a>>,
    },
    Refusal(Text<'a>),
}

/// The item's own id, and what it says.
pub(super) fn read<'a>(item: Json<'a>) -> (Text<'a>, Said<'a>) {
    let mut item = Record::of(item);
    let id = item.text("id");
    let said = match item.text("type").as_ref() {
        "message" => Said::Message(read_message(&mut item)),
        "reasoning" => read_thought(&id, &mut item),
        "function_call" => read_call(&mut item, "arguments", ToolKind::Function),
        "custom_tool_call" => read_call(&mut item, "input", ToolKind::Custom),
        "image_generation_call" => read_picture(&mut item),
        _ => Said::Hosted,
    };
    (id, said)
}

fn read_message<'a>(item: &mut Record<'a>) -> Vec<Spoken<'a>> {
    let content = item.list("content").into_iter().map(Record::of);
    content
        .map(|mut part| match part.text("type").as_ref() {
            "refusal" => Spoken::Refusal(part.text("refusal")),
            _ => Spoken::Text {
                text: part.text("text"),
                sources: part
                    .list("annotations")
                    .into_iter()
                    .map(read_source)
                    .collect(),
                logprobs: read_logprobs(part.list("logprobs")),
            },
        })
        .collect()
}

pub(super) fn read_source<'a>(annotation: Json<'a>) -> Option<Citation<'a>> {
    let mut annotation = Record::of(annotation);
    if annotation.text("type") != "url_citation" {
        return None;
    }
    let title = annotation.text("title");
    Some(Citation {
        url: annotation.text("url"),
        title: Some(title).filter(|title| !title.is_empty()),
        start: annotation.number("start_index"),
        end: annotation.number("end_index"),
    })
}

pub(super) fn read_logprobs<'a>(list: Vec<Json<'a>>) -> Vec<Logprob<'a>> {
    let token = |entry: &mut Record<'a>| {
        let logprob = entry.take("logprob").as_f64().unwrap_or_default();
        (entry.text("token"), logprob)
    };
    list.into_iter()
        .map(|entry| {
            let mut entry = Record::of(entry);
            let top = entry.list("top_logprobs").into_iter();
            let top = top.map(|entry| token(&mut Record::of(entry))).collect();
            let (token, logprob) = token(&mut entry);
            Logprob {
                token,
                logprob,
                top,
            }
        })
        .collect()
}

/// The summary; where there is none, the thoughts themselves, which some upstreams show.
fn read_thought<'a>(id: &str, item: &mut Record<'a>) -> Said<'a> {
    let summary = paragraphs(item.list("summary"));
    let text = if summary.is_empty() {
        paragraphs(item.list("content"))
    } else {
        summary
    };
    let ciphertext = item.text("encrypted_content");
    let signature = (!ciphertext.is_empty()).then(|| Signature {
        issuer: Issuer::Responses,
        data: format!("{id}\n{ciphertext}").into(),
    });
    Said::Reasoning { text, signature }
}

pub(super) const PARAGRAPH: &str = "\n\n";

fn paragraphs<'a>(parts: Vec<Json<'a>>) -> Text<'a> {
    let mut joined = Text::default();
    for part in parts {
        let text = Record::of(part).text("text");
        if joined.is_empty() {
            joined = text;
        } else if !text.is_empty() {
            joined.to_mut().push_str(PARAGRAPH);
            joined.to_mut().push_str(&text);
        }
    }
    joined
}

fn read_call<'a>(item: &mut Record<'a>, arguments: &str, kind: ToolKind) -> Said<'a> {
    let id = item.text("call_id");
    Said::Call(Call {
        id: Some(id).filter(|id| !id.is_empty()),
        name: item.text("name"),
        arguments: Arguments::Text(item.text(arguments)),
        signature: None,
        kind,
    })
}

fn read_picture<'a>(item: &mut Record<'a>) -> Said<'a> {
    let data = item.text("result");
    if data.is_empty() {
        return Said::Hosted;
    }
    let format = item.text("output_format");
    Said::Image(Media {
        mime: match format.as_ref() {
            "" => "image/png".into(),
            format => format!("image/{format}").into(),
        },
        source: Source::Base64(data),
        name: None,
        detail: None,
    })
}

/// An object whose fields are taken one by one.
struct Record<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

impl<'a> Record<'a> {
    fn of(value: Json<'a>) -> Record<'a> {
        match value {
            Json::Object(fields) => Record(fields.into_vec()),
            _ => Record(Vec::new()),
        }
    }

    fn take(&mut self, key: &str) -> Json<'a> {
        match self.0.iter().position(|(name, _)| name == key) {
            Some(at) => self.0.swap_remove(at).1,
            None => Json::Null,
        }
    }

    fn text(&mut self, key: &str) -> Text<'a> {
        match self.take(key) {
            Json::Str(text) => text,
            _ => Text::default(),
        }
    }

    fn list(&mut self, key: &str) -> Vec<Json<'a>> {
        match self.take(key) {
            Json::Array(items) => items,
            _ => Vec::new(),
        }
    }

    fn number(&mut self, key: &str) -> u64 {
        self.take(key).as_u64().unwrap_or_default()
    }
}
