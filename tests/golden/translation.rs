//! Translates the input of a case, and tells what was lost on the way.

use omniglot::formats::{
    Capabilities, EmbedMethod, Framing, RequestHead, ResponseOptions, UpstreamTarget,
};
use omniglot::model::{Action, ApiError, Format, Losses, TranslationState};
use omniglot::sse::SseFrames;
use omniglot::translate;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Failed;
use crate::layout::compact;

/// The id of every request.
const REQUEST_ID: &str = "req_1";

/// What a case's input became.
#[derive(Debug, PartialEq)]
pub struct Translation {
    /// JSON, with the fields in the order in which they are sent.
    pub output: String,
    /// A line for each loss: the action and the path in the format of the input.
    pub report: Vec<String>,
}

/// Translates an input. The settings are its kind, its formats and all else that a case may have besides.
pub fn translate_case(settings: &Value, input: &RawValue) -> Result<Translation, Failed> {
    let format = |key: &str| {
        let name = settings[key].as_str().unwrap_or_default();
        Format::from_name(name).ok_or_else(|| format!("{key}: {name} is no format"))
    };
    let (from, to) = (format("from")?, format("to")?);
    let mut losses = Losses::default();
    let output = match settings["kind"].as_str() {
        Some("request") => {
            let body = sent_text(input);
            let translated = request(settings, from, to, &body, &mut losses);
            translated.or_else(|api_error| encode_error(from, &api_error))?
        }
        Some("embeddings") => {
            let body = sent_text(input);
            let translated = embeddings(settings, from, to, &body, &mut losses);
            translated.or_else(|api_error| encode_error(from, &api_error))?
        }
        Some("count_tokens") => {
            let body = sent_text(input);
            let translated = count_tokens(settings, from, to, &body, &mut losses);
            translated.or_else(|api_error| encode_error(from, &api_error))?
        }
        Some("response") => match serde_json::from_str(input.get()) {
            Ok(error) => error_response(from, to, &error)?,
            Err(_) => {
                let (body, options) = (sent_text(input), response_options(settings));
                let body = translate::response(from, to, body.as_bytes(), &options, &mut losses);
                let body = body.map(text);
                body.or_else(|api_error| encode_error(to, &api_error))?
            }
        },
        Some("stream") => {
            let events: Vec<&RawValue> = serde_json::from_str(input.get())?;
            losses = stream_losses(from, &events);
            stream(settings, from, to, &events)?
        }
        other => return Err(format!("unknown kind {other:?}").into()),
    };
    let report = losses.0.iter().map(|loss| {
        let path = from.codec().path_of(&loss.location);
        format!("{} {path}", action_name(loss.action))
    });
    Ok(Translation {
        output,
        report: report.collect(),
    })
}

