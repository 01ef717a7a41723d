//! The rule of strict JSON Schemas: an object names all of its properties, and all are required.

use std::collections::HashSet;

use crate::model::Json;

/// Up to so many comparisons are faster than a set of names.
const COMPARISONS: usize = 1024;

/// Tells whether an object schema allows no further properties and requires all that it names.
pub(in crate::formats) fn is_closed_object(schema: &Json<'_>) -> bool {
    let required = schema.get("required").as_array().unwrap_or_default();
    let properties = schema.get("properties").as_object();
    schema.get("additionalProperties").as_bool() == Some(false)
        && properties.is_none_or(|properties| {
            if properties.len() * required.len() <= COMPARISONS {
                let is_required = |name| required.iter().any(|known| known.as_str() == Some(name));
                return properties.keys().all(is_required);
            }
            let required: HashSet<&str> = required.iter().filter_map(Json::as_str).collect();
            properties.keys().all(|name| required.contains(name))
        })
}
