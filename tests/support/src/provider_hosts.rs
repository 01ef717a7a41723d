//! The hosts of all providers, played by the mock: whatever name the gateway asks for, it is led there.

use std::process::Command;
use std::sync::Arc;

use crate::connect_proxy::ConnectProxy;
use crate::mock::Mock;
use crate::tls::{CertificateAuthority, TlsProxy};

/// A proxy through which every host is the mock, with a certificate for its name.
pub struct ProviderHosts {
    pub mock: Mock,
    proxy: ConnectProxy,
    authority: Arc<CertificateAuthority>,
}

impl ProviderHosts {
    /// Starts the mock and the proxy.
    pub async fn start() -> ProviderHosts {
        let mock = Mock::start();
        let authority = Arc::new(CertificateAuthority::new());
        let tls = TlsProxy::start_for_any_name(authority.clone(), mock.address).await;
        let proxy = ConnectProxy::start_by_port(tls.address, mock.address).await;
        ProviderHosts {
            mock,
            proxy,
            authority,
        }
    }

    /// Leads a gateway to the mock, without anything that the environment of the tests knows of clouds.
    pub fn prepare(&self, command: &mut Command) {
        let prefixes = ["AWS_", "AZURE_", "GOOGLE_", "ANTHROPIC_", "OPENAI_"];
        for (name, _) in std::env::vars() {
            if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        for name in ["https_proxy", "http_proxy"] {
            command.env(name, self.proxy.address.to_string());
        }
        command.env("SSL_CERT_FILE", self.authority.file());
        command.env("HOME", "/nonexistent");
        command.env("AWS_EC2_METADATA_DISABLED", "true");
    }

    /// Returns the hosts that were asked for, with their ports.
    pub fn asked(&self) -> Vec<String> {
        let requests = self.proxy.requests();
        let targets = requests
            .iter()
            .filter_map(|header| header.split(' ').nth(1));
        targets.map(str::to_owned).collect()
    }
}
