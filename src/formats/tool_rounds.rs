//! How often an upstream reads the prompt again for tools that it runs itself.

use crate::json::{DecodeResult, FromJson, JsonReader, RawJson, decode_json};

/// The rounds of tools that the request does not limit: vendors stop after about so many.
pub const DEFAULT_TOOL_ROUNDS: u64 = 10;

/// Adds up the rounds of tools, each with its own limit.
pub(super) fn sum_of_rounds(limits: impl Iterator<Item = Option<u64>>) -> u64 {
    let (mut limited, mut unlimited) = (0_u64, 0);
    for limit in limits {
        match limit {
            Some(limit) => limited = limited.saturating_add(limit),
            None => unlimited = DEFAULT_TOOL_ROUNDS,
        }
    }
    limited.saturating_add(unlimited)
}

/// Decodes a limit. One that cannot be read is none, and so is one of 0, by which some mean that there is none.
pub(super) fn decode_rounds(limit: Option<RawJson<'_>>) -> Option<u64> {
    let limit = limit.and_then(|limit| decode_json(limit.get()).ok());
    limit.filter(|limit| *limit > 0)
}

/// Returns the rounds of tools that share one limit, if one of them is the upstream's.
pub(super) fn shared_rounds(is_hosted: bool, limit: Option<u64>) -> u64 {
    match is_hosted {
        true => limit.unwrap_or(DEFAULT_TOOL_ROUNDS),
        false => 0,
    }
}

/// How tools look that the client runs.
pub(super) struct OwnTools {
    /// Tells whether a type is one of theirs.
    pub(super) is_own: fn(&str) -> bool,
    /// They may have no type.
    pub(super) may_lack_type: bool,
    /// Their fields beside the type.
    pub(super) fields: &'static [&'static str],
}

/// Who runs a tool, as far as its fields tell. Whatever the gateway does not know may be one of the upstream's.
#[derive(Default)]
pub(super) struct ToolRunner {
    has_type: bool,
    has_field: bool,
    is_hosted: bool,
}

impl ToolRunner {
    /// Notes a field and passes over its value. A type that stands there twice, or in another case, is not the client's.
    pub(super) fn note(
        &mut self,
        reader: &mut JsonReader<'_>,
        key: &str,
        own: &OwnTools,
    ) -> DecodeResult {
        if reader.peek() == Some(b'n') {
            return reader.skip();
        }
        if key == "type" {
            let mut kind = RawJson::default();
            kind.decode(reader)?;
            let is_own = kind.text().is_some_and(|kind| (own.is_own)(&kind));
            self.is_hosted |= self.has_type || !is_own;
            self.has_type = true;
            return Ok(());
        }
        let is_own = own.fields.contains(&key);
        self.has_field |= is_own;
        self.is_hosted |= !is_own;
        reader.skip()
    }

    pub(super) const fn is_hosted(&self, own: &OwnTools) -> bool {
        let is_typed = self.has_type || (own.may_lack_type && self.has_field);
        self.is_hosted || !is_typed
    }
}
