//! The key of a request, and what the request takes of the limits of its key.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use pingora_http::RequestHeader;
use pingora_proxy::Session;

use crate::access::{self, KeyLookup};
use crate::config::Limits;
use crate::model::{ApiError, ApiErrorKind, Format};
use crate::proxy::connection::http1_framing::HEADER_LIMIT;
use crate::proxy::connection::listener;
use crate::proxy::context::RequestContext;
use crate::proxy::endpoint;
use crate::proxy::endpoint::Endpoint;
use crate::proxy::gateway::Gateway;
use crate::proxy::request::request_framing;
use crate::runtime::{Key, Snapshot};

/// The address of the client, as far as the connection tells it.
pub(in crate::proxy) fn client_address(session: &Session) -> Option<IpAddr> {
    let address = session.client_addr().and_then(|address| address.as_inet());
    address.map(SocketAddr::ip)
}

impl Gateway {
    /// The endpoint, and the caller where the endpoint needs a key.
    pub(in crate::proxy) fn authenticate(
        &self,
        session: &Session,
        ctx: &mut RequestContext,
    ) -> Result<(Endpoint, Option<KeyLookup>), ApiError> {
        let header = session.req_header();
        let (path, query) = (header.uri.path(), header.uri.query());
        check_header_size(header)?;
        let endpoint = endpoint::parse(&header.method, path, query, &header.headers)?;
        if endpoint == Endpoint::Catalog {
            return match ctx.snapshot.server.public_catalog {
                true => Ok((endpoint, None)),
                false => Err(endpoint::unknown_path(path)),
            };
        }
        ctx.client.set_has_format(endpoint.label());
        let query = query.filter(|_| endpoint.key_in_query());
        let keyring = self.keyring.as_deref();
        let caller = match ctx.client.task_key() {
            Some(key) => access::reauthenticate(&ctx.snapshot, keyring, key)?,
            None => access::authenticate(&ctx.snapshot, keyring, &header.headers, query)?,
        };
        Ok((endpoint, Some(caller)))
    }

    /// Looks the caller's key up and counts the request against its limits.
    pub(in crate::proxy) async fn admit(
        &self,
        ctx: &mut RequestContext,
        endpoint: &Endpoint,
        caller: Option<KeyLookup>,
        address: Option<IpAddr>,
    ) -> Result<(), ApiError> {
        let key = match caller {
            None => return Ok(()),
            Some(KeyLookup::Found(key)) => key,
            Some(unknown) => {
                // Keys in memory are found before: they are never refused for the wrong ones of others.
                self.failed_attempts.check(address)?;
                match self.look_up(&ctx.snapshot, unknown).await {
                    Err(api_error) if api_error.kind == ApiErrorKind::Unauthenticated => {
                        self.failed_attempts.count(address);
                        return Err(api_error);
                    }
                    found => found?,
                }
            }
        };
        ctx.client.set_key(key.clone());
        if let Some(spans) = &mut ctx.spans {
            spans.trust_client();
        }
        listener::set_owner(&key.share);
        if !matches!(endpoint, Endpoint::Model { .. }) {
            let shared = self.shared_limits.as_deref();
            access::count_request(shared, &key).await?;
            if reads_what_is_stored(endpoint) {
                let place = access::admit_reading(&self.runtime, &ctx.snapshot, &key)?;
                ctx.client.set_admission(Some(place));
            }
            return Ok(());
        }
        let snapshot = ctx.snapshot.clone();
        let shared = self.shared_limits.as_deref();
        let shared = shared.filter(|_| key.limits != Limits::default());
        if is_image_request(endpoint) && key.limits.concurrency.is_some() && !ctx.client.is_task() {
            let entering = access::admit_image(shared, &self.runtime, &snapshot, &key);
            ctx.client.set_admission(Some(Box::pin(entering).await?));
            return Ok(());
        }
        let admission = match (shared, ctx.client.task_key()) {
            // An image task was counted when it was created, and when it started.
            (None, Some(_)) => None,
            (Some(shared), Some(_)) => Some(access::admit_task(shared, &key)),
            (None, None) => Some(access::admit(&self.runtime, &snapshot, &key)?),
            (Some(shared), None) => {
                let entering = access::admit_shared(shared, &self.runtime, &snapshot, &key);
                Some(Box::pin(entering).await?)
            }
        };
        ctx.client.set_admission(admission);
        Ok(())
    }

    /// Looks a key up that is not known in memory.
    pub(in crate::proxy) async fn look_up(
        &self,
        snapshot: &Snapshot,
        unknown: KeyLookup,
    ) -> Result<Arc<Key>, ApiError> {
        match (unknown, &self.keyring) {
            (KeyLookup::Unknown(hash), Some(keyring)) => {
                Box::pin(keyring.look_up(&self.runtime, snapshot, &hash)).await
            }
            (KeyLookup::UnknownId(id), Some(keyring)) => {
                Box::pin(keyring.look_up_id(&self.runtime, snapshot, &id)).await
            }
            (KeyLookup::Found(key), _) => Ok(key),
            _ => Err(access::invalid_key()),
        }
    }

    /// Takes one of the key's requests at once for an image request that is answered now.
    pub(in crate::proxy) async fn acquire_slot(
        &self,
        ctx: &mut RequestContext,
    ) -> Result<(), ApiError> {
        if ctx.client.format() != Format::Images || ctx.client.is_task() {
            return Ok(());
        }
        let Some(key) = ctx.client.key().cloned() else {
            return Ok(());
        };
        if key.limits.concurrency.is_some() {
            let slot = access::acquire_slot(self.shared_limits.as_deref(), &key);
            ctx.client.set_slot(Box::pin(slot).await?);
        }
        Ok(())
    }
}

/// Whether the answer is as large as what the key has stored, though nobody else is asked for it.
const fn reads_what_is_stored(endpoint: &Endpoint) -> bool {
    matches!(
        endpoint,
        Endpoint::StoredResponse(..)
            | Endpoint::ImageTasks(_)
            | Endpoint::ImageFile(_)
            | Endpoint::OwnRequest(_)
            | Endpoint::OwnKey
    )
}

const fn is_image_request(endpoint: &Endpoint) -> bool {
    matches!(
        endpoint,
        Endpoint::Model {
            format: Format::Images,
            ..
        }
    )
}

fn check_header_size(header: &RequestHeader) -> Result<(), ApiError> {
    let fields = header.headers.iter();
    let fields: usize = fields
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let target = header.uri.path_and_query();
    let target = target.map_or(0, |path| path.as_str().len());
    match fields + target <= HEADER_LIMIT {
        true => Ok(()),
        false => Err(request_framing::header_too_long()),
    }
}
