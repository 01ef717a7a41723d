//! The JSON reply.

use super::draft::{Draft, picture};
use super::reply::{Content, Reply, ending};
use crate::formats::ResponseOptions;
use crate::formats::written::written;
use crate::model::{
    Arguments, Call, Choice, Citation, FieldLocation, Finish, Logprob, Losses, Part, PartKind,
    Response, Text, ToolKind,
};

/// The first choice only: the format has no others.
pub(super) fn encode(
    response: &Response<'_>,
    asked: &ResponseOptions,
    losses: &mut Losses,
) -> Vec<u8> {
    report(response, losses);
    let mut draft = Draft::new(&response.id, &response.model, response.created, asked);
    let finish = response.choices.first().map(|choice| {
        add_choice(choice, &mut draft);
        &choice.finish
    });
    let (status, incomplete_details) = ending(finish.unwrap_or(&Finish::Other));
    draft.close(status);
    let reply = Reply {
        incomplete_details,
        usage: response.usage.map(Into::into),
        ..draft.reply(status, &draft.items)
    };
    written(&reply, response.size())
}

/// What the format cannot say of a reply.
fn report(response: &Response<'_>, losses: &mut Losses) {
    let place = |words: &'static str| FieldLocation::Path(words.into());
    if response.choices.len() > 1 {
        losses.dropped(place("choices"));
    }
    if response.usage.is_some_and(|usage| usage.has_audio()) {
        losses.dropped(place("usage: tokens of sound"));
    }
    let Some(choice) = response.choices.first() else {
        return;
    };
    match choice.finish {
        Finish::StopSequence(Some(_)) => losses.dropped(place("stop_sequence")),
        Finish::Paused | Finish::ContextFull => losses.approximated(place("stop_reason")),
        _ => {}
    }
    let unseen = |part: &Part<'_>| match &part.kind {
        PartKind::Media(media) => picture(media).is_none(),
        _ => false,
    };
    if choice.parts.iter().any(unseen) {
        losses.dropped(place("media"));
    }
}

fn add_choice<'r>(choice: &'r Choice<'_>, draft: &mut Draft<'r>) {
    for part in &choice.parts {
        add_part(&part.kind, draft);
    }
    for citation in &choice.citations {
        draft.cite(Citation {
            url: borrowed(&citation.url),
            title: citation.title.as_ref().map(borrowed),
            ..*citation
        });
    }
    for logprob in &choice.logprobs {
        let top = logprob.top.iter();
        draft.add_logprob(Logprob {
            token: borrowed(&logprob.token),
            logprob: logprob.logprob,
            top: top
                .map(|(token, value)| (borrowed(token), *value))
                .collect(),
        });
    }
    if let Finish::Filtered(Some(words)) = &choice.finish {
        add_content(Content::refusal(), words, draft);
    }
}

fn borrowed<'r>(text: &'r Text<'_>) -> Text<'r> {
    Text::Borrowed(text)
}

fn add_part<'r>(part: &'r PartKind<'_>, draft: &mut Draft<'r>) {
    match part {
        PartKind::Text(text) => add_content(Content::text(), text, draft),
        PartKind::Refusal(text) => add_content(Content::refusal(), text, draft),
        PartKind::Reasoning { text, signature } => {
            if text.is_empty() && signature.is_none() {
                return;
            }
            draft.begin_thought(signature.as_ref());
            if !text.is_empty() {
                draft.begin_summary();
                draft.append(borrowed(text));
            }
            if let Some(signature) = signature {
                draft.signature(signature);
            }
        }
        PartKind::Call(call) => add_call(call, draft),
        PartKind::Media(media) => {
            if let Some(data) = picture(media) {
                draft.begin_picture();
                draft.append(data.into());
            }
        }
        PartKind::Result(_) => {}
    }
}

fn add_content<'r>(fresh: Content<'r>, text: &'r Text<'_>, draft: &mut Draft<'r>) {
    if text.is_empty() {
        return;
    }
    if !draft.in_message() {
        draft.begin_message();
    }
    if !draft.continues(&fresh) {
        draft.begin_content(fresh);
    }
    draft.append(borrowed(text));
}

/// The signature of a call stands before it, as the thought that led to it.
fn add_call<'r>(call: &'r Call<'_>, draft: &mut Draft<'r>) {
    if let Some(signature) = &call.signature {
        draft.begin_thought(Some(signature));
        draft.signature(signature);
    }
    draft.begin_call(
        call.id.as_ref().map(borrowed),
        borrowed(&call.name),
        call.kind,
    );
    let arguments = match &call.arguments {
        Arguments::Text(text) => borrowed(text),
        Arguments::Tree(_) => call.arguments.to_text().into_owned().into(),
    };
    if arguments.is_empty() && call.kind == ToolKind::Function {
        draft.append(NO_ARGUMENTS.into());
    } else {
        draft.append(arguments);
    }
}

/// Clients parse what they get.
pub(super) const NO_ARGUMENTS: &str = "{}";

#[cfg(test)]
#[path = "tests/response.rs"]
pub(super) mod tests;
