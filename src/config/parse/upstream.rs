//! One entry of `upstreams`.

use std::time::Duration;

use secrecy::SecretString;

use crate::config::base_url::doubled_path;
use crate::config::check::DeclaredNames;
use crate::config::settings::{
    Auth, Breaker, ConcurrencyLimit, HealthCheck, Protocol, TimeoutChanges, UpstreamConfig,
    UpstreamTimeouts,
};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable};
use crate::config::tree::YamlKind;
use crate::config::values;
use crate::model::Format;

const DEFAULT_TIMEOUTS: UpstreamTimeouts = UpstreamTimeouts {
    connect: Duration::from_secs(3),
    first_byte: Some(Duration::from_secs(120)),
    idle: Some(Duration::from_secs(60)),
    total: None,
};

const DEFAULT_QUEUE: u64 = 100;
const DEFAULT_QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

const DEFAULT_BREAKER: Breaker = Breaker {
    failures: 5,
    percent: 50,
    open_for: Duration::from_secs(10),
};

/// Headers in which upstreams look for credentials.
const CREDENTIAL_HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

const DEFAULT_CHECK_INTERVAL: Duration = Duration::from_secs(10);
const DEFAULT_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

pub fn parse(
    reader: &mut ConfigReader,
    mut table: ConfigTable,
    names: &mut DeclaredNames,
) -> Option<UpstreamConfig> {
    let name = reader.required(&mut table, "name", values::name);
    names.upstreams.extend(name.clone());
    let choices = Format::EVERY.map(|format| (format.name(), format));
    let format = reader.required(&mut table, "format", values::one_of(&choices));
    let base_url = reader.required_field(&mut table, "base_url");
    let base_url = base_url.and_then(|field| reader.hidden(field, values::base_url));
    if let (Some(format), Some(url)) = (&format, &base_url)
        && let Some(message) = doubled_path(format.value, &url.value)
    {
        reader.warnings.add(url.position, message);
    }
    let auth = table.take("auth");
    let auth = auth.and_then(|field| parse_auth(reader, field));
    let headers = table.take("headers");
    let headers = headers.map(|field| parse_headers(reader, field, auth.as_ref()));
    let timeouts = table.take("timeouts");
    let timeouts = timeouts.and_then(|field| parse_timeouts(reader, field));
    let choices = [
        ("auto", Protocol::Auto),
        ("http1", Protocol::Http1),
        ("http2", Protocol::Http2),
    ];
    let protocol = reader.optional(&mut table, "protocol", values::one_of(&choices));
    let brand = table.take("brand");
    let brand = brand.and_then(|field| reader.value(field, values::brand));
    if let (Some(brand), Some(format)) = (&brand, &format)
        && format.value != Format::Native
    {
        let name = format.value.name();
        let message = format!("brand does nothing for the format {name}; only native has one");
        reader.warnings.add(brand.position, message);
    }
    let concurrency = parse_concurrency(reader, &mut table);
    let breaker = table.take("breaker");
    let breaker = breaker.map_or(Some(DEFAULT_BREAKER), |field| parse_breaker(reader, field));
    let health = table.take("health");
    let health = health.and_then(|field| parse_health_check(reader, field));
    reader.finish(table);
    Some(UpstreamConfig {
        name: name?.value,
        format: format?.value,
        base_url: base_url?.value,
        auth,
        headers: headers.unwrap_or_default(),
        timeouts: timeouts.unwrap_or(DEFAULT_TIMEOUTS),
        protocol: protocol.unwrap_or(Protocol::Auto),
        brand: brand.map_or_else(|| "google".to_owned(), |brand| brand.value),
        concurrency,
        breaker,
        health,
    })
}

fn parse_concurrency(reader: &mut ConfigReader, table: &mut ConfigTable) -> ConcurrencyLimit {
    let max_in_flight = reader.optional(table, "max_in_flight", values::count);
    let queue = table.take("queue");
    let queue = queue.and_then(|field| reader.value(field, values::queue));
    let queue_timeout = table.take("queue_timeout");
    let queue_timeout = queue_timeout.and_then(|field| reader.value(field, values::duration));
    let positions = [
        ("queue", queue.as_ref().map(|queue| queue.position)),
        (
            "queue_timeout",
            queue_timeout.as_ref().map(|timeout| timeout.position),
        ),
    ];
    for (name, position) in positions {
        if let (Some(position), None) = (position, max_in_flight) {
            let message = format!("{name} does nothing without max_in_flight; nothing is queued");
            reader.warnings.add(position, message);
        }
    }
    ConcurrencyLimit {
        max_in_flight,
        queue: queue.map_or(DEFAULT_QUEUE, |queue| queue.value),
        queue_timeout: queue_timeout.map_or(DEFAULT_QUEUE_TIMEOUT, |timeout| timeout.value),
    }
}

fn parse_auth(reader: &mut ConfigReader, field: ConfigField) -> Option<Auth> {
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
        (None, Some(header)) => parse_auth_header(reader, header),
        _ => {
            let message = "auth takes either \"bearer\" or \"header\"; write exactly one";
            reader.problems.add(position, message);
            None
        }
    }
}

