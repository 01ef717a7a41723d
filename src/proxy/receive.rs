//! A request until upstreams are tried: what is asked, by whom, and what is answered here.

use super::Session;
use pingora_core::Result;

use super::context::RequestContext;
use super::entry::{self, Ask, Entry};
use super::intake::{self, Refused};
use super::{Gateway, answer, bill, kept, later, route};
use crate::access::{self, KeyLookup};
use crate::config::Limits;
use crate::formats::HeaderFields;
use crate::model::ApiError;

impl Gateway {
    /// From the header to the point where upstreams are tried, or the answer itself.
    pub(super) async fn receive(
        &self,
        session: &mut Session,
        exchange: &mut RequestContext,
    ) -> Result<()> {
        let entry = match self.enter(session, exchange) {
            Ok((entry, caller)) => match self.identify(exchange, &entry, caller).await {
                Ok(()) => entry,
                Err(api_error) => return Err(self.park(exchange, api_error)),
            },
            Err(api_error) => return Err(self.park(exchange, api_error)),
        };
        let Entry::Call {
            operation, model, ..
        } = &entry
        else {
            if let Entry::File(id) = &entry {
                let owner = exchange.key.as_ref().map_or("", |key| &*key.name);
                return match self.files.get(owner, id) {
                    Ok(file) => answer::file(session, exchange, file.mime, file.bytes).await,
                    Err(api_error) => Err(self.park(exchange, api_error)),
                };
            }
            return match self.answer_here(session, exchange, &entry).await {
                Ok((status, body)) => {
                    answer::json(session, exchange, status, body, HeaderFields::default()).await
                }
                Err(api_error) => Err(self.park(exchange, api_error)),
            };
        };
        exchange.body = match intake::read(session, exchange).await {
            Ok(body) => body,
            Err(Refused::Client(error)) => return Err(error),
            Err(Refused::ApiError(api_error)) => return Err(self.park(exchange, api_error)),
        };
        let conversations = &self.runtime.conversations;
        let model = model.as_deref();
        let client = &session.req_header().headers;
        let mut routed = route::route(conversations, exchange, client, *operation, model);
        // On the heap, like all that asks the store: most requests do not, and need not hold room for it.
        if let Some(archive) = self.archive.as_deref()
            && exchange.thread.misses_a_reply()
            && Box::pin(kept::bring_back(conversations, archive, exchange)).await
        {
            let client = &session.req_header().headers;
            routed = route::route(conversations, exchange, client, *operation, model);
        }
        let client = &session.req_header().headers;
        if routed.is_ok() && later::is_wanted(exchange, client) {
            return Box::pin(self.accept(session, exchange)).await;
        }
        let reserved = match routed {
            Ok(()) => self.reserve(exchange).await,
            Err(api_error) => Err(api_error),
        };
        match reserved {
            Ok(()) => self.drive(session, exchange).await,
            Err(api_error) => Err(self.park(exchange, api_error)),
        }
    }

    /// Holds back what the request may cost; where the rest of the cap is elsewhere, that is waited for.
    pub(super) async fn reserve(&self, exchange: &mut RequestContext) -> Result<(), ApiError> {
        if let Some(waiting) = bill::reserve(self.leases.as_deref(), exchange)? {
            exchange.hold = Some(Box::pin(waiting.wait()).await?);
        }
        Ok(())
    }

    /// Lists, tasks, and replies that were kept; with the status of the answer.
    async fn answer_here(
        &self,
        session: &mut Session,
        exchange: &RequestContext,
        entry: &Entry,
    ) -> Result<(u16, Vec<u8>), ApiError> {
        let conversations = &self.runtime.conversations;
        let query = session.req_header().uri.query();
        let (ask, id) = match entry {
            Entry::Kept(ask, id) => (ask, id),
            Entry::Tasks(ask) => return Box::pin(self.tasks(exchange, ask, query)).await,
            _ => return answer::listing(exchange, entry, query).map(|body| (200, body)),
        };
        let archive = self.archive.as_deref();
        if let Some(archive) = archive {
            Box::pin(kept::prepare(conversations, archive, exchange, id)).await;
        }
        let query = session.req_header().uri.query();
        let answered = kept::answer(conversations, exchange, *ask, id, query)?;
        if let (Some(archive), Ask::Deletion) = (archive, ask) {
            Box::pin(kept::forget(archive, exchange, id)).await?;
        }
        Ok((200, answered))
    }

    /// What is asked, and by whom, where that matters.
    fn enter(
        &self,
        session: &Session,
        exchange: &mut RequestContext,
    ) -> Result<(Entry, Option<KeyLookup>), ApiError> {
        let header = session.req_header();
        let (path, query) = (header.uri.path(), header.uri.query());
        exchange.format = entry::error_format(path);
        route::within_limit(header)?;
        let entry = entry::read(&header.method, path, query, &header.headers)?;
        exchange.has_format = entry != Entry::Catalog;
        if !exchange.has_format {
            return Ok((entry, None));
        }
        let query = query.filter(|_| entry.key_in_query());
        let keyring = self.keyring.as_deref();
        if let Some(hash) = exchange.job {
            let caller = access::reauthenticate(&exchange.snapshot, keyring, hash)?;
            return Ok((entry, Some(caller)));
        }
        let caller = access::authenticate(&exchange.snapshot, keyring, &header.headers, query)?;
        Ok((entry, Some(caller)))
    }

    /// The key of the caller, and its place among all that are served.
    async fn identify(
        &self,
        exchange: &mut RequestContext,
        entry: &Entry,
        caller: Option<KeyLookup>,
    ) -> Result<(), ApiError> {
        let key = match (caller, &self.keyring) {
            (None, _) => return Ok(()),
            (Some(KeyLookup::Found(key)), _) => key,
            (Some(KeyLookup::Unknown(hashes)), Some(keyring)) => {
                let snapshot = exchange.snapshot.clone();
                Box::pin(keyring.look_up(&self.runtime, &snapshot, &hashes)).await?
            }
            (Some(KeyLookup::Unknown(_)), None) => return Err(access::invalid_key()),
        };
        exchange.key = Some(key.clone());
        if !matches!(entry, Entry::Call { .. }) {
            return Ok(());
        }
        let snapshot = exchange.snapshot.clone();
        let shared = self.shared_limits.as_deref();
        let shared = shared.filter(|_| key.limits != Limits::default());
        exchange.admission = match (shared, &exchange.job) {
            // What was handed in has been counted then.
            (None, Some(_)) => None,
            (Some(shared), Some(_)) => Some(access::admit_task(shared, &key)),
            (None, None) => Some(access::admit(&self.runtime, &snapshot, &key)?),
            (Some(shared), None) => {
                let entering = access::admit_shared(shared, &self.runtime, &snapshot, &key);
                Some(Box::pin(entering).await?)
            }
        };
        Ok(())
    }
}
