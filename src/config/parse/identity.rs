//! One entry of `console.identity`.

use url::{Host, Url};

use crate::config::settings::{IdentityConfig, Secret};
use crate::config::table::{ConfigField, ConfigReader, Located};
use crate::config::values::{self, Parsed};

const DEFAULT_SCOPES: [&str; 3] = ["openid", "email", "profile"];
const DEFAULT_CLAIM: &str = "groups";

/// All providers; names and issuers are there once.
pub fn parse(reader: &mut ConfigReader, field: ConfigField) -> Vec<IdentityConfig> {
    let mut names: Vec<Located<String>> = Vec::new();
    let mut providers: Vec<IdentityConfig> = Vec::new();
    for field in reader.list(field) {
        let Some((name, provider)) = parse_entry(reader, field) else {
            continue;
        };
        if names.iter().any(|known| known.value == name.value) {
            let message = format!("duplicate identity name {:?}; rename one", name.written);
            reader.problems.add(name.position, message);
        }
        if providers
            .iter()
            .any(|known| known.issuer == provider.issuer)
        {
            let message = format!(
                "the issuer of {:?} is already that of another; remove one",
                name.written
            );
            reader.problems.add(name.position, message);
        }
        names.push(name);
        providers.push(provider);
    }
    providers
}

fn parse_entry(
    reader: &mut ConfigReader,
    field: ConfigField,
) -> Option<(Located<String>, IdentityConfig)> {
    let mut table = reader.table("an identity provider", field)?;
    let name = reader.required(&mut table, "name", provider_name);
    let label = reader.optional(&mut table, "label", values::label);
    let issuer = reader.required(&mut table, "issuer", issuer);
    let client_id = reader.required(&mut table, "client_id", values::label);
    let secret = table.take("client_secret");
    let secret = secret.and_then(|field| reader.hidden(field, values::label));
    let trust_email = reader.optional(&mut table, "trust_email", values::switch);
    let scopes = reader.items(&mut table, "scopes", values::name);
    let groups = table.take("groups");
    let groups = groups.and_then(|field| parse_groups(reader, field));
    reader.finish(table);
    let (claim, admins) = groups.unwrap_or_default();
    let name = name?;
    let mut scopes: Vec<String> = scopes.into_iter().map(|scope| scope.value).collect();
    if scopes.is_empty() {
        scopes = DEFAULT_SCOPES.map(str::to_owned).to_vec();
    }
    if !scopes.iter().any(|scope| scope == "openid") {
        scopes.insert(0, "openid".to_owned());
    }
    let provider = IdentityConfig {
        label: label.unwrap_or_else(|| name.value.clone()),
        name: name.value.clone(),
        issuer: issuer?.value,
        client_id: client_id?.value,
        client_secret: secret.map(|secret| Secret::new(secret.value)),
        trust_email: trust_email.unwrap_or(false),
        scopes,
        groups_claim: claim.unwrap_or_else(|| DEFAULT_CLAIM.to_owned()),
        admins_group: admins,
    };
    Some((name, provider))
}

/// The claim, and the group of administrators.
fn parse_groups(
    reader: &mut ConfigReader,
    field: ConfigField,
) -> Option<(Option<String>, Option<String>)> {
    let mut table = reader.table("groups", field)?;
    let claim = reader.optional(&mut table, "claim", values::label);
    let admins = reader.required(&mut table, "admins", values::label);
    reader.finish(table);
    Some((claim, admins.map(|admins| admins.value)))
}

/// A name that is a part of a path.
fn provider_name(text: &str) -> Parsed<String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("lower-case letters, digits and hyphens".to_owned()),
    }
}

/// To the letter as the provider writes it: a slash at the end makes another issuer.
fn issuer(text: &str) -> Parsed<String> {
    let url = Url::parse(text).ok().filter(|url| {
        let is_loopback = match url.host() {
            Some(Host::Domain(host)) => host == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        let is_plain = url.query().is_none() && url.fragment().is_none();
        let is_secure = url.scheme() == "https" || url.scheme() == "http" && is_loopback;
        is_plain && is_secure && url.has_host() && url.username().is_empty()
    });
    url.map(|_| text.to_owned()).ok_or_else(|| {
        "the https:// URL of the provider, as it writes it itself (http:// on this machine only)"
            .to_owned()
    })
}
