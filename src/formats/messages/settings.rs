//! Sampling, stop sequences, metadata and service tier of a request.

use serde::Serialize;

use crate::formats::settings::{LABELS, report_set};
use crate::formats::{MessagesVersion, UpstreamTarget};
use crate::json::{Fields, Path};
use crate::model::{
    ApiError, FieldLocation, Format, Labels, Losses, Request, Sampling, Setting, Text,
};

/// Decodes `max_tokens`, `stop_sequences` and the sampling parameters.
pub(super) fn decode_sampling<'a>(fields: &mut Fields<'a, '_>) -> Result<Sampling<'a>, ApiError> {
    let rule = |setting| Format::Messages.setting(setting);
    let mut stop = Vec::new();
    let max_tokens = fields.u64("max_tokens")?;
    fields.each("stop_sequences", |_, node| {
        stop.push(node.text()?);
        Ok(())
    })?;
    Ok(Sampling {
        max_tokens,
        stop,
        temperature: rule(Setting::Temperature).decode_number(fields)?,
        top_p: rule(Setting::TopP).decode_number(fields)?,
        top_k: fields.u64("top_k")?,
        ..Sampling::default()
    })
}

/// The sampling parameters, which the second version of the format no longer has.
#[serde_with::skip_serializing_none]
#[derive(Serialize, Default)]
pub(super) struct MessagesSampling {
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<u64>,
}

/// Encodes the sampling parameters that the upstream accepts. `thinks`: the `thinking` setting is on.
pub(super) fn encode_sampling(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    thinks: bool,
    losses: &mut Losses,
) -> MessagesSampling {
    let capabilities = target.capabilities;
    let is_taken = capabilities
        .messages_sampling
        .unwrap_or(capabilities.messages_version == MessagesVersion::First);
    let refused: &[Setting] = match (is_taken, thinks) {
        (true, false) => &[],
        // While a model thinks, it accepts neither `temperature` nor `top_k`.
        (true, true) => &[Setting::Temperature, Setting::TopK],
        (false, _) => &[Setting::Temperature, Setting::TopP, Setting::TopK],
    };
    report_set(refused.iter().copied(), request, losses);
    let takes = |setting| !refused.contains(&setting);
    let sampling = &request.sampling;
    let temperature = sampling.temperature.filter(|_| takes(Setting::Temperature));
    MessagesSampling {
        temperature: temperature
            .map(|number| Format::Messages.fit_number(Setting::Temperature, number, losses)),
        top_p: sampling.top_p.filter(|_| takes(Setting::TopP)),
        top_k: sampling.top_k.filter(|_| takes(Setting::TopK)),
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
    request: &'a Request<'_>,
    losses: &mut Losses,
) -> Option<MessagesMetadata<'a>> {
    Format::Messages.report_dropped(&LABELS, request, losses);
    let user_id = request.labels.user.as_deref()?;
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
