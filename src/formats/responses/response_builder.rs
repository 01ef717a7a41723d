//! Builds a response item by item: a JSON response adds whole parts, a stream adds deltas.

use std::mem::discriminant;

use super::annotations::{TokenLogprob, UrlCitationAnnotation};
use super::namespaces::unqualified_name;
use super::output_items::{OutputContent, OutputItem, SummaryText};
use super::response_object::{ConversationFields, ResponseObject};
use super::signatures;
use super::status::{COMPLETED, IN_PROGRESS};
use crate::formats::{ResponseOptions, ids};
use crate::model::{
    ApiError, Citation, Logprob, Signature, Text, ToolKind, TranslationState, append,
};

/// A response as far as it has come.
pub(super) struct ResponseBuilder<'a> {
    upstream_id: String,
    /// The part that the ids of the response and of its items share.
    base: String,
    id: String,
    model: String,
    created: i64,
    pub items: Vec<OutputItem<'a>>,
    /// More may be added to the last item.
    open: bool,
    text_runs: Vec<OutputTextRun>,
    /// The length of all texts so far.
    characters: u64,
    calls: u32,
    memory: TranslationState,
}

/// An output text: where it stands, and how many characters of text came before it.
struct OutputTextRun {
    item: usize,
    content: usize,
    start: u64,
}

/// Where an annotation stands.
pub(super) struct AnnotationPosition {
    pub item: usize,
    pub content: usize,
    pub annotation: usize,
}

/// The prefixes of response ids in the formats, and of servers that imitate them.
const PREFIXES: [&str; 5] = ["chatcmpl-", "msg_", "resp_", "resp-", "gen-"];

