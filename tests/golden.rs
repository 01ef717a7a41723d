//! Golden cases of translation: requests, responses, errors and streams, with the losses that must be reported.

#[path = "golden/compare.rs"]
mod compare;

use std::path::Path;

use omniglot::formats::{Capabilities, Framing, RequestHead, ResponseOptions, UpstreamTarget};
use omniglot::model::{Action, Format, Losses, TranslationState};
use omniglot::sse::SseFrames;
use omniglot::translate;
use serde_json::{Value, json};

type Failed = Box<dyn std::error::Error>;

/// A file holds one case, or a list of rows: one input, and what it becomes in several formats.
fn case(path: &Path) -> Result<(), Failed> {
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
    let (first, losses) = translated(case)?;
    let (second, _) = translated(case)?;
    if first != second {
        return Err("two runs differ".into());
    }
    compare::same(case, &first)?;
    reported(case, &losses)
}

/// What the case's input becomes, and what was lost on the way.
fn translated(case: &Value) -> Result<(Value, Losses), Failed> {
    let format = |key: &str| {
        let name = case[key].as_str().unwrap_or_default();
        Format::from_name(name).ok_or_else(|| format!("{key}: {name} is no format"))
    };
    let (from, to) = (format("from")?, format("to")?);
    let mut losses = Losses::default();
    let output = match case["kind"].as_str() {
        Some("request") => request(case, from, to, &mut losses)?,
        Some("response") if case["input"].get("status").is_some_and(Value::is_number) => {
            let status = u16::try_from(case["input"]["status"].as_u64().unwrap_or(0))?;
            let body = case["input"]["body"].to_string();
            let (status, body) = translate::error(from, to, status, body.as_bytes(), "req_1");
            json!({"status": status, "body": serde_json::from_slice::<Value>(&body)?})
        }
        Some("response") => {
            let body = case["input"].to_string();
            let body = translate::response(
                from,
                to,
                body.as_bytes(),
                &response_options(case),
                &mut losses,
            )
            .map_err(|api_error| format!("{api_error:?}"))?;
            serde_json::from_slice(&body)?
        }
        Some("stream") => stream(case, from, to)?,
        other => return Err(format!("unknown kind {other:?}").into()),
    };
    Ok((output, losses))
}

fn request(case: &Value, from: Format, to: Format, losses: &mut Losses) -> Result<Value, Failed> {
    let mut capabilities = Capabilities::default();
    for (name, value) in case["profile"].as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        match name.as_str() {
            "include_usage" | "client_wants_thoughts" => {}
            _ => capabilities.set(name, &value)?,
        }
    }
    let model = case["model"].as_str().unwrap_or_default();
    let stream = case["stream"].as_bool().unwrap_or_default();
    let head = RequestHead {
        path_model: (from == Format::Native).then_some(model),
        stream,
        text_only: false,
        ..RequestHead::default()
    };
    let target = UpstreamTarget {
        model,
        stream,
        max_output_tokens: None,
        capabilities: &capabilities,
        brand: "google",
        images_only: false,
    };
    let body = case["input"].to_string();
    let outcome = translate::request(from, to, &head, body.as_bytes(), &target, losses);
    match outcome {
        Ok(outgoing) => Ok(serde_json::from_slice(&outgoing.body)?),
        Err(api_error) => {
            let (status, body) = from.codec().encode_error(&api_error, "req_1");
            Ok(json!({"status": status, "body": serde_json::from_slice::<Value>(&body)?}))
        }
    }
}

fn stream(case: &Value, from: Format, to: Format) -> Result<Value, Failed> {
    let mut connection = String::new();
    for event in case["input"].as_array().into_iter().flatten() {
        let data = event
            .as_str()
            .map_or_else(|| event.to_string(), str::to_owned);
        let name = event["type"]
            .as_str()
            .map(|name| format!("event: {name}\n"));
        connection += &format!("{}data: {data}\n\n", name.unwrap_or_default());
    }
    let bytes = translate::stream(from, to, connection.as_bytes(), &response_options(case));
    let mut events = Vec::new();
    SseFrames::default().push(&bytes, |frame| {
        let Some(data) = frame.data else { return };
        let event = serde_json::from_str(&data).unwrap_or_else(|_| json!(data));
        if matches!(to, Format::Messages | Format::Responses) {
            assert_eq!(event["type"], json!(frame.name), "events carry their name");
        }
        events.push(event);
    });
    Ok(Value::Array(events))
}

fn response_options(case: &Value) -> ResponseOptions {
    ResponseOptions {
        model: String::new(),
        stream: case["kind"] == "stream",
        framing: Framing::Sse,
        include_usage: case["profile"]["include_usage"] == true,
        request_id: "req_1".to_owned(),
        created_at: 1_760_000_000,
        translation_state: TranslationState {
            think_tags: case["profile"]["chat_think_tags"] == true,
            hides_reasoning: case["profile"]["client_wants_thoughts"] == false,
            ..TranslationState::default()
        },
    }
}

const ACTIONS: [(&str, Action); 3] = [
    ("dropped", Action::Dropped),
    ("approximated", Action::Approximated),
    ("added", Action::Added),
];

/// Actions and their number count, words do not; of rows each action must name the very path.
fn reported(case: &Value, losses: &Losses) -> Result<(), Failed> {
    let from = Format::from_name(case["from"].as_str().unwrap_or_default());
    let codec = from.ok_or("no such format")?.codec();
    let listed = || case["report"].as_array().into_iter().flatten();
    for line in listed().filter_map(Value::as_str) {
        let message = losses.0.iter().any(|lost| {
            let path = codec.path_of(&lost.location);
            let is = |(word, action): &(&str, Action)| {
                *action == lost.action && line == format!("{word} {path}")
            };
            ACTIONS.iter().any(is)
        });
        if !message {
            return Err(format!("not told: {line}; told: {losses:?}").into());
        }
    }
    for (word, action) in ACTIONS {
        let expected = listed()
            .filter(|entry| {
                let line = entry.as_str().unwrap_or_default();
                entry["action"] == word || line.starts_with(word)
            })
            .count();
        let message = losses.0.iter().filter(|lost| lost.action == action).count();
        if case["kind"] != "stream" && expected != message {
            return Err(format!(
                "{expected} {word} wanted: {}\n{message} told: {losses:?}",
                case["report"]
            )
            .into());
        }
    }
    Ok(())
}

datatest_stable::harness! {
    { test = case, root = "tests/golden", pattern = r"\.json$" },
}
