//! Constructors for the tables that requests are checked against.

use crate::formats::native::field_names::FieldNames;
use crate::json::{Field, FieldConflict, ObjectRules, Rule};

pub(super) const fn optional(names: FieldNames, rule: Rule) -> Field {
    Field {
        spellings: names,
        rule,
        required: false,
    }
}

pub(super) const fn required(names: FieldNames, rule: Rule) -> Field {
    Field {
        spellings: names,
        rule,
        required: true,
    }
}

/// An object whose fields may stand beside each other in any combination.
pub(super) const fn object(fields: &'static [Field]) -> ObjectRules {
    ObjectRules::new(fields, |_| None)
}

/// The answer of a check that found two fields which exclude each other.
pub(super) fn clash(field: &'static str, expected: &'static str) -> Option<FieldConflict> {
    Some(FieldConflict {
        field: Some(field),
        expected,
    })
}

/// An object with any fields.
pub(super) static ANY_OBJECT: ObjectRules = object(&[]);
