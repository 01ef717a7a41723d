//! How much of each item of a stream has been told.

use crate::model::Json;

#[derive(Debug, Default)]
pub(super) struct Items(Vec<Item>);

#[derive(Debug, Default)]
pub(super) struct Item {
    /// As its last event said; empty before that.
    pub id: String,
    parts: Vec<Written>,
    /// Of a thought: what it was last told in.
    pub section: Option<(Voice, u32)>,
    /// A call that has been announced.
    pub called: bool,
    pub done: bool,
    /// Of a thought: its signature has been told.
    pub sealed: bool,
}

/// The two places where a thought may show its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Summary,
    Thoughts,
}

#[derive(Debug, Default)]
pub(super) struct Written {
    pub bytes: usize,
    /// Of these bytes: whether a whole text begins with them can be told without keeping them.
    digest: Digest,
    /// How many characters of text came before it.
    pub start: u64,
    pub sources: usize,
    pub logprobs: usize,
}

/// Far above what any reply holds; a wild number must not cost memory.
const MOST: u32 = 4096;

fn at<T: Default>(list: &mut Vec<T>, number: u32) -> &mut T {
    let number = number.min(MOST) as usize;
    if list.len() <= number {
        list.resize_with(number + 1, T::default);
    }
    &mut list[number]
}

impl Items {
    pub(super) fn of(&mut self, index: u32) -> &mut Item {
        at(&mut self.0, index)
    }

    /// The number under which an item of the final reply has come: some upstreams do not stream
    /// all that they list in the end, and some change the ids.
    pub(super) fn number_of(&self, listed: u32, item: &Json<'_>) -> u32 {
        let id = match item {
            Json::Object(fields) => fields.get("id").and_then(Json::as_str).unwrap_or_default(),
            _ => "",
        };
        let mut known = (0u32..).zip(&self.0);
        let same = |item: &Item| item.done && !id.is_empty() && item.id == id;
        match self.0.get(listed as usize) {
            Some(item) if same(item) => listed,
            _ => known
                .find_map(|(number, item)| same(item).then_some(number))
                .unwrap_or(listed),
        }
    }
}

impl Item {
    pub(super) fn part(&mut self, number: u32) -> &mut Written {
        at(&mut self.parts, number)
    }

    /// What of a whole text has not come in pieces. When the pieces are no part of it, nothing
    /// that could follow them would make it.
    pub(super) fn missing<'t>(&mut self, number: u32, whole: &'t str) -> &'t str {
        let written = self.part(number);
        let (told, rest) = whole.split_at_checked(written.bytes).unwrap_or_default();
        let mut digest = Digest::default();
        digest.add(told);
        match digest == written.digest {
            true => rest,
            false => "",
        }
    }
}

impl Written {
    pub(super) fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.digest.add(text);
    }
}

/// The same for the same bytes, whatever pieces they come in (FNV-1a).
#[derive(Debug, PartialEq, Eq)]
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
