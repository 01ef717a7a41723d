//! Requests, read into the model.

use super::{tools, turns};
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, Depth, Effort, FieldLocation, Json, Labels, Losses, OutputFormat, Request, Sampling,
    Text, Thinking,
};

/// Things the upstream would have to remember, or servers it would have to call.
const STATEFUL: [&str; 3] = ["container", "mcp_servers", "thread"];

/// The wire's own lower limit of a thinking budget.
const LEAST_BUDGET: u64 = 1024;

/// A limit on the answer is not insisted on: requests that only count tokens have none.
pub(super) fn decode<'a>(body: &'a [u8], losses: &mut Losses) -> Result<Request<'a>, ApiError> {
    let mut fields = Fields::of_body(body)?;
    let model = fields.text("model")?;
    fields.need("model", model)?;
    let mut request = Request {
        turns: turns::read(&mut fields, losses)?,
        sampling: read_sampling(&mut fields)?,
        thinking: read_thinking(&mut fields, losses)?,
        ..Request::default()
    };
    if let Some(node) = fields.node("output_config") {
        read_output(node, &mut request, losses)?;
    }
    tools::read(&mut fields, &mut request, losses)?;
    fields.bool("stream")?;
    request.labels = read_labels(&mut fields, losses)?;
    refuse_state(&mut fields)?;
    fields.finish(losses);
    Ok(request)
}

fn read_sampling<'a>(fields: &mut Fields<'a, '_>) -> Result<Sampling<'a>, ApiError> {
    let mut stop = Vec::new();
    let max_tokens = fields.u64("max_tokens")?;
    fields.each("stop_sequences", |_, node| {
        stop.push(node.text()?);
        Ok(())
    })?;
    Ok(Sampling {
        max_tokens,
        stop,
        temperature: read_share(fields, "temperature")?,
        top_p: read_share(fields, "top_p")?,
        top_k: fields.u64("top_k")?,
        ..Sampling::default()
    })
}

fn read_share(fields: &mut Fields<'_, '_>, key: &str) -> Result<Option<f64>, ApiError> {
    let number = fields.f64(key)?;
    match number {
        Some(number) if !(0.0..=1.0).contains(&number) => {
            Err(Path::Key(&fields.path, key).wrong("a number from 0 to 1"))
        }
        _ => Ok(number),
    }
}

fn read_thinking(fields: &mut Fields<'_, '_>, losses: &mut Losses) -> Result<Thinking, ApiError> {
    let Some(node) = fields.node("thinking") else {
        return Ok(Thinking::default());
    };
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        let kind = fields.need("type", kind)?;
        let thinking = match kind.as_ref() {
            "adaptive" => Thinking {
                depth: Some(Depth::Dynamic),
                show: Some(read_display(&mut fields)?),
            },
            "enabled" => Thinking {
                depth: Some(Depth::Budget(read_budget(&mut fields)?)),
                show: Some(read_display(&mut fields)?),
            },
            "disabled" => Thinking {
                depth: Some(Depth::Off),
                show: None,
            },
            "between_tools" => {
                losses.approximated(FieldLocation::Path(fields.path.to_string().into()));
                Thinking::default()
            }
            _ => {
                let path = Path::Key(&fields.path, "type");
                return Err(path.wrong("adaptive, enabled, between_tools or disabled"));
            }
        };
        fields.finish(losses);
        Ok(thinking)
    })
}

fn read_budget(fields: &mut Fields<'_, '_>) -> Result<u64, ApiError> {
    let budget = fields.u64("budget_tokens")?;
    let budget = fields.need("budget_tokens", budget)?;
    if budget < LEAST_BUDGET {
        let path = Path::Key(&fields.path, "budget_tokens");
        return Err(path.wrong(&format!("an integer of at least {LEAST_BUDGET}")));
    }
    Ok(budget)
}

/// Thoughts are shown unless the client says otherwise.
fn read_display(fields: &mut Fields<'_, '_>) -> Result<bool, ApiError> {
    match fields.text("display")?.as_deref() {
        None | Some("summarized") => Ok(true),
        Some("omitted") => Ok(false),
        Some(_) => Err(Path::Key(&fields.path, "display").wrong("summarized or omitted")),
    }
}

fn read_output<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.fields(|mut fields| {
        if let Some(effort) = read_effort(&mut fields)? {
            match request.thinking.depth {
                None | Some(Depth::Dynamic) => {
                    request.thinking.depth = Some(Depth::Effort(effort));
                }
                // A budget says more, and no thinking at all leaves nothing to say.
                Some(_) => {
                    let path = Path::Key(&fields.path, "effort").to_string();
                    losses.dropped(FieldLocation::Path(path.into()));
                }
            }
        }
        if let Some(node) = fields.node("format") {
            request.output.format = read_format(node, losses)?;
        }
        fields.finish(losses);
        Ok(())
    })
}

fn read_effort(fields: &mut Fields<'_, '_>) -> Result<Option<Effort>, ApiError> {
    Ok(match fields.text("effort")?.as_deref() {
        None => None,
        Some("low") => Some(Effort::Low),
        Some("medium") => Some(Effort::Medium),
        Some("high") => Some(Effort::High),
        Some("xhigh") => Some(Effort::ExtraHigh),
        Some("max") => Some(Effort::Max),
        Some(_) => {
            let path = Path::Key(&fields.path, "effort");
            return Err(path.wrong("low, medium, high, xhigh or max"));
        }
    })
}

/// The format knows schemas only, and always holds the model to them.
fn read_format<'a>(node: Node<'a, '_>, losses: &mut Losses) -> Result<OutputFormat<'a>, ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?;
        if fields.need("type", kind)? != "json_schema" {
            return Err(Path::Key(&fields.path, "type").wrong("json_schema"));
        }
        let schema = fields.take("schema");
        let schema = fields.need("schema", schema)?;
        if !schema.is_object() {
            return Err(Path::Key(&fields.path, "schema").wrong("an object"));
        }
        fields.finish(losses);
        Ok(OutputFormat::Schema {
            name: None,
            description: None,
            schema,
            strict: Some(true),
        })
    })
}

fn read_labels<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Labels<'a>, ApiError> {
    let user = match fields.node("metadata") {
        None => None,
        Some(node) => node.fields(|mut fields| {
            let user = fields.text("user_id")?;
            fields.finish(losses);
            Ok(user)
        })?,
    };
    let service_tier = match fields.text("service_tier")?.as_deref() {
        None => None,
        Some("auto") => Some(Text::Borrowed("auto")),
        Some("standard_only") => Some(Text::Borrowed("default")),
        Some(_) => {
            let path = Path::Key(&fields.path, "service_tier");
            return Err(path.wrong("auto or standard_only"));
        }
    };
    Ok(Labels {
        user,
        service_tier,
        ..Labels::default()
    })
}

fn refuse_state(fields: &mut Fields<'_, '_>) -> Result<(), ApiError> {
    for key in STATEFUL {
        match fields.take(key) {
            None => {}
            Some(Json::Array(items)) if items.is_empty() => {}
            Some(_) => {
                let message = format!("{key}: the upstream of this model cannot keep or reach it");
                return Err(ApiError::invalid(message).at(key));
            }
        }
    }
    Ok(())
}
