//! Requests, read into the model. They are read only on the way to another format: what no other
//! format can say is refused or reported here. What the rules refuse has been refused before.

use super::field_names::{self, Spellings};
use super::{call_ids, parts, rules, settings, tools};
use crate::formats::RequestHead;
use crate::json::{Fields, Node, Path};
use crate::model::{ApiError, FieldLocation, Losses, Request, Text};

pub(super) fn decode<'a>(
    head: &RequestHead<'_>,
    body: &'a [u8],
    losses: &mut Losses,
) -> Result<Request<'a>, ApiError> {
    read(rules::read(body, head.text_only)?, losses)
}

pub(super) fn read<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Request<'a>, ApiError> {
    let mut request = Request::default();
    // Some clients repeat what stands in the path.
    fields.take("model");
    if let Some(node) = field_names::node(&mut fields, field_names::SYSTEM) {
        let turn = node.fields(|fields| parts::read_system(fields, losses))?;
        request.turns.extend(turn);
    }
    if let Some(node) = fields.node("contents") {
        node.each(|at, node| {
            let turn = node.fields(|fields| parts::read_content(at, fields, losses))?;
            request.turns.push(turn);
            Ok(())
        })?;
        call_ids::pair(&mut request.turns);
    }
    if let Some(node) = fields.node("tools") {
        tools::read_tools(node, &mut request, losses)?;
    }
    if let Some(node) = field_names::node(&mut fields, field_names::TOOL_CONFIG) {
        tools::read_config(node, &mut request, losses)?;
    }
    field_names::report(&mut fields, field_names::SAFETY, losses);
    if let Some(node) = field_names::node(&mut fields, field_names::GENERATION) {
        settings::read(node, &mut request, losses)?;
    }
    for stateful in STATEFUL {
        if let Some(node) = field_names::node(&mut fields, stateful) {
            return Err(no_counterpart(&node.path));
        }
    }
    if let Some(node) = field_names::node(&mut fields, &["serviceTier", "service_tier"]) {
        request.labels.service_tier = read_tier(node, losses)?;
    }
    fields.finish(losses);
    Ok(request)
}

const STATEFUL: [Spellings; 2] = [
    field_names::CACHED,
    &["continuationToken", "continuation_token"],
];

/// For what only an upstream of this very format could do.
pub(super) fn no_counterpart(path: &Path<'_>) -> ApiError {
    ApiError::invalid(format!("{path} is not available for this model")).at(path.to_string())
}

/// The word that the other formats share for a tier.
fn read_tier<'a>(node: Node<'a, '_>, losses: &mut Losses) -> Result<Option<Text<'a>>, ApiError> {
    let path = node.path;
    let tier = match &*node.text()?.to_ascii_lowercase() {
        "" | "unspecified" => None,
        "standard" => Some("default"),
        "flex" => Some("flex"),
        "priority" => Some("priority"),
        _ => {
            losses.dropped(FieldLocation::Path(path.to_string().into()));
            None
        }
    };
    Ok(tier.map(Text::from))
}