/// What is sent for a value of a case: JSON without white space, or the text itself where the value is a string.
fn sent_text(value: &RawValue) -> String {
    match serde_json::from_str(value.get()) {
        Ok(text) => text,
        Err(_) => compact(value.get()),
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

const fn action_name(action: Action) -> &'static str {
    match action {
        Action::Dropped => "dropped",
        Action::Approximated => "approximated",
        Action::Added => "added",
    }
}

fn encode_error(client: Format, api_error: &ApiError) -> Result<String, Failed> {
    let (status, body) = client.codec().encode_error(api_error, REQUEST_ID);
    Ok(format!(r#"{{"status":{status},"body":{}}}"#, text(body)))
}

/// A response that is an error by its status.
#[derive(Deserialize)]
struct ErrorResponse<'a> {
    status: u16,
    #[serde(borrow)]
    body: &'a RawValue,
}

fn error_response(from: Format, to: Format, error: &ErrorResponse<'_>) -> Result<String, Failed> {
    let body = sent_text(error.body);
    let (status, body) = translate::error(from, to, error.status, body.as_bytes(), REQUEST_ID);
    Ok(format!(r#"{{"status":{status},"body":{}}}"#, text(body)))
}

fn capabilities(settings: &Value) -> Capabilities {
    let mut capabilities = Capabilities::default();
    for (name, value) in settings["profile"].as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        match name.as_str() {
            "include_usage"
            | "client_wants_thoughts"
            | "max_output_tokens"
            | "images_only"
            | "single" => {}
            _ => capabilities.set(name, &value).expect("a capability"),
        }
    }
    capabilities
}

fn target<'a>(settings: &'a Value, capabilities: &'a Capabilities) -> UpstreamTarget<'a> {
    UpstreamTarget {
        model: settings["model"].as_str().unwrap_or_default(),
        stream: settings["stream"].as_bool().unwrap_or_default(),
        max_output_tokens: settings["profile"]["max_output_tokens"].as_u64(),
        capabilities,
        brand: "google",
        images_only: settings["profile"]["images_only"] == true,
    }
}

fn request(
    settings: &Value,
    from: Format,
    to: Format,
    body: &str,
    losses: &mut Losses,
) -> Result<String, ApiError> {
    let capabilities = capabilities(settings);
    let target = target(settings, &capabilities);
    let head = RequestHead {
        path_model: (from == Format::Native).then_some(target.model),
        stream: target.stream,
        text_only: false,
        ..RequestHead::default()
    };
    let translated = translate::request(from, to, &head, body.as_bytes(), &target, losses)?;
    Ok(text(translated.body))
}

fn embeddings(
    settings: &Value,
    from: Format,
    to: Format,
    body: &str,
    losses: &mut Losses,
) -> Result<String, ApiError> {
    let capabilities = capabilities(settings);
    let target = target(settings, &capabilities);
    let method = match settings["profile"]["single"] == true {
        true => EmbedMethod::Single,
        false => EmbedMethod::Batch,
    };
    let translated =
        translate::embedding_request(from, to, method, body.as_bytes(), &target, losses)?;
    Ok(text(translated))
}

/// `null`: the upstream cannot count.
fn count_tokens(
    settings: &Value,
    from: Format,
    to: Format,
    body: &str,
    losses: &mut Losses,
) -> Result<String, ApiError> {
    let capabilities = capabilities(settings);
    let target = target(settings, &capabilities);
    let translated = translate::count_tokens_request(from, to, body.as_bytes(), &target, losses)?;
    Ok(translated.map_or_else(|| "null".to_owned(), text))
}

fn stream(
    settings: &Value,
    from: Format,
    to: Format,
    events: &[&RawValue],
) -> Result<String, Failed> {
    let mut connection = String::new();
    for event in events {
        let event_type = |event: Value| event["type"].as_str().map(str::to_owned);
        let name = event_type(serde_json::from_str(event.get())?);
        let name = name.map(|name| format!("event: {name}\n"));
        let data = sent_text(event);
        connection += &format!("{}data: {data}\n\n", name.unwrap_or_default());
    }
    let options = response_options(settings);
    let bytes = translate::stream(from, to, connection.as_bytes(), &options);
    let mut events = Vec::new();
    SseFrames::default().push(&bytes, |frame| {
        let Some(data) = frame.data else { return };
        let event = serde_json::from_str(&data).unwrap_or_else(|_| json!(data));
        if matches!(to, Format::Messages | Format::Responses) {
            assert_eq!(event["type"], json!(frame.name), "events carry their name");
        }
        events.push(match event {
            Value::String(text) => json!(text).to_string(),
            _ => data.into_owned(),
        });
    });
    Ok(format!("[{}]", events.join(",")))
}

/// What the decoder of a stream reports, also if the stream breaks off.
fn stream_losses(from: Format, events: &[&RawValue]) -> Losses {
    let mut decoder = from.codec().stream_decoder();
    let decoded = events
        .iter()
        .try_for_each(|event| decoder.decode_event(&sent_text(event), &mut |_| {}));
    if decoded.is_ok() {
        let _ = decoder.finish(&mut |_| {});
    }
    decoder.take_losses()
}

fn response_options(settings: &Value) -> ResponseOptions {
    let profile = &settings["profile"];
    ResponseOptions {
        model: settings["model"].as_str().unwrap_or_default().to_owned(),
        stream: settings["kind"] == "stream",
        framing: Framing::Sse,
        include_usage: profile["include_usage"] == true,
        request_id: REQUEST_ID.to_owned(),
        created_at: 1_760_000_000,
        translation_state: TranslationState {
            think_tags: profile["chat_think_tags"] == true,
            hides_reasoning: profile["client_wants_thoughts"] == false,
            ..TranslationState::default()
        },
    }
}
