//! The `server` table.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::check::DeclaredNames;
use crate::config::settings::{
    AccessLogConfig, ClientTimeouts, ConversationsConfig, CorsOrigins, Listen, OnUnsupported,
    ServerConfig, TlsFiles,
};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable, Located};
use crate::config::tree::YamlKind;
use crate::config::values::{self, Parsed};

const DEFAULT_LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));
const DEFAULT_BODY_LIMIT: usize = 64 << 20;
/// Sixteen of the largest bodies.
const DEFAULT_BODY_MEMORY: usize = 1 << 30;
const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

const DEFAULT_TIMEOUTS: ClientTimeouts = ClientTimeouts {
    header: Duration::from_secs(10),
    body_idle: Duration::from_secs(30),
    body: Duration::from_secs(300),
    write_idle: Duration::from_secs(60),
    keep_alive: Some(Duration::from_secs(15)),
};

const DEFAULT_CONVERSATIONS: ConversationsConfig = ConversationsConfig {
    size: 64 << 20,
    ttl: Duration::from_secs(3600),
    max_bytes_per_key: 64 << 20,
};

pub fn default() -> ServerConfig {
    ServerConfig {
        listen: vec![Listen {
            addr: DEFAULT_LISTEN,
            tls: None,
        }],
        admin: None,
        body_limit: DEFAULT_BODY_LIMIT,
        body_memory: DEFAULT_BODY_MEMORY,
        drain_timeout: DEFAULT_DRAIN_TIMEOUT,
        shutdown_delay: Duration::ZERO,
        on_unsupported: OnUnsupported::Report,
        validate_native: true,
        access_log: AccessLogConfig::Off,
        timeouts: DEFAULT_TIMEOUTS,
        max_in_flight: None,
        max_connections: None,
        max_connections_per_address: None,
        conversations: Some(DEFAULT_CONVERSATIONS),
        public_catalog: true,
        cors: None,
        upstream_prefixes: None,
        default_upstream: None,
    }
}

pub fn parse(
    reader: &mut ConfigReader,
    mut table: ConfigTable,
    names: &mut DeclaredNames,
) -> ServerConfig {
    let default = self::default();
    let listen = match table.take("listen") {
        Some(field) => parse_listeners(reader, field, names),
        None => {
            names.listen.push(Located {
                value: DEFAULT_LISTEN,
                written: DEFAULT_LISTEN.to_string(),
                position: table.position,
            });
            default.listen
        }
    };
    let admin = table.take("admin");
    names.admin = admin.and_then(|field| reader.value(field, values::address));
    let body_limit = reader.optional(&mut table, "body_limit", values::size);
    let body_memory = reader.optional(&mut table, "body_memory", values::size);
    let drain = reader.optional(&mut table, "drain_timeout", values::duration_or_zero);
    let delay = reader.optional(&mut table, "shutdown_delay", values::duration_or_zero);
    let choices = [
        ("report", OnUnsupported::Report),
        ("reject", OnUnsupported::Reject),
    ];
    let on_unsupported = reader.optional(&mut table, "on_unsupported", values::one_of(&choices));
    let validate_native = reader.optional(&mut table, "validate_native", values::switch);
    let access_log = reader.optional(&mut table, "access_log", parse_access_log);
    let timeouts = table.take("timeouts");
    let timeouts = timeouts.and_then(|field| parse_client_timeouts(reader, field));
    let max_in_flight = reader.optional(&mut table, "max_in_flight", values::count);
    let max_connections = reader.optional(&mut table, "max_connections", values::count);
    let name = "max_connections_per_address";
    let max_connections_per_address = reader.optional(&mut table, name, values::count);
    let kept = table.take("conversations");
    let kept = kept.and_then(|field| parse_conversations(reader, field, names));
    let public_catalog = reader.optional(&mut table, "public_catalog", values::switch);
    let cors = table.take("cors");
    let cors = cors.and_then(|field| parse_cors(reader, field));
    let upstream_prefixes = reader.optional(&mut table, "upstream_prefixes", values::switch);
    let default_upstream = table.take("default_upstream");
    names.default_upstream = default_upstream.and_then(|field| reader.value(field, values::name));
    let default_upstream = names.default_upstream.as_ref();
    let default_upstream = default_upstream.map(|name| name.value.clone());
    reader.finish(table);
    ServerConfig {
        listen,
        admin: names.admin.as_ref().map(|admin| admin.value),
        body_limit: body_limit.unwrap_or(default.body_limit),
        body_memory: body_memory.unwrap_or(default.body_memory),
        drain_timeout: drain.unwrap_or(default.drain_timeout),
        shutdown_delay: delay.unwrap_or(default.shutdown_delay),
        on_unsupported: on_unsupported.unwrap_or(default.on_unsupported),
        validate_native: validate_native.unwrap_or(default.validate_native),
        access_log: access_log.unwrap_or(default.access_log),
        timeouts: timeouts.unwrap_or(default.timeouts),
        max_in_flight,
        max_connections,
        max_connections_per_address,
        conversations: kept.unwrap_or(default.conversations),
        public_catalog: public_catalog.unwrap_or(default.public_catalog),
        cors,
        upstream_prefixes,
        default_upstream,
    }
}

fn parse_access_log(text: &str) -> Parsed<AccessLogConfig> {
    match (text, values::switch(text)) {
        ("json", _) => Ok(AccessLogConfig::Json),
        (_, Ok(false)) => Ok(AccessLogConfig::Off),
        _ => Err("off or json".to_owned()),
    }
}

