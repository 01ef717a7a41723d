//! The events of a streamed response, and the conversion between events and a response.
//!
//! Grammar: `Start ( Open Delta* Close | Finish | Usage )* End`; per choice at most one block is open.

use super::text::{borrowed, own};
use super::{
    Arguments, Call, Choice, Citation, Finish, Logprob, Media, Part, PartKind, Response, Signature,
    Text, ToolKind, Usage,
};

#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    Start {
        id: Text<'a>,
        model: Text<'a>,
        created: i64,
    },
    Open {
        choice: u32,
        block: Block<'a>,
    },
    Delta {
        choice: u32,
        delta: Delta<'a>,
    },
    Close {
        choice: u32,
    },
    Finish {
        choice: u32,
        reason: Finish<'a>,
    },
    Usage(Usage),
    End,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Block<'a> {
    Text,
    Refusal,
    Reasoning,
    Call {
        id: Option<Text<'a>>,
        name: Text<'a>,
        kind: ToolKind,
    },
    Media(Media<'a>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Delta<'a> {
    /// Of a text, refusal or reasoning block.
    Text(Text<'a>),
    Arguments(Text<'a>),
    /// Of a reasoning block, or of a call before its arguments: some formats must send it first.
    Signature(Signature<'a>),
    /// May come outside of a block: citations are often known only at the end.
    Citation(Citation<'a>),
    Logprob(Logprob<'a>),
}

impl Block<'_> {
    /// About how many bytes its texts and data take in memory.
    pub fn size(&self) -> usize {
        match self {
            Block::Text | Block::Refusal | Block::Reasoning => 0,
            Block::Call { id, name, .. } => id.as_ref().map_or(0, |id| id.len()) + name.len(),
            Block::Media(media) => media.size(),
        }
    }
}

impl Delta<'_> {
    /// About how many bytes it takes in memory.
    pub fn size(&self) -> usize {
        self.text_size() + size_of::<Delta>()
    }

    /// About how many bytes its texts take in memory.
    pub fn text_size(&self) -> usize {
        match self {
            Delta::Text(text) | Delta::Arguments(text) => text.len(),
            Delta::Signature(signature) => signature.data.len(),
            Delta::Citation(citation) => {
                citation.url.len() + citation.title.as_ref().map_or(0, |title| title.len())
            }
            Delta::Logprob(logprob) => {
                let top = logprob
                    .top
                    .iter()
                    .map(|(token, _)| token.len() + size_of::<Delta>());
                logprob.token.len() + top.sum::<usize>()
            }
        }
    }
}

impl Response<'_> {
    /// The events of a stream with this response, each block in one delta.
    pub fn unfold<'s>(&'s self, out: &mut dyn FnMut(Event<'s>)) {
        out(Event::Start {
            id: borrowed(&self.id),
            model: borrowed(&self.model),
            created: self.created,
        });
        for (number, choice) in (0u32..).zip(&self.choices) {
            for part in &choice.parts {
                part.kind.unfold(number, out);
            }
            for citation in &choice.citations {
                let delta = Delta::Citation(citation.clone());
                out(Event::Delta {
                    choice: number,
                    delta,
                });
            }
            for logprob in &choice.logprobs {
                let delta = Delta::Logprob(logprob.clone());
                out(Event::Delta {
                    choice: number,
                    delta,
                });
            }
            out(Event::Finish {
                choice: number,
                reason: choice.finish.clone(),
            });
        }
        if let Some(usage) = self.usage {
            out(Event::Usage(usage));
        }
        out(Event::End);
    }
}

impl PartKind<'_> {
    /// The events of a block with this part, all of it in one delta.
    pub fn unfold<'s>(&'s self, choice: u32, out: &mut dyn FnMut(Event<'s>)) {
        let block = match self {
            PartKind::Text(_) => Block::Text,
            PartKind::Refusal(_) => Block::Refusal,
            PartKind::Reasoning { .. } => Block::Reasoning,
            PartKind::Call(call) => Block::Call {
                id: call.id.as_ref().map(borrowed),
                name: borrowed(&call.name),
                kind: call.kind,
            },
            PartKind::Media(media) => Block::Media(media.borrowed()),
            // Results come from clients, never from a model.
            PartKind::Result(_) => return,
        };
        out(Event::Open { choice, block });
        let mut delta = |delta| out(Event::Delta { choice, delta });
        match self {
            PartKind::Text(text) | PartKind::Refusal(text) => delta(Delta::Text(borrowed(text))),
            PartKind::Reasoning { text, signature } => {
                if !text.is_empty() {
                    delta(Delta::Text(borrowed(text)));
                }
                if let Some(signature) = signature {
                    delta(Delta::Signature(signature.borrowed()));
                }
            }
            // The signature first: most formats send it before the call.
            PartKind::Call(call) => {
                if let Some(signature) = &call.signature {
                    delta(Delta::Signature(signature.borrowed()));
                }
                delta(Delta::Arguments(match &call.arguments {
                    Arguments::Text(text) => borrowed(text),
                    tree @ Arguments::Tree(_) => tree.to_text(),
                }));
            }
            PartKind::Media(_) | PartKind::Result(_) => {}
        }
        out(Event::Close { choice });
    }
}

impl<'a> Arguments<'a> {
    /// The arguments as JSON text.
    pub fn to_text(&self) -> Text<'a> {
        match self {
            Arguments::Text(text) => text.clone(),
            // Not `to_string`: that would sort the keys.
            Arguments::Tree(tree) => serde_json::to_string(tree)
                .expect("a JSON value always serialises")
                .into(),
        }
    }
}

/// Collects events into a response.
#[derive(Debug, Default)]
pub struct Fold {
    start: Option<(String, String, i64)>,
    choices: Vec<Choice<'static>>,
    usage: Option<Usage>,
}

impl Fold {
    pub fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Start { id, model, created } => {
                self.start = Some((id.into_owned(), model.into_owned(), created));
            }
            Event::Open { choice, block } => {
                let part = open_part(block);
                self.choice(choice).parts.push(part);
            }
            Event::Delta { choice, delta } => extend(self.choice(choice), delta),
            Event::Finish { choice, reason } => self.choice(choice).finish = reason.into_owned(),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Close { .. } | Event::End => {}
        }
    }

    pub fn finish(self) -> Response<'static> {
        let (id, model, created) = self.start.unwrap_or_default();
        Response {
            id: id.into(),
            model: model.into(),
            created,
            choices: self.choices,
            usage: self.usage,
        }
    }

    fn choice(&mut self, number: u32) -> &mut Choice<'static> {
        let number = number as usize;
        while self.choices.len() <= number {
            self.choices.push(Choice {
                parts: Vec::new(),
                citations: Vec::new(),
                logprobs: Vec::new(),
                finish: Finish::Other,
            });
        }
        &mut self.choices[number]
    }
}

