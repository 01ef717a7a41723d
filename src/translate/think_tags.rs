//! Splits off the reasoning that a model writes into its text, between `<think>` and `</think>`.

use std::collections::HashMap;

use crate::model::{Block, Choice, Delta, Event, Part, PartKind, Response, Text};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The most bytes of white space before the opening tag: a stream is held until more than that has come.
const MAX_BLANK: usize = 4096;

/// Splits the first text of each choice of a JSON response.
pub(super) fn split_response(response: &mut Response<'_>) {
    for choice in &mut response.choices {
        split_choice(choice);
    }
}

fn split_choice(choice: &mut Choice<'_>) {
    let is_text = |part: &Part<'_>| matches!(part.kind, PartKind::Text(_));
    let Some(at) = choice.parts.iter().position(is_text) else {
        return;
    };
    let PartKind::Text(text) = &choice.parts[at].kind else {
        return;
    };
    let begun = text.trim_start();
    let Some(inside) = begun.strip_prefix(OPEN) else {
        return;
    };
    if text.len() - begun.len() > MAX_BLANK {
        return;
    }
    let (reasoning, answer) = inside.split_once(CLOSE).unwrap_or((inside, ""));
    let (reasoning, answer) = (reasoning.to_owned(), answer.trim_start().to_owned());
    let kinds = [
        (!reasoning.is_empty()).then(|| PartKind::Reasoning {
            text: reasoning.into(),
            signature: None,
        }),
        (!answer.is_empty()).then(|| PartKind::Text(answer.into())),
    ];
    let parts = kinds.into_iter().flatten();
    choice
        .parts
        .splice(at..=at, parts.map(|kind| Part { kind, at: None }));
}

/// Splits the events of a stream: only text that may be part of a tag is buffered.
#[derive(Default)]
pub(super) struct ThinkTagSplitter {
    choices: HashMap<u32, ThinkTagState>,
}

/// Where in the text of a choice the stream is.
enum ThinkTagState {
    /// The text so far, which begins with so many bytes of white space, may still be the opening tag.
    Undecided { buffered: String, blank: usize },
    /// Inside of the tags; the buffered text may be the start of the closing one.
    Inside { buffered: String, opened: bool },
    /// After the tags, where only white space has come so far.
    After,
    /// Nothing more to look for: text passes.
    Done,
}

impl ThinkTagSplitter {
    /// Splits one event.
    pub(super) fn split_event(&mut self, event: Event<'_>, out: &mut dyn FnMut(Event<'_>)) {
        match event {
            Event::Open {
                choice,
                block: Block::Text,
            } if !self.choices.contains_key(&choice) => {
                let undecided = ThinkTagState::Undecided {
                    buffered: String::new(),
                    blank: 0,
                };
                self.choices.insert(choice, undecided);
            }
            Event::Delta {
                choice,
                delta: Delta::Text(text),
            } => match self.choices.get_mut(&choice) {
                Some(state) => state.push_text(choice, &text, out),
                None => out(Event::Delta {
                    choice,
                    delta: Delta::Text(text),
                }),
            },
            Event::Close { choice } => {
                let state = self.choices.get_mut(&choice);
                if state.is_none_or(|state| state.close(choice, out)) {
                    out(Event::Close { choice });
                }
            }
            event => out(event),
        }
    }
}

fn open_block(choice: u32, block: Block<'_>, out: &mut dyn FnMut(Event<'_>)) {
    out(Event::Open { choice, block });
}

