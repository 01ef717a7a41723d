//! What the mock is to do with a request: words and the request itself, made into a plan.

use std::time::Duration;

use super::words::{Prompt, Word, of_model};
use crate::model::{
    ApiError, OutputFormat, PartKind, Request, Role, ToolChoice, ToolResult, Usage,
};

/// Everything that was decided before a byte is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub answer: Answer,
    pub thinking: bool,
    /// Says before a call how many signatures came back.
    pub proofs: bool,
    pub ending: Ending,
    pub usage: Option<Usage>,
    /// In how many deltas a text is streamed; `None`: one a word.
    pub events: Option<usize>,
    pub instead: Option<Instead>,
    /// After how many deltas a stream fails.
    pub stream_error: Option<usize>,
    pub no_end: bool,
    pub now: bool,
    /// How many bytes of base64 an image has at least.
    pub weight: usize,
    pub delivery: Delivery,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Text(String),
    /// So many words.
    Long(usize),
    Calls(Vec<WantedCall>),
    /// What the requested shape of the output asks for.
    Shaped,
    /// An image beside the text.
    Image,
    /// The request itself, as JSON.
    Echo,
    /// The SHA-256 of the request body.
    Digest,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer::Text(String::new())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WantedCall {
    /// `None`: the tools that were declared, in turn.
    pub name: Option<String>,
    /// `None`: an example of what the tool takes.
    pub arguments: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Ending {
    #[default]
    Natural,
    Length,
    Refusal,
    Filtered,
    StopSequence,
}

/// What comes in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Instead {
    Error {
        status: u16,
        message: Option<String>,
    },
    /// An error body under a status of success.
    ErrorAsSuccess,
    Html,
    /// Good events before the broken one.
    Garbage {
        after: usize,
    },
    Empty,
    Redirect,
}

/// How the answer travels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    pub slow: Option<Duration>,
    pub pace: Option<Duration>,
    /// Events before the connection breaks.
    pub cut: Option<usize>,
    pub wait: Option<String>,
    pub name: Option<String>,
    pub vendor_headers: bool,
    pub gzip: bool,
}

const LONG_WORDS: usize = 400;
/// 25 MB.
const MOST_WORDS: usize = 5_000_000;
const MOST_EVENTS: usize = 1_000_000;
const HEAVIEST: usize = 64 << 20;
const MOST_CALLS: usize = 64;
/// A repeated prompt is cut here: what came in may be megabytes, the answer should stay an answer.
const REPEATED_CHARACTERS: usize = 1000;

impl Plan {
    pub(super) fn for_request(request: &Request<'_>, model: &str) -> Result<Plan, ApiError> {
        let said = Said::last(request);
        let prompt = Prompt::read(said.texts.iter().copied());
        let steered = !prompt.words.is_empty();
        let (mut plan, answer) = Plan::by_words(&prompt, model)?;
        let calls = matches!(answer, None | Some(Answer::Calls(_)));
        plan.answer = if !said.results.is_empty() && !steered && calls {
            // Whatever asked for the calls is still in force; the loop must end nevertheless.
            Answer::Text(name_results(&said.results))
        } else {
            answer.unwrap_or_else(|| unasked(request, &plan, &prompt))
        };
        Ok(plan)
    }

    /// For requests of no conversation format: only the words count.
    pub(super) fn for_prompt(text: &str, model: &str) -> Result<Plan, ApiError> {
        let prompt = Prompt::read([text]);
        let (mut plan, answer) = Plan::by_words(&prompt, model)?;
        plan.answer = answer.unwrap_or_else(|| Answer::Text(repeat(&prompt)));
        Ok(plan)
    }

    fn by_words(prompt: &Prompt<'_>, model: &str) -> Result<(Plan, Option<Answer>), ApiError> {
        let named = if prompt.words.is_empty() {
            of_model(model)
        } else {
            Vec::new()
        };
        let (mut plan, mut answer) = (Plan::default(), None);
        for word in prompt.words.iter().chain(&named) {
            if call_word(word, &mut answer)? {
                continue;
            }
            if let Some(asked) = answer_word(word)? {
                answer = Some(asked);
            } else if !plan.reply_word(word)? && !plan.delivery.word(word)? {
                return Err(wrong(word));
            }
        }
        Ok((plan, answer))
    }

