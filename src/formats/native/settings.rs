//! `generationConfig`: how the reply is to be made.

use super::spelling::{self, Spellings};
use super::tools::read_schema;
use super::validate;
use crate::json::{Fields, Node, Path};
use crate::model::{
    Depth, Effort, Fault, Losses, Output, Request, Sampling, Shape, Text, Thinking,
};

pub(super) fn read<'a>(
    node: Node<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), Fault> {
    node.fields(|mut fields| {
        request.sampling = read_sampling(&mut fields)?;
        request.output = read_output(&mut fields, losses)?;
        let thinking: Spellings = &["thinkingConfig", "thinking_config"];
        if let Some(node) = spelling::node(&mut fields, thinking) {
            request.thinking = node.fields(|fields| read_thinking(fields, losses))?;
        }
        let image: Spellings = &["imageConfig", "image_config"];
        validate::drop_checked(&mut fields, image, validate::image_config, losses)?;
        let resolution: Spellings = &["mediaResolution", "media_resolution"];
        validate::drop_checked(&mut fields, resolution, validate::media_resolution, losses)?;
        fields.finish(losses);
        Ok(())
    })
}

fn read_sampling<'a>(fields: &mut Fields<'a, '_>) -> Result<Sampling<'a>, Fault> {
    let mut number = |spellings, least: f64, most: f64| {
        spelling::node(fields, spellings)
            .map(|node| validate::number(node, least..=most))
            .transpose()
    };
    let temperature = number(&["temperature"], 0.0, 2.0)?;
    let top_p = number(&["topP", "top_p"], 0.0, 1.0)?;
    let presence_penalty = number(&["presencePenalty", "presence_penalty"], -2.0, 2.0)?;
    let frequency_penalty = number(&["frequencyPenalty", "frequency_penalty"], -2.0, 2.0)?;
    let top_k = spelling::node(fields, &["topK", "top_k"]).map(Node::u64);
    let max_tokens =
        spelling::node(fields, &["maxOutputTokens", "max_output_tokens"]).map(validate::count);
    let (logprobs, top_logprobs) = read_logprobs(fields)?;
    Ok(Sampling {
        max_tokens: max_tokens.transpose()?,
        temperature,
        top_p,
        top_k: top_k.transpose()?,
        seed: fields.i64("seed")?,
        stop: read_stop(fields)?,
        presence_penalty,
        frequency_penalty,
        choices: read_candidate_count(fields)?,
        logprobs,
        top_logprobs,
    })
}

fn read_candidate_count(fields: &mut Fields<'_, '_>) -> Result<Option<u32>, Fault> {
    let node = spelling::node(fields, &["candidateCount", "candidate_count"]);
    node.map(|node| validate::whole(node, 1..=i64::from(u32::MAX)).map(|count| count as u32))
        .transpose()
}

fn read_stop<'a>(fields: &mut Fields<'a, '_>) -> Result<Vec<Text<'a>>, Fault> {
    const MOST: usize = 5;
    let Some(node) = spelling::node(fields, &["stopSequences", "stop_sequences"]) else {
        return Ok(Vec::new());
    };
    let path = node.path;
    let stop = spelling::texts(node)?;
    if stop.len() > MOST {
        return Err(path.wrong(&format!("at most {MOST} strings")));
    }
    Ok(stop)
}

fn read_logprobs(fields: &mut Fields<'_, '_>) -> Result<(bool, Option<u32>), Fault> {
    let wanted = spelling::node(fields, &["responseLogprobs", "response_logprobs"])
        .map(Node::bool)
        .transpose()?
        .unwrap_or(false);
    let Some(node) = fields.node("logprobs") else {
        return Ok((wanted, None));
    };
    if !wanted {
        return Err(node.path.wrong("responseLogprobs to be true beside it"));
    }
    let top = validate::whole(node, 0..=20)?;
    Ok((wanted, Some(top as u32)))
}

