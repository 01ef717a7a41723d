//! The cases of our own in `tests/cases/<from>-<to>/`: one fact in each file, shown by one or more inputs.
//!
//! An output must equal the expected one in every field, and the report in every line. A case that expects nothing yet
//! fails, and prints its file with what was seen: read that against the vendors' documentation before you keep it.

use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use similar_asserts::SimpleDiff;

use crate::Failed;
use crate::layout::{layout, quoted};
use crate::translation::{Translation, translate_case};

/// A file of cases; what stands beside the list holds for every case in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    /// The fact that the cases hold, in one sentence.
    why: String,
    /// `request`, `response`, `stream`, `count_tokens` or `embeddings`.
    kind: String,
    /// Of a request: the upstream's model. Of a response: the client's.
    model: Option<String>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    profile: Map<String, Value>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    why: Option<String>,
    /// Capabilities of the model and wishes of the client, beside those of the file.
    #[serde(default)]
    profile: Map<String, Value>,
    /// JSON; a string is sent as it is.
    input: Box<RawValue>,
    /// The body; with its `status` if it is an error.
    #[serde(default, deserialize_with = "present")]
    expect: Option<Box<RawValue>>,
    /// What is reported as dropped, approximated or added, each with its path; absent: nothing.
    #[serde(default)]
    report: Vec<String>,
}

/// `null` is an expectation too.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// Checks the cases of a file.
pub fn check(path: &Path) -> Result<(), Failed> {
    let file: CaseFile = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let pair = path
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    let pair = pair
        .and_then(|pair| pair.split_once('-'))
        .ok_or("no <from>-<to> folder")?;
    let mut seen = Vec::new();
    for case in &file.cases {
        let settings = settings(&file, case, pair);
        let translation = translate_case(&settings, &case.input)?;
        if translation != translate_case(&settings, &case.input)? {
            return Err(format!("two runs differ: {}", layout(case.input.get(), 0)).into());
        }
        seen.push(translation);
    }
    if file.cases.iter().any(|case| case.expect.is_none()) {
        let written = write(&file, &seen);
        return Err(format!("a case without `expect`; this was seen:\n{written}").into());
    }
    for (number, (case, translation)) in file.cases.iter().zip(&seen).enumerate() {
        compare(case, translation).map_err(|failed| {
            let why = case.why.as_ref().unwrap_or(&file.why);
            let input = layout(case.input.get(), 0);
            format!("case {}: {why}\n{failed}\ninput: {input}", number + 1)
        })?;
    }
    Ok(())
}

fn settings(file: &CaseFile, case: &Case, (from, to): (&str, &str)) -> Value {
    let mut profile = file.profile.clone();
    profile.extend(case.profile.clone());
    json!({
        "kind": file.kind, "from": from, "to": to, "stream": file.stream, "profile": profile,
        "model": file.model.as_deref().unwrap_or("m"),
    })
}

fn compare(case: &Case, translation: &Translation) -> Result<(), Failed> {
    let expected = case
        .expect
        .as_ref()
        .map_or("null", |expected| expected.get());
    let expected: Value = serde_json::from_str(expected)?;
    let output: Value = serde_json::from_str(&translation.output)?;
    if expected != output {
        let [expected, output] = [expected, output].map(|value| layout(&value.to_string(), 0));
        return Err(difference(&expected, &output));
    }
    if case.report != translation.report {
        return Err(difference(
            &case.report.join("\n"),
            &translation.report.join("\n"),
        ));
    }
    Ok(())
}

fn difference(expected: &str, found: &str) -> Failed {
    SimpleDiff::from_str(expected, found, "expected", "found")
        .to_string()
        .into()
}

/// The file as it would be with all that was seen.
fn write(file: &CaseFile, seen: &[Translation]) -> String {
    let mut fields = vec![
        format!("\"why\": {}", quoted(&file.why)),
        format!("\"kind\": {}", quoted(&file.kind)),
    ];
    let model = file.model.iter();
    fields.extend(model.map(|model| format!("\"model\": {}", quoted(model))));
    fields.extend(file.stream.then(|| "\"stream\": true".to_owned()));
    fields.extend(write_profile(&file.profile, 1));
    let cases = file.cases.iter().zip(seen).map(|(case, translation)| {
        let mut fields = Vec::new();
        fields.extend(
            case.why
                .iter()
                .map(|why| format!("\"why\": {}", quoted(why))),
        );
        fields.extend(write_profile(&case.profile, 3));
        fields.push(format!("\"input\": {}", layout(case.input.get(), 3)));
        fields.push(format!("\"expect\": {}", layout(&translation.output, 3)));
        if !translation.report.is_empty() {
            let report = json!(translation.report).to_string();
            fields.push(format!("\"report\": {}", layout(&report, 3)));
        }
        format!("{{\n   {}\n  }}", fields.join(",\n   "))
    });
    let cases: Vec<_> = cases.collect();
    fields.push(format!("\"cases\": [\n  {}\n ]", cases.join(",\n  ")));
    format!("{{\n {}\n}}\n", fields.join(",\n "))
}

fn write_profile(profile: &Map<String, Value>, indent: usize) -> Option<String> {
    let text = || layout(&json!(profile).to_string(), indent);
    (!profile.is_empty()).then(|| format!("\"profile\": {}", text()))
}
