//! Plans the response to a request, from the directives in it and from the request itself.

use std::time::Duration;

use super::directives::{Directive, MockPrompt, of_model};
use crate::model::{
    ApiError, OutputFormat, PartKind, Request, Role, ToolChoice, ToolResult, Usage,
};

/// Everything that is decided before the response is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResponsePlan {
    pub content: PlannedContent,
    pub thinking: bool,
    /// The text before a call tells how many signatures the client sent back.
    pub report_signatures: bool,
    pub finish: PlannedFinish,
    pub usage: Option<Usage>,
    /// The number of deltas of a streamed text; `None`: one per directive.
    pub events: Option<usize>,
    pub failure: Option<PlannedFailure>,
    /// The number of deltas before a stream fails.
    pub stream_error: Option<usize>,
    pub no_end: bool,
    pub now: bool,
    /// The least number of base64 bytes of an image.
    pub weight: usize,
    pub delivery: DeliveryPlan,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlannedContent {
    Text(String),
    /// Text of this many words.
    Long(usize),
    Calls(Vec<PlannedCall>),
    /// An example in the requested output format.
    OutputFormat,
    /// An image beside the text.
    Image,
    /// The request itself, as JSON.
    Echo,
    /// The SHA-256 of the request body.
    BodyHash,
}

impl Default for PlannedContent {
    fn default() -> PlannedContent {
        PlannedContent::Text(String::new())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PlannedCall {
    /// `None`: the declared tools, one after the other.
    pub name: Option<String>,
    /// `None`: an example for the schema of the tool.
    pub arguments: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PlannedFinish {
    #[default]
    Natural,
    Length,
    Refusal,
    Filtered,
    StopSequence,
}

/// What is sent in place of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlannedFailure {
    Error {
        status: u16,
        message: Option<String>,
    },
    /// An error body under a status of success.
    ErrorAsSuccess,
    Html,
    /// The number of good events before the broken one.
    Garbage {
        after: usize,
    },
    Empty,
    Redirect,
}

/// How the response is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DeliveryPlan {
    pub slow: Option<Duration>,
    pub pace: Option<Duration>,
    /// The number of events before the connection breaks.
    pub cut: Option<usize>,
    pub wait: Option<String>,
    pub name: Option<String>,
    pub vendor_headers: bool,
    pub gzip: bool,
}

const LONG_WORDS: usize = 400;
/// 25 MB.
const MAX_WORDS: usize = 5_000_000;
const MAX_EVENTS: usize = 1_000_000;
const MAX_WEIGHT: usize = 64 << 20;
const MAX_CALLS: usize = 64;
/// The most characters of a prompt that are repeated: prompts may be many megabytes.
const MAX_REPEATED_CHARACTERS: usize = 1000;

impl ResponsePlan {
    pub(super) fn for_request(
        request: &Request<'_>,
        model: &str,
    ) -> Result<ResponsePlan, ApiError> {
        let last = LastTurns::of(request);
        let prompt = MockPrompt::parse(last.texts.iter().copied());
        let has_directives = !prompt.directives.is_empty();
        let (mut plan, content) = ResponsePlan::by_directives(&prompt, model)?;
        let calls = matches!(content, None | Some(PlannedContent::Calls(_)));
        plan.content = if !last.results.is_empty() && !has_directives && calls {
            // The directive for the calls is still in the prompt, but the tool loop must end.
            PlannedContent::Text(describe_results(&last.results))
        } else {
            content.unwrap_or_else(|| default_content(request, &plan, &prompt))
        };
        Ok(plan)
    }

    /// Plans the response to an image request: only directives count.
    pub(super) fn for_prompt(text: &str, model: &str) -> Result<ResponsePlan, ApiError> {
        let prompt = MockPrompt::parse([text]);
        let (mut plan, content) = ResponsePlan::by_directives(&prompt, model)?;
        plan.content = content.unwrap_or_else(|| PlannedContent::Text(repeat(&prompt)));
        Ok(plan)
    }

    fn by_directives(
        prompt: &MockPrompt<'_>,
        model: &str,
    ) -> Result<(ResponsePlan, Option<PlannedContent>), ApiError> {
        let named = if prompt.directives.is_empty() {
            of_model(model)
        } else {
            Vec::new()
        };
        let (mut plan, mut content) = (ResponsePlan::default(), None);
        for directive in prompt.directives.iter().chain(&named) {
            if call_directive(directive, &mut content)? {
                continue;
            }
            if let Some(planned) = content_directive(directive)? {
                content = Some(planned);
            } else if !plan.response_directive(directive)? && !plan.delivery.apply(directive)? {
                return Err(wrong(directive));
            }
        }
        Ok((plan, content))
    }

