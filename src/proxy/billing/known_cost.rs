//! Refuses requests of keys with a spending cap whose highest cost nobody knows.

use super::recording_time;
use crate::formats::{DearerSetting, Operation, RequestFindings};
use crate::model::ApiError;
use crate::runtime::{Attempt, CappedAccount};
use crate::translate::RequestSummary;

/// Refuses what cannot be reserved, because its cost is not known before the request or at its end.
pub(in crate::proxy) fn check_known_cost(
    capped: CappedAccount<'_>,
    request: &RequestSummary,
    findings: &RequestFindings,
    attempts: &[Attempt],
) -> Result<(), ApiError> {
    if request.is_background {
        let message = "background: a key with a spending cap pays when a response ends, and this one would end later; \
                       leave `background` out, and set `stream` to true for a long response";
        return Err(ApiError::invalid(message).at("background"));
    }
    check_bounded_output(capped, request.operation, attempts)?;
    recording_time::check_bounded(capped, request.operation, attempts)?;
    if let Some(setting) = findings.dearer_setting()? {
        return Err(unknown_price(capped, setting));
    }
    if let Some(field) = &findings.chosen_host {
        return Err(unknown_host(capped, field));
    }
    if findings.may_keep_tools && attempts.iter().any(Attempt::stores_responses) {
        return Err(kept_tools(capped));
    }
    if let Some(field) = request.kept_conversation {
        return Err(kept_conversation(capped, field));
    }
    match request.output_limit.zero_field {
        Some(field) => Err(ambiguous_limit(capped, field)),
        None => Ok(()),
    }
}

/// Refuses what may cost any amount: an output that has a price and that neither the request nor the model limits.
fn check_bounded_output(
    capped: CappedAccount<'_>,
    operation: Operation,
    attempts: &[Attempt],
) -> Result<(), ApiError> {
    let is_unbounded = |attempt: &Attempt| {
        let limit = attempt.settings.settings.max_output_tokens;
        let prices = attempt.settings.prices;
        limit.is_none() && prices.is_some_and(|prices| prices.charges_output())
    };
    if !operation.has_output() || operation.has_output_limit() || !attempts.iter().any(is_unbounded)
    {
        return Ok(());
    }
    let message = format!(
        "{capped} has a spending cap, and the output of this model has a price but no limit: use another model, \
         or set max_output_tokens of the model in the config"
    );
    Err(ApiError::invalid(message).at("model"))
}

/// The error for a setting that the prices of the model do not cover.
fn unknown_price(capped: CappedAccount<'_>, setting: &DearerSetting) -> ApiError {
    let DearerSetting {
        field,
        value,
        usual,
    } = setting;
    let message = format!(
        "{field}: `{value}` may cost more than the prices of the model, and {capped} has a spending cap; leave \
         it out, or set it to `{usual}`"
    );
    ApiError::invalid(message).at(*field)
}

/// The error for a field that chooses the host of the model, which has prices of its own.
fn unknown_host(capped: CappedAccount<'_>, field: &str) -> ApiError {
    let message = format!(
        "{field}: it may choose a host that costs more than the prices of the model, and {capped} has a spending \
         cap; leave it out"
    );
    ApiError::invalid(message).at(field)
}

/// The error for tools of the upstream that it would keep with the conversation.
fn kept_tools(capped: CappedAccount<'_>) -> ApiError {
    let message = format!(
        "input: the upstream would keep the tools in the conversation, and run them for requests that do not name \
         them, and {capped} has a spending cap; put them in `tools`, or set `store` to false"
    );
    ApiError::invalid(message).at("input")
}

/// The error for a conversation that the upstream would keep, with the tools that are declared in it.
fn kept_conversation(capped: CappedAccount<'_>, field: &'static str) -> ApiError {
    let message = format!(
        "{field}: the upstream would keep the conversation with its tools, and read and run them for requests that do \
         not have them, and {capped} has a spending cap; send the whole conversation each time"
    );
    ApiError::invalid(message).at(field)
}

/// The error for a limit of 0 beside another one: it stands for no output, or for no limit.
fn ambiguous_limit(capped: CappedAccount<'_>, field: &'static str) -> ApiError {
    let message = format!(
        "{field}: an upstream may take a limit of 0 for none, whatever the other limit of the request, and {capped} \
         has a spending cap; leave it out"
    );
    ApiError::invalid(message).at(field)
}
