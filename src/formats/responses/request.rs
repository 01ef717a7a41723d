//! Requests, read into the model.

use std::ops::RangeInclusive;

use super::{tools, turns};
use crate::formats::chat;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, Depth, Effort, FieldLocation, Losses, OutputFormat, Part, PartKind, Request, Role,
    Turn, truncated,
};

/// `keeps`: the reply will be kept if the client wants that.
pub(super) fn decode<'a>(
    body: &'a [u8],
    keeps: bool,
    losses: &mut Losses,
) -> Result<Request<'a>, ApiError> {
    let mut fields = Fields::of_body(body)?;
    let mut request = Request::default();
    refuse_state(&mut fields, keeps)?;
    // Routing has read the name already; here only its type matters.
    fields.text("model")?;
    read_turns(&mut fields, &mut request, losses)?;
    read_sampling(&mut fields, &mut request, losses)?;
    tools::read(&mut fields, &mut request, losses)?;
    read_thinking(&mut fields, &mut request, losses)?;
    read_output(&mut fields, &mut request, losses)?;
    read_labels(&mut fields, &mut request)?;
    read_transport(&mut fields, keeps, losses)?;
    fields.finish(losses);
    Ok(request)
}

/// What only the vendor's own store could answer.
const STATE: [&str; 3] = ["previous_response_id", "conversation", "prompt"];

fn refuse_state(fields: &mut Fields<'_, '_>, keeps: bool) -> Result<(), ApiError> {
    // One that is kept has given way to what it stands for.
    if keeps && let Some(id) = fields.text("previous_response_id")? {
        return Err(unknown_previous(&id));
    }
    for key in STATE {
        if fields.take(key).is_some() {
            let message =
                format!("{key}: nothing is stored between requests; send the whole conversation");
            return Err(ApiError::invalid(message).at(key));
        }
    }
    match fields.bool("background")? {
        Some(true) => {
            Err(ApiError::invalid("background: replies cannot be fetched later").at("background"))
        }
        _ => Ok(()),
    }
}

pub(super) fn unknown_previous(id: &str) -> ApiError {
    let id = truncated(id);
    let message = format!(
        "previous_response_id: no response `{id}` is kept here (any more); send the whole conversation"
    );
    let mut api_error = ApiError::invalid(message).at("previous_response_id");
    api_error.code = Some("previous_response_not_found".to_owned());
    api_error
}

fn read_turns<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    if let Some(text) = fields.text("instructions")?.filter(|text| !text.is_empty()) {
        request.turns.push(Turn {
            role: Role::System,
            parts: vec![Part {
                kind: PartKind::Text(text),
                at: None,
            }],
            at: None,
        });
    }
    match fields.node("input") {
        Some(input) => turns::read(input, &mut request.turns, losses),
        None => fields.need("input", None),
    }
}

fn read_sampling(
    fields: &mut Fields<'_, '_>,
    request: &mut Request<'_>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let sampling = &mut request.sampling;
    sampling.max_tokens = fields.u64("max_output_tokens")?;
    if sampling.max_tokens.is_some_and(|tokens| tokens < 16) {
        return Err(Path::Key(&fields.path, "max_output_tokens").wrong("an integer of at least 16"));
    }
    sampling.temperature = number_within(fields, "temperature", 0.0..=2.0)?;
    sampling.top_p = number_within(fields, "top_p", 0.0..=1.0)?;
    let top = fields.u64("top_logprobs")?;
    sampling.top_logprobs = match top.map(u32::try_from) {
        None => None,
        Some(Ok(top @ 0..=20)) => Some(top),
        Some(_) => return Err(Path::Key(&fields.path, "top_logprobs").wrong("at most 20")),
    };
    let included = read_include(fields, losses)?;
    sampling.logprobs = included || sampling.top_logprobs.is_some_and(|top| top > 0);
    Ok(())
}

fn number_within(
    fields: &mut Fields<'_, '_>,
    key: &str,
    range: RangeInclusive<f64>,
) -> Result<Option<f64>, ApiError> {
    let number = fields.f64(key)?;
    match number {
        Some(number) if !range.contains(&number) => {
            let expected = format!("a number from {} to {}", range.start(), range.end());
            Err(Path::Key(&fields.path, key).wrong(&expected))
        }
        _ => Ok(number),
    }
}

/// Whether log probabilities are among the extras asked for.
fn read_include(fields: &mut Fields<'_, '_>, losses: &mut Losses) -> Result<bool, ApiError> {
    let mut logprobs = false;
    fields.each("include", |_, node| {
        let path = node.path;
        match node.text()?.as_ref() {
            "message.output_text.logprobs" => logprobs = true,
            // Seals are always carried.
            "reasoning.encrypted_content" => {}
            _ => losses.dropped(FieldLocation::Path(path.to_string().into())),
        }
        Ok(())
    })?;
    Ok(logprobs)
}

