//! Parsers of URLs: of upstreams, web pages, databases and this gateway.

use url::Url;

use super::Parsed;
use crate::config::settings::{BaseUrl, LimitsStore, ServerUrl, StoreConfig};

/// The URL of the console in a browser.
pub fn public_url(text: &str) -> Parsed<String> {
    let url = web_url(text).filter(|url| !carries_credentials(url));
    let url = url.filter(|url| {
        let is_loopback = match url.host() {
            Some(url::Host::Domain(host)) => host == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        let is_root = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        is_root && (url.scheme() == "https" || is_loopback)
    });
    url.map(|url| url.as_str().trim_end_matches('/').to_owned())
        .ok_or_else(|| {
            "an https:// URL without a path, such as https://console.example.com (http:// for this machine only)"
                .to_owned()
        })
}

/// The origin of a web page as browsers send it, which is compared letter by letter.
pub fn origin(text: &str) -> Parsed<String> {
    let host = text.split_once("://").map(|(_, host)| host);
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', '*']);
    let is_plain = |letter: u8| letter.is_ascii_graphic() && !letter.is_ascii_uppercase();
    (host.is_some_and(is_host) && text.bytes().all(is_plain))
        .then(|| text.to_owned())
        .ok_or_else(|| {
            "an origin such as https://app.example, in lower case and without a path".to_owned()
        })
}

pub fn document_url(text: &str) -> Parsed<String> {
    web_url(text)
        .filter(|url| !carries_credentials(url))
        .map(|_| text.to_owned())
        .ok_or_else(|| "an http:// or https:// URL without user and password".to_owned())
}

pub fn base_url(text: &str) -> Parsed<BaseUrl> {
    let url = web_url(text).ok_or_else(|| {
        "an http:// or https:// URL such as https://api.example.com/v1".to_owned()
    })?;
    if carries_credentials(&url) {
        return Err("a URL without user and password; put credentials under \"auth\"".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a URL that ends with its path, without ? and #".to_owned());
    }
    let tls = url.scheme() == "https";
    let host = url.host_str().unwrap_or_default();
    let authority = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    Ok(BaseUrl {
        tls,
        host: host.trim_matches(['[', ']']).to_owned(),
        port: url.port().unwrap_or(if tls { 443 } else { 80 }),
        authority,
        prefix: url.path().trim_end_matches('/').to_owned(),
    })
}

/// The address of the store.
pub fn store(text: &str) -> Parsed<StoreConfig> {
    let expected = "sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE (it is not shown here)";
    if let Some(path) = text.strip_prefix("sqlite:") {
        // `sqlite://` is what other programs write.
        let path = path.strip_prefix("//").unwrap_or(path);
        let is_file = !path.is_empty() && !path.ends_with('/') && path != ":memory:";
        let is_plain = !path.chars().any(char::is_control);
        return (is_file && is_plain)
            .then(|| StoreConfig::Sqlite(path.into()))
            .ok_or_else(|| expected.to_owned());
    }
    let url = Url::parse(text).ok();
    url.filter(|url| matches!(url.scheme(), "postgres" | "postgresql"))
        .map(|url| StoreConfig::Postgres(ServerUrl::new("postgres", &url)))
        .ok_or_else(|| expected.to_owned())
}

/// The address of the Redis for shared limits.
pub fn limits_store(text: &str) -> Parsed<LimitsStore> {
    let expected = "redis://HOST:PORT/DATABASE or rediss://… (it is not shown here)";
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "redis" | "rediss") && url.has_host());
    let database = |url: &Url| {
        let number = url.path().trim_start_matches('/');
        number.is_empty() || number.parse::<u16>().is_ok()
    };
    url.filter(database)
        .map(|url| LimitsStore(ServerUrl::new(url.scheme(), &url)))
        .ok_or_else(|| expected.to_owned())
}

fn web_url(text: &str) -> Option<Url> {
    // The URL crate accepts `https:host`, which is hardly intended.
    let scheme = text.split_once("://").map(|(scheme, _)| scheme)?;
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let url = Url::parse(text).ok()?;
    (web && url.has_host()).then_some(url)
}

fn carries_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}
