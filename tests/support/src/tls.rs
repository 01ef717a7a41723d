//! Certificates for tests, and a proxy that adds TLS to the mock.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::requests::new_client;
use crate::wait::TIMEOUT;

/// A certificate authority that no client trusts by default.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// The certificate of the authority.
    pub pem: String,
    directory: tempfile::TempDir,
}

impl Default for CertificateAuthority {
    fn default() -> CertificateAuthority {
        CertificateAuthority::new()
    }
}

impl CertificateAuthority {
    /// Creates an authority with a key of its own.
    pub fn new() -> CertificateAuthority {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("authority.pem"), &pem).expect("it is written");
        CertificateAuthority {
            issuer: Issuer::new(params, key),
            pem,
            directory,
        }
    }

    /// Returns the file with the certificate of the authority.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
    }

    /// Issues a certificate that has expired, and returns its file.
    pub fn issue_expired_file(&self) -> PathBuf {
        let mut params = CertificateParams::new(["expired.example".to_owned()]).expect("a name");
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer);
        let file = self.directory.path().join("expired.pem");
        let pem = certificate.expect("a certificate").pem() + &key.serialize_pem();
        std::fs::write(&file, pem).expect("it is written");
        file
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer);
        (certificate.expect("a certificate"), key)
    }

    fn issue_chain(&self, name: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let (certificate, key) = self.issue(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        (vec![certificate.der().clone()], key)
    }

    /// Issues a certificate for a name, and returns the files of certificate and key.
    pub fn issue_files(&self, name: &str) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.issue(name);
        let cert_file = self.directory.path().join("cert.pem");
        let key_file = self.directory.path().join("key.pem");
        std::fs::write(&cert_file, certificate.pem()).expect("it is written");
        std::fs::write(&key_file, key.serialize_pem()).expect("it is written");
        (cert_file, key_file)
    }

    /// Prepares a client that trusts this authority and no other.
    pub fn client(&self) -> reqwest::ClientBuilder {
        new_client();
        let certificate = reqwest::Certificate::from_pem(self.pem.as_bytes());
        reqwest::Client::builder()
            .no_proxy()
            .timeout(TIMEOUT)
            .tls_certs_only([certificate.expect("a certificate")])
    }
}

/// Issues a certificate for each name when it is first asked for.
struct AnyName {
    authority: Arc<CertificateAuthority>,
    issued: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl fmt::Debug for AnyName {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("AnyName")
    }
}

impl ResolvesServerCert for AnyName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_owned();
        let mut issued = self.issued.lock().expect("no panic");
        let issue = || {
            let (chain, key) = self.authority.issue_chain(&name);
            let key = any_supported_type(&key).expect("a key that can sign");
            Arc::new(CertifiedKey::new(chain, key))
        };
        Some(issued.entry(name.clone()).or_insert_with(issue).clone())
    }
}

/// What connections asked for, in their order.
type NotedNames = Arc<Mutex<Vec<String>>>;

/// A proxy that accepts TLS and forwards plain bytes to the mock.
pub struct TlsProxy {
    /// The address that it listens on.
    pub address: SocketAddr,
    negotiated: NotedNames,
    server_names: NotedNames,
}

impl TlsProxy {
    /// Starts a proxy with a certificate for a name.
    pub async fn start(authority: &CertificateAuthority, name: &str, mock: SocketAddr) -> TlsProxy {
        TlsProxy::start_for_clients(authority, name, mock, None).await
    }

    /// Starts a proxy that demands a client certificate of an authority.
    pub async fn start_for_clients(
        authority: &CertificateAuthority,
        name: &str,
        mock: SocketAddr,
        clients: Option<&CertificateAuthority>,
    ) -> TlsProxy {
        new_client();
        let (chain, key) = authority.issue_chain(name);
        let config = rustls::ServerConfig::builder();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(clients) => {
                let mut roots = rustls::RootCertStore::empty();
                let der = CertificateDer::from_pem_slice(clients.pem.as_bytes());
                roots
                    .add(der.expect("a certificate"))
                    .expect("an authority");
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
                config.with_client_cert_verifier(verifier.expect("a verifier"))
            }
        };
        let config = config.with_single_cert(chain, key).expect("a config");
        TlsProxy::serve(config, mock).await
    }

    /// Starts a proxy with a certificate for whatever name is asked for.
    pub async fn start_for_any_name(
        authority: Arc<CertificateAuthority>,
        mock: SocketAddr,
    ) -> TlsProxy {
        new_client();
        let resolver = Arc::new(AnyName {
            authority,
            issued: Mutex::default(),
        });
        let config = rustls::ServerConfig::builder().with_no_client_auth();
        TlsProxy::serve(config.with_cert_resolver(resolver), mock).await
    }

    async fn serve(mut config: rustls::ServerConfig, mock: SocketAddr) -> TlsProxy {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let negotiated = Arc::new(Mutex::new(Vec::new()));
        let server_names = Arc::new(Mutex::new(Vec::new()));
        let noted = (Arc::clone(&negotiated), Arc::clone(&server_names));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(acceptor.clone(), stream, mock, noted.clone()));
            }
        });
        TlsProxy {
            address,
            negotiated,
            server_names,
        }
    }

    /// Returns the server name (SNI) that each connection asked for.
    pub fn server_names(&self) -> Vec<String> {
        self.server_names.lock().expect("no panic").clone()
    }

    /// Returns the ALPN protocol of each connection that was made.
    pub fn negotiated(&self) -> Vec<String> {
        self.negotiated.lock().expect("no panic").clone()
    }
}

async fn forward(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    mock: SocketAddr,
    (negotiated, server_names): (NotedNames, NotedNames),
) {
    let Ok(mut outside) = acceptor.accept(stream).await else {
        return;
    };
    let protocol = outside.get_ref().1.alpn_protocol().unwrap_or(b"none");
    let protocol = String::from_utf8_lossy(protocol).into_owned();
    negotiated.lock().expect("no panic").push(protocol);
    let name = outside.get_ref().1.server_name().unwrap_or_default();
    server_names.lock().expect("no panic").push(name.to_owned());
    let mut inside = TcpStream::connect(mock).await.expect("the mock");
    // Either side may close the connection.
    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
}