fn send_text(choice: u32, text: &str, out: &mut dyn FnMut(Event<'_>)) {
    let delta = Delta::Text(Text::Borrowed(text));
    out(Event::Delta { choice, delta });
}

impl ThinkTagState {
    fn push_text(&mut self, choice: u32, text: &str, out: &mut dyn FnMut(Event<'_>)) {
        match self {
            ThinkTagState::Undecided { buffered, blank } => {
                buffered.push_str(text);
                let begun = buffered[*blank..].trim_start();
                *blank = buffered.len() - begun.len();
                let is_late = *blank > MAX_BLANK;
                if let Some(inside) = begun.strip_prefix(OPEN).filter(|_| !is_late) {
                    let inside = inside.to_owned();
                    *self = ThinkTagState::Inside {
                        buffered: String::new(),
                        opened: false,
                    };
                    self.push_text(choice, &inside, out);
                } else if is_late || !OPEN.starts_with(begun) {
                    open_block(choice, Block::Text, out);
                    send_text(choice, buffered, out);
                    *self = ThinkTagState::Done;
                }
            }
            ThinkTagState::Inside { buffered, opened } => {
                buffered.push_str(text);
                let (reasoning, after) = match buffered.split_once(CLOSE) {
                    Some((reasoning, after)) => (reasoning, Some(after.to_owned())),
                    None => (before_tag(buffered), None),
                };
                if !reasoning.is_empty() {
                    if !std::mem::replace(opened, true) {
                        open_block(choice, Block::Reasoning, out);
                    }
                    send_text(choice, reasoning, out);
                }
                match after {
                    None => drop(buffered.drain(..reasoning.len())),
                    Some(after) => {
                        if *opened {
                            out(Event::Close { choice });
                        }
                        *self = ThinkTagState::After;
                        self.push_text(choice, &after, out);
                    }
                }
            }
            ThinkTagState::After => {
                let text = text.trim_start();
                if !text.is_empty() {
                    open_block(choice, Block::Text, out);
                    send_text(choice, text, out);
                    *self = ThinkTagState::Done;
                }
            }
            ThinkTagState::Done => send_text(choice, text, out),
        }
    }

    /// Ends the block. Returns whether a block is open that has to be closed.
    fn close(&mut self, choice: u32, out: &mut dyn FnMut(Event<'_>)) -> bool {
        match std::mem::replace(self, ThinkTagState::Done) {
            ThinkTagState::Undecided { buffered, .. } => {
                open_block(choice, Block::Text, out);
                send_text(choice, &buffered, out);
                true
            }
            ThinkTagState::Inside { buffered, opened } => {
                if !opened && !buffered.is_empty() {
                    open_block(choice, Block::Reasoning, out);
                }
                if !buffered.is_empty() {
                    send_text(choice, &buffered, out);
                }
                opened || !buffered.is_empty()
            }
            ThinkTagState::After => false,
            ThinkTagState::Done => true,
        }
    }
}

/// Returns the text before what may be the start of the closing tag.
fn before_tag(text: &str) -> &str {
    let starts = text.char_indices().map(|(at, _)| at);
    let tag = starts
        .into_iter()
        .find(|at| CLOSE.starts_with(&text[*at..]));
    &text[..tag.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Finish, Fold};

    fn response(text: &str) -> Response<'static> {
        let kind = PartKind::Text(text.to_owned().into());
        Response {
            id: "r".into(),
            model: "m".into(),
            created: 1,
            choices: vec![Choice {
                parts: vec![Part { kind, at: None }],
                citations: Vec::new(),
                logprobs: Vec::new(),
                finish: Finish::Stop,
            }],
            usage: None,
        }
    }

    /// Returns reasoning and text.
    fn split(response: &Response<'_>) -> (String, String) {
        let (mut reasoning, mut answer) = (String::new(), String::new());
        for part in &response.choices[0].parts {
            match &part.kind {
                PartKind::Reasoning { text, .. } => reasoning.push_str(text),
                PartKind::Text(text) => answer.push_str(text),
                other => panic!("{other:?}"),
            }
        }
        (reasoning, answer)
    }

    fn streamed(text: &str, size: usize) -> Response<'static> {
        let (mut think_tags, mut fold) = (ThinkTagSplitter::default(), Fold::default());
        let mut push =
            |event: Event<'_>| think_tags.split_event(event, &mut |event| fold.push(event));
        let choice = 0;
        push(Event::Open {
            choice,
            block: Block::Text,
        });
        let letters: Vec<char> = text.chars().collect();
        for letters in letters.chunks(size) {
            let delta = Delta::Text(letters.iter().collect::<String>().into());
            push(Event::Delta { choice, delta });
        }
        push(Event::Close { choice });
        push(Event::Finish {
            choice,
            reason: Finish::Stop,
        });
        fold.finish()
    }

    #[test]
    fn text_between_tags_is_reasoning_in_json_and_in_streams() {
        for (text, reasoning, answer) in [
            ("<think>Hm.</think>\n\nYes.", "Hm.", "Yes."),
            (
                "\n<think>a < b, é</thin</think>Yes. <think>",
                "a < b, é</thin",
                "Yes. <think>",
            ),
            ("<think>cut off", "cut off", ""),
            ("<think></think>Yes.", "", "Yes."),
            ("<thinking>", "", "<thinking>"),
            ("<th", "", "<th"),
            ("Yes. <think>no</think>", "", "Yes. <think>no</think>"),
        ] {
            let expected = (reasoning.to_owned(), answer.to_owned());
            let mut response = response(text);
            split_response(&mut response);
            assert_eq!(split(&response), expected, "{text}");
            for size in [1, 3, 100] {
                assert_eq!(split(&streamed(text, size)), expected, "{text} by {size}");
            }
        }
    }
}
