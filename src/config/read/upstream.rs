//! One entry of `upstreams`.

use std::time::Duration;

use secrecy::SecretString;

use crate::config::check::Names;
use crate::config::settings::{Auth, Protocol, Upstream, UpstreamTimeouts};
use crate::config::table::{Field, Reader, Table};
use crate::config::values;
use crate::model::Format;

const DEFAULT_TIMEOUTS: UpstreamTimeouts = UpstreamTimeouts {
    connect: Duration::from_secs(3),
    first_byte: Duration::from_secs(120),
    idle: Duration::from_secs(60),
};

pub fn read(reader: &mut Reader, mut table: Table, names: &mut Names) -> Option<Upstream> {
    let name = reader.required(&mut table, "name", values::name);
    names.upstreams.extend(name.clone());
    let choices = Format::ALL.map(|format| (format.name(), format));
    let format = reader.required(&mut table, "format", values::one_of(&choices));
    let base_url = reader.required_field(&mut table, "base_url");
    let base_url = base_url.and_then(|field| reader.hidden(field, values::base_url));
    let auth = table.take("auth");
    let auth = auth.and_then(|field| auth_table(reader, field));
    let headers = table.take("headers");
    let headers = headers.map(|field| header_list(reader, field));
    let timeouts = table.take("timeouts");
    let timeouts = timeouts.and_then(|field| timeouts_table(reader, field));
    let choices = [
        ("auto", Protocol::Auto),
        ("http1", Protocol::Http1),
        ("http2", Protocol::Http2),
    ];
    let protocol = reader.optional(&mut table, "protocol", values::one_of(&choices));
    let brand = reader.optional(&mut table, "brand", values::brand);
    reader.finish(table);
    Some(Upstream {
        name: name?.value,
        format: format?.value,
        base_url: base_url?.value,
        auth,
        headers: headers.unwrap_or_default(),
        timeouts: timeouts.unwrap_or(DEFAULT_TIMEOUTS),
        protocol: protocol.unwrap_or(Protocol::Auto),
        brand: brand.unwrap_or_else(|| "google".to_owned()),
    })
}

fn auth_table(reader: &mut Reader, field: Field) -> Option<Auth> {
    let mut table = reader.table("auth", field)?;
    let place = table.place;
    let bearer = table.take("bearer");
    let header = table.take("header");
    reader.finish(table);
    match (bearer, header) {
        (Some(bearer), None) => {
            let secret = reader.hidden(bearer, values::header_value)?;
            Some(Auth::Bearer(SecretString::from(secret.value)))
        }
        (None, Some(header)) => auth_header(reader, header),
        _ => {
            let message = "auth takes either \"bearer\" or \"header\"; write exactly one";
            reader.problems.add(place, message);
            None
        }
    }
}

fn auth_header(reader: &mut Reader, field: Field) -> Option<Auth> {
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

fn header_list(reader: &mut Reader, field: Field) -> Vec<(String, String)> {
    let Some(mut table) = reader.table("headers", field) else {
        return Vec::new();
    };
    let mut headers: Vec<(String, String)> = Vec::new();
    for (key, node) in table.take_rest() {
        let name = match values::header_name(&key.name) {
            Ok(name) => name,
            Err(expected) => {
                let message = format!("{:?} must be {expected}", key.name);
                reader.problems.add(key.place, message);
                continue;
            }
        };
        if headers.iter().any(|(earlier, _)| *earlier == name) {
            let message = format!("duplicate header {:?}; keep one of them", key.name);
            reader.problems.add(key.place, message);
        }
        let field = Field {
            name: &key.name,
            node,
        };
        let value = reader.hidden(field, values::header_value);
        headers.extend(value.map(|value| (name, value.value)));
    }
    headers
}

fn timeouts_table(reader: &mut Reader, field: Field) -> Option<UpstreamTimeouts> {
    let mut table = reader.table("timeouts", field)?;
    let mut timeout = |name, default| {
        let given = reader.optional(&mut table, name, values::duration);
        given.unwrap_or(default)
    };
    let timeouts = UpstreamTimeouts {
        connect: timeout("connect", DEFAULT_TIMEOUTS.connect),
        first_byte: timeout("first_byte", DEFAULT_TIMEOUTS.first_byte),
        idle: timeout("idle", DEFAULT_TIMEOUTS.idle),
    };
    reader.finish(table);
    Some(timeouts)
}
