//! The JSON reply, and the pieces it shares with streams.

use jiff::Timestamp;
use serde::Serialize;
use serde_json_borrow::ObjectAsVec as Object;

use super::finish_reason::{self, keeps_call, part_place};
use super::grounding::{Grounding, Run, ground};
use super::usage::UsageMetadata;
use crate::formats::ResponseOptions;
use crate::formats::written::written;
use crate::model::{
    Arguments, Call, Choice, Finish, Issuer, Json, Logprob, Losses, Media, PartKind, Response,
    Signature, Source, Text, ToolKind,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reply<'a, C> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) candidates: Option<C>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_metadata: Option<UsageMetadata>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    pub(super) block_reason: &'a str,
}

/// What all pieces of a reply say alike.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Repeated<'a> {
    model_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_time: Option<String>,
    response_id: &'a str,
}

impl<'a> Repeated<'a> {
    pub(super) fn new(model_version: &'a str, created: i64, response_id: &'a str) -> Self {
        let create_time = Timestamp::from_second(created).ok();
        Repeated {
            model_version,
            create_time: create_time.map(|time| time.to_string()),
            response_id,
        }
    }
}

#[derive(Serialize)]
struct Whole<'a, C> {
    #[serde(flatten)]
    reply: Reply<'a, C>,
    #[serde(flatten)]
    repeated: Repeated<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a, P> {
    pub(super) content: Content<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish_message: Option<&'a str>,
    pub(super) index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grounding_metadata: Option<Grounding<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) avg_logprobs: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logprobs_result: Option<LogprobsResult<'a>>,
}

/// A piece of a stream has one part, a whole reply any number.
#[derive(Serialize)]
pub(super) struct Content<P> {
    parts: P,
    role: &'static str,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<FileData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Text<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileData<'a> {
    mime_type: &'a str,
    file_uri: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    args: Args<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Args<'a> {
    Given(&'a Json<'a>),
    Read(Json<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogprobsResult<'a> {
    top_candidates: Vec<TopCandidates<'a>>,
    chosen_candidates: Vec<LogprobsCandidate<'a>>,
}

#[derive(Serialize)]
struct TopCandidates<'a> {
    candidates: Vec<LogprobsCandidate<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogprobsCandidate<'a> {
    token: &'a str,
    log_probability: f64,
}

pub(super) fn encode(
    response: &Response<'_>,
    asked: &ResponseOptions,
    losses: &mut Losses,
) -> Vec<u8> {
    finish_reason::report(response, losses);
    let blocked = response.blocked_prompt();
    let created = if response.created == 0 {
        asked.at
    } else {
        response.created
    };
    let candidates = blocked.is_none().then(|| {
        let choices = (0u32..).zip(&response.choices);
        let candidates = choices.map(|(index, choice)| candidate(index, choice, losses));
        candidates.collect::<Vec<_>>()
    });
    let reply = Whole {
        reply: Reply {
            candidates,
            prompt_feedback: blocked.map(|block_reason| PromptFeedback { block_reason }),
            usage_metadata: response.usage.map(UsageMetadata::from),
        },
        repeated: Repeated::new(
            or_else(&response.model, &asked.model),
            created,
            or_else(&response.id, &asked.request_id),
        ),
    };
    written(&reply, response.size())
}

fn or_else<'a>(said: &'a str, asked: &'a str) -> &'a str {
    if said.is_empty() { asked } else { said }
}

fn candidate<'a>(
    index: u32,
    choice: &'a Choice<'_>,
    losses: &mut Losses,
) -> Candidate<'a, Vec<WirePart<'a>>> {
    let mut parts: Vec<WirePart<'a>> = Vec::new();
    for (number, part) in choice.parts.iter().enumerate() {
        let last = number + 1 == choice.parts.len();
        let wire = match &part.kind {
            PartKind::Call(call) => {
                let args = whole_arguments(call);
                let place = || part_place(index as usize, number);
                let finish = &choice.finish;
                keeps_call(call, args.as_ref(), last, finish, place, losses)
                    .then(|| call_part(call, args))
            }
            other => content_part(other),
        };
        let Some(wire) = wire else { continue };
        match parts.last_mut() {
            // Sources are placed in one run of words.
            Some(before)
                if !choice.citations.is_empty() && before.is_words() && wire.is_words() =>
            {
                let more = wire.text.unwrap_or_default();
                before.text.get_or_insert_default().to_mut().push_str(&more);
            }
            _ => parts.push(wire),
        }
    }
    let words = parts.iter().enumerate().filter(|(_, part)| part.is_words());
    let runs: Vec<Run<'_>> = words
        .map(|(part, words)| Run {
            part,
            text: words.text.as_deref().unwrap_or_default().into(),
        })
        .collect();
    let grounding_metadata = ground(&runs, &choice.citations);
    let (finish_reason, finish_message) = finish_words(&choice.finish);
    Candidate {
        content: content(parts),
        finish_reason: Some(finish_reason),
        finish_message,
        index,
        grounding_metadata,
        avg_logprobs: average(&choice.logprobs),
        logprobs_result: logprobs_result(&choice.logprobs),
    }
}

pub(super) const fn content<P>(parts: P) -> Content<P> {
    Content {
        parts,
        role: "model",
    }
}

