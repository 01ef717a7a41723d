//! Which proxy a base URL is reached through: that of the config, or that of the environment, as curl reads it.

use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use url::Url;

use super::expand::Env;
use super::settings::{BaseUrl, ProxyConfig};
use super::values::{Parsed, switch};

/// What messages say of a proxy, which may hold a password.
const EXPECTED: &str = "http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (it is not shown here)";

/// `upstreams[].proxy`: a URL, or `none`.
pub fn setting(text: &str) -> Parsed<Option<ProxyConfig>> {
    if text == "none" || switch(text) == Ok(false) {
        return Ok(None);
    }
    let proxy = proxy_url(text).map(Some);
    proxy.ok_or_else(|| format!("none, {EXPECTED}"))
}

/// The proxy that the environment names for a base URL. Loopback addresses are never reached through one.
pub fn of_environment(env: &Env, base: &BaseUrl) -> Result<Option<ProxyConfig>, String> {
    // As curl does: HTTP_PROXY in capitals may be a header of a request, where a CGI program is started.
    let names: &[&str] = match base.tls {
        true => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        false => &["http_proxy", "all_proxy", "ALL_PROXY"],
    };
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let found = names.iter().find_map(|name| Some((name, set(name)?)));
    let Some((name, value)) = found.filter(|_| !is_loopback(&base.host)) else {
        return Ok(None);
    };
    let exceptions = set("no_proxy").or_else(|| set("NO_PROXY"));
    if exceptions.is_some_and(|list| is_exception(&list, &base.host, base.port)) {
        return Ok(None);
    }
    // Other programs accept it without a scheme too.
    let url = match value.contains("://") {
        true => proxy_url(&value),
        false => proxy_url(&format!("http://{value}")),
    };
    url.map(Some).ok_or_else(|| {
        format!("the variable {name} must be {EXPECTED}; mend it, or write proxy: none")
    })
}

fn proxy_url(text: &str) -> Option<ProxyConfig> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.scheme() == "http"
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none();
    let host = url.host_str().filter(|host| is_plain && !host.is_empty())?;
    let decoded = |part: &str| {
        let decoded = percent_decode_str(part).decode_utf8().ok()?;
        let is_one_line = !decoded.contains(char::is_control);
        is_one_line.then(|| decoded.into_owned())
    };
    let credentials = match (url.username(), url.password()) {
        ("", None) => None,
        (user, password) => {
            let password = decoded(password.unwrap_or_default())?;
            Some(format!("{}:{password}", decoded(user)?))
        }
    };
    Some(ProxyConfig {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: url.port().unwrap_or(80),
        credentials,
    })
}

fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    let is_name = name == "localhost" || name.ends_with(".localhost");
    let address = host.parse::<IpAddr>();
    is_name || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Tells whether NO_PROXY names a host: by a name that it has or ends with, by its address, or by a network. A port
/// behind any of them stands for that port only, a `*` for everything.
fn is_exception(list: &str, host: &str, port: u16) -> bool {
    let mut entries = list
        .split([',', ' ', '\t'])
        .filter(|entry| !entry.is_empty());
    entries.any(|entry| {
        let (name, only_port) = split_port(entry);
        only_port.is_none_or(|only| only == port) && names_host(name, host)
    })
}

fn names_host(name: &str, host: &str) -> bool {
    if name == "*" {
        return true;
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return match name.split_once('/') {
            Some((network, bits)) => is_within(address, network, bits),
            None => name.parse() == Ok(address),
        };
    }
    let plain = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    let name = name.strip_prefix('*').unwrap_or(name);
    let (name, host) = (plain(name.trim_start_matches('.')), plain(host));
    let before = host.strip_suffix(&name).filter(|_| !name.is_empty());
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    let (name, port) = match entry.strip_prefix('[') {
        Some(bracketed) => {
            let (address, rest) = bracketed.split_once(']').unwrap_or((bracketed, ""));
            (address, rest.strip_prefix(':'))
        }
        None => match entry.split_once(':') {
            // An IPv6 address has more colons.
            Some((name, port)) if !port.contains(':') => (name, Some(port)),
            _ => (entry, None),
        },
    };
    match port.map(str::parse) {
        Some(Ok(port)) => (name, Some(port)),
        _ => (name, None),
    }
}

fn is_within(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else {
        return false;
    };
    let differing = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) if bits <= 32 => {
            (one.to_bits() ^ other.to_bits()).leading_zeros()
        }
        (IpAddr::V6(one), IpAddr::V6(other)) if bits <= 128 => {
            (one.to_bits() ^ other.to_bits()).leading_zeros()
        }
        _ => return false,
    };
    differing >= bits
}

#[cfg(test)]
mod tests;
