//! A small HTTP client for token endpoints and webhooks: no redirects, and bounded in time and size. Those with TLS are
//! reached through the proxy of the environment, the others are on this machine or on the link.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::config::BaseUrl;
use crate::runtime::{TunnelError, UpstreamProxy};

/// Endpoints without TLS are on this machine or on the link: they answer at once, or are not there.
const LOCAL_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_LIMIT: usize = 256 << 10;

/// Sends requests to token endpoints and webhooks, each on a connection of its own: there are few of them.
#[derive(Default)]
pub struct TokenClient {
    /// Made for the first endpoint with TLS: it reads the certificates of the system.
    tls: OnceLock<TlsConnector>,
}

impl TokenClient {
    /// Sends a request to an absolute URI. An error says what went wrong, and names the host.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let host = host(&request);
        self.exchange(&host, request, receive_all).await
    }

    /// Sends a request to an absolute URI, at an address of its host that the caller has chosen; the name is not resolved again.
    /// Of the response only the status is read.
    pub async fn send_to(
        &self,
        address: SocketAddr,
        request: Request<Bytes>,
    ) -> Result<StatusCode, String> {
        let status = async |response: Response<Incoming>| Ok(response.status());
        self.exchange(&address.ip().to_string(), request, status)
            .await
    }

    /// Connects to `address`, which is the host of the request or one of its addresses.
    async fn exchange<T>(
        &self,
        address: &str,
        request: Request<Bytes>,
        receive: impl AsyncFnOnce(Response<Incoming>) -> Result<T, String>,
    ) -> Result<T, String> {
        let host = host(&request);
        let failed = |what: &str| format!("{host}: {what}");
        let is_tls = request.uri().scheme_str() == Some("https");
        let port = request.uri().port_u16();
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        let limit = if is_tls {
            CONNECT_TIMEOUT
        } else {
            LOCAL_CONNECT_TIMEOUT
        };
        let connecting = timeout(limit, connect(address, port, is_tls));
        let connected = connecting
            .await
            .map_err(|_| failed("no connection in time"))?;
        let stream = connected.map_err(|reason| failed(&format!("no connection: {reason}")))?;
        let exchange = async {
            if !is_tls {
                return exchange(stream, request, receive).await;
            }
            let name =
                ServerName::try_from(host.clone()).map_err(|_| "no name of a server".to_owned())?;
            let stream = self.tls()?.connect(name, stream).await;
            let stream = stream.map_err(|error| format!("no secure connection: {error}"))?;
            exchange(stream, request, receive).await
        };
        let response = timeout(RESPONSE_TIMEOUT, exchange).await;
        let response = response.map_err(|_| failed("no response in time"))?;
        response.map_err(|reason| failed(&reason))
    }

    fn tls(&self) -> Result<&TlsConnector, String> {
        if let Some(known) = self.tls.get() {
            return Ok(known);
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(self
            .tls
            .get_or_init(|| TlsConnector::from(Arc::new(config))))
    }
}

/// Connects to an endpoint, or has the proxy of the environment do so.
async fn connect(host: &str, port: u16, is_tls: bool) -> Result<TcpStream, String> {
    let base = BaseUrl {
        tls: is_tls,
        host: host.to_owned(),
        port,
        authority: host.to_owned(),
        prefix: String::new(),
    };
    let proxy = match is_tls {
        true => UpstreamProxy::of_environment(&base)?,
        false => None,
    };
    let Some(proxy) = proxy else {
        let connected = TcpStream::connect((host, port)).await;
        return connected.map_err(|error| error.to_string());
    };
    let name = &proxy.name;
    let connected = TcpStream::connect((proxy.host.as_str(), proxy.port)).await;
    let mut stream =
        connected.map_err(|error| format!("the proxy {name} cannot be reached: {error}"))?;
    let opened = proxy.open_tunnel(&mut stream).await;
    opened.map_err(|error| match error {
        TunnelError::Broken(error) => format!("the connection to the proxy {name} broke: {error}"),
        TunnelError::Refused(reason) => format!("the proxy {name} {reason}"),
    })?;
    Ok(stream)
}

/// The host of a request, without the brackets of an address.
fn host(request: &Request<Bytes>) -> String {
    let host = request.uri().host().unwrap_or_default();
    host.trim_matches(['[', ']']).to_owned()
}

async fn exchange<T>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Bytes>,
    receive: impl AsyncFnOnce(Response<Incoming>) -> Result<T, String>,
) -> Result<T, String> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let response = async {
        let sending = sender.send_request(relative(request)?).await;
        let response = sending.map_err(|error| format!("no response: {error}"))?;
        receive(response).await
    };
    let response = response.await;
    connection.abort();
    response
}

async fn receive_all(response: Response<Incoming>) -> Result<Response<Bytes>, String> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, RESPONSE_LIMIT).collect().await;
    let body = body.map_err(|error| format!("the response cannot be read: {error}"))?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

/// The request as a server gets it: the host in its header, and only the path in its first line.
fn relative(request: Request<Bytes>) -> Result<Request<Full<Bytes>>, String> {
    let (mut head, body) = request.into_parts();
    let authority = head
        .uri
        .authority()
        .map_or("", |authority| authority.as_str());
    let host = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let target: Uri = target.parse().map_err(|_| "no path of a URL".to_owned())?;
    head.uri = target;
    head.headers.insert(HOST, host);
    let agent = concat!("omniglot/", env!("CARGO_PKG_VERSION"));
    head.headers
        .insert(USER_AGENT, HeaderValue::from_static(agent));
    Ok(Request::from_parts(head, Full::new(body)))
}
