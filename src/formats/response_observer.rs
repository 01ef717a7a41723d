//! Observes responses that pass through, whatever their format.

use std::ops::Range;

use smallvec::SmallVec;

use super::content_tokens::ContentTokens;
use super::reported_usage::{CountedOutput, ReportedUsage};
use crate::json::RawJson;
use crate::model::{ApiError, Finish, Usage, truncated};

/// The most choices that a stream may have: the largest `n` of the API reference, and far more than others take.
const MAX_CHOICES: u32 = u128::BITS;

/// Refuses a stream with more choices than the gateway keeps the state of.
pub(super) fn check_choice(index: u32) -> Result<(), ApiError> {
    if index < MAX_CHOICES {
        return Ok(());
    }
    Err(ApiError::bad_gateway(format!(
        "the upstream's choice {index} is over the limit of {MAX_CHOICES} choices"
    )))
}

/// What is known of a response so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseObserver {
    pub usage: Option<Usage>,
    /// The content that came after that usage was reported.
    pub uncounted: ContentTokens,
    /// The event that opens the response has come, in formats that have one.
    pub started: bool,
    /// Content has come, not only the frame around it.
    pub has_content: bool,
    /// A finish reason has come: nothing but the usage may follow.
    pub finished: bool,
    /// The format's own mark of a proper end has come.
    pub ended: bool,
    /// Images that have come, in formats that separate them.
    pub images: u64,
    /// How long the recording is that the response is the text of, where the upstream reports it.
    pub audio_milliseconds: Option<u64>,
    /// How many requests the upstream bills it as: a long ranking is several searches. 0 stands for one.
    pub searches: u64,
    /// Clients may stop reading here: nothing that follows matters. Formats whose streams just
    /// end never set it.
    pub closed: bool,
    /// The response is longer than the gateway reads, or cannot be read, so that its usage is not known.
    pub is_unread: bool,
    /// Why the choices ended, in words that are the same for all formats.
    pub finish_reasons: SmallVec<[&'static str; 1]>,
    /// Whether the upstream's own name of the model is kept, which only traces show.
    pub keeps_model: bool,
    pub model: Option<String>,
    /// The upstream itself reported an error in the stream.
    pub api_error: Option<ApiError>,
    /// How many choices were asked for; 0 stands for one.
    pub choices: u64,
    /// The upstream keeps the conversation under the id of the response.
    notes_response_id: bool,
    /// One bit per choice: those that have appeared, and those that are complete.
    pub(super) appeared: u128,
    pub(super) completed: u128,
    /// The content before the item that is under way, in formats whose items come once more when they are done.
    pub(super) before_item: ContentTokens,
    /// The sequence number of the next event, in formats that count them.
    pub(super) next_event: u64,
    /// Id and time of the response, in formats whose responses can be continued from.
    pub(super) reply: Option<(String, i64)>,
    /// The ids of its items, each in a line, in formats where a request can refer to them.
    item_ids: String,
    /// Among them are ids of what the upstream keeps in any case, such as containers.
    has_resources: bool,
}

/// The most bytes of these ids; items beyond them cannot be referred to.
const MAX_ITEM_IDS: usize = 64 << 10;
/// Room for those of most responses, which have reasoning and a message or a call.
const USUAL_ITEM_IDS: usize = 192;

/// The most choices whose finish reasons are kept.
const MAX_FINISH_REASONS: usize = 16;

/// A stream that was passed through and cannot go on.
#[derive(Debug, Clone, Copy)]
pub struct InterruptedStream<'a> {
    pub observer: &'a ResponseObserver,
    /// The model id that the client sent.
    pub model: &'a str,
}

/// What passthrough may have to change in a response or in one event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// Where the model's name stands, quotes included.
    pub model: Option<Range<usize>>,
    /// The event holds usage only: clients that did not ask for it do not get it.
    pub usage_only: bool,
    /// The event is not part of the format: its clients do not get it.
    pub is_foreign: bool,
}

impl Observation {
    /// The model's name, as `data` has it, is all that may have to change.
    pub(super) fn of_model(model: Option<RawJson<'_>>, data: &[u8]) -> Observation {
        Observation {
            model: model.map(|raw| raw.range_in(data)),
            ..Observation::default()
        }
    }
}

