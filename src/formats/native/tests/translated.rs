//! Functions that translate requests of other formats for the tests.

use serde_json::{Value, json};

use crate::formats::{Capabilities, RequestHead, UpstreamTarget};
use crate::model::{Action, ApiError, FieldLocation, Format, Losses};
use crate::translate;

pub(super) type ReportedLosses = Vec<(Action, String)>;

/// Encodes the request of a client of another format, with what it lost.
pub(super) fn encode(
    from: Format,
    body: &Value,
    capabilities: &[(&str, &str)],
) -> Result<(Value, ReportedLosses), ApiError> {
    let mut losses = Losses::default();
    let mut known = Capabilities::default();
    for (name, value) in capabilities {
        known.set(name, value).unwrap();
    }
    let target = UpstreamTarget {
        model: "m-1",
        stream: false,
        max_output_tokens: None,
        capabilities: &known,
        brand: "google",
        images_only: false,
    };
    let body = serde_json::to_vec(body).unwrap();
    let sent = translate::request(
        from,
        Format::Native,
        &RequestHead::default(),
        &body,
        &target,
        &mut losses,
    )?;
    let losses = losses
        .0
        .iter()
        .map(|loss| (loss.action, describe(&loss.location)));
    Ok((
        serde_json::from_slice(&sent.body).unwrap(),
        losses.collect(),
    ))
}

fn describe(location: &FieldLocation) -> String {
    match location {
        FieldLocation::Path(path) => path.to_string(),
        FieldLocation::Setting(setting) => format!("{setting:?}"),
        FieldLocation::Turn { turn } => format!("turn {turn:?}"),
        FieldLocation::Part { turn, part } => format!("part {turn:?} {part:?}"),
        FieldLocation::InToolResult { turn, part, inner } => {
            format!("part {turn:?} {part:?} {inner:?}")
        }
        FieldLocation::Field { of, field } => format!("{} {field:?}", describe(of)),
        FieldLocation::Tool { tool } => format!("tool {tool}"),
        FieldLocation::ToolStrict { tool } => format!("tool {tool} strict"),
    }
}

/// Encodes a request of a chat client.
pub(super) fn chat(body: Value) -> (Value, ReportedLosses) {
    encode(Format::Chat, &body, &[]).unwrap()
}

/// Encodes the messages of a chat client.
pub(super) fn contents(messages: Value) -> (Value, ReportedLosses) {
    let (sent, losses) = chat(json!({"model": "m", "messages": messages}));
    (sent["contents"].clone(), losses)
}
