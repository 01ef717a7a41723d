//! Certificates for tests, and TLS in front of a mock that speaks none.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::stage::{PATIENCE, client};

/// An authority of its own, trusted by whom it is given to.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
    directory: tempfile::TempDir,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("authority.pem"), &pem).expect("it is written");
        Authority {
            issuer: Issuer::new(params, key),
            pem,
            directory,
        }
    }

    /// The file of those it is to be trusted by.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer);
        (certificate.expect("a certificate"), key)
    }

    /// Certificate and key for a name, as files.
    pub fn issue_files(&self, name: &str) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.issue(name);
        let cert_file = self.directory.path().join("cert.pem");
        let key_file = self.directory.path().join("key.pem");
        std::fs::write(&cert_file, certificate.pem()).expect("it is written");
        std::fs::write(&key_file, key.serialize_pem()).expect("it is written");
        (cert_file, key_file)
    }

    /// A client that trusts this authority and no other.
    pub fn client(&self) -> reqwest::ClientBuilder {
        client();
        let certificate = reqwest::Certificate::from_pem(self.pem.as_bytes());
        reqwest::Client::builder()
            .no_proxy()
            .timeout(PATIENCE)
            .tls_certs_only([certificate.expect("a certificate")])
    }
}

/// TLS to the outside, plain bytes to the mock.
pub struct Relay {
    pub address: SocketAddr,
    agreed: Arc<Mutex<Vec<String>>>,
}

impl Relay {
    pub async fn start(authority: &Authority, name: &str, mock: SocketAddr) -> Relay {
        client();
        let (certificate, key) = authority.issue(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let chain = vec![certificate.der().clone()];
        let config = rustls::ServerConfig::builder().with_no_client_auth();
        let mut config = config.with_single_cert(chain, key).expect("a config");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let agreed = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&agreed);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(relay(acceptor.clone(), stream, mock, Arc::clone(&noted)));
            }
        });
        Relay { address, agreed }
    }

    /// The protocol of each connection that was made.
    pub fn agreed(&self) -> Vec<String> {
        self.agreed.lock().expect("no panic").clone()
    }
}

async fn relay(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    mock: SocketAddr,
    noted: Arc<Mutex<Vec<String>>>,
) {
    let Ok(mut outside) = acceptor.accept(stream).await else {
        return;
    };
    let protocol = outside.get_ref().1.alpn_protocol().unwrap_or(b"none");
    let protocol = String::from_utf8_lossy(protocol).into_owned();
    noted.lock().expect("no panic").push(protocol);
    let mut inside = TcpStream::connect(mock).await.expect("the mock");
    // It ends as its ends do.
    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
}
