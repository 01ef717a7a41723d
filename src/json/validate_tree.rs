//! Holding a tree against a table of rules, where one has been read anyway.

use std::borrow::Cow;

use serde_json_borrow::ObjectAsVec;

use super::fields::Path;
use super::shape::{Given, NotedField, ObjectRules, PresentFields, Rule, Value, whole};
use crate::model::{ApiError, Json};

/// The first breach is named, as where bytes are held.
pub(super) fn walk(
    given: &ObjectAsVec<'_>,
    shape: &'static ObjectRules,
    path: &Path<'_>,
) -> Result<Vec<NotedField>, ApiError> {
    let mut noted = Vec::new();
    object(given, shape, path, &mut noted)?;
    Ok(noted)
}

fn object(
    given: &ObjectAsVec<'_>,
    shape: &'static ObjectRules,
    path: &Path<'_>,
    noted: &mut Vec<NotedField>,
) -> Result<(), ApiError> {
    let mut seen = PresentFields::new(shape);
    for (name, given) in given.iter() {
        let Some(known) = shape.find(name) else {
            continue;
        };
        let (rule, inner) = (known.rule(shape), known.path(shape, path));
        if let Some(value) = value(given, rule, &inner, noted)? {
            if let Rule::Noted(_) = rule {
                noted.extend(known.noted(shape, path, None));
            }
            seen.note(known, value);
        }
    }
    seen.api_error(path).map_or(Ok(()), Err)
}

/// `None`: it counts as absent.
fn value(
    given: &Json<'_>,
    rule: &Rule,
    path: &Path<'_>,
    noted: &mut Vec<NotedField>,
) -> Result<Option<Value>, ApiError> {
    match (rule, given) {
        (Rule::Noted(rule), _) => return value(given, rule, path, noted),
        (Rule::Object(shape), Json::Object(inner)) => object(inner, shape, path, noted)?,
        (Rule::List(rule), Json::Array(items)) => list(items, rule, usize::MAX, path, noted)?,
        (Rule::Few(rule, most), Json::Array(items)) => list(items, rule, *most, path, noted)?,
        _ => return rule.hold(given, path),
    }
    Ok(Some(Value::OTHER))
}

fn list(
    items: &[Json<'_>],
    rule: &Rule,
    most: usize,
    path: &Path<'_>,
    noted: &mut Vec<NotedField>,
) -> Result<(), ApiError> {
    for (number, item) in items.iter().enumerate() {
        value(item, rule, &Path::Index(path, number), noted)?;
        if number == most {
            return Err(Rule::too_many(most, path));
        }
    }
    Ok(())
}

impl Given for Json<'_> {
    fn is_null(&self) -> bool {
        self.is_null()
    }

    fn is_text(&self) -> bool {
        self.is_string()
    }

    fn flag(&self) -> Option<bool> {
        self.as_bool()
    }

    fn number(&self) -> Option<f64> {
        self.as_f64()
    }

    fn whole(&self) -> Option<i64> {
        self.as_i64().or_else(|| whole(self.as_f64()?))
    }

    fn text(&self) -> Option<Cow<'_, str>> {
        self.as_str().map(Cow::Borrowed)
    }
}