    fn reply_word(&mut self, word: &Word<'_>) -> Result<bool, ApiError> {
        match word.key {
            "thinking" => self.thinking = true,
            "proofs" => self.proofs = true,
            "length" => self.ending = Ending::Length,
            "refusal" => self.ending = Ending::Refusal,
            "filtered" => self.ending = Ending::Filtered,
            "stop_sequence" => self.ending = Ending::StopSequence,
            "usage" => self.usage = Some(usage(word)?),
            "events" => self.events = Some(number(word, None)?.clamp(1, MOST_EVENTS)),
            "stream_error" => self.stream_error = Some(number(word, Some(0))?),
            "no_end" => self.no_end = true,
            "now" => self.now = true,
            "weight" => self.weight = number(word, None)?.min(HEAVIEST),
            "error" => self.instead = Some(error(word)?),
            "status_200_error" => self.instead = Some(Instead::ErrorAsSuccess),
            "html" => self.instead = Some(Instead::Html),
            "garbage" => {
                let after = number(word, Some(0))?;
                self.instead = Some(Instead::Garbage { after });
            }
            "empty" => self.instead = Some(Instead::Empty),
            "redirect" => self.instead = Some(Instead::Redirect),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Delivery {
    fn word(&mut self, word: &Word<'_>) -> Result<bool, ApiError> {
        match word.key {
            "slow" => self.slow = Some(duration(word)?),
            "pace" => self.pace = Some(duration(word)?),
            "cut" => self.cut = Some(number(word, Some(0))?),
            "wait" => self.wait = Some(text(word)?),
            "name" => self.name = Some(text(word)?),
            "headers" => self.vendor_headers = true,
            "gzip" => self.gzip = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Each `tool` is one more call, and `arguments` are those of the call before.
fn call_word(word: &Word<'_>, answer: &mut Option<Answer>) -> Result<bool, ApiError> {
    match word.key {
        "tool" | "tools" => {
            let mut calls = match answer.take() {
                Some(Answer::Calls(calls)) => calls,
                _ => Vec::new(),
            };
            if calls.len() == MOST_CALLS {
                return Err(wrong(word));
            }
            calls.push(WantedCall {
                name: word.value.map(str::to_owned),
                arguments: None,
            });
            *answer = Some(Answer::Calls(calls));
        }
        "arguments" => match answer {
            Some(Answer::Calls(calls)) if !calls.is_empty() => {
                let last = calls.len() - 1;
                calls[last].arguments = Some(text(word)?);
            }
            _ => return Err(wrong(word)),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

fn answer_word(word: &Word<'_>) -> Result<Option<Answer>, ApiError> {
    Ok(Some(match word.key {
        "text" => Answer::Text(text(word)?),
        "long" => Answer::Long(number(word, Some(LONG_WORDS))?.min(MOST_WORDS)),
        "parallel" => {
            let count = number(word, Some(2))?.clamp(1, MOST_CALLS);
            Answer::Calls(vec![WantedCall::default(); count])
        }
        "schema" => Answer::Shaped,
        "image" => Answer::Image,
        "echo" => Answer::Echo,
        "sha256" => Answer::Digest,
        _ => return Ok(None),
    }))
}

/// The answer when no word asks for one.
fn unasked(request: &Request<'_>, plan: &Plan, prompt: &Prompt<'_>) -> Answer {
    let forced = match &request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::One(_)) => true,
        Some(ToolChoice::Subset { required, .. }) => *required,
        Some(ToolChoice::Auto | ToolChoice::None | ToolChoice::Hosted(_)) | None => false,
    };
    match plan.events {
        _ if forced => Answer::Calls(vec![WantedCall::default()]),
        _ if request.output.format != OutputFormat::Text => Answer::Shaped,
        _ if request.output.images => Answer::Image,
        // So many events need as many words.
        Some(events) => Answer::Long(events),
        None => Answer::Text(repeat(prompt)),
    }
}

fn repeat(prompt: &Prompt<'_>) -> String {
    let mut said = String::from("You said: ");
    let mut left = REPEATED_CHARACTERS;
    for (number, rest) in prompt.rest.iter().enumerate() {
        if number > 0 {
            said.push(' ');
        }
        said.extend(rest.chars().take(left));
        left = left.saturating_sub(rest.chars().take(left).count());
        if left == 0 {
            said.push('…');
            break;
        }
    }
    said
}

fn name_results(results: &[&ToolResult<'_>]) -> String {
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
            answer.extend(shown.chars().take(REPEATED_CHARACTERS));
        }
        answer.push(';');
    }
    answer.pop();
    answer.push('.');
    answer
}

/// What came after the model last spoke.
#[derive(Default)]
struct Said<'r> {
    texts: Vec<&'r str>,
    results: Vec<&'r ToolResult<'r>>,
}

impl<'r> Said<'r> {
    fn last(request: &'r Request<'_>) -> Said<'r> {
        let mut said = Said::default();
        for turn in request.turns.iter().rev() {
            match turn.role {
                Role::Model if !said.texts.is_empty() || !said.results.is_empty() => break,
                Role::Model | Role::System | Role::Developer => continue,
                Role::User => {}
            }
            let spoken = !said.texts.is_empty();
            for part in turn.parts.iter().rev() {
                match &part.kind {
                    PartKind::Text(text) if !spoken => said.texts.push(text),
                    PartKind::Result(result) => said.results.push(result),
                    _ => {}
                }
            }
        }
        said.texts.reverse();
        said.results.reverse();
        said
    }
}

fn wrong(word: &Word<'_>) -> ApiError {
    let Word { key, value } = word;
    ApiError::invalid(match value {
        Some(value) => format!("the mock cannot read the word {key}={value}; see its help"),
        None => format!("the mock cannot read the word {key}; see its help"),
    })
}

fn text(word: &Word<'_>) -> Result<String, ApiError> {
    word.value.map(str::to_owned).ok_or_else(|| wrong(word))
}

fn number(word: &Word<'_>, absent: Option<usize>) -> Result<usize, ApiError> {
    match word.value {
        Some(value) => value.parse().map_err(|_| wrong(word)),
        None => absent.ok_or_else(|| wrong(word)),
    }
}

fn duration(word: &Word<'_>) -> Result<Duration, ApiError> {
    humantime::parse_duration(word.value.unwrap_or_default()).map_err(|_| wrong(word))
}

fn usage(word: &Word<'_>) -> Result<Usage, ApiError> {
    let numbers: Vec<u64> = word
        .value
        .unwrap_or_default()
        .split(',')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| wrong(word))?;
    let [input, cached, output, thinking] = numbers[..] else {
        return Err(wrong(word));
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

fn error(word: &Word<'_>) -> Result<Instead, ApiError> {
    let value = word.value.unwrap_or("500");
    let (status, message) = match value.split_once(',') {
        Some((status, message)) => (status, Some(message.to_owned())),
        None => (value, None),
    };
    match status.parse() {
        Ok(status @ 400..=599) => Ok(Instead::Error { status, message }),
        _ => Err(wrong(word)),
    }
}

#[cfg(test)]
mod tests;
