//! Requests, read into the model.

use std::ops::RangeInclusive;

use super::{tools, turns};
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, Depth, Effort, FieldLocation, ImageOptions, Json, Labels, Losses, Output,
    OutputFormat, Request, Sampling, Search, SettingAliases, Text, Thinking,
};

pub(super) fn decode<'a>(body: &'a [u8], losses: &mut Losses) -> Result<Request<'a>, ApiError> {
    let mut fields = Fields::of_body(body)?;
    // Routing has read the name and knows what to do without one.
    fields.text("model")?;
    let mut spelled = SettingAliases::default();
    let request = Request {
        turns: turns::read(&mut fields, losses)?,
        sampling: read_sampling(&mut fields, &mut spelled)?,
        tools: tools::read(&mut fields, losses)?,
        tool_choice: tools::read_choice(&mut fields, losses)?,
        parallel_tools: fields.bool("parallel_tool_calls")?,
        output: read_output(&mut fields, losses)?,
        thinking: read_thinking(&mut fields)?,
        search: read_search(&mut fields, losses)?,
        labels: read_labels(&mut fields, &mut spelled)?,
        code_execution: false,
        aliases: spelled,
    };
    read_delivery(&mut fields, losses)?;
    fields.finish(losses);
    Ok(request)
}

fn read_sampling<'a>(
    fields: &mut Fields<'a, '_>,
    spelled: &mut SettingAliases,
) -> Result<Sampling<'a>, ApiError> {
    const TOKENS: RangeInclusive<u64> = 1..=u32::MAX as u64;
    let mut max_tokens = whole(fields, "max_completion_tokens", TOKENS)?;
    if max_tokens.is_none() {
        max_tokens = whole(fields, "max_tokens", TOKENS)?;
        spelled.max_tokens = max_tokens.map(|_| "max_tokens");
    }
    let sampling = Sampling {
        max_tokens,
        temperature: number(fields, "temperature", 0.0..=2.0)?,
        top_p: number(fields, "top_p", 0.0..=1.0)?,
        top_k: None,
        choices: small(whole(fields, "n", 1..=128)?),
        stop: read_stop(fields)?,
        seed: fields.i64("seed")?,
        presence_penalty: number(fields, "presence_penalty", -2.0..=2.0)?,
        frequency_penalty: number(fields, "frequency_penalty", -2.0..=2.0)?,
        logprobs: fields.bool("logprobs")?.unwrap_or(false),
        top_logprobs: small(whole(fields, "top_logprobs", 0..=20)?),
    };
    if !sampling.logprobs && sampling.top_logprobs.is_some_and(|top| top > 0) {
        return Err(Path::Key(&fields.path, "top_logprobs").wrong("`logprobs` to be true with it"));
    }
    Ok(sampling)
}

fn read_stop<'a>(fields: &mut Fields<'a, '_>) -> Result<Vec<Text<'a>>, ApiError> {
    let Some(node) = fields.node("stop") else {
        return Ok(Vec::new());
    };
    if let Json::Str(stop) = node.value {
        return Ok(vec![stop]);
    }
    let path = node.path;
    let mut stops = Vec::new();
    node.each(|_, stop| {
        stops.push(stop.text()?);
        Ok(())
    })?;
    if stops.len() > 4 {
        return Err(path.wrong("at most 4 sequences"));
    }
    Ok(stops)
}

fn read_output<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Output<'a>, ApiError> {
    let shape = match fields.node("response_format") {
        Some(node) => node.fields(|format| read_shape(format, losses))?,
        None => OutputFormat::Text,
    };
    let verbosity = match fields.node("verbosity") {
        Some(node) => Some(one_of(
            node,
            &[("low", "low"), ("medium", "medium"), ("high", "high")],
        )?),
        None => None,
    };
    let (mut images, mut sound) = (false, false);
    fields.each("modalities", |_, modality| {
        match one_of(
            modality,
            &[("text", "text"), ("image", "image"), ("audio", "audio")],
        )? {
            "image" => images = true,
            "audio" => sound = true,
            _ => {}
        }
        Ok(())
    })?;
    Ok(Output {
        format: shape,
        images,
        audio: sound,
        image_options: ImageOptions::default(),
        verbosity: verbosity.map(Text::Borrowed),
    })
}

fn read_shape<'a>(
    mut format: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<OutputFormat<'a>, ApiError> {
    #[derive(Clone, Copy)]
    enum Kind {
        Text,
        Json,
        Schema,
    }
    let kind = one_of(
        needed(&mut format, "type")?,
        &[
            ("text", Kind::Text),
            ("json_object", Kind::Json),
            ("json_schema", Kind::Schema),
        ],
    )?;
    let shape = match kind {
        Kind::Text => OutputFormat::Text,
        Kind::Json => OutputFormat::Json,
        Kind::Schema => needed(&mut format, "json_schema")?.fields(|mut inner| {
            let shape = OutputFormat::Schema {
                name: Some(needed(&mut inner, "name")?.text()?),
                description: inner.text("description")?,
                schema: object(needed(&mut inner, "schema")?)?,
                strict: inner.bool("strict")?,
            };
            inner.finish(losses);
            Ok(shape)
        })?,
    };
    format.finish(losses);
    Ok(shape)
}

fn read_thinking(fields: &mut Fields<'_, '_>) -> Result<Thinking, ApiError> {
    const EFFORTS: [(&str, Depth); 7] = [
        ("none", Depth::Off),
        ("minimal", Depth::Effort(Effort::Minimal)),
        ("low", Depth::Effort(Effort::Low)),
        ("medium", Depth::Effort(Effort::Medium)),
        ("high", Depth::Effort(Effort::High)),
        ("xhigh", Depth::Effort(Effort::ExtraHigh)),
        ("max", Depth::Effort(Effort::Max)),
    ];
    let depth = match fields.node("reasoning_effort") {
        Some(node) => Some(one_of(node, &EFFORTS)?),
        None => None,
    };
    Ok(Thinking { depth, show: None })
}

