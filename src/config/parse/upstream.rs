//! One entry of `upstreams`.

use std::time::Duration;

use super::endpoints::{self, Endpoints, preset_auth};
use super::headers;
use super::request_shape;
use super::template_values::TemplateValues;
use super::{auth, tls};
use crate::config::capabilities;
use crate::config::check::DeclaredNames;
use crate::config::providers::{Provider, provider};
use crate::config::proxy;
use crate::config::settings::{
    Auth, Breaker, ConcurrencyLimit, Discovery, HealthCheck, Protocol, ProxyConfig, TimeoutChanges,
    UpstreamConfig, UpstreamTimeouts,
};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable, Located};
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

const DEFAULT_DISCOVERY_INTERVAL: Duration = Duration::from_secs(600);

/// An entry: the name of a preset, or a table.
pub fn parse_entry(
    reader: &mut ConfigReader,
    field: ConfigField,
    names: &mut DeclaredNames,
) -> Option<UpstreamConfig> {
    if let YamlKind::Scalar(_) = field.node.kind {
        let field = ConfigField {
            name: "an upstream",
            ..field
        };
        let provider = reader.value(field, provider)?;
        let table = ConfigTable::empty("an upstream", provider.position);
        return parse(reader, table, Some(provider), names);
    }
    let mut table = reader.table("an upstream", field)?;
    let preset = table.take("provider");
    let preset = preset.map(|field| reader.value(field, provider));
    if let Some(None) = preset {
        // What the preset would fill in is not missing.
        names.upstreams.extend(
            table
                .take("name")
                .and_then(|field| reader.value(field, values::name)),
        );
        return None;
    }
    parse(reader, table, preset.flatten(), names)
}

fn parse(
    reader: &mut ConfigReader,
    mut table: ConfigTable,
    preset: Option<Located<&'static Provider>>,
    names: &mut DeclaredNames,
) -> Option<UpstreamConfig> {
    let provider = preset.as_ref().map(|preset| preset.value);
    let name = parse_name(reader, &mut table, preset.as_ref());
    names.upstreams.extend(name.clone());
    let values = TemplateValues::parse(reader, &mut table, provider);
    let endpoints = endpoints::parse(reader, &mut table, preset.as_ref(), &values);
    let shape_of_preset = provider.map(|provider| provider.shape_table(table.position));
    let shape_of_preset =
        shape_of_preset.unwrap_or_else(|| ConfigTable::empty("a preset", table.position));
    let shape = request_shape::parse(
        reader,
        &mut table,
        shape_of_preset,
        &values,
        endpoints.as_ref(),
    );
    let auth = table.take("auth");
    let own_auth = auth.map(|field| auth::parse(reader, field, provider, &values));
    let auth = own_auth.unwrap_or_else(|| {
        let preset = preset.as_ref()?;
        preset_auth(reader, preset.value, &values, preset.position)
    });
    values.warn_of_unused(reader);
    let headers = table.take("headers");
    let headers = headers.map(|field| {
        let warning = |name: &str| beside_auth(name, auth.as_ref()?);
        headers::parse(reader, field, warning)
    });
    let headers = with_preset_headers(headers.unwrap_or_default(), provider);
    let timeouts = table.take("timeouts");
    let timeouts = timeouts.and_then(|field| parse_timeouts(reader, field));
    let protocol = parse_protocol(reader, &mut table);
    let brand = parse_brand(reader, &mut table, endpoints.as_ref());
    let concurrency = parse_concurrency(reader, &mut table);
    let breaker = table.take("breaker");
    let breaker = breaker.map_or(Some(DEFAULT_BREAKER), |field| parse_breaker(reader, field));
    let health = table.take("health");
    let health = health.and_then(|field| parse_health_check(reader, field));
    let flags = table.take("capabilities");
    let flags = flags.and_then(|field| reader.table("capabilities", field));
    let flags = flags.map(|table| capabilities::parse(reader, table));
    let discover = table.take("discover");
    let discover = discover.and_then(|field| parse_discovery(reader, field));
    let tls = tls::parse(reader, &mut table, endpoints.as_ref());
    let proxies = parse_proxies(reader, &mut table, endpoints.as_ref());
    reader.finish(table);
    let Endpoints { first, others } = endpoints?;
    // Later ones replace earlier ones.
    let preset = provider.map(|provider| provider.capabilities.clone());
    let capabilities = preset.into_iter().chain(flags).flatten().collect();
    Some(UpstreamConfig {
        name: name?.value,
        format: first.0,
        base_url: first.1,
        other_formats: others,
        auth,
        headers,
        shape,
        timeouts: timeouts.unwrap_or(DEFAULT_TIMEOUTS),
        protocol: protocol.unwrap_or(Protocol::Auto),
        brand: brand.unwrap_or_else(|| "google".to_owned()),
        capabilities,
        concurrency,
        breaker,
        health,
        discover,
        tls,
        proxies,
    })
}

