//! JSON responses of all endpoints: their usage under every name, and the field without which they are none.

use crate::formats::chat::{CompletionUsage, decode_error};
use crate::formats::token_count::TokenCount;
use crate::formats::{
    ContentTokens, Observation, PassthroughEndpoint, ReportedUsage, ResponseObserver,
    decode_response_body, missing_content,
};
use crate::json::{DecodeResult, FromJson, JsonReader, Present, RawJson, decode_json, from_json};
use crate::model::{ApiError, Usage};

from_json! {
    struct ObservedDocument<'a> {
        "model" => model: Option<RawJson<'a>>,
        "choices" => choices: Option<RawJson<'a>>,
        "results" => results: Option<Present>,
        /// The text of a recording.
        "text" => text: Option<RawJson<'a>>,
        /// How long it is, in the verbose form.
        "duration" => duration: Option<AudioDuration>,
        /// One upstream calls the results of a ranking so.
        "data" => data: Option<Present>,
        "usage" => usage: Option<RawJson<'a>>,
        "meta" => meta: Option<ObservedMeta>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct ObservedChoice<'a> {
        "text" => text: Option<RawJson<'a>>,
    }
}

impl ObservedDocument<'_> {
    /// How many searches a ranking counts as, where the upstream says so.
    fn searches(&self) -> u64 {
        let usage = self.usage.and_then(|raw| decode_json(raw.get()).ok());
        let usage: Option<ObservedUsage> = usage;
        let billed = self
            .meta
            .as_ref()
            .and_then(|meta| meta.billed_units.as_ref());
        let counts = [billed, usage.as_ref()].into_iter().flatten();
        let searches = counts.map(|counts| counts.search_units.tokens());
        searches.max().unwrap_or_default()
    }

    /// Counts the texts, for responses without a count of them.
    fn count(&self, uncounted: &mut ContentTokens) {
        uncounted.add_text(self.text);
        let choices = self.choices.and_then(|raw| decode_json(raw.get()).ok());
        let choices: Vec<ObservedChoice<'_>> = choices.unwrap_or_default();
        choices
            .iter()
            .for_each(|choice| uncounted.add_text(choice.text));
    }
}

from_json! {
    struct ObservedMeta {
        "billed_units" => billed_units: Option<ObservedUsage>,
        "tokens" => tokens: Option<ObservedUsage>,
    }
}

from_json! {
    pub(super) struct ObservedUsage {
        "input_tokens" | "prompt_tokens" => input_tokens: TokenCount,
        "output_tokens" => output_tokens: TokenCount,
        "total_tokens" => total_tokens: TokenCount,
        "seconds" => seconds: Option<AudioDuration>,
        /// How many searches a ranking counts as.
        "search_units" | "searchUnits" => search_units: TokenCount,
    }
}

/// How long a recording is. Like that of tokens, a wrong number counts as none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AudioDuration {
    milliseconds: u64,
}

/// No recording is longer: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

impl<'a> FromJson<'a> for AudioDuration {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        let mut raw = RawJson::default();
        raw.decode(reader)?;
        // Some upstreams send a text.
        let seconds: f64 = raw.get().trim_matches('"').parse().unwrap_or(0.0);
        let is_usable = seconds > 0.0 && seconds <= MAX_SECONDS;
        self.milliseconds = if is_usable {
            (seconds * 1000.0).ceil() as u64
        } else {
            0
        };
        Ok(())
    }
}

impl AudioDuration {
    /// `None`: the upstream has reported none.
    pub(super) fn reported(self) -> Option<u64> {
        Some(self.milliseconds).filter(|milliseconds| *milliseconds > 0)
    }
}

impl ObservedUsage {
    /// Returns how long the recording is, where that is what the upstream bills.
    pub(super) fn audio_milliseconds(&self) -> Option<u64> {
        self.seconds.and_then(AudioDuration::reported)
    }

    /// What is counted in total only is input, and all there is: these endpoints have no other. A duration counts no tokens.
    pub(super) fn report(&self) -> ReportedUsage {
        let [input, output, total] =
            [self.input_tokens, self.output_tokens, self.total_tokens].map(TokenCount::tokens);
        let usage = |input| Usage {
            input,
            output,
            ..Usage::default()
        };
        match input.max(output) {
            0 => ReportedUsage::of_parts(usage(total), total),
            _ => ReportedUsage::of_whole(usage(input)),
        }
    }
}

/// Observes a response.
pub(super) fn observe(
    endpoint: PassthroughEndpoint,
    body: &[u8],
    observer: &mut ResponseObserver,
) -> Result<Observation, ApiError> {
    let document: ObservedDocument<'_> = decode_response_body(body)?;
    let has_content = match endpoint {
        PassthroughEndpoint::Completions => document.choices.is_some(),
        PassthroughEndpoint::Moderations => document.results.is_some(),
        PassthroughEndpoint::Rerank => document.results.is_some() || document.data.is_some(),
        // A recording is no JSON.
        PassthroughEndpoint::Speech => false,
        PassthroughEndpoint::Transcriptions | PassthroughEndpoint::Translations => {
            document.text.is_some()
        }
    };
    if !has_content {
        return Err(match document.error {
            Some(_) => decode_error(200, body),
            None => missing_content(),
        });
    }
    if endpoint.takes_recording() {
        let counted = document.usage.and_then(|raw| decode_json(raw.get()).ok());
        let billed = counted.and_then(|usage: ObservedUsage| usage.audio_milliseconds());
        let told = document.duration.and_then(AudioDuration::reported);
        observer.audio_milliseconds = billed.or(told);
    }
    observer.searches = document.searches();
    document.count(&mut observer.uncounted);
    if let Some(report) = report_of(endpoint, &document).filter(|it| !it.usage.is_blank()) {
        observer.record_usage(report);
    }
    (observer.has_content, observer.ended) = (true, true);
    Ok(Observation::of_model(document.model, body))
}

/// Decodes the counts of a response, whatever else it holds.
pub(super) fn reported_usage(endpoint: PassthroughEndpoint, body: &[u8]) -> Option<Usage> {
    let document: ObservedDocument<'_> = decode_response_body(body).ok()?;
    report_of(endpoint, &document).map(|report| report.usage)
}

fn report_of(
    endpoint: PassthroughEndpoint,
    document: &ObservedDocument<'_>,
) -> Option<ReportedUsage> {
    if let Some(raw) = document.usage {
        if endpoint == PassthroughEndpoint::Completions {
            let usage: CompletionUsage = decode_json(raw.get()).ok()?;
            return Some(ReportedUsage::of_whole(usage.to_usage()));
        }
        let usage: ObservedUsage = decode_json(raw.get()).ok()?;
        return Some(usage.report());
    }
    let meta = document.meta.as_ref()?;
    let billed = meta.billed_units.as_ref().map(ObservedUsage::report);
    // What is billed by searches has no tokens there.
    let billed = billed.filter(|report| !report.usage.is_blank());
    billed.or_else(|| meta.tokens.as_ref().map(ObservedUsage::report))
}
