//! A reply that grows: the JSON reply adds whole parts to it, the stream adds deltas.

use std::mem::discriminant;

use super::reply::{
    Annotation, COMPLETED, Content, IN_PROGRESS, Item, Reply, Summary, TokenLogprob, Told,
};
use super::tools::within;
use crate::formats::{ResponseOptions, identity};
use crate::model::{
    ApiError, Citation, Issuer, Logprob, Media, Signature, Source, Text, ToolKind, TranslationState,
};

pub(super) struct Draft<'a> {
    upstream_id: String,
    /// What the ids of the reply and of its items are made of.
    base: String,
    id: String,
    model: String,
    created: i64,
    pub items: Vec<Item<'a>>,
    /// The last item still grows.
    open: bool,
    runs: Vec<Run>,
    /// Length of all texts so far.
    characters: u64,
    calls: u32,
    memory: TranslationState,
}

/// A stretch of text: where it is written, and how many characters of text came before it.
struct Run {
    item: usize,
    content: usize,
    start: u64,
}

/// The place of an annotation.
pub(super) struct Cited {
    pub item: usize,
    pub content: usize,
    pub annotation: usize,
}

/// What other formats put in front of their ids.
const PREFIXES: [&str; 5] = ["chatcmpl-", "msg_", "resp_", "resp-", "gen-"];