fn parse_auth_header(reader: &mut ConfigReader, field: ConfigField) -> Option<Auth> {
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

fn parse_headers(
    reader: &mut ConfigReader,
    field: ConfigField,
    auth: Option<&Auth>,
) -> Vec<(String, String)> {
    let Some(mut table) = reader.table("headers", field) else {
        return Vec::new();
    };
    let mut headers: Vec<(String, String)> = Vec::new();
    for (key, node) in table.take_rest() {
        let name = match values::header_name(&key.name) {
            Ok(name) => name,
            Err(expected) => {
                let message = format!("{:?} must be {expected}", key.name);
                reader.problems.add(key.position, message);
                continue;
            }
        };
        if headers.iter().any(|(earlier, _)| *earlier == name) {
            let message = format!("duplicate header {:?}; keep one of them", key.name);
            reader.problems.add(key.position, message);
        }
        if let Some(message) = auth.and_then(|auth| beside_auth(&name, auth)) {
            reader.warnings.add(key.position, message);
        }
        let field = ConfigField {
            name: &key.name,
            node,
        };
        let value = reader.hidden(field, values::header_value);
        headers.extend(value.map(|value| (name, value.value)));
    }
    headers
}

/// The warning for a header that replaces the credentials of `auth`, or is sent beside them.
fn beside_auth(name: &str, auth: &Auth) -> Option<String> {
    let own = match auth {
        Auth::Bearer(_) => "authorization",
        Auth::Header { name, .. } => name.as_str(),
    };
    if name == own {
        return Some(format!(
            "headers.{name} replaces the credentials of auth; remove one of them"
        ));
    }
    CREDENTIAL_HEADERS
        .contains(&name)
        .then(|| format!("headers.{name} is sent beside the credentials of auth; remove one"))
}

fn parse_timeouts(reader: &mut ConfigReader, field: ConfigField) -> Option<UpstreamTimeouts> {
    let changes = parse_timeout_changes(reader, field)?;
    Some(changes.over(DEFAULT_TIMEOUTS))
}

/// Parses the timeouts of an upstream or a model.
pub fn parse_timeout_changes(
    reader: &mut ConfigReader,
    field: ConfigField,
) -> Option<TimeoutChanges> {
    let mut table = reader.table("timeouts", field)?;
    let connect = reader.optional(&mut table, "connect", values::duration);
    let mut timeout = |name| reader.optional(&mut table, name, values::duration_or_off);
    let changes = TimeoutChanges {
        connect,
        first_byte: timeout("first_byte"),
        idle: timeout("idle"),
        total: timeout("total"),
    };
    reader.finish(table);
    Some(changes)
}

/// `off`, `on`, or a table.
fn parse_breaker(reader: &mut ConfigReader, field: ConfigField) -> Option<Breaker> {
    if let YamlKind::Scalar(_) = field.node.kind {
        let parse = |text: &str| values::switch(text).map_err(|_| "off".to_owned());
        let is_on = reader.value(field, parse)?.value;
        return is_on.then_some(DEFAULT_BREAKER);
    }
    let mut table = reader.table("breaker", field)?;
    let failures = reader.optional(&mut table, "failures", values::failures);
    let percent = reader.optional(&mut table, "failure_rate", values::percent);
    let open_for = reader.optional(&mut table, "open_for", values::duration);
    reader.finish(table);
    Some(Breaker {
        failures: failures.unwrap_or(DEFAULT_BREAKER.failures),
        percent: percent.unwrap_or(DEFAULT_BREAKER.percent),
        open_for: open_for.unwrap_or(DEFAULT_BREAKER.open_for),
    })
}

/// The timeout of a check is at most its interval, so that two checks cannot overlap.
fn parse_health_check(reader: &mut ConfigReader, field: ConfigField) -> Option<HealthCheck> {
    let mut table = reader.table("health", field)?;
    let path = reader.required(&mut table, "path", values::path);
    let interval = table.take("interval");
    let interval = match interval.map(|field| reader.value(field, values::duration)) {
        Some(interval) => interval.map(|interval| interval.value),
        None => Some(DEFAULT_CHECK_INTERVAL),
    };
    let timeout = table.take("timeout");
    let timeout = timeout.and_then(|field| reader.value(field, values::duration));
    reader.finish(table);
    let (path, interval) = (path?.value, interval?);
    if let Some(timeout) = timeout.as_ref().filter(|timeout| timeout.value > interval) {
        let interval = humantime::format_duration(interval);
        let message = format!(
            "timeout must be at most the interval of the health check ({interval}), not {:?}",
            timeout.written
        );
        reader.problems.add(timeout.position, message);
    }
    Some(HealthCheck {
        path,
        interval,
        timeout: timeout.map_or(DEFAULT_CHECK_TIMEOUT.min(interval), |timeout| timeout.value),
    })
}
