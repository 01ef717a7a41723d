//! The `console` table.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use super::server::parse_listener;
use super::{identity, mail};
use crate::config::check::DeclaredNames;
use crate::config::problem::Position;
use crate::config::settings::{
    Amount, ConsoleConfig, InspectorAccess, Listen, MemberKeys, SessionLimits, SignUp,
};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable, Located};
use crate::config::tree::YamlKind;
use crate::config::values;
use crate::model::Money;

const DEFAULT_LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8082));

const DEFAULT_SESSION: SessionLimits = SessionLimits {
    idle: Duration::from_secs(8 * 3600),
    absolute: Duration::from_secs(7 * 24 * 3600),
};

pub fn parse(
    reader: &mut ConfigReader,
    field: ConfigField,
    has_store: bool,
    names: &mut DeclaredNames,
) -> Option<ConsoleConfig> {
    let mut table = reader.table("console", field)?;
    let position = table.position;
    let listen = match table.take("listen") {
        Some(field) => parse_listener(reader, field, names),
        None => Some((default_listener(position), None)),
    };
    names.console = listen.as_ref().map(|(listen, _)| listen.clone());
    let public_url = table.take("public_url");
    let public_url = public_url.and_then(|field| reader.value(field, values::public_url));
    let gateway_url = table.take("gateway_url");
    let gateway_url = gateway_url.and_then(|field| reader.value(field, values::public_url));
    let sign_up = table.take("sign_up");
    let sign_up_position = sign_up.map_or(position, |field| field.node.position);
    let sign_up = sign_up.and_then(|field| parse_sign_up(reader, field));
    let proxies = reader.items(&mut table, "trusted_proxies", values::ip_network);
    let session = table.take("session");
    let session = session.and_then(|field| parse_session(reader, field));
    let member_keys = table.take("member_keys");
    let member_keys = member_keys.and_then(|field| parse_member_keys(reader, field));
    let identity_field = table.take("identity");
    let identity = identity_field.map(|field| identity::parse(reader, field));
    let identity = identity.unwrap_or_default();
    let admins = reader.items(&mut table, "admins", values::mail_address);
    let mail_field = table.take("mail");
    let mail = mail_field.and_then(|field| mail::parse(reader, field));
    let inspector = reader.optional(&mut table, "inspector", parse_inspector);
    reader.finish(table);
    if !has_store {
        let message = "console needs a store, where people and keys are kept; add one, such as store: sqlite:omniglot.db";
        reader.problems.add(position, message);
    }
    let proves_addresses = identity.iter().any(|provider| provider.trust_email);
    let is_by_domain = matches!(sign_up, Some(SignUp::Domains(_)));
    if is_by_domain && mail_field.is_none() && !proves_addresses {
        let message = "sign_up: domains needs a way to prove addresses; add mail, or an identity provider with trust_email";
        reader.problems.add(sign_up_position, message);
    }
    if let Some(admin) = admins.first().filter(|_| !proves_addresses) {
        let message =
            "admins: nobody can prove these addresses; add an identity provider with trust_email";
        reader.warnings.add(admin.position, message);
    }
    let (listen, tls) = listen?;
    if tls.is_none() && proxies.is_empty() {
        check_loopback(reader, &listen);
    }
    if let Some(field) = mail_field.filter(|_| public_url.is_none()) {
        let message = "mail has links that only this machine can open; set public_url";
        reader.warnings.add(field.node.position, message);
    }
    Some(ConsoleConfig {
        public_url: match (public_url, &tls) {
            (Some(url), _) => url.value,
            (None, Some(_)) => format!("https://{}", listen.value),
            (None, None) => format!("http://{}", listen.value),
        },
        gateway_url: gateway_url.map(|url| url.value),
        listen: Listen {
            addr: listen.value,
            tls,
        },
        sign_up: sign_up.unwrap_or(SignUp::Invite),
        trusted_proxies: proxies.into_iter().map(|proxy| proxy.value).collect(),
        session: session.unwrap_or(DEFAULT_SESSION),
        member_keys: member_keys.unwrap_or_else(default_member_keys),
        mail,
        identity,
        admins: admins.into_iter().map(|admin| admin.value).collect(),
        inspector: inspector.unwrap_or(InspectorAccess::Owners),
    })
}