/// `off`, `on`, or a table.
fn parse_conversations(
    reader: &mut ConfigReader,
    field: ConfigField,
    names: &mut DeclaredNames,
) -> Option<Option<ConversationsConfig>> {
    let YamlKind::Map(_) = field.node.kind else {
        let parse = |text: &str| match values::switch(text) {
            Ok(is_on) => Ok(is_on.then_some(DEFAULT_CONVERSATIONS)),
            Err(_) => Err("off, or {size, ttl, max_bytes_per_key}".to_owned()),
        };
        return reader.value(field, parse).map(|kept| kept.value);
    };
    let mut table = reader.table("conversations", field)?;
    let size = reader.optional(&mut table, "size", values::size);
    let ttl = reader.optional(&mut table, "ttl", values::duration);
    let max_bytes = table.take("max_bytes_per_key");
    names.stored_bytes = max_bytes.map(|field| field.node.position);
    let max_bytes = max_bytes.and_then(|field| reader.value(field, values::size));
    reader.finish(table);
    Some(Some(ConversationsConfig {
        size: size.unwrap_or(DEFAULT_CONVERSATIONS.size),
        ttl: ttl.unwrap_or(DEFAULT_CONVERSATIONS.ttl),
        max_bytes_per_key: max_bytes
            .map_or(DEFAULT_CONVERSATIONS.max_bytes_per_key, |max| max.value),
    }))
}

/// `off`, `"*"`, an origin, or a list of origins.
fn parse_cors(reader: &mut ConfigReader, field: ConfigField) -> Option<CorsOrigins> {
    if let YamlKind::List(_) = field.node.kind {
        let origins = reader.filled_list(field).into_iter();
        let origins = origins.filter_map(|origin| reader.value(origin, values::origin));
        return Some(CorsOrigins::Listed(
            origins.map(|origin| origin.value).collect(),
        ));
    }
    let parse = |text: &str| match (text, values::switch(text)) {
        ("*", _) => Ok(Some(CorsOrigins::Any)),
        (_, Ok(false)) => Ok(None),
        _ => match values::origin(text) {
            Ok(origin) => Ok(Some(CorsOrigins::Listed(vec![origin]))),
            Err(expected) => Err(format!("off, \"*\", or {expected}")),
        },
    };
    reader.value(field, parse)?.value
}

/// `ADDRESS`, `{addr, tls}`, or a list of either.
fn parse_listeners(
    reader: &mut ConfigReader,
    field: ConfigField,
    names: &mut DeclaredNames,
) -> Vec<Listen> {
    let fields = match field.node.kind {
        YamlKind::List(_) => reader.filled_list(field),
        _ => vec![field],
    };
    let mut all = Vec::new();
    for field in fields {
        if let Some((addr, tls)) = parse_listener(reader, field, names) {
            all.push(Listen {
                addr: addr.value,
                tls,
            });
            names.listen.push(addr);
        }
    }
    all
}

/// `ADDRESS`, or `{addr, tls}`.
pub(super) fn parse_listener(
    reader: &mut ConfigReader,
    field: ConfigField,
    names: &mut DeclaredNames,
) -> Option<(Located<SocketAddr>, Option<TlsFiles>)> {
    let YamlKind::Map(_) = field.node.kind else {
        return Some((reader.value(field, values::address)?, None));
    };
    let mut table = reader.table("listen", field)?;
    let addr = reader.required_field(&mut table, "addr");
    let addr = addr.and_then(|field| reader.value(field, values::address));
    let tls = table.take("tls");
    let tls = tls.and_then(|field| parse_tls_files(reader, field, names));
    reader.finish(table);
    Some((addr?, tls))
}

fn parse_tls_files(
    reader: &mut ConfigReader,
    field: ConfigField,
    names: &mut DeclaredNames,
) -> Option<TlsFiles> {
    let mut table = reader.table("tls", field)?;
    let position = table.position;
    let mut file = |name| {
        let field = reader.required_field(&mut table, name)?;
        let path = reader.value(field, values::label)?;
        names.files.push(path.clone());
        Some(PathBuf::from(path.value))
    };
    let (cert, key) = (file("cert"), file("key"));
    reader.finish(table);
    let (cert, key) = (cert?, key?);
    Some(TlsFiles {
        cert,
        key,
        position,
    })
}

fn parse_client_timeouts(reader: &mut ConfigReader, field: ConfigField) -> Option<ClientTimeouts> {
    let mut table = reader.table("timeouts", field)?;
    let keep_alive = reader.optional(&mut table, "keep_alive", values::duration_or_off);
    let mut timeout = |name, default| {
        let given = reader.optional(&mut table, name, values::duration);
        given.unwrap_or(default)
    };
    let timeouts = ClientTimeouts {
        keep_alive: keep_alive.unwrap_or(DEFAULT_TIMEOUTS.keep_alive),
        header: timeout("header", DEFAULT_TIMEOUTS.header),
        body_idle: timeout("body_idle", DEFAULT_TIMEOUTS.body_idle),
        body: timeout("body", DEFAULT_TIMEOUTS.body),
        write_idle: timeout("write_idle", DEFAULT_TIMEOUTS.write_idle),
    };
    reader.finish(table);
    Some(timeouts)
}
