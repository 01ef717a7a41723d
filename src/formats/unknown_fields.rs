//! What fields that the gateway does not know may do, in every format.

use super::chosen_host::chosen_host;
use super::other_model::names_model;
use crate::json::UnknownFieldRules;

/// They may name a model, or choose the host that serves one.
pub(super) const UNKNOWN_FIELDS: UnknownFieldRules = UnknownFieldRules {
    names_model,
    chosen_host,
};
