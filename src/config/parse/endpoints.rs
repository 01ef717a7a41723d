//! Where an upstream is and what it speaks: `format` and `base_url`, `formats`, or the preset of `provider`.

use super::auth::key_auth;
use super::aws_auth;
use super::google_auth;
use super::template_values::TemplateValues;
use crate::config::base_url::doubled_path;
use crate::config::problem::Position;
use crate::config::providers::{Provider, parse_formats};
use crate::config::settings::{Auth, BaseUrl, CredentialSource};
use crate::config::table::{ConfigReader, ConfigTable, Located};
use crate::config::values;
use crate::model::Format;

/// The formats of an upstream with their base URLs; the first is for clients of all other formats.
pub struct Endpoints {
    pub first: (Format, BaseUrl),
    pub others: Vec<(Format, BaseUrl)>,
}

impl Endpoints {
    fn of(formats: Vec<(Format, BaseUrl)>) -> Option<Endpoints> {
        let mut formats = formats.into_iter();
        Some(Endpoints {
            first: formats.next()?,
            others: formats.collect(),
        })
    }

    pub fn base_urls(&self) -> impl Iterator<Item = &BaseUrl> {
        let others = self.others.iter().map(|(_, base_url)| base_url);
        std::iter::once(&self.first.1).chain(others)
    }

    pub fn speaks(&self, format: Format) -> bool {
        let mut others = self.others.iter();
        self.first.0 == format || others.any(|(other, _)| *other == format)
    }
}

pub fn parse(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    preset: Option<&Located<&'static Provider>>,
    values: &TemplateValues,
) -> Option<Endpoints> {
    if let Some(field) = table.take("formats") {
        for name in ["format", "base_url"] {
            if let Some(field) = table.take(name) {
                let message = format!(
                    "formats has the base URL of every format; remove {name}, or remove formats"
                );
                reader.problems.add(field.node.position, message);
            }
        }
        return Endpoints::of(parse_formats(reader, field));
    }
    let Some(preset) = preset else {
        return single(reader, table);
    };
    let provider = preset.value;
    let choices = Format::EVERY.map(|format| (format.name(), format));
    let format = table.take("format");
    let format = format.map(|field| reader.value(field, values::one_of(&choices)));
    let base_url = table.take("base_url");
    let base_url = base_url.map(|field| reader.hidden_url(field, values::base_url));
    // A wrong value has been reported; the preset must not stand in for it.
    let (format, base_url) = (
        format.map_or(Some(None), |format| format.map(Some))?,
        base_url,
    );
    let base_url = base_url.map_or(Some(None), |base_url| base_url.map(Some))?;
    let formats = match (format, base_url) {
        (None, None) => {
            let mut filled = Vec::new();
            for (format, base_url) in &provider.formats {
                let base_url = values.fill_host(reader, base_url, preset.position)?;
                filled.push((*format, base_url));
            }
            filled
        }
        (None, Some(base_url)) => moved(provider, &base_url.value),
        (Some(format), None) => {
            let (format, base_url) = preset_endpoint(reader, provider, &format)?;
            let base_url = values.fill_host(reader, &base_url, preset.position)?;
            vec![(format, base_url)]
        }
        (Some(format), Some(base_url)) => {
            warn_of_doubled_path(reader, format.value, &base_url);
            vec![(format.value, base_url.value)]
        }
    };
    Endpoints::of(formats)
}

/// An upstream of one format, which the config describes by itself.
fn single(reader: &mut ConfigReader, table: &mut ConfigTable) -> Option<Endpoints> {
    let choices = Format::EVERY.map(|format| (format.name(), format));
    let format = reader.required(table, "format", values::one_of(&choices));
    let base_url = reader.required_field(table, "base_url");
    let base_url = base_url.and_then(|field| reader.hidden_url(field, values::base_url));
    if let (Some(format), Some(url)) = (&format, &base_url) {
        warn_of_doubled_path(reader, format.value, url);
    }
    Endpoints::of(vec![(format?.value, base_url?.value)])
}

fn warn_of_doubled_path(reader: &mut ConfigReader, format: Format, url: &Located<BaseUrl>) {
    if let Some(message) = doubled_path(format, &url.value) {
        reader.warnings.add(url.position, message);
    }
}

fn preset_endpoint(
    reader: &mut ConfigReader,
    provider: &Provider,
    format: &Located<Format>,
) -> Option<(Format, BaseUrl)> {
    let mut formats = provider.formats.iter();
    let found = formats.find(|(own, _)| *own == format.value);
    if found.is_none() {
        let names: Vec<&str> = provider.formats.iter().map(|(own, _)| own.name()).collect();
        let message = format!(
            "the preset {} has no base URL for {}, only for {}; write base_url",
            provider.name,
            format.value.name(),
            names.join(", ")
        );
        reader.problems.add(format.position, message);
    }
    found.cloned()
}

/// The endpoints of a preset at another address. Its first format is there; the others follow where the address ends as
/// that of the preset does, as in `http://gpu:8000/v1` for `http://localhost:8000/v1`.
fn moved(provider: &Provider, base_url: &BaseUrl) -> Vec<(Format, BaseUrl)> {
    let Some((format, preset)) = provider.formats.first() else {
        return Vec::new();
    };
    let mut all = vec![(*format, base_url.clone())];
    let Some(root) = base_url.prefix.strip_suffix(preset.prefix.as_str()) else {
        return all;
    };
    let others = provider.formats[1..].iter();
    let others = others.filter(|(_, other)| other.authority == preset.authority);
    all.extend(others.map(|(format, other)| {
        let prefix = format!("{root}{}", other.prefix);
        let base_url = base_url.clone();
        (*format, BaseUrl { prefix, ..base_url })
    }));
    all
}

/// The credentials of a preset, from the environment variable that holds its key.
pub fn preset_auth(
    reader: &mut ConfigReader,
    provider: &Provider,
    template_values: &TemplateValues,
    position: Position,
) -> Option<Auth> {
    let mut set = provider.keys.iter().filter_map(|name| (reader.env)(name));
    let secret = set.find(|secret| !secret.is_empty());
    let Some(secret) = secret else {
        if provider.aws_service.is_some() {
            let source = aws_auth::of_preset(reader, provider, template_values, position)?;
            return Some(Auth::Fetched(CredentialSource::Aws(source)));
        }
        if provider.uses_google {
            let source = google_auth::default_source(reader);
            return Some(Auth::Fetched(CredentialSource::Google(source)));
        }
        if provider.needs_key {
            let keys: Vec<&str> = provider.keys.iter().map(String::as_str).collect();
            let message = format!(
                "the provider {} needs a key: set the variable {}, or write auth",
                provider.name,
                values::either(&keys)
            );
            reader.problems.add(position, message);
        }
        return None;
    };
    match values::header_value(&secret) {
        Ok(secret) => Some(key_auth(provider.key_header.as_deref(), secret)),
        Err(expected) => {
            let message = format!(
                "the key of the provider {} must be {expected}",
                provider.name
            );
            reader.problems.add(position, message);
            None
        }
    }
}