impl<'a> ResponseBuilder<'a> {
    /// Begins a response. `options` fill in what the upstream leaves out.
    pub(super) fn new(
        id: &str,
        model: &str,
        created: i64,
        options: &ResponseOptions,
    ) -> ResponseBuilder<'a> {
        let without_prefix = PREFIXES.iter().find_map(|prefix| id.strip_prefix(prefix));
        let conversation = options.translation_state.conversation.as_ref();
        let is_stored = conversation.is_some_and(|conversation| conversation.store);
        let base = match without_prefix.unwrap_or(id) {
            // A response that is fetched by its id needs one that is unique here.
            _ if is_stored => &options.request_id,
            "" => &options.request_id,
            base => base,
        };
        let model = match options.model.as_str() {
            "" => model,
            model => model,
        };
        ResponseBuilder {
            upstream_id: id.to_owned(),
            id: format!("resp_{base}"),
            base: base.to_owned(),
            model: model.to_owned(),
            created: if created == 0 {
                options.created_at
            } else {
                created
            },
            items: Vec::new(),
            open: false,
            text_runs: Vec::new(),
            characters: 0,
            calls: 0,
            memory: options.translation_state.clone(),
        }
    }

    /// The response with this status and these items.
    pub(super) fn response<'d>(
        &'d self,
        status: &'static str,
        output: &'d [OutputItem<'a>],
    ) -> ResponseObject<'d> {
        ResponseObject {
            status,
            output,
            conversation: self.conversation_fields(),
            ..ResponseObject::new(&self.id, self.created, &self.model)
        }
    }

    /// The response as it ends with an error.
    pub(super) fn failed<'d>(&'d self, api_error: &'d ApiError) -> ResponseObject<'d> {
        ResponseObject {
            output: self.closed_items(),
            conversation: self.conversation_fields(),
            ..ResponseObject::failed(&self.id, self.created, &self.model, api_error)
        }
    }

    fn conversation_fields(&self) -> Option<ConversationFields<'_>> {
        let conversation = self.memory.conversation.as_ref()?;
        Some(ConversationFields {
            previous_response_id: conversation.previous_response_id.as_deref(),
            store: conversation.store,
        })
    }

    /// The item that more may be added to, and its index.
    pub(super) fn open_item(&self) -> Option<(usize, &OutputItem<'a>)> {
        let item = self.items.last().filter(|_| self.open)?;
        Some((self.items.len() - 1, item))
    }

    /// The items that nothing more is added to.
    pub(super) fn closed_items(&self) -> &[OutputItem<'a>] {
        &self.items[..self.items.len() - usize::from(self.open)]
    }

    /// Closes the open item with this status.
    pub(super) fn close(&mut self, status: &'static str) {
        if let Some(item) = self.items.last_mut().filter(|_| self.open) {
            item.set_status(status);
        }
        self.open = false;
    }

    fn begin(&mut self, item: OutputItem<'a>) {
        self.close(COMPLETED);
        self.items.push(item);
        self.open = true;
    }

    fn item_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.base, self.items.len())
    }

    /// The id of a call's item. A stored response is found by the ids of its items, which therefore hold its own.
    fn call_item_id(&self, prefix: &str, call_id: &str) -> String {
        match self.is_stored() {
            true => self.item_id(prefix),
            false => format!("{prefix}_{call_id}"),
        }
    }

    fn is_stored(&self) -> bool {
        let conversation = self.memory.conversation.as_ref();
        conversation.is_some_and(|conversation| conversation.store)
    }

    /// Says whether the open item is a message.
    pub(super) fn in_message(&self) -> bool {
        matches!(self.open_item(), Some((_, OutputItem::Message { .. })))
    }

    /// Begins a message without content.
    pub(super) fn begin_message(&mut self) {
        self.begin(OutputItem::Message {
            id: self.item_id("msg"),
            status: IN_PROGRESS,
            role: "assistant",
            content: Vec::new(),
        });
    }

    /// Says whether text of this type continues the last part of the open message.
    pub(super) fn continues(&self, fresh: &OutputContent<'_>) -> bool {
        match self.open_item() {
            Some((_, OutputItem::Message { content, .. })) => content
                .last()
                .is_some_and(|last| discriminant(last) == discriminant(fresh)),
            _ => false,
        }
    }

    /// Begins a part of the open message.
    pub(super) fn begin_content(&mut self, fresh: OutputContent<'a>) {
        let item = self.items.len().saturating_sub(1);
        if let Some(OutputItem::Message { content, .. }) = self.items.last_mut() {
            if matches!(fresh, OutputContent::OutputText { .. }) {
                self.text_runs.push(OutputTextRun {
                    item,
                    content: content.len(),
                    start: self.characters,
                });
            }
            content.push(fresh);
        }
    }

    /// Begins reasoning; a signature that this format issued holds the id of its item, unless the item is found by
    /// its id here.
    pub(super) fn begin_reasoning(&mut self, signature: Option<&Signature<'_>>) {
        let own = signature
            .and_then(own_signature)
            .filter(|_| !self.is_stored())
            .map(|(id, _)| id.to_owned());
        self.begin(OutputItem::Reasoning {
            id: own.unwrap_or_else(|| self.item_id("rs")),
            summary: Vec::new(),
            encrypted_content: None,
        });
    }

    /// Begins the summary of the open reasoning.
    pub(super) fn begin_summary(&mut self) {
        if let Some(OutputItem::Reasoning { summary, .. }) = self.items.last_mut() {
            let text = Text::Borrowed("");
            summary.push(SummaryText { text });
        }
    }

    /// Sets the signature of the open reasoning. Under another id than its own, even a signature of this format is
    /// wrapped like a foreign one.
    pub(super) fn set_signature(&mut self, signature: &Signature<'_>) {
        if let Some(OutputItem::Reasoning {
            id,
            encrypted_content,
            ..
        }) = self.items.last_mut()
        {
            *encrypted_content = Some(match own_signature(signature) {
                Some((own, ciphertext)) if own == id => ciphertext.to_owned(),
                _ => signature.wrap(),
            });
        }
    }

    /// Begins a tool call without arguments; derives an id for one that has none.
    pub(super) fn begin_call(&mut self, id: Option<Text<'a>>, name: Text<'a>, kind: ToolKind) {
        let derived = || ids::call_id(&self.upstream_id, 0, self.calls).into();
        let call_id: Text<'a> = id.filter(|id| !id.is_empty()).unwrap_or_else(derived);
        let namespace = self.memory.namespace_of(&name).map(str::to_owned);
        let name = match &namespace {
            Some(namespace) => unqualified_name(namespace, &name).to_owned().into(),
            None => name,
        };
        let (status, empty) = (IN_PROGRESS, Text::Borrowed(""));
        self.calls += 1;
        self.begin(match kind {
            ToolKind::Function => OutputItem::FunctionCall {
                id: self.call_item_id("fc", &call_id),
                call_id,
                name,
                namespace,
                arguments: empty,
                status,
            },
            ToolKind::Custom => OutputItem::CustomToolCall {
                id: self.call_item_id("ctc", &call_id),
                call_id,
                name,
                namespace,
                input: empty,
                status,
            },
        });
    }

    /// Begins a generated image without data.
    pub(super) fn begin_image(&mut self) {
        self.begin(OutputItem::ImageGenerationCall {
            id: self.item_id("ig"),
            result: None,
            status: IN_PROGRESS,
        });
    }

    /// Adds text to the last item; the first text is not copied.
    pub(super) fn append(&mut self, more: Text<'a>) {
        if let Some(text) = self.open_text(&more) {
            append(text, more);
        }
    }

    /// Adds a copy of a delta to the last item.
    pub(super) fn append_delta(&mut self, more: &str) {
        if let Some(text) = self.open_text(more) {
            text.to_mut().push_str(more);
        }
    }

    /// The text of the last item that `more` is added to.
    fn open_text(&mut self, more: &str) -> Option<&mut Text<'a>> {
        Some(match self.items.last_mut()? {
            OutputItem::Message { content, .. } => match content.last_mut()? {
                OutputContent::OutputText { text, .. } => {
                    self.characters += more.chars().count() as u64;
                    text
                }
                OutputContent::Refusal { refusal } => refusal,
            },
            OutputItem::Reasoning { summary, .. } => &mut summary.last_mut()?.text,
            OutputItem::FunctionCall { arguments, .. } => arguments,
            OutputItem::CustomToolCall { input, .. } => input,
            OutputItem::ImageGenerationCall { result, .. } => result.get_or_insert_default(),
        })
    }

    /// The length of all texts so far.
    pub(super) const fn characters(&self) -> u64 {
        self.characters
    }

    /// Adds an annotation to the text it belongs to; `None`: there is no such text.
    pub(super) fn cite(&mut self, citation: Citation<'a>) -> Option<AnnotationPosition> {
        let begins_before = |run: &OutputTextRun| run.start <= citation.start;
        let run = self
            .text_runs
            .partition_point(begins_before)
            .checked_sub(1)?;
        let run = &self.text_runs[run];
        let (item, content, start) = (run.item, run.content, run.start);
        let (annotations, _) = self.text_details(item, content)?;
        annotations.push(UrlCitationAnnotation::new(citation, start));
        let annotation = annotations.len() - 1;
        Some(AnnotationPosition {
            item,
            content,
            annotation,
        })
    }

    /// Adds a log probability to the last text.
    pub(super) fn add_logprob(&mut self, logprob: Logprob<'a>) {
        let last = self.text_runs.last().map(|run| (run.item, run.content));
        if let Some((_, logprobs)) = last.and_then(|(item, at)| self.text_details(item, at)) {
            logprobs.push(logprob.into());
        }
    }

    fn text_details(
        &mut self,
        item: usize,
        at: usize,
    ) -> Option<(
        &mut Vec<UrlCitationAnnotation<'a>>,
        &mut Vec<TokenLogprob<'a>>,
    )> {
        match self.items.get_mut(item)? {
            OutputItem::Message { content, .. } => match content.get_mut(at)? {
                OutputContent::OutputText {
                    annotations,
                    logprobs,
                    ..
                } => Some((annotations, logprobs)),
                OutputContent::Refusal { .. } => None,
            },
            _ => None,
        }
    }
}

/// The id of the stored response that an item is of; `None`: the item has an id of its upstream's.
pub(super) fn response_of_item(item_id: &str) -> Option<String> {
    let (_, rest) = item_id.split_once('_')?;
    let (base, number) = rest.rsplit_once('_')?;
    number.parse::<u32>().ok()?;
    Some(format!("resp_{base}"))
}

/// The id and the ciphertext of a signature that this format issued.
fn own_signature<'s>(signature: &'s Signature<'_>) -> Option<(&'s str, &'s str)> {
    signatures::encode_own(signature).filter(|(id, _)| !id.is_empty())
}