fn open_part(block: Block<'_>) -> Part<'static> {
    let kind = match block {
        Block::Text => PartKind::Text(Text::default()),
        Block::Refusal => PartKind::Refusal(Text::default()),
        Block::Reasoning => PartKind::Reasoning {
            text: Text::default(),
            signature: None,
        },
        Block::Call { id, name, kind } => PartKind::Call(Call {
            id: id.map(own),
            name: own(name),
            arguments: Arguments::Text(Text::default()),
            signature: None,
            kind,
        }),
        Block::Media(media) => PartKind::Media(media.into_owned()),
    };
    Part { kind, at: None }
}

fn extend(choice: &mut Choice<'static>, delta: Delta<'_>) {
    match (choice.parts.last_mut().map(|part| &mut part.kind), delta) {
        (_, Delta::Citation(citation)) => choice.citations.push(citation.into_owned()),
        (_, Delta::Logprob(logprob)) => choice.logprobs.push(logprob.into_owned()),
        (
            Some(PartKind::Text(text) | PartKind::Refusal(text) | PartKind::Reasoning { text, .. }),
            Delta::Text(more),
        ) => text.to_mut().push_str(&more),
        (Some(PartKind::Call(call)), Delta::Arguments(more)) => {
            if let Arguments::Text(text) = &mut call.arguments {
                text.to_mut().push_str(&more);
            }
        }
        (Some(PartKind::Reasoning { signature, .. }), Delta::Signature(new)) => {
            *signature = Some(new.into_owned())
        }
        (Some(PartKind::Call(call)), Delta::Signature(new)) => {
            call.signature = Some(new.into_owned())
        }
        // The grammar allows no other combination; such a delta is ignored.
        (_, Delta::Text(_) | Delta::Arguments(_) | Delta::Signature(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Arguments, Json};

    #[test]
    fn arguments_as_text_keep_the_order_of_their_keys() {
        let written = r#"{"b":1,"a":{"d":2.5,"c":null}}"#;
        let tree: Json<'_> = serde_json::from_str(written).expect("JSON");
        assert_eq!(Arguments::Tree(tree).to_text(), written);
    }
}
