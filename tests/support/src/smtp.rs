//! A mail server that keeps what it gets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::requests::new_client;
use crate::tls::CertificateAuthority;
use crate::wait::wait_until;

/// A message, and what was said before it.
#[derive(Debug, Clone)]
pub struct ReceivedMail {
    /// The address of the recipient, from the envelope.
    pub to: String,
    /// The words after `AUTH PLAIN`.
    pub login: Option<String>,
    /// Headers and body.
    pub text: String,
}

impl ReceivedMail {
    /// Returns the last part of the link in a message.
    pub fn token(&self) -> String {
        let link = self.link();
        link.rsplit('/').next().expect("a token").to_owned()
    }

    /// Returns the link in a message.
    pub fn link(&self) -> String {
        // Long lines are cut by quoted-printable, and put together again by every mail program.
        let text = self.text.replace("=\r\n", "").replace("=3D", "=");
        let mut words = text.split_whitespace();
        let link = words.find(|word| word.starts_with("http"));
        link.unwrap_or_else(|| panic!("no link: {}", self.text))
            .to_owned()
    }
}

/// A mail server on a port of its own.
pub struct SmtpServer {
    /// The address that it listens on.
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedMail>>>,
    /// How many messages are refused for now.
    deferred: Arc<Mutex<usize>>,
}

impl SmtpServer {
    /// Starts a server without TLS.
    pub async fn start() -> SmtpServer {
        SmtpServer::start_with(None).await
    }

    /// Starts a server with TLS from the first byte.
    pub async fn start_tls(authority: &CertificateAuthority, name: &str) -> SmtpServer {
        // It installs the provider of cryptography.
        new_client();
        let (cert, key) = authority.issue_files(name);
        let cert = CertificateDer::from_pem_file(cert).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(key).expect("a key");
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert], key);
        let config = config.expect("they fit together");
        SmtpServer::start_with(Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(tls: Option<TlsAcceptor>) -> SmtpServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = SmtpServer {
            address: listener.local_addr().expect("an address"),
            received: Arc::default(),
            deferred: Arc::default(),
        };
        let (received, deferred) = (server.received.clone(), server.deferred.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (received, deferred, tls) = (received.clone(), deferred.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &received, &deferred).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &received, &deferred).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        server
    }

    /// Defers the next message once.
    pub fn defer_next(&self) {
        *self.deferred.lock().expect("a lock") += 1;
    }

    /// Returns all messages so far.
    pub fn received(&self) -> Vec<ReceivedMail> {
        self.received.lock().expect("a lock").clone()
    }

    /// Waits for as many messages, and returns the last one.
    pub async fn until_received(&self, count: usize) -> ReceivedMail {
        wait_until("the mail is there", async || self.received().len() >= count).await;
        let received = self.received();
        assert_eq!(received.len(), count, "{received:#?}");
        received[count - 1].clone()
    }
}

/// Answers one connection until it ends.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    received: &Mutex<Vec<ReceivedMail>>,
    deferred: &Mutex<usize>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 test\r\n").await.ok()?;
    let mut mail = ReceivedMail {
        to: String::new(),
        login: None,
        text: String::new(),
    };
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        let answer = match line.split(' ').next().unwrap_or_default() {
            "EHLO" => "250-test\r\n250-8BITMIME\r\n250 AUTH PLAIN\r\n",
            "AUTH" => {
                mail.login = line.strip_prefix("AUTH PLAIN ").map(str::to_owned);
                "235 welcome\r\n"
            }
            "RCPT" => {
                mail.to = line.trim_start_matches("RCPT TO:<").to_owned();
                mail.to.truncate(mail.to.find('>').unwrap_or(mail.to.len()));
                "250 ok\r\n"
            }
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await.ok()?;
                mail.text.clear();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).await.ok()?;
                    if line == ".\r\n" {
                        break;
                    }
                    mail.text.push_str(&line);
                }
                let is_deferred = {
                    let mut deferred = deferred.lock().expect("a lock");
                    let is_deferred = *deferred > 0;
                    *deferred = deferred.saturating_sub(1);
                    is_deferred
                };
                match is_deferred {
                    true => "451 try again\r\n",
                    false => {
                        received.lock().expect("a lock").push(mail.clone());
                        "250 ok\r\n"
                    }
                }
            }
            "QUIT" => {
                stream.write_all(b"221 bye\r\n").await.ok()?;
                return Some(());
            }
            _ => "250 ok\r\n",
        };
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}
