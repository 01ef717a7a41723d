//! A request until upstreams are tried: what is asked, by whom, and what is answered here.

use super::Session;
use pingora_core::Result;

use super::entry::{self, Ask, Entry};
use super::exchange::Exchange;
use super::intake::{self, Refused};
use super::{Gateway, answer, bill, kept, route};
use crate::access::{self, Caller};
use crate::config::Limits;
use crate::model::Fault;

impl Gateway {
    /// From the header to the point where upstreams are tried, or the answer itself.
    pub(super) async fn receive(
        &self,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<()> {
        let entry = match self.enter(session, exchange) {
            Ok((entry, caller)) => match self.identify(exchange, &entry, caller).await {
                Ok(()) => entry,
                Err(fault) => return Err(self.park(exchange, fault)),
            },
            Err(fault) => return Err(self.park(exchange, fault)),
        };
        let Entry::Call {
            operation, model, ..
        } = &entry
        else {
            return match self.answer_here(session, exchange, &entry).await {
                Ok(body) => answer::json(session, exchange, 200, body, &[]).await,
                Err(fault) => Err(self.park(exchange, fault)),
            };
        };
        exchange.body = match intake::read(session, exchange).await {
            Ok(body) => body,
            Err(Refused::Client(error)) => return Err(error),
            Err(Refused::Fault(fault)) => return Err(self.park(exchange, fault)),
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
        let leases = self.leases.as_deref();
        let reserved = match routed.and_then(|()| bill::reserve(leases, exchange)) {
            Ok(None) => Ok(()),
            Ok(Some(waiting)) => {
                let held = Box::pin(waiting.end()).await;
                held.map(|hold| exchange.hold = Some(hold))
            }
            Err(fault) => Err(fault),
        };
        match reserved {
            Ok(()) => self.drive(session, exchange).await,
            Err(fault) => Err(self.park(exchange, fault)),
        }
    }

    /// Lists, and replies that were kept.
    async fn answer_here(
        &self,
        session: &mut Session,
        exchange: &Exchange,
        entry: &Entry,
    ) -> Result<Vec<u8>, Fault> {
        let conversations = &self.runtime.conversations;
        let Entry::Kept(ask, id) = entry else {
            let query = session.req_header().uri.query();
            return answer::listing(exchange, entry, query);
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
        Ok(answered)
    }

    /// What is asked, and by whom, where that matters.
    fn enter(
        &self,
        session: &Session,
        exchange: &mut Exchange,
    ) -> Result<(Entry, Option<Caller>), Fault> {
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
        let caller = access::admit(&exchange.snapshot, keyring, &header.headers, query)?;
        Ok((entry, Some(caller)))
    }

    /// The key of the caller, and its place among all that are served.
    async fn identify(
        &self,
        exchange: &mut Exchange,
        entry: &Entry,
        caller: Option<Caller>,
    ) -> Result<(), Fault> {
        let key = match (caller, &self.keyring) {
            (None, _) => return Ok(()),
            (Some(Caller::Known(key)), _) => key,
            (Some(Caller::Unheard(hashes)), Some(keyring)) => {
                let snapshot = exchange.snapshot.clone();
                Box::pin(keyring.look_up(&self.runtime, &snapshot, &hashes)).await?
            }
            (Some(Caller::Unheard(_)), None) => return Err(access::invalid()),
        };
        exchange.key = Some(key.clone());
        if let Entry::Call { .. } = entry {
            let snapshot = exchange.snapshot.clone();
            let shared = self.shared_limits.as_deref();
            let admission = match shared.filter(|_| key.limits != Limits::default()) {
                None => access::enter(&self.runtime, &snapshot, &key),
                Some(shared) => {
                    Box::pin(access::enter_shared(shared, &self.runtime, &snapshot, &key)).await
                }
            };
            exchange.admission = Some(admission?);
        }
        Ok(())
    }
}
