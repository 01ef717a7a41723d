//! Validates a JSON tree that is decoded anyway against a table of rules.

use std::borrow::Cow;

use serde_json_borrow::ObjectAsVec;

use super::path::Path;
use super::rules::{NotedField, ObjectRules, PresentFields, Rule, ScalarValue, SeenValue, whole};
use crate::model::{ApiError, Json};

/// Validates an object; the error names the first field that breaks a rule.
pub(super) fn validate_tree(
    tree: &ObjectAsVec<'_>,
    rules: &'static ObjectRules,
    path: &Path<'_>,
) -> Result<Vec<NotedField>, ApiError> {
    let mut noted = Vec::new();
    validate_object(tree, rules, path, &mut noted)?;
    Ok(noted)
}

fn validate_object(
    tree: &ObjectAsVec<'_>,
    rules: &'static ObjectRules,
    path: &Path<'_>,
    noted: &mut Vec<NotedField>,
) -> Result<SeenValue, ApiError> {
    let mut present = PresentFields::new(rules);
    for (name, tree) in tree.iter() {
        let Some(known) = rules.find(name) else {
            continue;
        };
        let (rule, inner) = (known.rule(rules), known.path(rules, path));
        if let Some(value) = validate_value(tree, rule, &inner, noted)? {
            if let Rule::Noted(_) = rule {
                noted.extend(known.noted(rules, path, || None));
            }
            present.add(known, value);
        }
    }
    match present.api_error(path) {
        Some(api_error) => Err(api_error),
        None => Ok(present.value()),
    }
}

/// Validates one value; `None`: it counts as absent.
fn validate_value(
    tree: &Json<'_>,
    rule: &Rule,
    path: &Path<'_>,
    noted: &mut Vec<NotedField>,
) -> Result<Option<SeenValue>, ApiError> {
    let value = match (rule, tree) {
        (Rule::Noted(rule), _) => return validate_value(tree, rule, path, noted),
        (Rule::Object(rules), Json::Object(inner)) => validate_object(inner, rules, path, noted)?,
        (Rule::List(rule), Json::Array(items)) => {
            validate_list(items, rule, usize::MAX, path, noted)?
        }
        (Rule::Few(rule, most), Json::Array(items)) => {
            validate_list(items, rule, *most, path, noted)?
        }
        _ => return rule.validate_scalar(tree, path),
    };
    Ok(Some(value))
}

fn validate_list(
    items: &[Json<'_>],
    rule: &Rule,
    most: usize,
    path: &Path<'_>,
    noted: &mut Vec<NotedField>,
) -> Result<SeenValue, ApiError> {
    let mut value = None;
    for (number, item) in items.iter().enumerate() {
        let element = validate_value(item, rule, &Path::Index(path, number), noted)?;
        value = SeenValue::with_element(value, element);
        if number == most {
            return Err(Rule::too_many(most, path));
        }
    }
    Ok(value.unwrap_or(SeenValue::OTHER))
}

impl ScalarValue for Json<'_> {
    fn is_null(&self) -> bool {
        self.is_null()
    }

    fn is_text(&self) -> bool {
        self.is_string()
    }

    fn is_array(&self) -> bool {
        matches!(self, Json::Array(_))
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
