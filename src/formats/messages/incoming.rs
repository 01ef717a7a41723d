//! Replies of an upstream of this format.

use super::pass::RawUsage;
use crate::formats::no_answer;
use crate::json::{Fields, Node, RawJson, decode_json, from_json};
use crate::model::{
    ApiError, Arguments, Call, Choice, Citation, FieldLocation, Finish, Issuer, Json, Losses, Part,
    PartKind, Response, Signature, Text, ToolKind, Usage,
};

pub(super) fn decode<'a>(body: &'a [u8], losses: &mut Losses) -> Result<Response<'a>, ApiError> {
    let mut fields = Fields::of_body(body).map_err(unreadable)?;
    if fields.take("error").is_some() {
        return Err(super::error::decode(200, body));
    }
    let mut response = read(&mut fields, losses).map_err(unreadable)?;
    for choice in &mut response.choices {
        keep_numbers(body, &mut choice.parts);
    }
    Ok(response)
}

from_json! {
    struct Written<'a> {
        "content" => content: Option<Vec<WrittenBlock<'a>>>,
    }
}

from_json! {
    struct WrittenBlock<'a> {
        "input" => input: Option<RawJson<'a>>,
    }
}

/// A tree holds numbers of up to 64 bits. Arguments with a longer one stay as they are written,
/// since it may be an id, of which every digit counts.
fn keep_numbers<'a>(body: &'a [u8], parts: &mut [Part<'a>]) {
    let is_short = |part: &Part<'_>| match &part.kind {
        PartKind::Call(call) => match &call.arguments {
            Arguments::Tree(tree) => is_exact(tree),
            Arguments::Text(_) => true,
        },
        _ => true,
    };
    if parts.iter().all(is_short) {
        return;
    }
    let text = std::str::from_utf8(body).unwrap_or_default();
    let written: Written<'a> = decode_json(text).unwrap_or_default();
    let blocks = written.content.unwrap_or_default();
    for part in parts.iter_mut().filter(|part| !is_short(part)) {
        let block = part.at.and_then(|at| blocks.get(at as usize));
        if let (PartKind::Call(call), Some(input)) =
            (&mut part.kind, block.and_then(|block| block.input))
        {
            call.arguments = Arguments::Text(input.get().into());
        }
    }
}

fn is_exact(tree: &Json<'_>) -> bool {
    match tree {
        Json::Array(items) => items.iter().all(is_exact),
        Json::Object(entries) => entries.iter().all(|(_, value)| is_exact(value)),
        Json::Number(_) if tree.as_u64().is_none() && tree.as_i64().is_none() => {
            let size = tree.as_f64().unwrap_or_default().abs();
            size < i64::MAX as f64
        }
        _ => true,
    }
}

/// What is wrong here is the upstream's error, not the client's.
fn unreadable(api_error: ApiError) -> ApiError {
    let why = &api_error.message;
    ApiError::bad_gateway(format!("the upstream's reply is not readable: {why}"))
}

fn read<'a>(fields: &mut Fields<'a, '_>, losses: &mut Losses) -> Result<Response<'a>, ApiError> {
    let mut choice = Choice {
        parts: Vec::new(),
        citations: Vec::new(),
        logprobs: Vec::new(),
        finish: read_finish(fields, losses)?,
    };
    let mut characters = 0;
    let content = fields.node("content").ok_or_else(no_answer)?;
    content.each(|at, node| read_block(at, node, &mut choice, &mut characters, losses))?;
    Ok(Response {
        id: fields.text("id")?.unwrap_or_default(),
        model: fields.text("model")?.unwrap_or_default(),
        created: 0,
        choices: vec![choice],
        usage: read_usage(fields)?,
    })
}

fn read_usage(fields: &mut Fields<'_, '_>) -> Result<Option<Usage>, ApiError> {
    let usage = fields.node("usage");
    let counts = usage.map(|usage| usage.fields(|mut fields| RawUsage::of(&mut fields)));
    Ok(counts.transpose()?.map(|counts| counts.merge(None)))
}

