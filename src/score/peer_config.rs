//! Configs of gateways that send every model of the scorecard to its upstream.

use std::net::SocketAddr;

/// A gateway that a config can be printed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerGateway {
    Omniglot,
    Litellm,
    Portkey,
    Bifrost,
    NewApi,
    Agentgateway,
}

const OMNIGLOT: &str = include_str!("peers/omniglot.yaml");
const LITELLM: &str = include_str!("peers/litellm.yaml");
const PORTKEY: &str = include_str!("peers/portkey.sh");
const BIFROST: &str = include_str!("peers/bifrost.json");
const NEW_API: &str = include_str!("peers/new-api.sh");
const AGENTGATEWAY: &str = include_str!("peers/agentgateway.yaml");

impl PeerGateway {
    /// The config, for an upstream at this address and a key of clients.
    pub fn config(self, upstream: SocketAddr, listen: SocketAddr, key: &str) -> String {
        let text = match self {
            PeerGateway::Omniglot => OMNIGLOT,
            PeerGateway::Litellm => LITELLM,
            PeerGateway::Portkey => PORTKEY,
            PeerGateway::Bifrost => BIFROST,
            PeerGateway::NewApi => NEW_API,
            PeerGateway::Agentgateway => AGENTGATEWAY,
        };
        text.replace("UPSTREAM", &upstream.to_string())
            .replace("LISTEN", &listen.to_string())
            .replace("PORT", &listen.port().to_string())
            .replace("KEY", key)
    }
}
