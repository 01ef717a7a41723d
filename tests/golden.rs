//! Golden cases of translation: requests, responses, errors and streams, with the losses that must be reported.
//!
//! Those of `tests/golden` are compared by the rules of `compare`, those of `tests/cases` field by field.

#[path = "golden/compare.rs"]
mod compare;
#[path = "golden/layout.rs"]
mod layout;
#[path = "golden/own.rs"]
mod own;
#[path = "golden/translation.rs"]
mod translation;

use std::error::Error;
use std::fmt;
use std::path::Path;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};

type Failed = Box<dyn Error>;

/// The words of an error as they are written, where the harness prints debug forms.
struct Words(String);

impl fmt::Debug for Words {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Display for Words {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Error for Words {}

fn in_words(failed: Failed) -> Failed {
    Words(failed.to_string()).into()
}

fn given_case(path: &Path) -> Result<(), Failed> {
    check_given(path).map_err(in_words)
}

fn own_case(path: &Path) -> Result<(), Failed> {
    own::check(path).map_err(in_words)
}

/// A file holds one case, or a list of rows: one input, and what it becomes in several formats.
fn check_given(path: &Path) -> Result<(), Failed> {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let Value::Array(rows) = file else {
        return check(&file);
    };
    for row in rows {
        for (to, expected) in row["expect"].as_object().into_iter().flatten() {
            let mut case = row.clone();
            case["to"] = json!(to);
            case["expect"] = expected.clone();
            case["report"] = row["report"][to].clone();
            check(&case).map_err(|failed| format!("{} to {to}: {failed}", row["id"]))?;
        }
    }
    Ok(())
}

fn check(case: &Value) -> Result<(), Failed> {
    let input = to_raw_value(&case["input"])?;
    let first = translation::translate_case(case, &input)?;
    if first != translation::translate_case(case, &input)? {
        return Err("two runs differ".into());
    }
    compare::same(case, &serde_json::from_str(&first.output)?)?;
    reported(case, &first.report)
}

/// Actions and their number count, words do not; of rows each action must name the very path.
fn reported(case: &Value, report: &[String]) -> Result<(), Failed> {
    let listed = || case["report"].as_array().into_iter().flatten();
    for line in listed().filter_map(Value::as_str) {
        if !report.iter().any(|told| told == line) {
            return Err(format!("not told: {line}; told: {report:?}").into());
        }
    }
    for word in ["dropped", "approximated", "added"] {
        let expected = listed().filter(|entry| {
            entry["action"] == word || entry.as_str().is_some_and(|line| line.starts_with(word))
        });
        let told = report.iter().filter(|line| line.starts_with(word));
        let (expected, told) = (expected.count(), told.count());
        if case["kind"] != "stream" && expected != told {
            let wanted = &case["report"];
            return Err(
                format!("{expected} {word} wanted: {wanted}\n{told} told: {report:?}").into(),
            );
        }
    }
    Ok(())
}

datatest_stable::harness! {
    { test = given_case, root = "tests/golden", pattern = r"\.json$" },
    { test = own_case, root = "tests/cases", pattern = r"\.json$" },
}
