//! The certificates of the TLS listeners, which are read again on a reload.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use arc_swap::ArcSwap;
use pingora::listeners::tls::TlsSettings;
use pingora::tls::sign::CertifiedKey;
use pingora::tls::{
    self, ClientHello, CryptoProvider, PrivateKeyDer, ResolvesServerCert, RootCertStore,
};
use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use crate::config::{Config, Listen, Problem, Severity, TlsFiles, UpstreamTls};

/// The certificate of one listener. New connections get the current one.
#[derive(Debug)]
struct CurrentCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// The certificates of all listeners, by address.
#[derive(Default)]
pub(super) struct Certificates(Vec<(SocketAddr, Arc<CurrentCertificate>)>);

impl Certificates {
    /// Reads the certificate of a listener; its files are read again by [`Certificates::reload`].
    pub(super) fn listen(&mut self, addr: SocketAddr, files: &TlsFiles) -> Result<TlsSettings> {
        let certificate = CurrentCertificate(ArcSwap::from_pointee(load(files)?));
        let certificate = Arc::new(certificate);
        let (cert, key) = (files.cert.to_string_lossy(), files.key.to_string_lossy());
        let mut settings = TlsSettings::intermediate(&cert, &key)?;
        settings.set_cert_resolver(certificate.clone());
        settings.enable_h2();
        self.0.push((addr, certificate));
        Ok(settings)
    }

    /// Reads the certificate of a listener that speaks HTTP/1.1 alone, such as that of the console.
    pub(super) fn acceptor(&mut self, addr: SocketAddr, files: &TlsFiles) -> Result<TlsAcceptor> {
        let certificate = CurrentCertificate(ArcSwap::from_pointee(load(files)?));
        let certificate = Arc::new(certificate);
        let provider = CryptoProvider::get_default().context("no crypto provider")?;
        let mut config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(certificate.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        self.0.push((addr, certificate));
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reads the files of every listener again; one that cannot be used keeps its certificate.
    pub(super) fn reload(&self, config: &Config) {
        for (addr, certificate) in &self.0 {
            let same = listeners(config).find(|listen| listen.addr == *addr);
            let Some(files) = same.and_then(|listen| listen.tls.as_ref()) else {
                continue;
            };
            match load(files) {
                Ok(loaded) => certificate.0.store(Arc::new(loaded)),
                Err(error) => log::error!("{addr} keeps its certificate: {error:#}"),
            }
        }
    }
}

/// The listeners of the gateway, and that of the console.
fn listeners(config: &Config) -> impl Iterator<Item = &Listen> {
    let console = config.console.iter().map(|console| &console.listen);
    config.server.listen.iter().chain(console)
}

/// The problems of certificates and keys that a listener or an upstream could not use.
pub fn certificate_problems(config: &Config, file: &Path) -> Vec<Problem> {
    let files = listeners(config).filter_map(|listen| listen.tls.as_ref());
    let of_listeners = files.filter_map(|files| Some((files.position, load(files).err()?)));
    let upstreams = config.upstreams.iter();
    let of_upstreams = upstreams.filter_map(|upstream| {
        let tls = upstream.tls.as_ref()?;
        let error = check_upstream(tls).err()?;
        let error = error.context(format!("upstreams.{}: tls cannot be used", upstream.name));
        Some((tls.position, error))
    });
    of_listeners
        .chain(of_upstreams)
        .map(|(position, error)| Problem {
            file: file.display().to_string(),
            line: position.line,
            column: position.column,
            severity: Severity::Problem,
            message: format!("{error:#}"),
        })
        .collect()
}

/// Tries what pingora does with every new connection.
fn check_upstream(upstream: &UpstreamTls) -> Result<()> {
    let mut trusted = RootCertStore::empty();
    for der in &upstream.ca {
        let added = trusted.add(der.clone().into());
        added.context("a certificate of ca is no certificate of an authority")?;
    }
    let Some(client) = &upstream.client else {
        return Ok(());
    };
    let chain = client.chain.iter().map(|der| der.clone().into());
    let key = PrivateKeyDer::try_from(client.key.clone());
    let key = key.ok().context("the key is of an unknown kind")?;
    tls::install_default_crypto_provider();
    let provider = CryptoProvider::get_default().context("no crypto provider")?;
    let used = CertifiedKey::from_der(chain.collect(), key, provider);
    used.context("certificate and key do not fit together")?;
    Ok(())
}

fn load(files: &TlsFiles) -> Result<CertifiedKey> {
    let (cert, key) = (files.cert.to_string_lossy(), files.key.to_string_lossy());
    let loaded = || {
        let (certs, secret) = tls::load_certs_and_key_files(&cert, &key)?
            .context("the one needs a PEM certificate, the other a PEM private key")?;
        tls::install_default_crypto_provider();
        let provider = CryptoProvider::get_default().context("no crypto provider")?;
        Ok(CertifiedKey::from_der(certs, secret, provider)?)
    };
    let loaded: Result<CertifiedKey> = loaded();
    loaded.with_context(|| format!("cannot use {cert:?} and {key:?} for TLS"))
}
