//! The connection before its first hook: how long a client may take to send its header.

use std::sync::Arc;

use async_trait::async_trait;
use pingora_core::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp};
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::H2Options;
use pingora_core::server::ShutdownWatch;
use pingora_proxy::HttpProxy;
use tokio::time::timeout;

use super::{CLIENT_KEEP_ALIVE, Gateway};
use crate::runtime::Runtime;

/// So many bytes tell HTTP/2 from HTTP/1.1; no request is shorter.
const PREFACE: usize = 24;

/// Waits for the first bytes of a connection in the clear. pingora looks at them too, but for as
/// long as it takes: whoever sends none would be kept for ever.
pub struct Door(pub Arc<Front>);

#[async_trait]
impl ServerApp for Door {
    async fn process_new(
        self: &Arc<Self>,
        mut stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        if stream.get_ssl_digest().is_none() {
            let limit = self.0.runtime.snapshot().server.timeouts.header;
            let mut first = [0; PREFACE];
            let looked = timeout(limit, stream.try_peek(&mut first)).await;
            looked.ok()?.ok()?;
        }
        self.0.process_new(stream, shutdown).await
    }

    async fn cleanup(&self) {
        self.0.cleanup().await;
    }
}

pub struct Front {
    pub proxy: Arc<HttpProxy<Gateway>>,
    pub runtime: Arc<Runtime>,
}

#[async_trait]
impl HttpServerApp for Front {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let timeout = self.runtime.snapshot().server.timeouts.header;
        session.set_read_timeout(Some(timeout));
        // The timeout counts only while pingora does not wait for a connection to be used again.
        if session.get_keepalive() != Some(CLIENT_KEEP_ALIVE) {
            session.set_keepalive(None);
        }
        // Else a client that sends its next request early, or an empty line after its body,
        // is taken for one that has gone wrong, and loses the reply it is waiting for.
        session.set_pipelining_enabled(true);
        self.proxy.process_new_http(session, shutdown).await
    }

    fn h2_options(&self) -> Option<H2Options> {
        self.proxy.h2_options()
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        self.proxy.server_options()
    }

    async fn http_cleanup(&self) {
        self.proxy.http_cleanup().await;
    }
}
