//! What the upstream's model says in its own way, as the client knows it: tools under their own
//! names and of their own kind, thoughts apart from the answer, and an id of its own for a reply that has none: the
//! calls in it get theirs from that, and no two replies may have the same.

use super::think::{self, Think};
use crate::formats::{ResponseOptions, unwrap_free_text};
use crate::model::{
    Arguments, Block, Call, Delta, Event, PartKind, Response, Text, ToolKind, TranslationState,
};

pub(super) fn whole(response: &mut Response<'_>, asked: &ResponseOptions) {
    let translation_state = &asked.translation_state;
    if response.id.is_empty() {
        response.id = asked.request_id.clone().into();
    }
    if translation_state.think_tags {
        think::whole(response);
    }
    if translation_state.is_identity() {
        return;
    }
    let choices = response.choices.iter_mut();
    for part in choices.flat_map(|choice| &mut choice.parts) {
        if let PartKind::Call(call) = &mut part.kind {
            undo_call(call, translation_state);
        }
    }
}

fn undo_call(call: &mut Call<'_>, translation_state: &TranslationState) {
    if let Some(name) = translation_state.client_name(&call.name) {
        call.name = name.to_owned().into();
    }
    if call.kind == ToolKind::Function && translation_state.is_custom(&call.name) {
        call.kind = ToolKind::Custom;
        if let Some(text) = unwrap_free_text(&call.arguments.to_text()) {
            call.arguments = Arguments::Text(text.into());
        }
    }
}

/// The same for a reply in pieces.
pub(super) struct Undo {
    translation_state: TranslationState,
    request_id: String,
    think: Option<Think>,
    /// Arguments that wait for their end, because free text can only be taken out of whole JSON:
    /// one per choice whose open block is such a call.
    waiting: Vec<(u32, String)>,
}

impl Undo {
    pub(super) fn new(asked: &ResponseOptions) -> Undo {
        let translation_state = &asked.translation_state;
        Undo {
            translation_state: translation_state.clone(),
            request_id: asked.request_id.clone(),
            think: translation_state.think_tags.then(Think::default),
            waiting: Vec::new(),
        }
    }

    /// How many bytes wait.
    pub(super) fn held(&self) -> usize {
        self.waiting.iter().map(|(_, text)| text.len()).sum()
    }

