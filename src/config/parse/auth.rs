//! The credentials of an upstream.

use std::time::Duration;

use secrecy::SecretString;

use super::template_values::TemplateValues;
use super::{aws_auth, azure_auth, google_auth};
use crate::config::providers::Provider;
use crate::config::settings::{Auth, CommandSource, CredentialSource};
use crate::config::table::{ConfigField, ConfigReader};
use crate::config::tree::YamlKind;
use crate::config::values;

/// The kinds of credentials.
const KINDS: [&str; 7] = [
    "bearer", "header", "query", "aws", "azure", "google", "command",
];

/// How long the token of a command is used. Those of all clouds live for an hour at least.
const DEFAULT_TTL: Duration = Duration::from_secs(15 * 60);

/// `{bearer: SECRET}`, `{header: {name: NAME, value: SECRET}}`, `{query: …}`, a source that credentials are fetched from, or
/// `none`.
pub fn parse(
    reader: &mut ConfigReader,
    field: ConfigField,
    provider: Option<&Provider>,
    template_values: &TemplateValues,
) -> Option<Auth> {
    if let YamlKind::Scalar(_) = field.node.kind {
        // Whoever forgot the key "bearer" wrote a secret here.
        reader.hidden(field, none);
        return None;
    }
    let mut table = reader.table("auth", field)?;
    let position = table.position;
    let kinds = KINDS.map(|name| table.take(name));
    let ttl = table.take("ttl");
    reader.finish(table);
    let mut given = KINDS.into_iter().zip(kinds);
    let mut given = given
        .by_ref()
        .filter_map(|(name, field)| Some((name, field?)));
    let (Some((name, field)), None) = (given.next(), given.next()) else {
        let kinds = KINDS.map(|name| format!("{name:?}"));
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let message = format!(
            "auth takes one of {}; write exactly one",
            values::either(&kinds)
        );
        reader.problems.add(position, message);
        return None;
    };
    if let (Some(ttl), true) = (ttl, name != "command") {
        let message = "ttl does nothing without command; others say how long they are valid";
        reader.warnings.add(ttl.node.position, message);
    }
    match name {
        "bearer" => {
            let secret = reader.hidden(field, values::header_value)?;
            Some(Auth::Bearer(SecretString::from(secret.value)))
        }
        "header" => parse_header(reader, field),
        "query" => parse_parameter(reader, field),
        "aws" => {
            let source = aws_auth::parse(reader, field, provider, template_values)?;
            Some(Auth::Fetched(CredentialSource::Aws(source)))
        }
        "azure" => {
            let source = azure_auth::parse(reader, field)?;
            Some(Auth::Fetched(CredentialSource::Azure(source)))
        }
        "google" => {
            let source = google_auth::parse(reader, field)?;
            Some(Auth::Fetched(CredentialSource::Google(source)))
        }
        _ => {
            let source = parse_command(reader, field, ttl)?;
            Some(Auth::Fetched(CredentialSource::Command(source)))
        }
    }
}

fn parse_parameter(reader: &mut ConfigReader, field: ConfigField) -> Option<Auth> {
    let mut table = reader.table("query", field)?;
    let name = reader.required(&mut table, "name", values::name);
    let value = reader.required_field(&mut table, "value");
    let value = value.and_then(|field| reader.hidden(field, values::header_value));
    reader.finish(table);
    Some(Auth::Query {
        name: name?.value,
        value: SecretString::from(value?.value),
    })
}

/// A program and its arguments, which may be secret.
fn parse_command(
    reader: &mut ConfigReader,
    field: ConfigField,
    ttl: Option<ConfigField>,
) -> Option<CommandSource> {
    let words = reader.filled_list(field).into_iter();
    let words: Vec<Option<String>> = words
        .map(|word| Some(reader.hidden(word, values::label)?.value))
        .collect();
    let ttl = ttl.map(|ttl| reader.value(ttl, values::duration));
    let mut words = words.into_iter().collect::<Option<Vec<_>>>()?.into_iter();
    Some(CommandSource {
        program: words.next()?,
        arguments: words.collect(),
        ttl: ttl.map_or(Some(DEFAULT_TTL), |ttl| Some(ttl?.value))?,
    })
}

/// The header that a fetched credential is sent in.
pub const fn header_of(source: &CredentialSource) -> &'static str {
    match source {
        CredentialSource::Aws(_)
        | CredentialSource::Azure(_)
        | CredentialSource::Command(_)
        | CredentialSource::Google(_) => "authorization",
    }
}

fn parse_header(reader: &mut ConfigReader, field: ConfigField) -> Option<Auth> {
    let mut table = reader.table("header", field)?;
    let name = reader.required(&mut table, "name", values::header_name);
    let value = reader.required_field(&mut table, "value");
    let value = value.and_then(|field| reader.hidden(field, values::header_value));
    reader.finish(table);
    Some(Auth::Header {
        name: name?.value,
        value: SecretString::from(value?.value),
    })
}

fn none(text: &str) -> values::Parsed<()> {
    let expected =
        "none, {bearer: TOKEN} or {header: {name: NAME, value: VALUE}} (it is not shown here)";
    (text == "none")
        .then_some(())
        .ok_or_else(|| expected.to_owned())
}

/// A key in the header of this name, or as a bearer token.
pub fn key_auth(header: Option<&str>, secret: String) -> Auth {
    let value = SecretString::from(secret);
    match header {
        Some(name) => Auth::Header {
            name: name.to_owned(),
            value,
        },
        None => Auth::Bearer(value),
    }
}