    fn response_directive(&mut self, directive: &Directive<'_>) -> Result<bool, ApiError> {
        match directive.key {
            "thinking" => self.thinking = true,
            "proofs" => self.report_signatures = true,
            "length" => self.finish = PlannedFinish::Length,
            "refusal" => self.finish = PlannedFinish::Refusal,
            "filtered" => self.finish = PlannedFinish::Filtered,
            "stop_sequence" => self.finish = PlannedFinish::StopSequence,
            "usage" => self.usage = Some(usage(directive)?),
            "events" => self.events = Some(number(directive, None)?.clamp(1, MAX_EVENTS)),
            "stream_error" => self.stream_error = Some(number(directive, Some(0))?),
            "no_end" => self.no_end = true,
            "now" => self.now = true,
            "weight" => self.weight = number(directive, None)?.min(MAX_WEIGHT),
            "error" => self.failure = Some(error(directive)?),
            "status_200_error" => self.failure = Some(PlannedFailure::ErrorAsSuccess),
            "html" => self.failure = Some(PlannedFailure::Html),
            "garbage" => {
                let after = number(directive, Some(0))?;
                self.failure = Some(PlannedFailure::Garbage { after });
            }
            "empty" => self.failure = Some(PlannedFailure::Empty),
            "redirect" => self.failure = Some(PlannedFailure::Redirect),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl DeliveryPlan {
    fn apply(&mut self, directive: &Directive<'_>) -> Result<bool, ApiError> {
        match directive.key {
            "slow" => self.slow = Some(duration(directive)?),
            "pace" => self.pace = Some(duration(directive)?),
            "cut" => self.cut = Some(number(directive, Some(0))?),
            "wait" => self.wait = Some(text(directive)?),
            "name" => self.name = Some(text(directive)?),
            "headers" => self.vendor_headers = true,
            "gzip" => self.gzip = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Applies a directive for calls: each `tool` adds one, and `arguments` belong to the last one.
fn call_directive(
    directive: &Directive<'_>,
    content: &mut Option<PlannedContent>,
) -> Result<bool, ApiError> {
    match directive.key {
        "tool" | "tools" => {
            let mut calls = match content.take() {
                Some(PlannedContent::Calls(calls)) => calls,
                _ => Vec::new(),
            };
            if calls.len() == MAX_CALLS {
                return Err(wrong(directive));
            }
            calls.push(PlannedCall {
                name: directive.value.map(str::to_owned),
                arguments: None,
            });
            *content = Some(PlannedContent::Calls(calls));
        }
        "arguments" => match content {
            Some(PlannedContent::Calls(calls)) if !calls.is_empty() => {
                let last = calls.len() - 1;
                calls[last].arguments = Some(text(directive)?);
            }
            _ => return Err(wrong(directive)),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

fn content_directive(directive: &Directive<'_>) -> Result<Option<PlannedContent>, ApiError> {
    Ok(Some(match directive.key {
        "text" => PlannedContent::Text(text(directive)?),
        "long" => PlannedContent::Long(number(directive, Some(LONG_WORDS))?.min(MAX_WORDS)),
        "parallel" => {
            let count = number(directive, Some(2))?.clamp(1, MAX_CALLS);
            PlannedContent::Calls(vec![PlannedCall::default(); count])
        }
        "schema" => PlannedContent::OutputFormat,
        "image" => PlannedContent::Image,
        "echo" => PlannedContent::Echo,
        "sha256" => PlannedContent::BodyHash,
        _ => return Ok(None),
    }))
}

/// Returns the content when no directive sets it.
fn default_content(
    request: &Request<'_>,
    plan: &ResponsePlan,
    prompt: &MockPrompt<'_>,
) -> PlannedContent {
    let forced = match &request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::One(_)) => true,
        Some(ToolChoice::Subset { required, .. }) => *required,
        Some(ToolChoice::Auto | ToolChoice::None | ToolChoice::Hosted(_)) | None => false,
    };
    match plan.events {
        _ if forced => PlannedContent::Calls(vec![PlannedCall::default()]),
        _ if request.output.format != OutputFormat::Text => PlannedContent::OutputFormat,
        _ if request.output.images => PlannedContent::Image,
        // So many events need at least as many words.
        Some(events) => PlannedContent::Long(events),
        None => PlannedContent::Text(repeat(prompt)),
    }
}

fn repeat(prompt: &MockPrompt<'_>) -> String {
    let mut text = String::from("You said: ");
    let mut left = MAX_REPEATED_CHARACTERS;
    for (number, rest) in prompt.rest.iter().enumerate() {
        if number > 0 {
            text.push(' ');
        }
        text.extend(rest.chars().take(left));
        left = left.saturating_sub(rest.chars().take(left).count());
        if left == 0 {
            text.push('…');
            break;
        }
    }
    text
}

fn describe_results(results: &[&ToolResult<'_>]) -> String {
    let mut answer = String::from("The tools answered:");
    for result in results {
        let name = result.name.as_deref().or(result.id.as_deref());
        answer.push(' ');
        answer.push_str(name.unwrap_or("tool"));
        answer.push_str(if result.failed {
            " failed with"
        } else {
            " gave"
        });
        for part in &result.parts {
            let shown = match &part.kind {
                PartKind::Text(text) => text,
                PartKind::Media(media) => &media.mime,
                _ => continue,
            };
            answer.push(' ');
            answer.extend(shown.chars().take(MAX_REPEATED_CHARACTERS));
        }
        answer.push(';');
    }
    answer.pop();
    answer.push('.');
    answer
}

/// The user's input after the last turn of the model.
#[derive(Default)]
struct LastTurns<'r> {
    texts: Vec<&'r str>,
    results: Vec<&'r ToolResult<'r>>,
}

impl<'r> LastTurns<'r> {
    fn of(request: &'r Request<'_>) -> LastTurns<'r> {
        let mut last = LastTurns::default();
        for turn in request.turns.iter().rev() {
            match turn.role {
                Role::Model if !last.texts.is_empty() || !last.results.is_empty() => break,
                Role::Model | Role::System | Role::Developer => continue,
                Role::User => {}
            }
            let has_text = !last.texts.is_empty();
            for part in turn.parts.iter().rev() {
                match &part.kind {
                    PartKind::Text(text) if !has_text => last.texts.push(text),
                    PartKind::Result(result) => last.results.push(result),
                    _ => {}
                }
            }
        }
        last.texts.reverse();
        last.results.reverse();
        last
    }
}

fn wrong(directive: &Directive<'_>) -> ApiError {
    let Directive { key, value } = directive;
    ApiError::invalid(match value {
        Some(value) => format!("the mock cannot read the word {key}={value}; see its help"),
        None => format!("the mock cannot read the word {key}; see its help"),
    })
}

fn text(directive: &Directive<'_>) -> Result<String, ApiError> {
    directive
        .value
        .map(str::to_owned)
        .ok_or_else(|| wrong(directive))
}

fn number(directive: &Directive<'_>, absent: Option<usize>) -> Result<usize, ApiError> {
    match directive.value {
        Some(value) => value.parse().map_err(|_| wrong(directive)),
        None => absent.ok_or_else(|| wrong(directive)),
    }
}

fn duration(directive: &Directive<'_>) -> Result<Duration, ApiError> {
    humantime::parse_duration(directive.value.unwrap_or_default()).map_err(|_| wrong(directive))
}

fn usage(directive: &Directive<'_>) -> Result<Usage, ApiError> {
    let numbers: Vec<u64> = directive
        .value
        .unwrap_or_default()
        .split(',')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| wrong(directive))?;
    let [input, cached, output, thinking] = numbers[..] else {
        return Err(wrong(directive));
    };
    Ok(Usage {
        input,
        cached,
        cache_written: 0,
        output,
        thinking,
        ..Usage::default()
    })
}

fn error(directive: &Directive<'_>) -> Result<PlannedFailure, ApiError> {
    let value = directive.value.unwrap_or("500");
    let (status, message) = match value.split_once(',') {
        Some((status, message)) => (status, Some(message.to_owned())),
        None => (value, None),
    };
    match status.parse() {
        Ok(status @ 400..=599) => Ok(PlannedFailure::Error { status, message }),
        _ => Err(wrong(directive)),
    }
}

#[cfg(test)]
mod tests;