impl<'a> Draft<'a> {
    pub(super) fn new(id: &str, model: &str, created: i64, asked: &ResponseOptions) -> Draft<'a> {
        let bare = PREFIXES.iter().find_map(|prefix| id.strip_prefix(prefix));
        let is_kept = asked
            .memory
            .conversation
            .as_ref()
            .is_some_and(|thread| thread.store);
        let base = match bare.unwrap_or(id) {
            // What is found again by its id must have one of its own, whatever the upstream thinks.
            _ if is_kept => &asked.request_id,
            "" => &asked.request_id,
            base => base,
        };
        let model = match asked.model.as_str() {
            "" => model,
            model => model,
        };
        Draft {
            upstream_id: id.to_owned(),
            id: format!("resp_{base}"),
            base: base.to_owned(),
            model: model.to_owned(),
            created: if created == 0 { asked.at } else { created },
            items: Vec::new(),
            open: false,
            runs: Vec::new(),
            characters: 0,
            calls: 0,
            memory: asked.memory.clone(),
        }
    }

    pub(super) fn reply<'d>(&'d self, status: &'static str, output: &'d [Item<'a>]) -> Reply<'d> {
        Reply {
            status,
            output,
            thread: self.told(),
            ..Reply::new(&self.id, self.created, &self.model)
        }
    }

    /// The reply as it ends when it cannot go on.
    pub(super) fn failed<'d>(&'d self, api_error: &'d ApiError) -> Reply<'d> {
        Reply {
            output: self.settled(),
            thread: self.told(),
            ..Reply::failed(&self.id, self.created, &self.model, api_error)
        }
    }

    fn told(&self) -> Option<Told<'_>> {
        let thread = self.memory.conversation.as_ref()?;
        Some(Told {
            previous_response_id: thread.previous_response_id.as_deref(),
            store: thread.store,
        })
    }

    /// The item that still grows, and its number.
    pub(super) fn growing(&self) -> Option<(usize, &Item<'a>)> {
        let item = self.items.last().filter(|_| self.open)?;
        Some((self.items.len() - 1, item))
    }

    /// The items that grow no more.
    pub(super) fn settled(&self) -> &[Item<'a>] {
        &self.items[..self.items.len() - usize::from(self.open)]
    }

    pub(super) fn close(&mut self, status: &'static str) {
        if let Some(item) = self.items.last_mut().filter(|_| self.open) {
            item.set_status(status);
        }
        self.open = false;
    }

    fn begin(&mut self, item: Item<'a>) {
        self.close(COMPLETED);
        self.items.push(item);
        self.open = true;
    }

    fn item_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.base, self.items.len())
    }

    pub(super) fn in_message(&self) -> bool {
        matches!(self.growing(), Some((_, Item::Message { .. })))
    }

    pub(super) fn begin_message(&mut self) {
        self.begin(Item::Message {
            id: self.item_id("msg"),
            status: IN_PROGRESS,
            role: "assistant",
            content: Vec::new(),
        });
    }

    /// Whether text of this kind goes on where the last one stopped.
    pub(super) fn continues(&self, fresh: &Content<'_>) -> bool {
        match self.growing() {
            Some((_, Item::Message { content, .. })) => content
                .last()
                .is_some_and(|last| discriminant(last) == discriminant(fresh)),
            _ => false,
        }
    }

    /// Only within a message.
    pub(super) fn begin_content(&mut self, fresh: Content<'a>) {
        let item = self.items.len().saturating_sub(1);
        if let Some(Item::Message { content, .. }) = self.items.last_mut() {
            if matches!(fresh, Content::OutputText { .. }) {
                self.runs.push(Run {
                    item,
                    content: content.len(),
                    start: self.characters,
                });
            }
            content.push(fresh);
        }
    }

    /// A signature of this format knows the id of its item.
    pub(super) fn begin_thought(&mut self, signature: Option<&Signature<'_>>) {
        let own = signature.and_then(own_parts).map(|(id, _)| id.to_owned());
        self.begin(Item::Reasoning {
            id: own.unwrap_or_else(|| self.item_id("rs")),
            summary: Vec::new(),
            encrypted_content: None,
        });
    }

    pub(super) fn begin_summary(&mut self) {
        if let Some(Item::Reasoning { summary, .. }) = self.items.last_mut() {
            let text = Text::Borrowed("");
            summary.push(Summary { text });
        }
    }

    /// Only within a thought. A signature under another id than its own is wrapped like a foreign one.
    pub(super) fn signature(&mut self, signature: &Signature<'_>) {
        if let Some(Item::Reasoning {
            id,
            encrypted_content,
            ..
        }) = self.items.last_mut()
        {
            *encrypted_content = Some(match own_parts(signature) {
                Some((own, ciphertext)) if own == id => ciphertext.to_owned(),
                _ => signature.wrap(),
            });
        }
    }

    pub(super) fn begin_call(&mut self, id: Option<Text<'a>>, name: Text<'a>, kind: ToolKind) {
        let made = || identity::call_id(&self.upstream_id, 0, self.calls).into();
        let call_id: Text<'a> = id.filter(|id| !id.is_empty()).unwrap_or_else(made);
        let namespace = self.memory.namespace_of(&name).map(str::to_owned);
        let name = match &namespace {
            Some(namespace) => within(namespace, &name).to_owned().into(),
            None => name,
        };
        let (status, empty) = (IN_PROGRESS, Text::Borrowed(""));
        self.calls += 1;
        self.begin(match kind {
            ToolKind::Function => Item::FunctionCall {
                id: format!("fc_{call_id}"),
                call_id,
                name,
                namespace,
                arguments: empty,
                status,
            },
            ToolKind::Custom => Item::CustomToolCall {
                id: format!("ctc_{call_id}"),
                call_id,
                name,
                namespace,
                input: empty,
                status,
            },
        });
    }

    pub(super) fn begin_picture(&mut self) {
        self.begin(Item::ImageGenerationCall {
            id: self.item_id("ig"),
            result: None,
            status: IN_PROGRESS,
        });
    }

    /// More of whatever the last item is writing.
    /// More of what the last item says; the first of it is not copied.
    pub(super) fn append(&mut self, more: Text<'a>) {
        match self.said(&more) {
            Some(said) if said.is_empty() => *said = more,
            Some(said) => said.to_mut().push_str(&more),
            None => {}
        }
    }

    /// The same for a piece that does not stay.
    pub(super) fn append_piece(&mut self, more: &str) {
        if let Some(said) = self.said(more) {
            said.to_mut().push_str(more);
        }
    }

    /// What grows by `more`.
    fn said(&mut self, more: &str) -> Option<&mut Text<'a>> {
        Some(match self.items.last_mut()? {
            Item::Message { content, .. } => match content.last_mut()? {
                Content::OutputText { text, .. } => {
                    self.characters += more.chars().count() as u64;
                    text
                }
                Content::Refusal { refusal } => refusal,
            },
            Item::Reasoning { summary, .. } => &mut summary.last_mut()?.text,
            Item::FunctionCall { arguments, .. } => arguments,
            Item::CustomToolCall { input, .. } => input,
            Item::ImageGenerationCall { result, .. } => result.get_or_insert_default(),
        })
    }

    /// `None`: there is no text that it could be a source for.
    pub(super) fn cite(&mut self, citation: Citation<'a>) -> Option<Cited> {
        let mut runs = self.runs.iter().rev();
        let run = runs.find(|run| run.start <= citation.start)?;
        let (item, content, start) = (run.item, run.content, run.start);
        let (annotations, _) = self.text_notes(item, content)?;
        annotations.push(Annotation::new(citation, start));
        let annotation = annotations.len() - 1;
        Some(Cited {
            item,
            content,
            annotation,
        })
    }

    /// Tokens belong to the text that was written last.
    pub(super) fn add_logprob(&mut self, logprob: Logprob<'a>) {
        let place = self.runs.last().map(|run| (run.item, run.content));
        if let Some((_, logprobs)) = place.and_then(|(item, at)| self.text_notes(item, at)) {
            logprobs.push(logprob.into());
        }
    }

    fn text_notes(
        &mut self,
        item: usize,
        at: usize,
    ) -> Option<(&mut Vec<Annotation<'a>>, &mut Vec<TokenLogprob<'a>>)> {
        match self.items.get_mut(item)? {
            Item::Message { content, .. } => match content.get_mut(at)? {
                Content::OutputText {
                    annotations,
                    logprobs,
                    ..
                } => Some((annotations, logprobs)),
                Content::Refusal { .. } => None,
            },
            _ => None,
        }
    }
}

/// Of all media only images can be said, and only by value.
pub(super) fn picture<'m>(media: &'m Media<'_>) -> Option<&'m str> {
    match &media.source {
        Source::Base64(data) if media.mime.starts_with("image/") => Some(data),
        _ => None,
    }
}

/// Id and ciphertext of a signature that this format issued.
fn own_parts<'s>(signature: &'s Signature<'_>) -> Option<(&'s str, &'s str)> {
    match signature.issuer {
        Issuer::Responses => signature
            .data
            .split_once('\n')
            .filter(|(id, _)| !id.is_empty()),
        Issuer::Thinking | Issuer::Redacted | Issuer::Native => None,
    }
}
