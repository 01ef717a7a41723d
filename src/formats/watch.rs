//! What is learned of a reply on its way past, whatever its format.

use crate::json::RawJson;
use crate::model::{ApiError, Usage};

/// What has been learned of a reply so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    pub usage: Option<Usage>,
    /// What has come since those counts.
    pub unmetered: Heard,
    /// The event that opens the reply has come, in formats that have one.
    pub opened: bool,
    /// Content has come, not only the frame around it.
    pub begun: bool,
    /// The format's own mark of a proper end has come.
    pub ended: bool,
    /// Images that have come, where they are told apart.
    pub pictures: u64,
    /// Whoever reads the reply may stop here: what comes after it changes nothing any more. Formats
    /// whose streams just end never say so.
    pub closed: bool,
    /// The upstream itself reported a failure in the stream.
    pub api_error: Option<ApiError>,
    /// One bit per choice: those that have appeared, and those that are complete.
    pub(super) appeared: u128,
    pub(super) completed: u128,
    /// The number of the next event, where a format counts them.
    pub(super) next_event: u64,
    /// Id and time of the reply, where the format ends a stream with the whole of it.
    pub(super) reply: Option<(String, i64)>,
}

/// How much of an answer has come, in bytes: the words for those who ask, and the thoughts before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    pub said: u64,
    pub thought: u64,
}

/// What a client has seen of a stream that goes no further.
#[derive(Debug, Clone, Copy)]
pub struct Passed<'a> {
    pub watch: &'a Watch,
    /// The id that the client asked for.
    pub model: &'a str,
}

impl Heard {
    /// A JSON string as it stands in the body, where there is one.
    pub(super) fn say(&mut self, raw: Option<RawJson<'_>>) {
        self.said += length(raw);
    }

    pub(super) fn think(&mut self, raw: Option<RawJson<'_>>) {
        self.thought += length(raw);
    }
}

/// Of a string without its quotes; escapes count as they are written.
fn length(raw: Option<RawJson<'_>>) -> u64 {
    let written = raw.map_or("", RawJson::get);
    match written.as_bytes() {
        [b'"', inner @ .., b'"'] => inner.len() as u64,
        _ => 0,
    }
}

impl Watch {
    /// Counts from the upstream stand for all that has come before them.
    pub fn meter(&mut self, usage: Usage) {
        self.usage = Some(usage);
        if !usage.is_blank() {
            self.unmetered = Heard::default();
        }
    }

    /// Notes a piece of a choice. A stream has ended when every choice that appeared has.
    pub(super) fn choice(&mut self, index: u32, complete: bool) {
        let bit = 1u128 << index.min(127);
        self.appeared |= bit;
        if complete {
            self.completed |= bit;
            self.begun = true;
        }
        self.ended = self.appeared == self.completed;
    }
}
