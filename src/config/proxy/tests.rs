//! Proxies of the environment, their exceptions, and URLs of proxies.

use super::*;
use crate::config::values::base_url;

fn found(variables: &[(&str, &str)], url: &str) -> Result<Option<String>, String> {
    let env = |name: &str| {
        let mut variables = variables.iter();
        let found = variables.find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let base = base_url(url).expect("a URL");
    let proxy = of_environment(&env, &base)?;
    Ok(proxy.map(|proxy| proxy.to_string()))
}

#[test]
fn the_variable_of_the_scheme_is_used_as_curl_does() {
    let one = |variables: &[(&str, &str)], url: &str| {
        let found = found(variables, url).expect("a proxy or none");
        found.unwrap_or_default()
    };
    for (name, https, http) in [
        ("https_proxy", "p:1", ""),
        ("HTTPS_PROXY", "p:1", ""),
        ("http_proxy", "", "p:1"),
        ("HTTP_PROXY", "", ""),
        ("all_proxy", "p:1", "p:1"),
        ("ALL_PROXY", "p:1", "p:1"),
    ] {
        let variables = [(name, "http://p:1")];
        assert_eq!(one(&variables, "https://a.example"), https, "{name}");
        assert_eq!(one(&variables, "http://a.example"), http, "{name}");
    }
    let both = [
        ("HTTPS_PROXY", "http://upper:1"),
        ("https_proxy", "lower:2"),
    ];
    assert_eq!(one(&both, "https://a.example"), "lower:2");
    let empty = [("https_proxy", ""), ("ALL_PROXY", "http://[::1]:8")];
    assert_eq!(one(&empty, "https://a.example"), "[::1]:8");
}

#[test]
fn loopback_addresses_are_never_reached_through_the_environment() {
    let all = [("ALL_PROXY", "http://p:1")];
    for host in [
        "localhost",
        "api.localhost",
        "127.0.0.1",
        "127.8.8.8",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ] {
        assert_eq!(
            found(&all, &format!("http://{host}:9000/v1")),
            Ok(None),
            "{host}"
        );
    }
}

#[test]
fn no_proxy_names_hosts_addresses_networks_and_ports() {
    for (list, url, is_excepted) in [
        ("*", "https://a.example", true),
        ("a.example", "https://a.example", true),
        ("a.example", "https://api.A.example", true),
        (".a.example", "https://a.example", true),
        ("*.a.example", "https://api.a.example", true),
        ("A.Example.", "https://a.example", true),
        ("a.example", "https://ba.example", false),
        ("b.example, a.example", "https://a.example", true),
        ("b.example a.example", "https://a.example", true),
        (",", "https://a.example", false),
        (".", "https://a.example", false),
        ("a.example:443", "https://a.example", true),
        ("a.example:8443", "https://a.example", false),
        ("a.example:8443", "https://a.example:8443", true),
        ("10.0.0.7", "https://10.0.0.7", true),
        ("10.0.0.7:443", "https://10.0.0.7", true),
        ("10.0.0.7", "https://110.0.0.7", false),
        ("10.0.0.0/8", "https://10.200.0.7", true),
        ("10.0.0.0/8", "https://11.0.0.7", false),
        ("10.0.0.0/33", "https://10.0.0.7", false),
        ("0.0.0.0/0", "https://10.0.0.7", true),
        ("10.0.0.0/8", "https://10.example", false),
        ("fd00::/8", "https://[fd12::7]", true),
        ("fd00::/8", "https://[fe80::7]", false),
        ("[fd12::7]:443", "https://[fd12::7]", true),
        ("fd12::7", "https://[fd12::7]", true),
        ("[fd12::7]:80", "https://[fd12::7]", false),
    ] {
        let variables = [("HTTPS_PROXY", "p:1"), ("NO_PROXY", list)];
        let proxy = found(&variables, url).expect("a proxy or none");
        assert_eq!(proxy.is_none(), is_excepted, "{list} for {url}");
    }
}

#[test]
fn a_proxy_of_another_kind_is_reported_where_it_would_be_used() {
    for value in [
        "socks5://user:hush@p:1",
        "https://p:1",
        "http://",
        "http://p:1/path",
    ] {
        let variables = [("HTTPS_PROXY", value)];
        let message = found(&variables, "https://a.example").expect_err("a problem");
        assert!(message.contains("HTTPS_PROXY"), "{message}");
        assert!(!message.contains("hush"), "{message}");
        assert_eq!(found(&variables, "https://localhost"), Ok(None));
        assert_eq!(found(&variables, "http://a.example"), Ok(None));
    }
}

#[test]
fn urls_of_proxies_are_taken_apart_and_their_passwords_hidden() {
    let parsed = |text: &str| setting(text).ok().flatten();
    let proxy = parsed("http://us%40er:p%3Ahush@proxy.example:3128/").expect("a proxy");
    assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.example", 3128));
    assert_eq!(proxy.credentials.as_deref(), Some("us@er:p:hush"));
    assert_eq!(
        format!("{proxy:?} {proxy}"),
        "ProxyConfig(proxy.example:3128) proxy.example:3128"
    );
    let plain = parsed("http://[fd00::1]").expect("a proxy");
    assert_eq!(
        (plain.host.as_str(), plain.port, plain.credentials),
        ("fd00::1", 80, None)
    );
    assert_eq!(
        parsed("http://user@p:1")
            .expect("a proxy")
            .credentials
            .as_deref(),
        Some("user:")
    );
    assert_eq!(setting("none"), Ok(None));
    assert_eq!(setting("off"), Ok(None));
    for wrong in [
        "p:1",
        "socks5://p:1",
        "http://p:1/x",
        "http://p%0d%0a:1",
        "http://a:b%0d%0a@p:1",
    ] {
        assert!(setting(wrong).is_err(), "{wrong}");
    }
}