/// Everything but calls; `None`: nothing there to be said.
fn content_part<'a>(part: &'a PartKind<'_>) -> Option<WirePart<'a>> {
    match part {
        PartKind::Text(text) | PartKind::Refusal(text) => {
            (!text.is_empty()).then(|| WirePart::words(text))
        }
        PartKind::Reasoning {
            text,
            signature: None,
        } if text.is_empty() => None,
        PartKind::Reasoning { text, signature } => {
            Some(WirePart::thought(text, signature.as_ref()))
        }
        PartKind::Media(media) => Some(WirePart::media(media)),
        PartKind::Call(_) | PartKind::Result(_) => None,
    }
}

impl<'a> WirePart<'a> {
    pub(super) fn words(text: &'a str) -> WirePart<'a> {
        WirePart {
            text: Some(text.into()),
            ..WirePart::default()
        }
    }

    pub(super) fn thought(text: &'a str, signature: Option<&'a Signature<'_>>) -> WirePart<'a> {
        WirePart {
            text: Some(text.into()),
            thought: true,
            thought_signature: signature.map(encode_signature),
            ..WirePart::default()
        }
    }

    pub(super) fn media(media: &'a Media<'_>) -> WirePart<'a> {
        let mime_type = &*media.mime;
        match &media.source {
            Source::Base64(data) => WirePart {
                inline_data: Some(InlineData { mime_type, data }),
                ..WirePart::default()
            },
            Source::Url(file_uri) | Source::File(file_uri) => WirePart {
                file_data: Some(FileData {
                    mime_type,
                    file_uri,
                }),
                ..WirePart::default()
            },
            Source::Plain(text) => WirePart::words(text),
        }
    }

    fn is_words(&self) -> bool {
        self.text.is_some() && !self.thought
    }
}

/// Our own proofs as they are, those of other formats wrapped.
fn encode_signature<'a>(signature: &'a Signature<'_>) -> Text<'a> {
    match signature.issuer {
        Issuer::Native => signature.data.as_ref().into(),
        _ => signature.wrap().into(),
    }
}

pub(super) fn call_part<'a>(call: &'a Call<'_>, args: Option<Args<'a>>) -> WirePart<'a> {
    // No arguments at all are none; what cannot be read is handed on as it came.
    let raw = || match call.arguments.to_text().into_owned() {
        blank if blank.trim_ascii().is_empty() => Args::Read(Json::Object(Object::default())),
        text => Args::Read(Json::Object(vec![("_raw", Json::from(text))].into())),
    };
    WirePart {
        function_call: Some(FunctionCall {
            name: &call.name,
            args: args.unwrap_or_else(raw),
            id: call.id.as_deref(),
        }),
        thought_signature: call.signature.as_ref().map(encode_signature),
        ..WirePart::default()
    }
}

/// The object that the arguments are; `None`: they are not all there, or no object.
pub(super) fn whole_arguments<'a>(call: &'a Call<'_>) -> Option<Args<'a>> {
    match (&call.arguments, call.kind) {
        (Arguments::Text(text), ToolKind::Custom) => {
            let input = Json::Str(text.as_ref().into());
            Some(Args::Read(Json::Object(vec![("input", input)].into())))
        }
        (Arguments::Text(text), ToolKind::Function) => {
            let tree: Json<'a> = serde_json::from_str(text).ok()?;
            tree.is_object().then_some(Args::Read(tree))
        }
        (Arguments::Tree(tree), _) => tree.is_object().then_some(Args::Given(tree)),
    }
}

/// A call that was being written then is no call.
pub(super) fn is_cut_off(finish: &Finish<'_>) -> bool {
    matches!(finish, Finish::Length | Finish::ContextFull)
}

pub(super) fn finish_words<'a>(finish: &'a Finish<'_>) -> (&'static str, Option<&'a str>) {
    match finish {
        Finish::Stop | Finish::StopSequence(_) | Finish::Tools | Finish::Refused => ("STOP", None),
        Finish::Length | Finish::ContextFull => ("MAX_TOKENS", None),
        Finish::Filtered(words) => ("SAFETY", words.as_deref()),
        Finish::MalformedCall => ("MALFORMED_FUNCTION_CALL", None),
        Finish::Paused | Finish::Other => ("OTHER", None),
    }
}

pub(super) fn average(logprobs: &[Logprob<'_>]) -> Option<f64> {
    let sum: f64 = logprobs.iter().map(|entry| entry.logprob).sum();
    (!logprobs.is_empty()).then(|| sum / logprobs.len() as f64)
}

pub(super) fn logprobs_result<'a>(logprobs: &'a [Logprob<'_>]) -> Option<LogprobsResult<'a>> {
    let candidate = |token: &'a str, log_probability| LogprobsCandidate {
        token,
        log_probability,
    };
    let top = |entry: &'a Logprob<'_>| TopCandidates {
        candidates: entry
            .top
            .iter()
            .map(|(token, value)| candidate(token, *value))
            .collect(),
    };
    let chosen = |entry: &'a Logprob<'_>| candidate(&entry.token, entry.logprob);
    (!logprobs.is_empty()).then(|| LogprobsResult {
        top_candidates: logprobs.iter().map(top).collect(),
        chosen_candidates: logprobs.iter().map(chosen).collect(),
    })
}
