//! Restores what the client knows in a response: the names and kinds of its tools, reasoning apart
//! from text, and an id where the upstream sent none or a very long one.
//!
//! The calls of a response get their ids from its id, so no two responses may have the same.

use super::think_tags::{self, ThinkTagSplitter};
use crate::formats::{ResponseOptions, unwrap_free_text};
use crate::model::{
    Arguments, Block, Call, Delta, Event, PartKind, Response, Text, ToolKind, TranslationState,
};

/// The longest id or model of an upstream that clients get: each item of a response and each event of a stream may repeat it.
const MAX_ID: usize = 512;

fn is_usable(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_ID
}

/// Restores the names in a JSON response.
pub(super) fn restore_response(response: &mut Response<'_>, options: &ResponseOptions) {
    let translation_state = &options.translation_state;
    if !is_usable(&response.id) {
        response.id = options.request_id.clone().into();
    }
    if response.model.len() > MAX_ID {
        response.model = Text::default();
    }
    if translation_state.think_tags {
        think_tags::split_response(response);
    }
    if translation_state.is_identity() {
        return;
    }
    let choices = response.choices.iter_mut();
    for part in choices.flat_map(|choice| &mut choice.parts) {
        if let PartKind::Call(call) = &mut part.kind {
            restore_call(call, translation_state);
        }
    }
}

