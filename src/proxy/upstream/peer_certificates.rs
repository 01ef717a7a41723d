//! The certificates of upstreams in the form that pingora takes them, made once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pingora_core::protocols::tls::CaType;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::utils::tls::{CertKey, WrappedX509, parse_x509};

use crate::config::UpstreamTls;

/// Reloads make new ones; when there are this many, all are made again.
const MAX_CERTIFICATES: usize = 256;

/// The certificates by the group of their connections, which differs with them.
#[derive(Default)]
pub(super) struct PeerCertificates(Mutex<HashMap<u64, ParsedCertificates>>);

#[derive(Clone)]
struct ParsedCertificates {
    ca: Option<Arc<CaType>>,
    client: Option<Arc<CertKey>>,
}

impl PeerCertificates {
    /// Makes a peer use the certificates of its upstream.
    pub(super) fn apply(&self, tls: &UpstreamTls, group: u64, peer: &mut HttpPeer) {
        if let Some(name) = &tls.server_name {
            peer.sni.clone_from(name);
        }
        let mut parsed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if parsed.len() >= MAX_CERTIFICATES && !parsed.contains_key(&group) {
            parsed.clear();
        }
        let certificates = parsed.entry(group).or_insert_with(|| parse(tls)).clone();
        drop(parsed);
        peer.options.ca = certificates.ca;
        peer.client_cert_key = certificates.client;
    }
}

/// The config was checked: pingora would panic at a certificate that is none.
fn parse(tls: &UpstreamTls) -> ParsedCertificates {
    let trusted = tls.ca.iter();
    let trusted = trusted.map(|der| WrappedX509::new(der.clone(), parse_x509));
    let trusted: Vec<WrappedX509> = trusted.collect();
    let client = tls.client.as_ref();
    ParsedCertificates {
        ca: (!trusted.is_empty()).then(|| trusted.into()),
        client: client
            .map(|client| Arc::new(CertKey::new(client.chain.clone(), client.key.clone()))),
    }
}
