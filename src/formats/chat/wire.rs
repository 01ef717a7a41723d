//! Shapes that a whole reply and a stream of it have in common.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::formats::ResponseOptions;
use crate::formats::identity::reply_id;
use crate::model::{Citation, Finish, Logprob, Media, Source, Text, ToolKind};

/// What every piece of a reply repeats.
#[derive(Debug, Default)]
pub(super) struct Heading {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
}

impl Heading {
    pub(super) fn new(id: &str, created: i64, model: &str, asked: &ResponseOptions) -> Heading {
        let id = if id.is_empty() { &asked.request_id } else { id };
        let named = [asked.model.as_str(), model]
            .into_iter()
            .find(|name| !name.is_empty());
        Heading {
            id: reply_id("chatcmpl-", id),
            created: if created == 0 { asked.at } else { created },
            model: named.unwrap_or_default().to_owned(),
        }
    }
}

/// Whole, or the first or a later piece of one: later pieces repeat neither id nor name.
#[derive(Debug, Serialize)]
pub(super) struct ToolCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom: Option<CustomCall<'a>>,
}

#[derive(Debug, Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: Text<'a>,
}

#[derive(Debug, Serialize)]
struct CustomCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    input: Text<'a>,
}

impl<'a> ToolCall<'a> {
    pub(super) fn whole(id: Text<'a>, kind: ToolKind, name: &'a str, text: Text<'a>) -> Self {
        let word = match kind {
            ToolKind::Function => "function",
            ToolKind::Custom => "custom",
        };
        ToolCall {
            id: Some(id),
            r#type: Some(word),
            ..ToolCall::new(kind, Some(name), text)
        }
    }

    const fn new(kind: ToolKind, name: Option<&'a str>, text: Text<'a>) -> Self {
        let (mut function, mut custom) = (None, None);
        match kind {
            ToolKind::Function => {
                function = Some(FunctionCall {
                    name,
                    arguments: text,
                });
            }
            ToolKind::Custom => custom = Some(CustomCall { name, input: text }),
        }
        ToolCall {
            index: None,
            id: None,
            r#type: None,
            function,
            custom,
        }
    }

    pub(super) fn first(index: u32, id: &'a str, kind: ToolKind, name: &'a str) -> Self {
        ToolCall {
            index: Some(index),
            ..ToolCall::whole(id.into(), kind, name, Text::default())
        }
    }

    pub(super) fn later(index: u32, kind: ToolKind, text: &'a str) -> Self {
        ToolCall {
            index: Some(index),
            ..ToolCall::new(kind, None, text.into())
        }
    }
}

#[derive(Serialize)]
pub(super) struct Annotation<'a> {
    r#type: &'static str,
    url_citation: UrlCitation<'a>,
}

#[derive(Serialize)]
struct UrlCitation<'a> {
    end_index: u64,
    start_index: u64,
    title: &'a str,
    url: &'a str,
}

impl<'a> Annotation<'a> {
    pub(super) fn new(citation: &'a Citation<'_>) -> Annotation<'a> {
        Annotation {
            r#type: "url_citation",
            url_citation: UrlCitation {
                end_index: citation.end,
                start_index: citation.start,
                title: citation.title.as_deref().unwrap_or_default(),
                url: &citation.url,
            },
        }
    }
}

/// Images and sound in an answer; only sound has an official place.
#[derive(Serialize)]
pub(super) struct Image<'a> {
    /// In a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    r#type: &'static str,
    image_url: ImageUrl<'a>,
}

impl Image<'_> {
    pub(super) fn numbered(self, index: u32) -> Self {
        Image {
            index: Some(index),
            ..self
        }
    }
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: Text<'a>,
}

#[derive(Serialize)]
pub(super) struct Audio<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    data: &'a str,
    /// Never kept, so expired from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    transcript: &'static str,
}

impl Audio<'_> {
    /// More of it: clients would add up what is said twice.
    pub(super) fn later(self) -> Self {
        Audio {
            id: None,
            expires_at: None,
            ..self
        }
    }
}

pub(super) enum Shown<'a> {
    Image(Image<'a>),
    Audio(Audio<'a>),
}

impl<'a> Shown<'a> {
    pub(super) fn new(media: &'a Media<'_>, heading: &Heading) -> Shown<'a> {
        if let Source::Base64(data) = &media.source
            && media.mime.starts_with("audio/")
        {
            return Shown::Audio(Audio {
                id: Some(heading.id.replacen("chatcmpl-", "audio_", 1)),
                data,
                expires_at: Some(heading.created),
                transcript: "",
            });
        }
        let url = match &media.source {
            Source::Base64(data) => format!("data:{};base64,{data}", media.mime).into(),
            Source::Plain(text) => {
                format!("data:{};base64,{}", media.mime, STANDARD.encode(&**text)).into()
            }
            Source::Url(url) | Source::File(url) => Text::Borrowed(&**url),
        };
        Shown::Image(Image {
            index: None,
            r#type: "image_url",
            image_url: ImageUrl { url },
        })
    }
}

#[derive(Serialize)]
pub(super) struct Logprobs<'a> {
    content: Vec<Token<'a>>,
    refusal: Option<&'static str>,
}

#[derive(Serialize)]
struct Token<'a> {
    #[serde(flatten)]
    likely: Likely<'a>,
    top_logprobs: Vec<Likely<'a>>,
}

#[derive(Serialize)]
struct Likely<'a> {
    token: &'a str,
    logprob: f64,
    /// Not known: a token need not be whole characters.
    bytes: Option<&'a [u8]>,
}

impl<'a> Logprobs<'a> {
    pub(super) fn new(logprobs: &'a [Logprob<'_>]) -> Logprobs<'a> {
        let likely = |token: &'a Text<'_>, logprob| Likely {
            token,
            logprob,
            bytes: None,
        };
        let token = |logprob: &'a Logprob<'_>| Token {
            likely: likely(&logprob.token, logprob.logprob),
            top_logprobs: logprob.top.iter().map(|(t, p)| likely(t, *p)).collect(),
        };
        Logprobs {
            content: logprobs.iter().map(token).collect(),
            refusal: None,
        }
    }
}

/// Calls beat every reason except a cut: agents go by this word.
pub(super) const fn finish_reason(finish: &Finish<'_>, has_calls: bool) -> &'static str {
    match finish {
        Finish::Length | Finish::ContextFull => "length",
        Finish::Filtered(_) => "content_filter",
        Finish::Tools => "tool_calls",
        Finish::Stop
        | Finish::StopSequence(_)
        | Finish::Refused
        | Finish::Paused
        | Finish::MalformedCall
        | Finish::Other => {
            if has_calls {
                "tool_calls"
            } else {
                "stop"
            }
        }
    }
}
