//! The credentials of an upstream.

use secrecy::SecretString;

use crate::config::settings::Auth;
use crate::config::table::{ConfigField, ConfigReader};
use crate::config::tree::YamlKind;
use crate::config::values;

/// `{bearer: SECRET}`, `{header: {name: NAME, value: SECRET}}`, or `none`.
pub fn parse(reader: &mut ConfigReader, field: ConfigField) -> Option<Auth> {
    if let YamlKind::Scalar(_) = field.node.kind {
        // Whoever forgot the key "bearer" wrote a secret here.
        reader.hidden(field, none);
        return None;
    }
    let mut table = reader.table("auth", field)?;
    let position = table.position;
    let bearer = table.take("bearer");
    let header = table.take("header");
    reader.finish(table);
    match (bearer, header) {
        (Some(bearer), None) => {
            let secret = reader.hidden(bearer, values::header_value)?;
            Some(Auth::Bearer(SecretString::from(secret.value)))
        }
        (None, Some(header)) => parse_header(reader, header),
        _ => {
            let message = "auth takes either \"bearer\" or \"header\"; write exactly one";
            reader.problems.add(position, message);
            None
        }
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