fn read_search<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Search<'a>>, ApiError> {
    let Some(node) = fields.node("web_search_options") else {
        return Ok(None);
    };
    node.fields(|mut options| {
        let mut search = Search {
            context_size: options.text("search_context_size")?,
            ..Search::default()
        };
        if let Some(location) = options.node("user_location") {
            location.fields(|location| read_location(location, &mut search, losses))?;
        }
        options.finish(losses);
        Ok(Some(search))
    })
}

fn read_location<'a>(
    mut location: Fields<'a, '_>,
    search: &mut Search<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    one_of(needed(&mut location, "type")?, &[("approximate", ())])?;
    if let Some(node) = location.node("approximate") {
        node.fields(|mut place| {
            search.city = place.text("city")?;
            search.country = place.text("country")?;
            search.region = place.text("region")?;
            search.timezone = place.text("timezone")?;
            place.finish(losses);
            Ok(())
        })?;
    }
    location.finish(losses);
    Ok(())
}

fn read_labels<'a>(
    fields: &mut Fields<'a, '_>,
    spelled: &mut SettingAliases,
) -> Result<Labels<'a>, ApiError> {
    let service_tier = fields.text("service_tier")?;
    let metadata = fields.node("metadata").map(read_metadata).transpose()?;
    let mut user = fields.text("user")?;
    if user.is_none() {
        // The newer name of the same thing.
        user = fields.text("safety_identifier")?;
        spelled.user = user.as_ref().map(|_| "safety_identifier");
    }
    Ok(Labels {
        user,
        cache_key: fields.text("prompt_cache_key")?,
        service_tier,
        metadata,
    })
}

pub(in crate::formats) fn read_metadata<'a>(node: Node<'a, '_>) -> Result<Json<'a>, ApiError> {
    let path = node.path;
    let metadata = object(node)?;
    let entries = metadata.as_object().map_or(&[][..], |map| map.as_vec());
    if entries.len() > 16 {
        return Err(path.wrong("at most 16 entries"));
    }
    for (key, value) in entries {
        let short = |text: &str, limit| text.chars().count() <= limit;
        if !short(key, 64) {
            return Err(path.wrong("keys of at most 64 characters"));
        }
        if !value.as_str().is_some_and(|value| short(value, 512)) {
            return Err(Path::Key(&path, key).wrong("a string of at most 512 characters"));
        }
    }
    Ok(metadata)
}

/// How the reply is to be delivered and kept, which the gateway itself answers for.
fn read_delivery(fields: &mut Fields<'_, '_>, losses: &mut Losses) -> Result<(), ApiError> {
    fields.bool("stream")?;
    if let Some(node) = fields.node("stream_options") {
        node.fields(|mut options| {
            options.bool("include_usage")?;
            read_unmet_wish(&mut options, "include_obfuscation", losses)?;
            options.finish(losses);
            Ok(())
        })?;
    }
    read_unmet_wish(fields, "store", losses)
}

/// Nothing is padded and nothing is stored: turning it off is granted, turning it on is lost.
fn read_unmet_wish(
    fields: &mut Fields<'_, '_>,
    key: &str,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    if fields.bool(key)? == Some(true) {
        let path = Path::Key(&fields.path, key).to_string();
        losses.dropped(FieldLocation::Path(path.into()));
    }
    Ok(())
}

/// A value that must be there.
pub(super) fn needed<'a, 's>(
    fields: &'s mut Fields<'a, '_>,
    key: &'s str,
) -> Result<Node<'a, 's>, ApiError> {
    let value = fields.take(key);
    Ok(Node {
        value: fields.need(key, value)?,
        path: Path::Key(&fields.path, key),
    })
}

/// A word of a fixed set, and what it stands for.
pub(super) fn one_of<T: Copy>(node: Node<'_, '_>, words: &[(&str, T)]) -> Result<T, ApiError> {
    let path = node.path;
    let text = node.text()?;
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*meaning);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(path.wrong(&format!("{}, not {text:?}", known.join(" or "))))
}

/// An object that is carried as it is.
pub(super) fn object<'a>(node: Node<'a, '_>) -> Result<Json<'a>, ApiError> {
    match node.value {
        Json::Object(_) => Ok(node.value),
        _ => Err(node.path.wrong("an object")),
    }
}

fn number(
    fields: &mut Fields<'_, '_>,
    key: &str,
    range: RangeInclusive<f64>,
) -> Result<Option<f64>, ApiError> {
    let value = fields.f64(key)?;
    if value.is_some_and(|value| !range.contains(&value)) {
        let expected = format!("a number from {} to {}", range.start(), range.end());
        return Err(Path::Key(&fields.path, key).wrong(&expected));
    }
    Ok(value)
}

fn whole(
    fields: &mut Fields<'_, '_>,
    key: &str,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, ApiError> {
    let value = fields.i64(key)?;
    let Some(value) = value else { return Ok(None) };
    match u64::try_from(value) {
        Ok(value) if range.contains(&value) => Ok(Some(value)),
        _ => {
            let expected = format!("an integer from {} to {}", range.start(), range.end());
            Err(Path::Key(&fields.path, key).wrong(&expected))
        }
    }
}

fn small(value: Option<u64>) -> Option<u32> {
    value.and_then(|value| u32::try_from(value).ok())
}
