//! The fields of requests to an endpoint that the gateway knows.

use crate::formats::unknown_fields::UNKNOWN_FIELDS;
use crate::json::{FieldIndex, KnownFields, NO_FIELDS};

/// Fields whose values are settings, or data of the client. `wanted`: those that may choose another service.
pub(super) fn index_fields(
    names: &'static [&'static str],
    wanted: &'static [&'static [&'static str]],
) -> FieldIndex {
    let known = KnownFields {
        top: names,
        opaque: names,
        wanted,
        ..NO_FIELDS
    };
    FieldIndex::new(&known, UNKNOWN_FIELDS)
}