fn read_thinking(
    fields: &mut Fields<'_, '_>,
    request: &mut Request<'_>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let Some(node) = fields.node("reasoning") else {
        return Ok(());
    };
    node.fields(|mut fields| {
        request.thinking.depth = fields.node("effort").map(read_effort).transpose()?;
        // The older name of the same setting.
        let older = fields.text("generate_summary")?;
        let summary = fields.text("summary")?.or(older);
        request.thinking.show = summary.map(|_| true);
        fields.finish(losses);
        Ok(())
    })
}

fn read_effort(node: Node<'_, '_>) -> Result<Depth, ApiError> {
    let path = node.path;
    Ok(match node.text()?.as_ref() {
        "none" => Depth::Off,
        "minimal" => Depth::Effort(Effort::Minimal),
        "low" => Depth::Effort(Effort::Low),
        "medium" => Depth::Effort(Effort::Medium),
        "high" => Depth::Effort(Effort::High),
        "xhigh" => Depth::Effort(Effort::ExtraHigh),
        "max" => Depth::Effort(Effort::Max),
        _ => return Err(path.wrong("one of none, minimal, low, medium, high, xhigh, max")),
    })
}

fn read_output<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let Some(node) = fields.node("text") else {
        return Ok(());
    };
    node.fields(|mut fields| {
        if let Some(format) = fields.node("format") {
            request.output.format = read_shape(format, losses)?;
        }
        request.output.verbosity = fields.text("verbosity")?;
        if !matches!(
            request.output.verbosity.as_deref(),
            None | Some("low" | "medium" | "high")
        ) {
            return Err(Path::Key(&fields.path, "verbosity").wrong("one of low, medium, high"));
        }
        fields.finish(losses);
        Ok(())
    })
}

fn read_shape<'a>(node: Node<'a, '_>, losses: &mut Losses) -> Result<OutputFormat<'a>, ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        let shape = match fields.need("type", kind)?.as_ref() {
            "text" => OutputFormat::Text,
            "json_object" => OutputFormat::Json,
            "json_schema" => {
                let name = fields.text("name")?;
                let schema = fields.take("schema");
                let schema = fields.need("schema", schema)?;
                if !schema.is_object() {
                    return Err(Path::Key(&fields.path, "schema").wrong("an object"));
                }
                OutputFormat::Schema {
                    name: Some(fields.need("name", name)?),
                    description: fields.text("description")?,
                    schema,
                    strict: fields.bool("strict")?,
                }
            }
            _ => {
                let path = Path::Key(&fields.path, "type");
                return Err(path.wrong("one of text, json_object, json_schema"));
            }
        };
        fields.finish(losses);
        Ok(shape)
    })
}

fn read_labels<'a>(fields: &mut Fields<'a, '_>, request: &mut Request<'a>) -> Result<(), ApiError> {
    let labels = &mut request.labels;
    let metadata = fields.node("metadata").map(chat::read_metadata);
    labels.metadata = metadata.transpose()?;
    labels.user = fields.text("user")?;
    // The newer name of the same thing; next to `user` it is left over and reported.
    if labels.user.is_none() {
        labels.user = fields.text("safety_identifier")?;
        request.aliases.user = labels.user.as_ref().map(|_| "safety_identifier");
    }
    labels.cache_key = fields.text("prompt_cache_key")?;
    labels.service_tier = fields.text("service_tier")?;
    Ok(())
}

/// Switches that say nothing to the model: only those that cannot be honoured are worth a word.
fn read_transport(
    fields: &mut Fields<'_, '_>,
    keeps: bool,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    fields.bool("stream")?;
    if let Some(node) = fields.node("stream_options") {
        node.fields(|mut fields| {
            if fields.bool("include_obfuscation")? == Some(true) {
                losses.dropped(FieldLocation::Path(
                    "stream_options.include_obfuscation".into(),
                ));
            }
            fields.finish(losses);
            Ok(())
        })?;
    }
    if fields.bool("store")? == Some(true) && !keeps {
        losses.dropped(FieldLocation::Path("store".into()));
    }
    let truncation = fields.text("truncation")?;
    if truncation.is_some_and(|truncation| truncation != "disabled") {
        losses.dropped(FieldLocation::Path("truncation".into()));
    }
    Ok(())
}

#[cfg(test)]
#[path = "tests/request.rs"]
mod tests;
