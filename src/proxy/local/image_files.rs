//! Images that an upstream returns as URLs, which expire: fetched at once, and served from here for a while.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HOST, USER_AGENT};
use http::{Method, StatusCode};
use pingora_core::protocols::ALPN;
use pingora_core::protocols::http::client::HttpSession;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::config::{self, BaseUrl};
use crate::formats::{image_media_type, image_urls, is_public, is_public_https, to_json_string};
use crate::json::{Edit, replace};
use crate::model::Format;
use crate::proxy::attempt::upstream_request::USER_AGENT_VALUE;
use crate::proxy::context::RequestContext;
use crate::proxy::gateway::Gateway;
use crate::proxy::timer::unless_gone;

/// Whether the response may hold URLs that are to be replaced.
pub(in crate::proxy) fn are_stored(ctx: &RequestContext) -> bool {
    ctx.client.format() == Format::Images && ctx.snapshot.images.persist
}

impl Gateway {
    /// Stores the images of a response and puts URLs of our own in their place, for as many as were
    /// asked for and while the request has time. A URL whose image cannot be fetched stays as it is: the
    /// client may have more luck.
    pub(in crate::proxy) async fn store_images(
        &self,
        session: &mut Session,
        ctx: &RequestContext,
        body: Bytes,
    ) -> pingora_core::Result<Bytes> {
        let settings = &ctx.snapshot.images;
        let owner = ctx.client.owner();
        let own = format!("{}/v1/images/files", base_url(session, ctx));
        let requested = ctx
            .route
            .request()
            .map_or(1, |request| request.output_limit.choices);
        let requested = usize::try_from(requested).unwrap_or(usize::MAX);
        let deadline = ctx.deadline();
        let mut edits = Vec::new();
        for (range, address) in image_urls(&body).into_iter().take(requested) {
            let fetching = Box::pin(self.fetch(&address, &settings.files));
            let fetching = pin!(async { Ok(until(deadline, fetching).await) });
            match unless_gone(session, None, fetching).await? {
                Ok((mime, bytes)) => {
                    let stored = self.files.insert(owner, mime, bytes, settings.files.ttl);
                    if let Some(id) = stored {
                        let with = to_json_string(&format!("{own}/{id}"));
                        edits.push(Edit { range, with });
                    } else {
                        let id = ctx.client.request_id();
                        log::warn!(
                            "{id}: an image is larger than images.files.size and keeps the upstream's URL"
                        );
                    }
                }
                Err(reason) => {
                    let id = ctx.client.request_id();
                    log::warn!(
                        "{id}: an image is not copied and keeps the upstream's URL: {reason}"
                    );
                }
            }
        }
        Ok(match edits.is_empty() {
            true => body,
            false => replace(&body, &edits),
        })
    }

    async fn fetch(
        &self,
        address: &str,
        settings: &config::FilesConfig,
    ) -> Result<(&'static str, Bytes), String> {
        let url = Url::parse(address).map_err(|error| format!("its address: {error}"))?;
        let base = base_of(&url).ok_or("its address names no host")?;
        let is_trusted = settings.hosts.contains(&base.authority);
        if !is_trusted && !is_public_https(address) {
            return Err(format!("{} is no public https address", base.authority));
        }
        let found = self.resolve(&base).await?;
        if !is_trusted && !found.iter().all(|found| is_public(found.ip())) {
            return Err(format!("{} is not on the public network", base.authority));
        }
        // The address that was checked is the one that is asked: the name is not resolved again.
        let mut peer = HttpPeer::new(found[0], base.tls, base.host.clone());
        peer.options.connection_timeout = Some(settings.timeout);
        peer.options.alpn = ALPN::H1;
        let fetching = self.get(&peer, &base, &url, settings.limit);
        let fetched = timeout(settings.timeout, fetching).await;
        let bytes = fetched.map_err(|_| "it took too long".to_owned())??;
        let mime = image_media_type(&bytes).ok_or("it is no image")?;
        Ok((mime, bytes))
    }

    async fn resolve(&self, base: &BaseUrl) -> Result<Vec<std::net::SocketAddr>, String> {
        match base.host.parse() {
            Ok(literal) => Ok(vec![std::net::SocketAddr::new(literal, base.port)]),
            Err(_) => {
                self.runtime
                    .resolver
                    .resolve_host(&base.host, base.port)
                    .await
            }
        }
    }

    async fn get(
        &self,
        peer: &HttpPeer,
        base: &BaseUrl,
        url: &Url,
        limit: usize,
    ) -> Result<Bytes, String> {
        let explain = |error: Box<pingora_core::Error>| error.to_string();
        let connection = self.upstream_pool.connect(peer).await.map_err(explain)?;
        let mut session = connection.into_session();
        let mut target = url.path().to_owned();
        if let Some(query) = url.query() {
            target.push('?');
            target.push_str(query);
        }
        let mut header =
            RequestHeader::build(Method::GET, target.as_bytes(), Some(4)).map_err(explain)?;
        for (name, value) in [
            (HOST, &*base.authority),
            (USER_AGENT, USER_AGENT_VALUE),
            (ACCEPT_ENCODING, "identity"),
        ] {
            header.insert_header(name, value).map_err(explain)?;
        }
        session
            .write_request_header(Box::new(header))
            .await
            .map_err(explain)?;
        session.finish_request_body().await.map_err(explain)?;
        session.read_response_header().await.map_err(explain)?;
        let bytes = read_image(&mut session, limit).await;
        session.shutdown().await;
        bytes
    }
}

/// Fetches an image, unless the time of its request is over first.
async fn until<T>(
    deadline: Option<Instant>,
    fetching: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let Some(deadline) = deadline else {
        return fetching.await;
    };
    let fetched = timeout_at(deadline, fetching).await;
    fetched.unwrap_or_else(|_| Err("the request has no time left (timeouts.total)".to_owned()))
}

async fn read_image(session: &mut HttpSession, limit: usize) -> Result<Bytes, String> {
    let too_large = || format!("it is larger than {limit} bytes (images.files.limit)");
    let header = session.response_header().ok_or("it has no header")?;
    if header.status != StatusCode::OK {
        return Err(format!(
            "its host answers with status {}",
            header.status.as_u16()
        ));
    }
    let length = header.headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    let explain = |error: Box<pingora_core::Error>| error.to_string();
    while let Some(chunk) = session.read_response_body().await.map_err(explain)? {
        if bytes.len() + chunk.len() > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

fn base_of(url: &Url) -> Option<BaseUrl> {
    let host = url.host_str()?;
    let authority = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    Some(BaseUrl {
        tls: url.scheme() == "https",
        host: host.trim_matches(['[', ']']).to_owned(),
        port: url.port_or_known_default()?,
        authority,
        prefix: String::new(),
    })
}

/// What URLs of our own begin with.
pub(in crate::proxy) fn base_url(session: &Session, ctx: &RequestContext) -> String {
    if let Some(public) = &ctx.snapshot.images.public_url {
        return public.trim_end_matches('/').to_owned();
    }
    if let Some(base_url) = ctx.client.task_base_url() {
        return base_url.to_owned();
    }
    let header = session.req_header();
    let named = header.headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = header.uri.authority().map(http::uri::Authority::as_str);
    let host = named.or(authority).unwrap_or_default();
    let digest = session.digest();
    let is_secure = digest.is_some_and(|digest| digest.ssl_digest.is_some());
    format!("http{}://{host}", if is_secure { "s" } else { "" })
}
