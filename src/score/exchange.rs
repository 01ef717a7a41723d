//! One exchange of a client with the upstream, through the gateway, and what is to be said about it.

use serde_json::Value;

use super::client_view::ClientView;
use super::http_client::ClientReply;
use super::judge::{Verdict, compare_requests, compare_responses, must_refuse};
use super::said::SaidRequest;
use super::upstream::ReceivedRequest;
use super::wire::{SseEvents, WireFormat, WireRequest, misnumbered};

/// The hosts of images that are URLs; there are no images there.
const NOWHERE: [&str; 2] = ["images.example", "example.com"];
/// Of a body that is shown.
const SHOWN_CHARACTERS: usize = 6000;

/// The four bodies of an exchange.
#[derive(Debug, Clone, Default)]
pub struct ExchangeBodies {
    pub client_sent: String,
    pub upstream_received: String,
    pub upstream_sent: String,
    pub client_received: String,
}

/// Which formats a run is in.
#[derive(Debug, Clone, Copy)]
pub struct RunPair {
    pub client: WireFormat,
    pub upstream: WireFormat,
    pub is_stream: bool,
}

/// A request that was sent, and what came of it.
pub struct Exchange {
    pub sent: WireRequest,
    pub mark: String,
    pub reply: Result<ClientReply, String>,
    pub view: ClientView,
    pub requests: Vec<ReceivedRequest>,
    pub upstream_sent: Value,
    /// The scenario is about tokens.
    pub counts_tokens: bool,
    /// The scenario is about how the response ends.
    pub counts_finish: bool,
}

impl Exchange {
    /// Judges an exchange that nothing should go wrong in.
    pub fn judge(&self, says: &SaidRequest, pair: RunPair, verdict: &mut Verdict) {
        if must_refuse(pair.upstream, says) && pair.client != pair.upstream {
            self.judge_refusal(verdict);
            return;
        }
        if self.is_unfetched(pair) {
            let unfetched = "request: the gateway fetches images, and this one is nowhere";
            verdict.opinions.push(unfetched.to_owned());
            return;
        }
        let before = verdict.losses.len();
        self.judge_arrival(pair, verdict);
        if verdict.losses.len() > before {
            return;
        }
        if let Some(request) = self.requests.last() {
            let sent = pair
                .client
                .read_request(&self.sent.body)
                .without_mark(&self.mark);
            let mut received = pair
                .upstream
                .read_request(&request.body)
                .without_mark(&self.mark);
            if pair.client == WireFormat::Native {
                received = received.with_bare_results();
            }
            compare_requests((pair.client, &sent), (pair.upstream, &received), verdict);
        }
        match &self.view {
            ClientView::Whole(body) => {
                let mut sent = pair.upstream.read_response(&self.upstream_sent);
                if !self.counts_tokens {
                    sent.facts.retain(|name, _| !name.starts_with("usage: "));
                }
                if !self.counts_finish {
                    sent.facts.remove("finish");
                }
                let read = pair.client.read_response(body);
                compare_responses((pair.upstream, &sent), (pair.client, &read), verdict);
            }
            ClientView::Error {
                status, message, ..
            } => {
                verdict.lose(format!(
                    "response: the client got an error, {status}: {message}"
                ));
            }
            ClientView::Cut => verdict.lose("response: it was cut"),
            ClientView::Broken(reason) | ClientView::Nothing(reason) => {
                verdict.lose(format!("response: {reason}"))
            }
        }
    }

    /// Streams of the chat format end with `[DONE]`, and events of the responses format are numbered. SDKs mind neither: it
    /// is one loss, of the scenario about it, not one of every stream.
    pub fn judge_stream_form(&self, pair: RunPair, verdict: &mut Verdict) {
        let Ok(reply) = &self.reply else { return };
        let body = String::from_utf8_lossy(&reply.body);
        if pair.client == WireFormat::Chat {
            if !body.trim_end().ends_with("data: [DONE]") {
                verdict.lose("response: the stream does not end with [DONE]");
            }
            return;
        }
        if let Some(wrong) = misnumbered(&SseEvents::read(&body, reply.is_cut)) {
            verdict.lose(format!("response: {wrong}"));
        }
        if !body.contains("sequence_number") {
            let missing = "response: the events have no sequence_number";
            verdict.opinions.push(missing.to_owned());
        }
    }

    /// Whether the request came to the upstream, in its format, and was taken.
    pub fn judge_arrival(&self, pair: RunPair, verdict: &mut Verdict) {
        let Some(request) = self.requests.last() else {
            verdict.lose(format!(
                "request: it did not reach the upstream: {}",
                self.view.in_words()
            ));
            return;
        };
        if request.format != pair.upstream {
            let (asked, came) = (pair.upstream.name(), request.format.name());
            verdict.lose(format!(
                "request: it came to the upstream as {came}, not as {asked}"
            ));
            return;
        }
        verdict.has_arrived = true;
        if let Some(reason) = &request.complaint {
            verdict.lose(format!("request: the upstream refused it: {reason}"));
        }
    }

    /// Whether a native upstream was to get the bytes of an image: not all of its versions take URLs of everywhere.
    fn is_unfetched(&self, pair: RunPair) -> bool {
        let ClientView::Error {
            status, message, ..
        } = &self.view
        else {
            return false;
        };
        self.requests.is_empty()
            && pair.upstream == WireFormat::Native
            && pair.client != WireFormat::Native
            && (400..500).contains(status)
            && NOWHERE.iter().any(|host| message.contains(host))
    }

    /// Content that the upstream's format cannot say must be refused, in words that the client can read.
    fn judge_refusal(&self, verdict: &mut Verdict) {
        let status = self.reply.as_ref().map_or(0, |reply| reply.status);
        if matches!(status, 404 | 405 | 501) {
            verdict.lose("request: there is no such path");
            return;
        }
        match &self.view {
            ClientView::Error { status, .. } if (400..500).contains(status) => {}
            view => {
                let seen = view.in_words();
                verdict.lose(format!(
                    "request: content that the upstream cannot take was not refused: {seen}"
                ));
            }
        }
    }

    /// A signature must come back to who issued it.
    pub fn judge_signature(&self, pair: RunPair, verdict: &mut Verdict) {
        let signature = pair.upstream.signature();
        let received = self.requests.last().map(|request| request.body.to_string());
        if received.is_some_and(|body| !body.contains(signature)) {
            verdict
                .lose("request: the signature of the reasoning did not come back to the upstream");
        }
    }

    /// The bodies, to be shown.
    pub fn bodies(&self) -> ExchangeBodies {
        let received = self.requests.last().map(|request| request.body.to_string());
        let reply = self.reply.as_ref().map(|reply| {
            let body = String::from_utf8_lossy(&reply.body);
            format!("{} {body}", reply.status)
        });
        let reply = reply.unwrap_or_else(String::clone);
        ExchangeBodies {
            client_sent: shown(&self.sent.body.to_string()),
            upstream_received: shown(&received.unwrap_or_default()),
            upstream_sent: shown(&self.upstream_sent.to_string()),
            client_received: shown(&reply),
        }
    }
}

fn shown(body: &str) -> String {
    body.chars().take(SHOWN_CHARACTERS).collect()
}
