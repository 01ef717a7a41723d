//! Tells public URLs: HTTPS, without credentials, with a host on the public network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::link::{Link, MAX_HOST, without_breaks};

/// Domains that resolve only inside a machine or a network.
const PRIVATE_NAMES: [&str; 8] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "home.arpa",
    "corp",
];

/// Tells whether a URL is public.
pub fn is_public_https(address: &str) -> bool {
    // The parser takes very long for a long international name, which no public host has.
    if Link::new(&without_breaks(address)).is_none_or(|link| link.host.len() > MAX_HOST) {
        return false;
    }
    // The parser knows every form of an address: 0x7f.1, 2130706433, 0177.0.0.1, ①.
    let Ok(url) = Url::parse(address) else {
        return false;
    };
    let is_open = url.scheme() == "https" && url.username().is_empty() && url.password().is_none();
    is_open
        && match url.host() {
            Some(Host::Domain(name)) => is_public_name(name),
            Some(Host::Ipv4(address)) => is_public_v4(address),
            Some(Host::Ipv6(address)) => is_public_v6(address),
            None => false,
        }
}

/// Tells whether a resolved address is on the public network.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let is_below = |private: &str| {
        let rest = name.strip_suffix(private);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    name.contains('.') && !PRIVATE_NAMES.iter().any(|private| is_below(private))
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let reserved = match first {
        0 | 240.. => true,
        // Shared by the customers of a provider; for benchmarks; for protocols.
        100 => second & 0xc0 == 64,
        198 => second & 0xfe == 18,
        192 => second == 0 && third == 0,
        _ => false,
    };
    !(reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, fourth, fifth, sixth, ..] = address.segments();
    let [.., a, b, c, d] = address.octets();
    let tail = Ipv4Addr::new(a, b, c, d);
    match (first, second) {
        // Loopback, unspecified, and IPv4 in its mapped and compatible forms.
        (0, 0) => third == 0 && fourth == 0 && fifth == 0 && sixth == 0xffff && is_public_v4(tail),
        // Translated to IPv4, the well-known prefix; the local one leads anywhere.
        (0x64, 0xff9b) => third == 0 && is_public_v4(tail),
        // Relayed to the IPv4 address that follows.
        (0x2002, _) => {
            let [high, low] = [second, third].map(u16::to_be_bytes);
            is_public_v4(Ipv4Addr::new(high[0], high[1], low[0], low[1]))
        }
        // Tunnels, benchmarks and documentation.
        (0x2001, 0 | 2 | 0xdb8) => false,
        // All global unicast addresses begin so.
        (first, _) => first & 0xe000 == 0x2000 && first != 0x3fff,
    }
}

#[cfg(test)]
mod tests {
    use super::is_public_https;

    #[test]
    fn public_urls_are_public() {
        for address in [
            "https://example.com/cat.png",
            "HTTPS://EXAMPLE.com:8443/cat.png?size=1#top",
            "https://example.com./cat.png",
            "https://localhost.example.com/",
            "https://b\u{fc}cher.example/cat.png",
            "https://8.8.8.8/cat.png",
            "https://134744072/",
            "https://172.32.0.1/",
            "https://100.128.0.1/",
            "https://[2606:4700::1111]/",
            "https://[::ffff:8.8.8.8]/",
            "https://[64:ff9b::808:808]/",
        ] {
            assert!(is_public_https(address), "{address}");
        }
    }

    #[test]
    fn other_urls_are_not_public() {
        for address in [
            "http://example.com/cat.png",
            "https://me:secret@example.com/cat.png",
            "https://me@example.com/cat.png",
            "gs://bucket/cat.png",
            "files/abc",
            "https://",
            "",
            "data:image/png;base64,AAAA",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://printer.local/",
            "https://metadata.google.internal/",
            "https://router.home.arpa/",
            "https://intranet/",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://127.0.0.1./",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0x7f.0.0.1/",
            "https://0177.0.0.1/",
            "https://017700000001/",
            "https://%31%32%37.0.0.1/",
            "https://\u{2460}\u{2461}\u{2466}.0.0.1/",
            "https://0.0.0.0/",
            "https://10.1.2.3/",
            "https://172.16.0.1/",
            "https://172.31.255.255/",
            "https://192.168.1.1/",
            "https://169.254.169.254/",
            "https://100.64.0.1/",
            "https://192.0.0.1/",
            "https://192.0.2.1/",
            "https://198.18.0.1/",
            "https://224.0.0.1/",
            "https://255.255.255.255/",
            "https://[::]/",
            "https://[::1]/",
            "https://[::127.0.0.1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:a9fe:a9fe]/",
            "https://[fe80::1]/",
            "https://[fec0::1]/",
            "https://[fc00::1]/",
            "https://[fd12:3456::1]/",
            "https://[ff02::1]/",
            "https://[2001:db8::1]/",
            "https://[2002:7f00:1::]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[64:ff9b:1::1]/",
        ] {
            assert!(!is_public_https(address), "{address}");
        }
    }
}