fn read_output<'a>(fields: &mut Fields<'a, '_>, losses: &mut Losses) -> Result<Output<'a>, Fault> {
    let shape = read_shape(fields, losses)?;
    let (images, sound) = read_modalities(fields)?;
    Ok(Output {
        shape,
        images,
        sound,
        verbosity: None,
    })
}

fn read_shape<'a>(fields: &mut Fields<'a, '_>, losses: &mut Losses) -> Result<Shape<'a>, Fault> {
    const PLAIN: &str = "text/plain";
    const JSON: &str = "application/json";
    const ENUM: &str = "text/x.enum";
    let kind = spelling::node(fields, &["responseMimeType", "response_mime_type"])
        .map(|node| validate::word(node, &[PLAIN, JSON, ENUM]))
        .transpose()?
        .flatten()
        .unwrap_or(PLAIN);
    let plain: Spellings = &["responseSchema", "response_schema"];
    let exact: Spellings = &["responseJsonSchema", "response_json_schema"];
    let plain = read_schema(spelling::node(fields, plain), losses)?;
    let exact = read_schema(spelling::node(fields, exact), losses)?;
    let wrong = |key, why| Err(Path::Key(&fields.path, key).wrong(why));
    match (kind, plain, exact) {
        (_, Some(_), Some(_)) => wrong("responseJsonSchema", "no responseSchema beside it"),
        (PLAIN, None, None) => Ok(Shape::Text),
        (PLAIN, Some(_), _) => wrong("responseSchema", "responseMimeType application/json"),
        (PLAIN, ..) => wrong("responseJsonSchema", "responseMimeType application/json"),
        (JSON, None, None) => Ok(Shape::Json),
        (ENUM, None, None) => wrong("responseSchema", "a schema with the words to choose from"),
        (kind, plain, exact) => match plain.or(exact) {
            Some(schema) if kind == ENUM => Ok(Shape::Enum(schema)),
            Some(schema) => Ok(Shape::Schema {
                name: None,
                description: None,
                schema,
                strict: None,
            }),
            None => Ok(Shape::Json),
        },
    }
}

/// Whether pictures and whether sound is wanted; film nobody else can answer with.
fn read_modalities(fields: &mut Fields<'_, '_>) -> Result<(bool, bool), Fault> {
    let (mut images, mut sound) = (false, false);
    let spellings: Spellings = &["responseModalities", "response_modalities"];
    spelling::each(fields, spellings, |_, node| {
        match validate::word(node, &["TEXT", "IMAGE", "AUDIO"])? {
            Some("IMAGE") => images = true,
            Some("AUDIO") => sound = true,
            _ => {}
        }
        Ok(())
    })?;
    Ok((images, sound))
}

fn read_thinking(mut fields: Fields<'_, '_>, losses: &mut Losses) -> Result<Thinking, Fault> {
    let show = spelling::node(&mut fields, &["includeThoughts", "include_thoughts"]);
    let show = show.map(Node::bool).transpose()?;
    let budget = spelling::node(&mut fields, &["thinkingBudget", "thinking_budget"])
        .map(|node| validate::whole(node, -1..=i64::MAX))
        .transpose()?;
    let level = match spelling::node(&mut fields, &["thinkingLevel", "thinking_level"]) {
        Some(node) if budget.is_some() => {
            return Err(node.path.wrong("no thinkingBudget beside it"));
        }
        Some(node) => validate::word(node, &["MINIMAL", "LOW", "MEDIUM", "HIGH"])?,
        None => None,
    };
    fields.finish(losses);
    let depth = match (budget, level) {
        (Some(-1), _) => Some(Depth::Dynamic),
        (Some(0), _) => Some(Depth::Off),
        (Some(tokens), _) => Some(Depth::Budget(tokens.unsigned_abs())),
        (None, Some("MINIMAL")) => Some(Depth::Effort(Effort::Minimal)),
        (None, Some("LOW")) => Some(Depth::Effort(Effort::Low)),
        (None, Some("MEDIUM")) => Some(Depth::Effort(Effort::Medium)),
        (None, Some(_)) => Some(Depth::Effort(Effort::High)),
        (None, None) => None,
    };
    Ok(Thinking { depth, show })
}
