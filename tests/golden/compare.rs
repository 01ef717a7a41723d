//! Comparing by the rules of the cases: what must be equal, what may differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

type Failed = Box<dyn std::error::Error>;

/// Whether the output is what the case expects.
pub fn same(case: &Value, output: &Value) -> Result<(), Failed> {
    let format = case["to"].as_str().unwrap_or_default();
    let (mut expected, mut found) = (case["expect"].clone(), output.clone());
    if case["kind"] == "request" && case["expect"].get("status").is_none() {
        // The model stands in the path of native requests, in the body of the others.
        for side in [&mut expected, &mut found] {
            if let Some(body) = side.as_object_mut().filter(|_| format == "native") {
                body.remove("model");
            }
        }
    }
    for path in case["ignore"].as_array().into_iter().flatten() {
        let path = path.as_str().unwrap_or_default();
        for side in [&mut expected, &mut found] {
            forget(side, path);
        }
    }
    let expected = normal(&expected, format, "");
    let found = normal(&found, format, "");
    let mut names = BTreeMap::new();
    match difference(&expected, &found, "$", &mut names) {
        None => Ok(()),
        Some(place) => Err(format!(
            "{place}\nexpected {}\nfound    {}",
            serde_json::to_string_pretty(&expected)?,
            serde_json::to_string_pretty(&found)?
        )
        .into()),
    }
}

/// Removes what a path names; `[*]` is any index, `[-1]` the last, "except last" spares the last.
fn forget(value: &mut Value, path: &str) {
    let (path, spare_last) = match path.strip_suffix(" except last") {
        Some(path) => (path, true),
        None => (path, false),
    };
    let steps: Vec<String> = path
        .trim_start_matches('$')
        .replace('[', ".[")
        .split('.')
        .filter(|step| !step.is_empty())
        .map(str::to_owned)
        .collect();
    remove(value, &steps, spare_last);
}

fn remove(value: &mut Value, steps: &[String], spare_last: bool) {
    let [step, rest @ ..] = steps else { return };
    if let Some(index) = step.strip_prefix('[') {
        let Value::Array(items) = value else { return };
        let count = items.len();
        for (at, item) in items.iter_mut().enumerate() {
            let hit = match index.trim_end_matches(']') {
                "*" => !(spare_last && at + 1 == count),
                "-1" => at + 1 == count,
                number => number.parse() == Ok(at),
            };
            if hit {
                remove(item, rest, false);
            }
        }
        return;
    }
    let Value::Object(fields) = value else { return };
    if rest.is_empty() {
        fields.remove(step);
    } else if let Some(inner) = fields.get_mut(step) {
        remove(inner, rest, spare_last);
    }
}

/// One spelling for what may be spelled in several ways; `key` is the name the value stands under.
fn normal(value: &Value, format: &str, key: &str) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(value.clone(), Value::from),
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| normal(item, format, "")).collect();
            let texts = matches!(key, "content" | "system");
            match items.as_slice() {
                [one] if texts && is_plain_text(one) => one["text"].clone(),
                _ => Value::Array(items),
            }
        }
        Value::String(text) if matches!(key, "arguments" | "output" | "content") => {
            match serde_json::from_str::<Value>(text) {
                Ok(inner @ Value::Object(_)) => normal(&inner, format, ""),
                _ => value.clone(),
            }
        }
        Value::String(text) if format == "native" && key == "type" => {
            Value::String(text.to_ascii_lowercase())
        }
        Value::Object(fields) => normal_object(fields, format, key),
        _ => value.clone(),
    }
}

fn is_plain_text(part: &Value) -> bool {
    let Value::Object(fields) = part else {
        return false;
    };
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or("text");
    matches!(kind, "text" | "input_text" | "output_text")
        && fields.get("text").is_some_and(Value::is_string)
        && fields
            .keys()
            .all(|key| matches!(key.as_str(), "type" | "text" | "annotations"))
        && fields
            .get("annotations")
            .is_none_or(|list| *list == Value::Array(Vec::new()))
}

fn normal_object(fields: &Map<String, Value>, format: &str, key: &str) -> Value {
    let usage = key.contains("usage") || key.ends_with("_details") || key == "usageMetadata";
    let mut out = Map::new();
    for (name, value) in fields {
        let zero = value.as_f64() == Some(0.0);
        let optional = usage && zero && format != "responses";
        let first = format == "native" && zero && matches!(name.as_str(), "index" | "startIndex");
        if value.is_null() || optional || first {
            continue;
        }
        out.insert(name.clone(), normal(value, format, name));
    }
    if format == "native" && out.contains_key("parts") {
        out.entry("role").or_insert_with(|| "user".into());
    }
    if format == "responses"
        && out.get("type") == Some(&Value::from("message"))
        && !out.contains_key("id")
    {
        out.remove("type");
    }
    Value::Object(out)
}

/// The first place where the two differ; `<ID:n>` stands for any text, the same one each time.
fn difference(
    expected: &Value,
    found: &Value,
    path: &str,
    names: &mut BTreeMap<String, String>,
) -> Option<String> {
    match (expected, found) {
        (Value::String(name), Value::String(text)) if name.starts_with("<ID:") => {
            let known = names.entry(name.clone()).or_insert_with(|| text.clone());
            (known != text).then(|| format!("{path}: {name} was {known}, now {text}"))
        }
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                let inner = format!("{path}.{key}");
                let Some(other) = right.get(key) else {
                    return Some(format!("{inner} is missing"));
                };
                if let Some(place) = difference(value, other, &inner, names) {
                    return Some(place);
                }
            }
            let extra = right.keys().find(|key| !left.contains_key(*key))?;
            Some(format!("{path}.{extra} is not expected"))
        }
        (Value::Array(left), Value::Array(right)) => {
            for (at, (value, other)) in left.iter().zip(right).enumerate() {
                if let Some(place) = difference(value, other, &format!("{path}[{at}]"), names) {
                    return Some(place);
                }
            }
            (left.len() != right.len()).then(|| {
                format!(
                    "{path}: {} elements expected, {} found",
                    left.len(),
                    right.len()
                )
            })
        }
        _ => (expected != found).then(|| format!("{path} differs")),
    }
}