fn parse_protocol(reader: &mut ConfigReader, table: &mut ConfigTable) -> Option<Protocol> {
    let choices = [
        ("auto", Protocol::Auto),
        ("http1", Protocol::Http1),
        ("http2", Protocol::Http2),
    ];
    reader.optional(table, "protocol", values::one_of(&choices))
}

/// The name, which is that of the preset if there is no other.
fn parse_name(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    preset: Option<&Located<&'static Provider>>,
) -> Option<Located<String>> {
    let Some(preset) = preset else {
        return reader.required(table, "name", values::name);
    };
    match table.take("name") {
        Some(field) => reader.value(field, values::name),
        None => Some(Located {
            value: preset.value.name.clone(),
            written: preset.value.name.clone(),
            position: preset.position,
        }),
    }
}

fn parse_brand(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    endpoints: Option<&Endpoints>,
) -> Option<String> {
    let brand = table.take("brand")?;
    let brand = reader.value(brand, values::brand)?;
    if let Some(endpoints) = endpoints
        && !endpoints.speaks(Format::Native)
    {
        let name = endpoints.first.0.name();
        let message = format!("brand does nothing for the format {name}; only native has one");
        reader.warnings.add(brand.position, message);
    }
    Some(brand.value)
}

/// The headers of the config, and those of the preset that it does not set.
fn with_preset_headers(
    mut headers: Vec<(String, String)>,
    provider: Option<&Provider>,
) -> Vec<(String, String)> {
    for (name, value) in provider.into_iter().flat_map(|provider| &provider.headers) {
        if !headers.iter().any(|(own, _)| own == name) {
            headers.push((name.clone(), value.clone()));
        }
    }
    headers
}

/// The proxy of each base URL: that of the entry, or that of the environment.
fn parse_proxies(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    endpoints: Option<&Endpoints>,
) -> Vec<Option<ProxyConfig>> {
    let setting = table.take("proxy");
    let setting = setting.map(|field| reader.hidden(field, proxy::setting));
    let base_urls = endpoints.into_iter().flat_map(Endpoints::base_urls);
    if let Some(setting) = setting {
        let setting = setting.and_then(|setting| setting.value);
        return base_urls.map(|_| setting.clone()).collect();
    }
    let env = reader.env;
    let found: Result<Vec<_>, String> = base_urls
        .map(|base_url| proxy::of_environment(env, base_url))
        .collect();
    found.unwrap_or_else(|message| {
        reader.problems.add(table.position, message);
        Vec::new()
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

/// The warning for a header that replaces the credentials of `auth`, or is sent beside them.
fn beside_auth(name: &str, auth: &Auth) -> Option<String> {
    let own = match auth {
        Auth::Bearer(_) => "authorization",
        Auth::Header { name, .. } => name.as_str(),
        Auth::Query { .. } => "",
        Auth::Fetched(source) => auth::header_of(source),
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

/// `on`, `off`, or a table.
fn parse_discovery(reader: &mut ConfigReader, field: ConfigField) -> Option<Discovery> {
    let default = Discovery {
        interval: DEFAULT_DISCOVERY_INTERVAL,
        include: Vec::new(),
        exclude: Vec::new(),
        prefix: String::new(),
    };
    if let YamlKind::Scalar(_) = field.node.kind {
        let parse = |text: &str| values::switch(text).map_err(|_| "on or off".to_owned());
        let is_on = reader.value(field, parse)?.value;
        return is_on.then_some(default);
    }
    let mut table = reader.table("discover", field)?;
    let interval = reader.optional(&mut table, "interval", values::discovery_interval);
    let globs = |globs: Vec<Located<String>>| globs.into_iter().map(|glob| glob.value).collect();
    let include = globs(reader.items(&mut table, "include", values::glob));
    let exclude = globs(reader.items(&mut table, "exclude", values::glob));
    let prefix = reader.optional(&mut table, "prefix", values::alias);
    reader.finish(table);
    Some(Discovery {
        interval: interval.unwrap_or(default.interval),
        include,
        exclude,
        prefix: prefix.unwrap_or_default(),
    })
}
