//! The candidates of a response: one for each choice.

use serde::Serialize;
use smallvec::SmallVec;

use super::cited_text::CitedText;
use super::finish_reason::{decode_finish_reason, encode_finish_reason, report_decoded_reason};
use super::grounding::{
    EncodedGrounding, UpstreamCitationMetadata, UpstreamGrounding, encode_grounding,
};
use super::known_citations::{CitationBudget, KnownCitations};
use super::logprobs::{LogprobsResult, UpstreamLogprobs, average_logprob, encode_logprobs};
use super::reasoning::push_reasoning;
use super::response_calls::{encode_args, keeps_call};
use super::response_parts::{
    ClientPart, UpstreamPart, UpstreamPayload, encode_content_part, part_location,
};
use crate::json::{Present, from_json};
use crate::model::{Choice, FieldLocation, Finish, Losses, Part, PartKind, Signature, Text};

from_json! {
    /// A candidate as an upstream sends it. Rare fields are boxed to keep it small.
    pub(super) struct UpstreamCandidate<'a> {
        /// Often absent on the first candidate.
        "index" => index: Option<u32>,
        "content" => pub(super) content: Option<UpstreamContent<'a>>,
        "finishReason" => pub(super) finish_reason: Option<Text<'a>>,
        "finishMessage" => pub(super) finish_message: Option<Text<'a>>,
        "groundingMetadata" => pub(super) grounding_metadata: Option<Box<UpstreamGrounding<'a>>>,
        "citationMetadata" => pub(super) citation_metadata: Option<Box<UpstreamCitationMetadata<'a>>>,
        "logprobsResult" => pub(super) logprobs_result: Option<Box<UpstreamLogprobs<'a>>>,
        "safetyRatings" => safety_ratings: Option<Present>,
        "urlContextMetadata" => url_context_metadata: Option<Present>,
    }
}

from_json! {
    pub(super) struct UpstreamContent<'a> {
        "parts" => pub(super) parts: Option<SmallVec<[UpstreamPart<'a>; 1]>>,
    }
}

impl<'a> UpstreamCandidate<'a> {
    pub(super) fn index(&self) -> u32 {
        self.index.unwrap_or_default()
    }

    /// Decodes a candidate of a JSON response.
    pub(super) fn decode(self, budget: &mut CitationBudget, losses: &mut Losses) -> Choice<'a> {
        self.report_losses(losses);
        let mut decoder = PartsDecoder::default();
        let content = self.content.and_then(|content| content.parts);
        for (index, part) in content.into_iter().flatten().enumerate() {
            decoder.decode_part(index, part, losses);
        }
        let PartsDecoder { parts, mut text } = decoder;
        let has_calls = parts
            .iter()
            .any(|part| matches!(part.kind, PartKind::Call(_)));
        let citations = KnownCitations::default().decode(
            self.grounding_metadata.as_deref(),
            self.citation_metadata.as_deref(),
            &mut text,
            budget,
        );
        let logprobs = self.logprobs_result.into_iter();
        let reason = self.finish_reason.unwrap_or_default();
        Choice {
            parts,
            citations,
            logprobs: logprobs.flat_map(|logprobs| logprobs.decode()).collect(),
            finish: decode_finish_reason(&reason, self.finish_message, has_calls),
        }
    }

    /// Reports the fields that no other format has.
    fn report_losses(&self, losses: &mut Losses) {
        let mut report = |is_lost: bool, path: &'static str| {
            if is_lost {
                losses.dropped(FieldLocation::Path(path.into()));
            }
        };
        report(self.safety_ratings.is_some(), "safetyRatings");
        report(self.url_context_metadata.is_some(), "urlContextMetadata");
        let reason = self.finish_reason.as_deref();
        let is_filtered = matches!(
            decode_finish_reason(reason.unwrap_or_default(), None, false),
            Finish::Filtered(_)
        );
        report(
            self.finish_message.is_some() && !is_filtered,
            "finishMessage",
        );
        report_decoded_reason(self.index(), reason, losses);
        if let Some(grounding) = &self.grounding_metadata {
            grounding.report_losses(losses);
        }
        if let Some(citations) = &self.citation_metadata {
            citations.report_losses(losses);
        }
    }
}

#[derive(Default)]
struct PartsDecoder<'a> {
    parts: Vec<Part<'a>>,
    /// The text parts, by the indexes that grounding refers to.
    text: CitedText<'a>,
}

