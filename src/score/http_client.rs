//! A client without comfort: it sees when a body was cut, and how long a response took. HTTP without TLS only.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::wire::WireRequest;

const MAX_BODY_BYTES: usize = 64 << 20;

/// A response as it came.
#[derive(Debug, Clone, Default)]
pub struct ClientReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// The connection ended in the middle of the body.
    pub is_cut: bool,
}

/// A connection to a gateway.
pub struct ScoreConnection {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
    prefix: String,
    /// Sent with every request.
    headers: Vec<(String, String)>,
}

impl ScoreConnection {
    /// Connects to the host of a base URL.
    pub async fn open(base: &Uri, headers: &[(String, String)]) -> Result<ScoreConnection, String> {
        let host = base.host().ok_or("the URL has no host")?;
        let port = base.port_u16().unwrap_or(80);
        let address = host.trim_matches(['[', ']']);
        let connected = TcpStream::connect((address, port)).await;
        let stream =
            connected.map_err(|error| format!("cannot connect to {host}:{port}: {error}"))?;
        // Without it the times would be those of Nagle's algorithm.
        let _ = stream.set_nodelay(true);
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        Ok(ScoreConnection {
            sender,
            authority: format!("{host}:{port}"),
            prefix: base.path().trim_end_matches('/').to_owned(),
            headers: headers.to_vec(),
        })
    }

    /// Sends a request and reads the whole response; the error says why there is none.
    pub async fn send(
        &mut self,
        request: &WireRequest,
        patience: Duration,
    ) -> Result<ClientReply, String> {
        let body = Full::new(Bytes::from(request.body.to_string()));
        let mut builder = Request::post(format!("{}{}", self.prefix, request.path))
            .header("host", &self.authority)
            .header("content-type", "application/json");
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        let sent = builder.body(body).map_err(|error| error.to_string())?;
        let exchange = async {
            let ready = self.sender.ready().await;
            ready.map_err(|error| format!("the connection was closed: {error}"))?;
            let response = self.sender.send_request(sent).await;
            let response = response.map_err(|error| format!("no response: {error}"))?;
            let (head, mut body) = response.into_parts();
            let mut reply = ClientReply {
                status: head.status.as_u16(),
                headers: head.headers,
                ..ClientReply::default()
            };
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else {
                    reply.is_cut = true;
                    break;
                };
                reply.body.extend(frame.into_data().unwrap_or_default());
                if reply.body.len() > MAX_BODY_BYTES {
                    return Err("the response has no end".to_owned());
                }
            }
            Ok(reply)
        };
        let late = |_| format!("no end of the response in {} seconds", patience.as_secs());
        timeout(patience, exchange).await.map_err(late)?
    }
}
