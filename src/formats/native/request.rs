//! Requests, read into the model. They are read only on the way to another format: what no other
//! format can say is refused or reported here.

use super::spelling::{self, Spellings};
use super::{pairing, settings, tools, turns, validate};
use crate::json::{Fields, Node};
use crate::model::{Fault, Losses, Place, Request, Text};

pub(super) fn decode<'a>(body: &'a [u8], losses: &mut Losses) -> Result<Request<'a>, Fault> {
    read(Fields::of_body(body)?, losses)
}

pub(super) fn read<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Request<'a>, Fault> {
    let mut request = Request::default();
    // Some clients repeat what stands in the path.
    fields.take("model");
    let system: Spellings = &["systemInstruction", "system_instruction"];
    if let Some(node) = spelling::node(&mut fields, system) {
        let turn = node.fields(|fields| turns::read_system(fields, losses))?;
        request.turns.extend(turn);
    }
    if let Some(node) = fields.node("contents") {
        node.each(|at, node| {
            let turn = node.fields(|fields| turns::read_content(at, fields, losses))?;
            request.turns.push(turn);
            Ok(())
        })?;
        pairing::pair(&mut request.turns);
    }
    if let Some(node) = fields.node("tools") {
        tools::read_tools(node, &mut request, losses)?;
    }
    if let Some(node) = spelling::node(&mut fields, &["toolConfig", "tool_config"]) {
        tools::read_config(node, &mut request, losses)?;
    }
    let safety: Spellings = &["safetySettings", "safety_settings"];
    validate::drop_checked(&mut fields, safety, validate::safety_settings, losses)?;
    if let Some(node) = spelling::node(&mut fields, &["generationConfig", "generation_config"]) {
        settings::read(node, &mut request, losses)?;
    }
    for stateful in STATEFUL {
        if let Some(node) = spelling::node(&mut fields, stateful) {
            return Err(validate::no_counterpart(&node.path));
        }
    }
    if let Some(node) = spelling::node(&mut fields, &["serviceTier", "service_tier"]) {
        request.labels.service_tier = read_tier(node, losses)?;
    }
    fields.finish(losses);
    Ok(request)
}

const STATEFUL: [Spellings; 2] = [
    &["cachedContent", "cached_content"],
    &["continuationToken", "continuation_token"],
];

/// The word that the other formats share for a tier.
fn read_tier<'a>(node: Node<'a, '_>, losses: &mut Losses) -> Result<Option<Text<'a>>, Fault> {
    let path = node.path;
    let tier = match &*node.text()?.to_ascii_lowercase() {
        "" | "unspecified" => None,
        "standard" => Some("default"),
        "flex" => Some("flex"),
        "priority" => Some("priority"),
        _ => {
            losses.dropped(Place::Path(path.to_string().into()));
            None
        }
    };
    Ok(tier.map(Text::from))
}