fn parse_inspector(text: &str) -> Result<InspectorAccess, String> {
    match text {
        "owners" => Ok(InspectorAccess::Owners),
        "off" => Ok(InspectorAccess::Off),
        _ => Err("owners or off".to_owned()),
    }
}

/// Refuses a listener without TLS that others than this machine may reach.
fn check_loopback(reader: &mut ConfigReader, listen: &Located<SocketAddr>) {
    if !listen.value.ip().is_loopback() {
        let message = format!(
            "console.listen {:?} is reached without TLS; give it a certificate ({{addr, tls: {{cert, key}}}}), listen on a loopback address, or name the proxies in front of it under trusted_proxies",
            listen.written
        );
        reader.problems.add(listen.position, message);
    }
}

fn default_listener(position: Position) -> Located<SocketAddr> {
    Located {
        value: DEFAULT_LISTEN,
        written: DEFAULT_LISTEN.to_string(),
        position,
    }
}

/// A word, or `{domains: [...]}`.
fn parse_sign_up(reader: &mut ConfigReader, field: ConfigField) -> Option<SignUp> {
    if let YamlKind::Map(_) = field.node.kind {
        let mut table = reader.table("sign_up", field)?;
        let domains = reader.required_field(&mut table, "domains");
        let domains = domains.map(|field| reader.filled_list(field));
        reader.finish(table);
        let domains = domains?.into_iter();
        let domains = domains.filter_map(|domain| reader.value(domain, values::domain));
        return Some(SignUp::Domains(
            domains.map(|domain| domain.value).collect(),
        ));
    }
    let parse = |text: &str| match text {
        "closed" => Ok(SignUp::Closed),
        "invite" => Ok(SignUp::Invite),
        "open" => Ok(SignUp::Open),
        _ => Err("closed, invite, open or {domains: [...]}".to_owned()),
    };
    reader.value(field, parse).map(|sign_up| sign_up.value)
}

fn parse_session(reader: &mut ConfigReader, field: ConfigField) -> Option<SessionLimits> {
    let mut table: ConfigTable = reader.table("session", field)?;
    let idle = reader.optional(&mut table, "idle", values::long_duration);
    let absolute = reader.optional(&mut table, "absolute", values::long_duration);
    reader.finish(table);
    Some(SessionLimits {
        idle: idle.unwrap_or(DEFAULT_SESSION.idle),
        absolute: absolute.unwrap_or(DEFAULT_SESSION.absolute),
    })
}

fn default_member_keys() -> MemberKeys {
    let amount = |written: &str| Amount {
        money: Money::parse(written).unwrap_or_default(),
        written: written.to_owned(),
    };
    MemberKeys {
        max: 10,
        cap_max: amount("100"),
        cap_default: amount("10"),
        unlimited: false,
        expires_max: None,
    }
}

fn parse_member_keys(reader: &mut ConfigReader, field: ConfigField) -> Option<MemberKeys> {
    let mut table = reader.table("member_keys", field)?;
    let default = default_member_keys();
    let max = reader.optional(&mut table, "max", values::count);
    let cap_max = reader.optional(&mut table, "cap_max", values::amount);
    let cap_default = table.take("cap_default");
    let cap_default = cap_default.and_then(|field| reader.value(field, values::amount));
    let unlimited = reader.optional(&mut table, "unlimited", values::switch);
    let expires_max = reader.optional(&mut table, "expires_max", values::long_duration);
    reader.finish(table);
    let cap_max = cap_max.unwrap_or(default.cap_max);
    if let Some(cap) = cap_default
        .as_ref()
        .filter(|cap| cap.value.money > cap_max.money)
    {
        let message = format!(
            "cap_default {:?} is above cap_max {:?}; lower it or raise cap_max",
            cap.written, cap_max.written
        );
        reader.problems.add(cap.position, message);
    }
    let cap_default = cap_default.map_or(default.cap_default, |cap| cap.value);
    Some(MemberKeys {
        max: max.unwrap_or(default.max),
        // A default that was not written does not exceed a maximum that was.
        cap_default: match cap_default.money > cap_max.money {
            true => cap_max.clone(),
            false => cap_default,
        },
        cap_max,
        unlimited: unlimited.unwrap_or(default.unlimited),
        expires_max,
    })
}
