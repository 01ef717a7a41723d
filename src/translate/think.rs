//! Thoughts that a model writes into its answer, between `<think>` and `</think>` at the very start.

use crate::model::{Block, Choice, Delta, Event, Part, PartKind, Response, Text};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

pub(super) fn whole(response: &mut Response<'_>) {
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
    let Some(inside) = text.trim_start().strip_prefix(OPEN) else {
        return;
    };
    let (thought, answer) = inside.split_once(CLOSE).unwrap_or((inside, ""));
    let (thought, answer) = (thought.to_owned(), answer.trim_start().to_owned());
    let kinds = [
        (!thought.is_empty()).then(|| PartKind::Reasoning {
            text: thought.into(),
            signature: None,
        }),
        (!answer.is_empty()).then(|| PartKind::Text(answer.into())),
    ];
    let parts = kinds.into_iter().flatten();
    choice
        .parts
        .splice(at..=at, parts.map(|kind| Part { kind, at: None }));
}

/// The same for a reply in pieces: only what may be a part of a tag waits.
#[derive(Default)]
pub(super) struct Think {
    choices: Vec<(u32, State)>,
}

enum State {
    /// The first words have begun, and may still be a tag.
    Undecided(String),
    /// Inside of the tags; what waits may be the start of the closing one.
    Inside { waiting: String, opened: bool },
    /// Behind the tags, where only blanks have come so far.
    Behind,
    /// Nothing more to look for; the words that are open were opened by us or by the upstream.
    Over,
}

impl Think {
    pub(super) fn event(&mut self, event: Event<'_>, out: &mut dyn FnMut(Event<'_>)) {
        match event {
            Event::Open {
                choice,
                block: Block::Text,
            } if self.at(choice).is_none() => {
                self.choices.push((choice, State::Undecided(String::new())));
            }
            Event::Delta {
                choice,
                delta: Delta::Text(text),
            } => match self.at(choice) {
                Some(at) => self.choices[at].1.words(choice, &text, out),
                None => out(Event::Delta {
                    choice,
                    delta: Delta::Text(text),
                }),
            },
            Event::Close { choice } => {
                let is_open = match self.at(choice) {
                    Some(at) => self.choices[at].1.close(choice, out),
                    None => true,
                };
                if is_open {
                    out(Event::Close { choice });
                }
            }
            event => out(event),
        }
    }

    fn at(&self, choice: u32) -> Option<usize> {
        self.choices.iter().position(|(known, _)| *known == choice)
    }
}

fn open(choice: u32, block: Block<'_>, out: &mut dyn FnMut(Event<'_>)) {
    out(Event::Open { choice, block });
}

fn say(choice: u32, text: &str, out: &mut dyn FnMut(Event<'_>)) {
    let delta = Delta::Text(Text::Borrowed(text));
    out(Event::Delta { choice, delta });
}

impl State {
    fn words(&mut self, choice: u32, text: &str, out: &mut dyn FnMut(Event<'_>)) {
        match self {
            State::Undecided(waiting) => {
                waiting.push_str(text);
                let begun = waiting.trim_start();
                if let Some(inside) = begun.strip_prefix(OPEN) {
                    let inside = inside.to_owned();
                    *self = State::Inside {
                        waiting: String::new(),
                        opened: false,
                    };
                    self.words(choice, &inside, out);
                } else if !OPEN.starts_with(begun) {
                    open(choice, Block::Text, out);
                    say(choice, waiting, out);
                    *self = State::Over;
                }
            }
            State::Inside { waiting, opened } => {
                waiting.push_str(text);
                let (thought, behind) = match waiting.split_once(CLOSE) {
                    Some((thought, behind)) => (thought, Some(behind.to_owned())),
                    None => (sure(waiting), None),
                };
                if !thought.is_empty() {
                    if !std::mem::replace(opened, true) {
                        open(choice, Block::Reasoning, out);
                    }
                    say(choice, thought, out);
                }
                match behind {
                    None => drop(waiting.drain(..thought.len())),
                    Some(behind) => {
                        if *opened {
                            out(Event::Close { choice });
                        }
                        *self = State::Behind;
                        self.words(choice, &behind, out);
                    }
                }
            }
            State::Behind => {
                let text = text.trim_start();
                if !text.is_empty() {
                    open(choice, Block::Text, out);
                    say(choice, text, out);
                    *self = State::Over;
                }
            }
            State::Over => say(choice, text, out),
        }
    }

    /// Whether a block is open that has to be closed.
    fn close(&mut self, choice: u32, out: &mut dyn FnMut(Event<'_>)) -> bool {
        match std::mem::replace(self, State::Over) {
            State::Undecided(waiting) => {
                open(choice, Block::Text, out);
                say(choice, &waiting, out);
                true
            }
            State::Inside { waiting, opened } => {
                if !opened && !waiting.is_empty() {
                    open(choice, Block::Reasoning, out);
                }
                if !waiting.is_empty() {
                    say(choice, &waiting, out);
                }
                opened || !waiting.is_empty()
            }
            State::Behind => false,
            State::Over => true,
        }
    }
}

/// What cannot be the start of the closing tag.
fn sure(text: &str) -> &str {
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

    fn reply(text: &str) -> Response<'static> {
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

    /// Thought and answer.
    fn said(response: &Response<'_>) -> (String, String) {
        let (mut thought, mut answer) = (String::new(), String::new());
        for part in &response.choices[0].parts {
            match &part.kind {
                PartKind::Reasoning { text, .. } => thought.push_str(text),
                PartKind::Text(text) => answer.push_str(text),
                other => panic!("{other:?}"),
            }
        }
        (thought, answer)
    }

    fn in_pieces(text: &str, size: usize) -> Response<'static> {
        let (mut think, mut fold) = (Think::default(), Fold::default());
        let mut push = |event: Event<'_>| think.event(event, &mut |event| fold.push(event));
        let choice = 0;
        push(Event::Open {
            choice,
            block: Block::Text,
        });
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size) {
            let delta = Delta::Text(piece.iter().collect::<String>().into());
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
    fn thoughts_between_tags_are_told_as_thoughts_whole_and_in_pieces() {
        for (text, thought, answer) in [
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
            let wanted = (thought.to_owned(), answer.to_owned());
            let mut response = reply(text);
            whole(&mut response);
            assert_eq!(said(&response), wanted, "{text}");
            for size in [1, 3, 100] {
                assert_eq!(said(&in_pieces(text, size)), wanted, "{text} by {size}");
            }
        }
    }
}