    pub(super) fn event(&mut self, mut event: Event<'_>, out: &mut dyn FnMut(Event<'_>)) {
        if let Event::Start { id, .. } = &mut event
            && id.is_empty()
        {
            *id = std::mem::take(&mut self.request_id).into();
        }
        match self.think.take() {
            Some(mut think) => {
                think.event(event, &mut |event| self.calls(event, out));
                self.think = Some(think);
            }
            None => self.calls(event, out),
        }
    }

    fn calls(&mut self, event: Event<'_>, out: &mut dyn FnMut(Event<'_>)) {
        if self.translation_state.is_identity() {
            return out(event);
        }
        match event {
            Event::Open {
                choice,
                block: Block::Call { id, name, kind },
            } => {
                let name = match self.translation_state.client_name(&name) {
                    Some(name) => name.to_owned().into(),
                    None => name,
                };
                let kind = self.open(choice, &name, kind);
                let block = Block::Call { id, name, kind };
                out(Event::Open { choice, block });
            }
            Event::Delta {
                choice,
                delta: Delta::Arguments(more),
            } => match self.waiting_of(choice) {
                Some(at) => self.waiting[at].1.push_str(&more),
                None => {
                    let delta = Delta::Arguments(more);
                    out(Event::Delta { choice, delta });
                }
            },
            Event::Close { choice } => {
                if let Some(at) = self.waiting_of(choice) {
                    let (_, text) = self.waiting.swap_remove(at);
                    let text: Text<'_> = unwrap_free_text(&text).unwrap_or(text).into();
                    let delta = Delta::Arguments(text);
                    out(Event::Delta { choice, delta });
                }
                out(Event::Close { choice });
            }
            event => out(event),
        }
    }

    /// What kind of call the client gets to see.
    fn open(&mut self, choice: u32, name: &str, kind: ToolKind) -> ToolKind {
        if kind == ToolKind::Function && self.translation_state.is_custom(name) {
            self.waiting.push((choice, String::new()));
            return ToolKind::Custom;
        }
        kind
    }

    fn waiting_of(&self, choice: u32) -> Option<usize> {
        self.waiting.iter().position(|(open, _)| *open == choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Framing;
    use crate::model::{Choice, Finish, Fold, Part, RenamedTool};

    fn translation_state() -> TranslationState {
        TranslationState {
            renamed_tools: vec![RenamedTool {
                client: "a.b".into(),
                upstream: "a_b".into(),
            }],
            custom_tools: vec!["a.b".into()],
            ..TranslationState::default()
        }
    }

    fn asked() -> ResponseOptions {
        ResponseOptions {
            model: "m".to_owned(),
            stream: true,
            framing: Framing::Sse,
            include_usage: true,
            request_id: "req_1".to_owned(),
            created_at: 1,
            translation_state: translation_state(),
        }
    }

    fn reply(calls: &[(&'static str, &'static str, ToolKind)]) -> Response<'static> {
        let part = |(name, arguments, kind): &(&'static str, &'static str, ToolKind)| Part {
            kind: PartKind::Call(Call {
                id: None,
                name: (*name).into(),
                arguments: Arguments::Text((*arguments).into()),
                signature: None,
                kind: *kind,
            }),
            at: None,
        };
        let choice = Choice {
            parts: calls.iter().map(part).collect(),
            citations: Vec::new(),
            logprobs: Vec::new(),
            finish: Finish::Tools,
        };
        Response {
            id: "r".into(),
            model: "m".into(),
            created: 1,
            choices: vec![choice.clone(), choice],
            usage: None,
        }
    }

    const WRAPPED: &str = r#"{"input": "some\ntext"}"#;

    #[test]
    fn whole_replies_and_streams_are_undone_alike() {
        use ToolKind::{Custom, Function};
        let mut said = reply(&[
            ("a_b", WRAPPED, Function),
            ("other", WRAPPED, Function),
            ("a_b", "already free", Custom),
            ("a_b", "not wrapped", Function),
        ]);
        let mut fold = Fold::default();
        let mut undo = Undo::new(&asked());
        said.unfold(&mut |event| undo.event(event, &mut |event| fold.push(event)));
        let wanted = reply(&[
            ("a.b", "some\ntext", Custom),
            ("other", WRAPPED, Function),
            ("a.b", "already free", Custom),
            ("a.b", "not wrapped", Custom),
        ]);
        whole(&mut said, &asked());
        assert_eq!(said, wanted);
        assert_eq!(fold.finish(), wanted);
        assert_eq!(undo.held(), 0);
    }

    #[test]
    fn a_reply_without_an_id_has_that_of_its_request() {
        let mut said = reply(&[]);
        said.id = "".into();
        let mut fold = Fold::default();
        let mut undo = Undo::new(&asked());
        said.unfold(&mut |event| undo.event(event, &mut |event| fold.push(event)));
        whole(&mut said, &asked());
        assert_eq!((&*said.id, &*fold.finish().id), ("req_1", "req_1"));
    }

    #[test]
    fn free_text_waits_for_its_end_and_nothing_else_does() {
        let mut undo = Undo::new(&asked());
        let mut seen = Vec::new();
        let call = |choice, name: &'static str| Event::Open {
            choice,
            block: Block::Call {
                id: None,
                name: name.into(),
                kind: ToolKind::Function,
            },
        };
        let piece = |choice, text: &'static str| Event::Delta {
            choice,
            delta: Delta::Arguments(text.into()),
        };
        let events = [
            call(0, "a_b"),
            call(1, "c"),
            piece(0, &WRAPPED[..9]),
            piece(1, "{}"),
            piece(0, &WRAPPED[9..]),
            Event::Close { choice: 0 },
        ];
        for event in events {
            undo.event(event, &mut |event| {
                if let Event::Delta {
                    choice,
                    delta: Delta::Arguments(text),
                } = event
                {
                    seen.push((choice, text.into_owned()));
                }
            });
        }
        assert_eq!(seen, [(1, "{}".to_owned()), (0, "some\ntext".to_owned())]);
    }
}