impl<'a> PartsDecoder<'a> {
    fn decode_part(&mut self, index: usize, part: UpstreamPart<'a>, losses: &mut Losses) {
        let (payload, signature) = part.decode();
        let location = || FieldLocation::Path(format!("content.parts[{index}]").into());
        let kind = match payload {
            UpstreamPayload::Call(call) => {
                return self.push(PartKind::Call(call.decode(signature)));
            }
            UpstreamPayload::Reasoning(text) => {
                return push_reasoning(text, signature, None, &mut self.parts);
            }
            UpstreamPayload::Text(text) => {
                let is_bare_signature = text.is_empty() && signature.is_some();
                self.text.push(index, text.clone());
                (!is_bare_signature).then_some(PartKind::Text(text))
            }
            UpstreamPayload::Media(media) => Some(PartKind::Media(media)),
            UpstreamPayload::CodeOutput(text) => {
                losses.approximated(location());
                Some(PartKind::Text(text))
            }
            // A signature may come in a part of its own.
            UpstreamPayload::Unsupported if signature.is_some() => None,
            UpstreamPayload::Unsupported => {
                losses.dropped(location());
                None
            }
        };
        self.push_signature(signature);
        if let Some(kind) = kind {
            self.push(kind);
        }
    }

    /// Appends the signature of text or media as reasoning, as they have no signature of their own.
    fn push_signature(&mut self, signature: Option<Signature<'a>>) {
        if signature.is_some() {
            push_reasoning(Text::default(), signature, None, &mut self.parts);
        }
    }

    fn push(&mut self, kind: PartKind<'a>) {
        self.parts.push(Part { kind, at: None });
    }
}

/// A candidate of a response to a client.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientCandidate<'a, P> {
    pub(super) content: ClientContent<P>,
    pub(super) finish_reason: Option<&'static str>,
    pub(super) finish_message: Option<&'a str>,
    pub(super) index: u32,
    pub(super) grounding_metadata: Option<EncodedGrounding<'a>>,
    pub(super) avg_logprobs: Option<f64>,
    pub(super) logprobs_result: Option<LogprobsResult<'a>>,
}

/// The content of a candidate. A chunk of a stream has one part, a JSON response any number.
#[derive(Serialize)]
pub(super) struct ClientContent<P> {
    parts: P,
    role: &'static str,
}

impl<P> ClientContent<P> {
    pub(super) const fn new(parts: P) -> ClientContent<P> {
        ClientContent {
            parts,
            role: "model",
        }
    }
}

/// Encodes a choice as a candidate of a JSON response. Of hidden reasoning only the signature is
/// sent, on the part that follows it.
pub(super) fn encode_candidate<'a>(
    index: u32,
    choice: &'a Choice<'_>,
    hides_reasoning: bool,
    losses: &mut Losses,
) -> ClientCandidate<'a, Vec<ClientPart<'a>>> {
    let mut parts: Vec<ClientPart<'a>> = Vec::new();
    let mut hidden: Option<&Signature<'_>> = None;
    for (number, part) in choice.parts.iter().enumerate() {
        let is_last = number + 1 == choice.parts.len();
        let encoded = match &part.kind {
            PartKind::Call(call) => {
                let args = encode_args(call);
                let location = || part_location(index as usize, number);
                let finish = &choice.finish;
                keeps_call(call, args.as_ref(), is_last, finish, location, losses)
                    .then(|| ClientPart::call(call, args))
            }
            PartKind::Reasoning { signature, .. } if hides_reasoning => {
                if let Some(signature) = signature {
                    parts.extend(hidden.replace(signature).map(ClientPart::signature));
                }
                None
            }
            other => encode_content_part(other),
        };
        let Some(mut encoded) = encoded else { continue };
        if encoded.is_signed() {
            parts.extend(hidden.take().map(ClientPart::signature));
        }
        encoded = encoded.signed_with(hidden.take());
        match parts.last_mut() {
            // Citations refer to positions in one run of text.
            Some(before)
                if !choice.citations.is_empty()
                    && before.is_text()
                    && encoded.is_text()
                    && !encoded.is_signed() =>
            {
                let more = encoded.text.unwrap_or_default();
                before.text.get_or_insert_default().to_mut().push_str(&more);
            }
            _ => parts.push(encoded),
        }
    }
    parts.extend(hidden.map(ClientPart::signature));
    let mut text = CitedText::default();
    if !choice.citations.is_empty() {
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| part.is_text()) {
            text.push(index, part.text.as_deref().unwrap_or_default().into());
        }
    }
    let grounding_metadata = encode_grounding(&mut text, &choice.citations);
    let (finish_reason, finish_message) = encode_finish_reason(&choice.finish);
    ClientCandidate {
        content: ClientContent::new(parts),
        finish_reason: Some(finish_reason),
        finish_message,
        index,
        grounding_metadata,
        avg_logprobs: average_logprob(&choice.logprobs),
        logprobs_result: encode_logprobs(&choice.logprobs),
    }
}