/// `characters`: of the text so far, which citations are counted from.
fn read_block<'a>(
    at: u32,
    node: Node<'a, '_>,
    choice: &mut Choice<'a>,
    characters: &mut u64,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?.unwrap_or_default();
        let kind = match kind.as_ref() {
            "text" => {
                let text = fields.text("text")?.unwrap_or_default();
                let start = *characters;
                *characters += text.chars().count() as u64;
                fields.each("citations", |_, node| {
                    let citation = read_citation(node, start, *characters, losses)?;
                    choice.citations.extend(citation);
                    Ok(())
                })?;
                PartKind::Text(text)
            }
            "thinking" => PartKind::Reasoning {
                text: fields.text("thinking")?.unwrap_or_default(),
                signature: read_seal(&mut fields, "signature", Issuer::Thinking)?,
            },
            "redacted_thinking" => PartKind::Reasoning {
                text: Text::default(),
                signature: read_seal(&mut fields, "data", Issuer::Redacted)?,
            },
            "tool_use" => PartKind::Call(read_call(&mut fields)?),
            // What the upstream's own tools did; what the model made of it stands in its words.
            _ => {
                losses.dropped(FieldLocation::Path(fields.path.to_string().into()));
                return Ok(());
            }
        };
        choice.parts.push(Part { kind, at: Some(at) });
        Ok(())
    })
}

fn read_seal<'a>(
    fields: &mut Fields<'a, '_>,
    key: &str,
    issuer: Issuer,
) -> Result<Option<Signature<'a>>, ApiError> {
    let data = fields.text(key)?.filter(|data| !data.is_empty());
    Ok(data.map(|data| Signature { issuer, data }))
}

fn read_call<'a>(fields: &mut Fields<'a, '_>) -> Result<Call<'a>, ApiError> {
    let name = fields.text("name")?;
    Ok(Call {
        id: fields.text("id")?,
        name: fields.need("name", name)?,
        arguments: match fields.take("input") {
            Some(input) => Arguments::Tree(input),
            None => Arguments::Text(Text::Borrowed("{}")),
        },
        signature: None,
        kind: ToolKind::Function,
    })
}

/// `None`: a source without an address. The quoted words and the proof for the upstream itself
/// have no place elsewhere.
fn read_citation<'a>(
    node: Node<'a, '_>,
    start: u64,
    end: u64,
    losses: &mut Losses,
) -> Result<Option<Citation<'a>>, ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        if kind.as_deref() != Some(CITED_PAGE) {
            losses.dropped(FieldLocation::Path("citations".into()));
            return Ok(None);
        }
        for key in ["cited_text", "encrypted_index"] {
            if fields.take(key).is_some() {
                losses.dropped(FieldLocation::Path(key.into()));
            }
        }
        let url = fields.text("url")?;
        Ok(Some(Citation {
            url: fields.need("url", url)?,
            title: fields.text("title")?,
            start,
            end,
        }))
    })
}

/// The only source that has an address; it stands for the whole block that it is told with.
pub(super) const CITED_PAGE: &str = "web_search_result_location";

fn read_finish<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Finish<'a>, ApiError> {
    let reason = fields.text("stop_reason")?;
    let sequence = fields.text("stop_sequence")?;
    let explanation = match fields.node("stop_details") {
        Some(Node {
            value: Json::Object(details),
            ..
        }) => {
            if details.get("category").is_some_and(|word| !word.is_null()) {
                losses.dropped(FieldLocation::Path("stop_details.category".into()));
            }
            let text = details.into_vec().into_iter();
            text.filter(|(key, _)| key == "explanation")
                .find_map(|(_, value)| match value {
                    Json::Str(text) => Some(text),
                    _ => None,
                })
        }
        _ => None,
    };
    let finish = finish(reason.as_deref(), sequence, explanation);
    if reason.is_some() && finish == Finish::Other {
        losses.approximated(FieldLocation::Path("stop_reason".into()));
    }
    Ok(finish)
}

pub(super) fn finish<'a>(
    reason: Option<&str>,
    sequence: Option<Text<'a>>,
    explanation: Option<Text<'a>>,
) -> Finish<'a> {
    match reason {
        Some("end_turn") => Finish::Stop,
        Some("max_tokens") => Finish::Length,
        Some("stop_sequence") => Finish::StopSequence(sequence),
        Some("tool_use") => Finish::Tools,
        Some("refusal") => Finish::Filtered(explanation),
        Some("pause_turn" | "compaction") => Finish::Paused,
        Some("model_context_window_exceeded") => Finish::ContextFull,
        _ => Finish::Other,
    }
}
