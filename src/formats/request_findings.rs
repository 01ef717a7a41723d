//! What of a request decides access and money beside the fields for routing, found in one pass over its body.

use super::dearer_setting::{DearerSetting, find_dearer};
use super::extra_thinking::{ExtraThinking, ThinkingSwitch, find_extra_thinking};
use super::kept_ids::may_have_word;
use crate::json::{FieldIndex, scan_body};
use crate::model::ApiError;

/// Such findings. They hold for an upstream of the client's format, which gets the body as it is.
#[derive(Debug, Clone, Default)]
pub struct RequestFindings {
    /// The path of the first field that the gateway does not know, or not at its place, or that its object has twice. The
    /// upstream may know it, and read or do more for it than the body tells.
    pub unknown_field: Option<String>,
    /// The path of the first field that names a model beside the one that the request is for.
    pub other_model: Option<String>,
    /// How many media of the input stand in the body. Those that the decoder does not find are nevertheless the upstream's to read.
    pub media: u64,
    /// The input is all in the body, and all text. `false`: not for sure.
    pub has_only_text: bool,
    /// It has tools or a schema of the output, for which an upstream adds to the prompt by itself.
    pub has_prompting_field: bool,
    /// It has an item that stands for one which the upstream keeps, or may have one.
    pub(super) has_stored_item: bool,
    /// The setting for which an upstream may charge more than the prices of the model.
    pub(super) dearer: Option<DearerSetting>,
    /// The path of the first field by which a router chooses the host that serves the model, and with it the prices.
    pub chosen_host: Option<String>,
    /// The most thinking that an upstream may generate beside the limit of the output.
    pub extra_thinking: Option<ExtraThinking>,
    /// The length of what the request expects for an answer: an upstream bills as output what the answer does not have of it.
    pub predicted_bytes: u64,
    /// The bytes that an upstream reads again, or more often than they stand in the body.
    pub repeated_bytes: u64,
    /// The upstream may compact the conversation first: it reads all of it once more, and writes a summary.
    pub may_compact: bool,
    /// How often the upstream may read the prompt again for tools that it runs itself.
    pub tool_rounds: u64,
    /// A field of the body itself is not known.
    pub(super) has_unknown_setting: bool,
    /// It has what an upstream of the client's format may run tools of its own for: a field of the body itself, or an item of the
    /// conversation, which the gateway does not know, or a tool that stands in such an item.
    pub may_start_tools: bool,
    /// The upstream may keep tools of its own that stand in the conversation, and run them for requests that do not name them.
    pub may_keep_tools: bool,
    /// It may ask for images, for which an upstream may have a tool of its own.
    pub may_make_images: bool,
    /// How many images one call of that tool may make; 0 stands for one.
    pub images_per_call: u64,
    /// The error for a setting that parsers may read in two ways.
    pub(super) refused: Option<ApiError>,
}

impl RequestFindings {
    /// Reads a body. `usual`: the values of the first of the wanted fields that have the usual prices.
    pub(super) fn of(
        body: &[u8],
        index: &FieldIndex,
        usual: &[&[&'static str]],
    ) -> RequestFindings {
        RequestFindings::with_thinking(body, index, usual, &[])
    }

    /// The same; the other wanted fields switch thinking on.
    pub(super) fn with_thinking(
        body: &[u8],
        index: &FieldIndex,
        usual: &[&[&'static str]],
        switches: &[ThinkingSwitch],
    ) -> RequestFindings {
        let text = str::from_utf8(body).unwrap_or_default();
        let scan = scan_body(text, index);
        let (settings, thinking) = scan.wanted.split_at(usual.len());
        RequestFindings {
            dearer: find_dearer(settings, usual),
            extra_thinking: find_extra_thinking(thinking, switches),
            unknown_field: scan.unknown_field,
            other_model: scan.other_model,
            chosen_host: scan.chosen_host,
            media: scan.media,
            has_only_text: scan.is_text,
            has_prompting_field: scan.has_prompting_field,
            has_stored_item: scan.has_stored_item,
            predicted_bytes: 0,
            repeated_bytes: 0,
            may_compact: false,
            tool_rounds: 0,
            has_unknown_setting: scan.has_unknown_setting,
            may_start_tools: scan.may_start_tools,
            may_keep_tools: false,
            may_make_images: false,
            images_per_call: 0,
            refused: scan.refused,
        }
    }

    /// Adds the rounds of the upstream's own tools, of which a request that is all text has none.
    pub(super) fn with_tool_rounds(
        mut self,
        body: &[u8],
        rounds: fn(&str) -> u64,
    ) -> RequestFindings {
        if !self.has_only_text {
            self.tool_rounds = rounds(str::from_utf8(body).unwrap_or_default());
            self.may_start_tools |= self.has_unknown_setting;
        }
        self
    }

    /// Notes whether the modalities of the output, which a request that is all text does not name, may have images.
    pub(super) fn with_modalities(mut self, body: &[u8]) -> RequestFindings {
        let mut words = ["modalities", "image"].iter();
        self.may_make_images =
            !self.has_only_text && words.all(|word| may_have_word(body, &[word]));
        self
    }

    /// Returns the setting for which an upstream may charge more than the prices of the model, if there is one.
    pub fn dearer_setting(&self) -> Result<Option<&DearerSetting>, ApiError> {
        match &self.refused {
            Some(api_error) => Err(api_error.clone()),
            None => Ok(self.dearer.as_ref()),
        }
    }
}