impl ResponseObserver {
    /// Observes the response to a request for so many choices.
    pub fn of_choices(choices: u64) -> ResponseObserver {
        ResponseObserver {
            choices,
            ..ResponseObserver::default()
        }
    }

    /// Observes the id of the response too, if the upstream keeps the conversation under it.
    pub fn noting_response_id(self, notes_response_id: bool) -> ResponseObserver {
        ResponseObserver {
            notes_response_id,
            ..self
        }
    }

    /// Records the usage that the upstream reports. What the report itself counts of the output covers all content of that
    /// kind before it.
    pub fn record_usage(&mut self, report: ReportedUsage) {
        match report.counted {
            CountedOutput::Nothing => {}
            CountedOutput::Reasoning => self.uncounted.forget_reasoning(),
            CountedOutput::Everything => self.uncounted = ContentTokens::default(),
        }
        self.usage = Some(report.after(self.usage));
    }

    /// Takes over what another observer, which began with the usage of this one, has seen of it since.
    pub fn adopt_usage(&mut self, seen: &ResponseObserver) {
        (self.usage, self.uncounted) = (seen.usage, seen.uncounted);
    }

    /// Tells whether the output has been counted, all or in part.
    pub fn has_output_count(&self) -> bool {
        self.usage.is_some_and(|usage| usage.output > 0)
    }

    /// The id of the response, in formats whose responses can be continued from.
    pub fn response_id(&self) -> Option<&str> {
        self.reply.as_ref().map(|(id, _)| id.as_str())
    }

    /// The ids of its items, in formats where a request can refer to them.
    pub fn item_ids(&self) -> impl Iterator<Item = &str> {
        self.item_ids.lines()
    }

    /// How long these ids are in all.
    pub const fn item_ids_length(&self) -> usize {
        self.item_ids.len()
    }

    /// Tells whether the upstream keeps something of these ids, whether or not it stores the response.
    pub const fn has_resources(&self) -> bool {
        self.has_resources
    }

    /// Notes that the upstream has run a tool: the ids of this response are needed for longer.
    pub(super) const fn observe_hosted_call(&mut self) {
        self.has_resources = true;
    }

    /// Notes the id of the response, where the upstream keeps the conversation under it.
    pub(super) fn observe_kept_response(&mut self, id: Option<RawJson<'_>>) {
        if let Some(id) = id
            .filter(|_| self.notes_response_id)
            .and_then(RawJson::text)
        {
            self.observe_resource(&id);
        }
    }

    /// Notes the id of a container or of audio, which the upstream keeps for later requests.
    pub(super) fn observe_resource(&mut self, id: &str) {
        // Each piece of a stream may have it.
        if self.item_ids.lines().next_back() != Some(id) {
            self.observe_item(id);
            self.has_resources = true;
        }
    }

    /// Notes why a choice ended.
    pub fn observe_finish(&mut self, finish: &Finish<'_>) {
        if self.finish_reasons.len() < MAX_FINISH_REASONS {
            self.finish_reasons.push(finish.name());
        }
    }

    /// Notes the upstream's own name of the model, where it is kept.
    pub fn observe_model(&mut self, name: &str) {
        if self.keeps_model && self.model.is_none() && !name.is_empty() {
            self.model = Some(truncated(name).to_string());
        }
    }

    /// Notes the same from a JSON string.
    pub fn observe_raw_model(&mut self, name: Option<&[u8]>) {
        if self.keeps_model
            && let Some(name) = name.and_then(|name| serde_json::from_slice::<String>(name).ok())
        {
            self.observe_model(&name);
        }
    }

    /// Notes the id of an item.
    pub(super) fn observe_item(&mut self, id: &str) {
        let is_line = !id.is_empty() && !id.contains(['\n', '\r']);
        if !is_line || self.item_ids.len() + id.len() >= MAX_ITEM_IDS {
            return;
        }
        if self.item_ids.is_empty() {
            self.item_ids.reserve(USUAL_ITEM_IDS);
        }
        self.item_ids.push_str(id);
        self.item_ids.push('\n');
    }

    /// Notes that this event cannot be read, and with it what the response costs, unless all of that is known already.
    pub fn note_unreadable(&mut self, data: &str) {
        // Nothing is left to read after this.
        self.finished |= data == "[DONE]";
        let is_known = self.closed || self.is_counted() || self.api_error.is_some();
        self.is_unread |= !is_known;
    }

