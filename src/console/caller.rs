//! Who a request comes from: the session of its cookie, the address behind trusted proxies.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, OriginalUri};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use super::actor::{ConsoleCall, Via};
use super::language::language_of;
use super::refusal::Refusal;
use super::sessions;
use super::state::Console;
use crate::config::IpNetwork;

const FORWARDED_FOR: &str = "x-forwarded-for";

impl FromRequestParts<Arc<Console>> for ConsoleCall {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut Parts,
        console: &Arc<Console>,
    ) -> Result<ConsoleCall, Refusal> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|ConnectInfo(address)| address.ip());
        let agent = parts.headers.get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok());
        // The routes of the API see their paths without its prefix.
        let original = parts.extensions.get::<OriginalUri>();
        let path = original.map_or(parts.uri.path(), |OriginalUri(uri)| uri.path());
        Ok(ConsoleCall {
            actor: sessions::actor_of(console, &parts.headers).await?,
            via: match path.starts_with("/api/") {
                true => Via::Api,
                false => Via::Pages,
            },
            remote: client_address(peer, &parts.headers, &console.settings.trusted_proxies),
            agent: agent.unwrap_or_default().to_owned(),
            texts: language_of(&parts.headers),
            console: console.clone(),
        })
    }
}

/// The address of the client. Only proxies that are trusted may tell another than that of the connection; the last
/// one that is not trusted itself is the client.
fn client_address(
    peer: Option<IpAddr>,
    headers: &HeaderMap,
    trusted: &[IpNetwork],
) -> Option<IpAddr> {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = peer?;
    let forwarded = headers.get_all(FORWARDED_FOR).into_iter();
    let forwarded: Vec<&str> = forwarded
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    for address in forwarded.into_iter().rev() {
        if !is_trusted(client) {
            break;
        }
        let Ok(address) = address.parse() else {
            break;
        };
        client = address;
    }
    Some(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_tell_where_a_request_comes_from() {
        let trusted = [IpNetwork {
            address: "10.0.0.0".parse().expect("an address"),
            bits: 8,
        }];
        for (peer, forwarded, client) in [
            ("203.0.113.1", "198.51.100.7", "203.0.113.1"),
            ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
            // What the client itself wrote stands before what the proxy added.
            ("10.0.0.1", "1.2.3.4, 198.51.100.7", "198.51.100.7"),
            ("10.0.0.1", "198.51.100.7, 10.0.0.2", "198.51.100.7"),
            ("10.0.0.1", "nonsense", "10.0.0.1"),
            ("10.0.0.1", "", "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(FORWARDED_FOR, forwarded.parse().expect("a value"));
            let peer = peer.parse().ok();
            let found = client_address(peer, &headers, &trusted);
            assert_eq!(found, client.parse().ok(), "{peer:?} {forwarded}");
        }
        assert_eq!(client_address(None, &HeaderMap::new(), &trusted), None);
    }
}