fn restore_call(call: &mut Call<'_>, translation_state: &TranslationState) {
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

/// Restores the names in the events of a stream.
pub(super) struct NameRestorer {
    translation_state: TranslationState,
    request_id: String,
    think_tags: Option<ThinkTagSplitter>,
    /// Buffered arguments, because free text can only be decoded from complete JSON: one entry per
    /// choice whose open block is such a call.
    buffered: Vec<(u32, String)>,
}

impl NameRestorer {
    pub(super) fn new(options: &ResponseOptions) -> NameRestorer {
        let translation_state = &options.translation_state;
        NameRestorer {
            translation_state: translation_state.clone(),
            request_id: options.request_id.clone(),
            think_tags: translation_state.think_tags.then(ThinkTagSplitter::default),
            buffered: Vec::new(),
        }
    }

    /// Returns the number of buffered bytes.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.buffered.iter().map(|(_, text)| text.len()).sum()
    }

    /// Restores the names in one event.
    pub(super) fn restore_event(&mut self, mut event: Event<'_>, out: &mut dyn FnMut(Event<'_>)) {
        match &mut event {
            Event::Start { id, model, .. } => {
                if !is_usable(id) {
                    *id = std::mem::take(&mut self.request_id).into();
                }
                if model.len() > MAX_ID {
                    *model = Text::default();
                }
            }
            // The client gets an id of the gateway's own.
            Event::Open {
                block: Block::Call { id, .. },
                ..
            } if id.as_ref().is_some_and(|id| id.len() > MAX_ID) => *id = None,
            _ => {}
        }
        match self.think_tags.take() {
            Some(mut think_tags) => {
                think_tags.split_event(event, &mut |event| self.restore_calls(event, out));
                self.think_tags = Some(think_tags);
            }
            None => self.restore_calls(event, out),
        }
    }

    fn restore_calls(&mut self, event: Event<'_>, out: &mut dyn FnMut(Event<'_>)) {
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
                let kind = self.open_call(choice, &name, kind);
                let block = Block::Call { id, name, kind };
                out(Event::Open { choice, block });
            }
            Event::Delta {
                choice,
                delta: Delta::Arguments(more),
            } => match self.buffered_of(choice) {
                Some(at) => self.buffered[at].1.push_str(&more),
                None => {
                    let delta = Delta::Arguments(more);
                    out(Event::Delta { choice, delta });
                }
            },
            Event::Close { choice } => {
                if let Some(at) = self.buffered_of(choice) {
                    let (_, text) = self.buffered.swap_remove(at);
                    let text: Text<'_> = unwrap_free_text(&text).unwrap_or(text).into();
                    let delta = Delta::Arguments(text);
                    out(Event::Delta { choice, delta });
                }
                out(Event::Close { choice });
            }
            event => out(event),
        }
    }

    /// Returns the kind of the call for the client, and starts to buffer free text.
    fn open_call(&mut self, choice: u32, name: &str, kind: ToolKind) -> ToolKind {
        if kind == ToolKind::Function && self.translation_state.is_custom(name) {
            self.buffered.push((choice, String::new()));
            return ToolKind::Custom;
        }
        kind
    }

    fn buffered_of(&self, choice: u32) -> Option<usize> {
        self.buffered.iter().position(|(open, _)| *open == choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Framing;
    use crate::model::{Choice, Finish, Fold, Part};

    fn state() -> TranslationState {
        TranslationState {
            renamed_tools: [("a_b".to_owned(), "a.b".to_owned())].into(),
            custom_tools: ["a.b".to_owned()].into(),
            ..TranslationState::default()
        }
    }

    fn options() -> ResponseOptions {
        ResponseOptions {
            model: "m".to_owned(),
            stream: true,
            framing: Framing::Sse,
            include_usage: true,
            request_id: "req_1".to_owned(),
            created_at: 1,
            translation_state: state(),
        }
    }

    fn response(calls: &[(&'static str, &'static str, ToolKind)]) -> Response<'static> {
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
    fn json_responses_and_streams_are_restored_alike() {
        use ToolKind::{Custom, Function};
        let mut received = response(&[
            ("a_b", WRAPPED, Function),
            ("other", WRAPPED, Function),
            ("a_b", "already free", Custom),
            ("a_b", "not wrapped", Function),
        ]);
        let mut fold = Fold::default();
        let mut names = NameRestorer::new(&options());
        received.unfold(&mut |event| names.restore_event(event, &mut |event| fold.push(event)));
        let expected = response(&[
            ("a.b", "some\ntext", Custom),
            ("other", WRAPPED, Function),
            ("a.b", "already free", Custom),
            ("a.b", "not wrapped", Custom),
        ]);
        restore_response(&mut received, &options());
        assert_eq!(received, expected);
        assert_eq!(fold.finish(), expected);
        assert_eq!(names.buffered_bytes(), 0);
    }

    #[test]
    fn a_response_without_a_usable_id_gets_the_id_of_its_request() {
        for (id, expected) in [("", "req_1"), ("a", "a"), (&*"a".repeat(513), "req_1")] {
            let mut received = response(&[]);
            received.id = id.into();
            received.model = id.into();
            let mut fold = Fold::default();
            let mut names = NameRestorer::new(&options());
            received.unfold(&mut |event| names.restore_event(event, &mut |event| fold.push(event)));
            restore_response(&mut received, &options());
            let folded = fold.finish();
            assert_eq!((&*received.id, &*folded.id), (expected, expected));
            assert!(received.model.len() <= MAX_ID && folded.model.len() <= MAX_ID);
        }
    }

    #[test]
    fn an_event_does_not_repeat_a_long_id_of_a_call() {
        for (length, is_kept) in [(512, true), (513, false)] {
            let id = "c".repeat(length);
            let block = Block::Call {
                id: Some(id.as_str().into()),
                name: "other".into(),
                kind: ToolKind::Function,
            };
            let mut kept = None;
            let mut names = NameRestorer::new(&options());
            names.restore_event(Event::Open { choice: 0, block }, &mut |event| {
                if let Event::Open {
                    block: Block::Call { id, .. },
                    ..
                } = event
                {
                    kept = Some(id.is_some());
                }
            });
            assert_eq!(kept, Some(is_kept), "{length}");
        }
    }

    #[test]
    fn only_free_text_is_buffered_until_its_end() {
        let mut names = NameRestorer::new(&options());
        let mut seen = Vec::new();
        let call = |choice, name: &'static str| Event::Open {
            choice,
            block: Block::Call {
                id: None,
                name: name.into(),
                kind: ToolKind::Function,
            },
        };
        let arguments = |choice, text: &'static str| Event::Delta {
            choice,
            delta: Delta::Arguments(text.into()),
        };
        let events = [
            call(0, "a_b"),
            call(1, "c"),
            arguments(0, &WRAPPED[..9]),
            arguments(1, "{}"),
            arguments(0, &WRAPPED[9..]),
            Event::Close { choice: 0 },
        ];
        for event in events {
            names.restore_event(event, &mut |event| {
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