    /// Notes that the stream has ended. One without content, usage and an error of the upstream has cost nobody knows what.
    pub fn note_end(&mut self) {
        let is_told = self.has_content || self.ended || self.api_error.is_some();
        self.is_unread |= !is_told && self.usage.is_none_or(|usage| usage.is_blank());
    }

    /// Tells whether the content is complete and its usage is still to come.
    pub fn awaits_usage(&self) -> bool {
        self.is_complete() && !self.closed && !self.has_output_count() && self.api_error.is_none()
    }

    /// Tells whether the content of every choice is complete, and its usage has come. Of several choices, some upstreams count
    /// each for itself in every event, and send the sum at the end of the stream.
    pub fn is_counted(&self) -> bool {
        let is_sum = self.closed || self.choices <= 1;
        self.is_complete() && self.has_output_count() && is_sum
    }

    const fn is_complete(&self) -> bool {
        self.finished || self.ended
    }

    /// Tells whether a choice has not ended yet.
    pub(super) fn is_open(&self, index: u32) -> bool {
        self.completed & choice_bit(index) == 0
    }

    /// Notes that nothing more comes of a choice.
    pub fn complete_choice(&mut self, index: u32) {
        self.completed |= choice_bit(index);
    }

    /// Tells whether the end is known by the choices alone: all that have come are complete, but another one may be missing.
    pub const fn has_ended_by_choices(&self) -> bool {
        self.ended && !self.closed && self.appeared != 0 && self.api_error.is_none()
    }

    /// Observes an event of a choice. A stream has ended when every choice that appeared has.
    pub(super) fn observe_choice(&mut self, index: u32, complete: bool) {
        self.appeared |= choice_bit(index);
        if complete {
            self.complete_choice(index);
            self.has_content = true;
        }
        self.ended = self.appeared == self.completed;
    }
}

/// A response that passes through may have more choices than there are bits: the last bit stands for all of these.
fn choice_bit(index: u32) -> u128 {
    1 << index.min(MAX_CHOICES - 1)
}

#[cfg(test)]
mod tests {
    use super::{ContentTokens, ReportedUsage, ResponseObserver};
    use crate::model::{Format, Usage};

    #[test]
    fn several_choices_are_counted_at_the_end_of_their_stream() {
        let event = |index: u32, output: u64| {
            format!(
                r#"{{"choices":[{{"index":{index},"delta":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":{output}}}}}"#
            )
        };
        for (choices, events, is_counted) in [
            (0, 1, true),
            (1, 1, true),
            (2, 1, false),
            (2, 2, false),
            (200, 128, false),
        ] {
            let mut observer = ResponseObserver::of_choices(choices);
            for index in 0..events {
                let event = event(index, 9);
                let observed = Format::Chat.codec().observe_event(&event, &mut observer);
                observed.expect("an event");
            }
            assert_eq!(observer.is_counted(), is_counted, "{events} of {choices}");
            // What cannot be read might be another choice.
            observer.note_unreadable("{");
            assert_eq!(observer.is_unread, !is_counted, "{events} of {choices}");
            let mut observer = ResponseObserver::of_choices(choices);
            observer.closed = true;
            observer.note_unreadable("{");
            assert!(!observer.is_unread);
        }
    }

    #[test]
    fn a_report_counts_what_it_says_and_takes_nothing_back() {
        let usage = |input, output| Usage {
            input,
            output,
            ..Usage::default()
        };
        let mut observer = ResponseObserver::default();
        observer.uncounted.add_plain_text("word word");
        let whole = observer.uncounted;
        for (report, known, uncounted) in [
            (ReportedUsage::of_whole(usage(5, 0)), (5, 0), whole),
            (ReportedUsage::of_parts(usage(5, 1), 0), (5, 1), whole),
            (
                ReportedUsage::of_whole(usage(0, 9)),
                (5, 9),
                ContentTokens::default(),
            ),
            (
                ReportedUsage::of_whole(Usage::default()),
                (5, 9),
                ContentTokens::default(),
            ),
        ] {
            observer.record_usage(report);
            let seen = observer.usage.expect("usage");
            assert_eq!((seen.input, seen.output), known, "{report:?}");
            assert_eq!(observer.uncounted, uncounted, "{report:?}");
        }
    }
}
