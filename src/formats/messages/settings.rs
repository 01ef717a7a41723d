//! Sampling, stop sequences, metadata and service tier of a request.

use serde::Serialize;

use crate::formats::{MessagesVersion, UpstreamTarget};
use crate::json::{Fields, Path};
use crate::model::{ApiError, FieldLocation, Labels, Losses, Sampling, Setting, Text};

/// Decodes `max_tokens`, `stop_sequences` and the sampling parameters.
pub(super) fn decode_sampling<'a>(fields: &mut Fields<'a, '_>) -> Result<Sampling<'a>, ApiError> {
    let mut stop = Vec::new();
    let max_tokens = fields.u64("max_tokens")?;
    fields.each("stop_sequences", |_, node| {
        stop.push(node.text()?);
        Ok(())
    })?;
    Ok(Sampling {
        max_tokens,
        stop,
        temperature: decode_fraction(fields, "temperature")?,
        top_p: decode_fraction(fields, "top_p")?,
        top_k: fields.u64("top_k")?,
        ..Sampling::default()
    })
}

fn decode_fraction(fields: &mut Fields<'_, '_>, key: &str) -> Result<Option<f64>, ApiError> {
    let number = fields.f64(key)?;
    match number {
        Some(number) if !(0.0..=1.0).contains(&number) => {
            Err(Path::Key(&fields.path, key).wrong("a number from 0 to 1"))
        }
        _ => Ok(number),
    }
}

/// The sampling parameters, which the second version of the format no longer has.
#[derive(Serialize, Default)]
pub(super) struct MessagesSampling {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u64>,
}

/// Encodes the sampling parameters that the upstream accepts. `thinks`: the `thinking` setting is on.
pub(super) fn encode_sampling(
    sampling: &Sampling<'_>,
    target: &UpstreamTarget<'_>,
    thinks: bool,
    losses: &mut Losses,
) -> MessagesSampling {
    let capabilities = target.capabilities;
    let allowed = capabilities
        .messages_sampling
        .unwrap_or(capabilities.messages_version == MessagesVersion::First);
    // While a model thinks, it accepts neither `temperature` nor `top_k`.
    let allowed_with_thinking = allowed && !thinks;
    let mut keep = |setting, present: bool, allowed: bool| {
        if present && !allowed {
            losses.dropped(FieldLocation::Setting(setting));
        }
        present && allowed
    };
    let has_temperature = keep(
        Setting::Temperature,
        sampling.temperature.is_some(),
        allowed_with_thinking,
    );
    let has_top_p = keep(Setting::TopP, sampling.top_p.is_some(), allowed);
    let has_top_k = keep(
        Setting::TopK,
        sampling.top_k.is_some(),
        allowed_with_thinking,
    );
    let temperature = sampling.temperature.filter(|_| has_temperature);
    if temperature.is_some_and(|temperature| temperature > 1.0) {
        losses.approximated(FieldLocation::Setting(Setting::Temperature));
    }
    MessagesSampling {
        temperature: temperature.map(|temperature| temperature.min(1.0)),
        top_p: sampling.top_p.filter(|_| has_top_p),
        top_k: sampling.top_k.filter(|_| has_top_k),
    }
}

/// Encodes `stop_sequences`, without those of white space only, which upstreams refuse.
pub(super) fn encode_stop_sequences<'a>(
    sampling: &'a Sampling<'_>,
    losses: &mut Losses,
) -> Vec<&'a str> {
    let stop = sampling.stop.iter().map(|text| &**text);
    let (accepted, blank): (Vec<_>, Vec<_>) = stop.partition(|text| !text.trim().is_empty());
    if !blank.is_empty() {
        losses.dropped(FieldLocation::Setting(Setting::Stop));
    }
    accepted
}

/// Reports the sampling settings that the format does not have.
pub(super) fn report_unsupported(sampling: &Sampling<'_>, losses: &mut Losses) {
    for (setting, present) in [
        (Setting::Seed, sampling.seed.is_some()),
        (
            Setting::PresencePenalty,
            sampling.presence_penalty.is_some(),
        ),
        (
            Setting::FrequencyPenalty,
            sampling.frequency_penalty.is_some(),
        ),
        (Setting::Choices, sampling.choices.is_some_and(|n| n > 1)),
        (Setting::Logprobs, sampling.logprobs),
    ] {
        if present {
            losses.dropped(FieldLocation::Setting(setting));
        }
    }
}

/// Decodes `metadata` and `service_tier`.
pub(super) fn decode_labels<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Labels<'a>, ApiError> {
    let user = match fields.node("metadata") {
        None => None,
        Some(node) => node.fields(|mut fields| {
            let user = fields.text("user_id")?;
            fields.finish(losses);
            Ok(user)
        })?,
    };
    let service_tier = match fields.text("service_tier")?.as_deref() {
        None => None,
        Some("auto") => Some(Text::Borrowed("auto")),
        Some("standard_only") => Some(Text::Borrowed("default")),
        Some(other) => {
            let path = Path::Key(&fields.path, "service_tier");
            return Err(path.wrong_text("auto or standard_only", other));
        }
    };
    Ok(Labels {
        user,
        service_tier,
        ..Labels::default()
    })
}

/// The `metadata` of a request: the end user's id alone.
#[derive(Serialize)]
pub(super) struct MessagesMetadata<'a> {
    user_id: &'a str,
}

/// Encodes `metadata`.
pub(super) fn encode_metadata<'a>(
    labels: &'a Labels<'_>,
    losses: &mut Losses,
) -> Option<MessagesMetadata<'a>> {
    for (setting, present) in [
        (Setting::Metadata, labels.metadata.is_some()),
        (Setting::CacheKey, labels.cache_key.is_some()),
    ] {
        if present {
            losses.dropped(FieldLocation::Setting(setting));
        }
    }
    let user_id = labels.user.as_deref()?;
    Some(MessagesMetadata { user_id })
}

/// Encodes `service_tier`.
pub(super) fn encode_service_tier(
    labels: &Labels<'_>,
    losses: &mut Losses,
) -> Option<&'static str> {
    Some(match labels.service_tier.as_deref()? {
        "auto" => "auto",
        "default" => "standard_only",
        _ => {
            losses.approximated(FieldLocation::Setting(Setting::ServiceTier));
            "auto"
        }
    })
}
