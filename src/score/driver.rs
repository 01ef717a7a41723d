//! Drives every pair of formats through the scenarios, as JSON and as streams.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Uri;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::client_view::{ClientView, view};
use super::exchange::{Exchange, ExchangeBodies, RunPair};
use super::fault_rules;
use super::http_client::ScoreConnection;
use super::judge::{Verdict, can_say};
use super::said::{SaidRequest, SaidTurn};
use super::scenario::{Scenario, UpstreamFault};
use super::upstream::{RunPlan, StrictUpstream};
use super::wire::WireFormat;

/// Runs at once.
const CONCURRENCY: usize = 6;
/// Those with faults wait for timeouts, more than they work.
const FAULT_CONCURRENCY: usize = 16;
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a client waits for a gateway whose upstream hangs: `--print-config` sets twelve seconds.
const HANG_PATIENCE: Duration = Duration::from_secs(25);
/// The gateway that is scored.
#[derive(Debug, Clone)]
pub struct ScoredGateway {
    pub url: Uri,
    pub key: String,
    /// What else clients send.
    pub headers: Vec<(String, String)>,
    /// The model for each format of the upstream.
    pub models: BTreeMap<WireFormat, String>,
    /// Only pairs of one format are driven.
    pub only_diagonal: bool,
    /// There is no gateway: clients talk to the upstream, and what a gateway makes of its failures is not seen.
    pub is_direct: bool,
}

/// A scenario in a pair of formats.
#[derive(Debug, Clone)]
pub struct ScoredRun {
    pub scenario: String,
    pub client: WireFormat,
    pub upstream: WireFormat,
    pub is_stream: bool,
    pub verdict: Verdict,
    /// Of the last exchange; kept where something was lost.
    pub bodies: Option<ExchangeBodies>,
}

/// Drives runs.
pub struct Driver {
    pub gateway: ScoredGateway,
    pub upstream: Arc<StrictUpstream>,
    next_run: AtomicU64,
}

impl Driver {
    pub fn new(gateway: ScoredGateway, upstream: Arc<StrictUpstream>) -> Arc<Driver> {
        Arc::new(Driver {
            gateway,
            upstream,
            next_run: AtomicU64::new(1),
        })
    }

    /// A number that no run had.
    pub fn new_run(&self) -> u64 {
        self.next_run.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs the scenarios in all pairs; those with faults last, so that nothing that a gateway remembers of them disturbs others.
    pub async fn run_all(self: Arc<Driver>, scenarios: &[Scenario]) -> Vec<ScoredRun> {
        let mut outcomes = Vec::new();
        for has_fault in [false, true] {
            let chosen = scenarios
                .iter()
                .filter(|scenario| scenario.fault.is_some() == has_fault);
            let mut tasks = JoinSet::new();
            let places = match has_fault {
                true => FAULT_CONCURRENCY,
                false => CONCURRENCY,
            };
            let places = Arc::new(Semaphore::new(places));
            for scenario in chosen {
                let scenario = Arc::new(scenario.clone());
                for pair in self.pairs(&scenario) {
                    let (driver, scenario, places) =
                        (self.clone(), scenario.clone(), places.clone());
                    tasks.spawn(async move {
                        let _place = places.acquire_owned().await;
                        driver.run(&scenario, pair).await
                    });
                }
            }
            while let Some(outcome) = tasks.join_next().await {
                outcomes.extend(outcome.ok());
            }
        }
        outcomes.sort_by(|one, other| key(one).cmp(&key(other)));
        outcomes
    }

    fn pairs(&self, scenario: &Scenario) -> Vec<RunPair> {
        let mut pairs = Vec::new();
        let is_duty = |fault: UpstreamFault| {
            !matches!(fault, UpstreamFault::Status { .. } | UpstreamFault::Cut)
        };
        if self.gateway.is_direct && scenario.fault.is_some_and(is_duty) {
            return pairs;
        }
        for client in WireFormat::ALL {
            for &upstream in self.gateway.models.keys() {
                if (self.gateway.only_diagonal && client != upstream)
                    || !can_say(client, &scenario.says)
                    || !scenario.has_pair(client, upstream)
                {
                    continue;
                }
                let has_form = matches!(client, WireFormat::Chat | WireFormat::Responses);
                for is_stream in [false, true] {
                    if scenario.stream_form && !(has_form && is_stream) {
                        continue;
                    }
                    pairs.push(RunPair {
                        client,
                        upstream,
                        is_stream,
                    });
                }
            }
        }
        pairs
    }

    async fn run(&self, scenario: &Scenario, pair: RunPair) -> ScoredRun {
        let mut verdict = Verdict::default();
        let last = match scenario.fault {
            Some(fault) => self.run_fault(scenario, fault, pair, &mut verdict).await,
            None => self.run_steps(scenario, pair, &mut verdict).await,
        };
        let is_shown = !verdict.losses.is_empty() || !verdict.opinions.is_empty();
        ScoredRun {
            scenario: scenario.name.clone(),
            client: pair.client,
            upstream: pair.upstream,
            is_stream: pair.is_stream,
            verdict,
            bodies: last.filter(|_| is_shown).map(|exchange| exchange.bodies()),
        }
    }

    /// The requests of a conversation, one after the other.
    async fn run_steps(
        &self,
        scenario: &Scenario,
        pair: RunPair,
        verdict: &mut Verdict,
    ) -> Option<Exchange> {
        let plan = RunPlan {
            answer: scenario.answers.clone(),
            body: scenario.upstream.get(pair.upstream.name()).cloned(),
            byte_by_byte: scenario.byte_by_byte,
            ..RunPlan::default()
        };
        let raw = scenario.client.get(pair.client.name());
        let exchange = self.exchange(&scenario.says, raw, plan, pair).await;
        exchange.judge(&scenario.says, pair, verdict);
        if scenario.stream_form {
            exchange.judge_stream_form(pair, verdict);
        }
        let (Some(step), ClientView::Whole(response)) = (&scenario.then, &exchange.view) else {
            return Some(exchange);
        };
        if !verdict.losses.is_empty() {
            return Some(exchange);
        }
        let mut says = step.says.clone();
        for turn in &mut says.turns {
            if let SaidTurn::Answer(kept) = turn {
                *kept = pair.client.kept_turn(response);
            }
        }
        let plan = RunPlan {
            answer: step.answers.clone(),
            ..RunPlan::default()
        };
        let next = self.exchange(&says, None, plan, pair).await;
        next.judge(&says, pair, verdict);
        if scenario.answers.signed {
            next.judge_signature(pair, verdict);
        }
        Some(next)
    }

    /// A failure of the upstream: a cut comes after every event of a stream.
    async fn run_fault(
        &self,
        scenario: &Scenario,
        fault: UpstreamFault,
        pair: RunPair,
        verdict: &mut Verdict,
    ) -> Option<Exchange> {
        let events = pair
            .upstream
            .stream(&pair.upstream.response(&scenario.answers, 0));
        let cuts = match (fault, pair.is_stream) {
            (UpstreamFault::Cut, true) => 0..events.finish,
            _ => 0..1,
        };
        let mut shown = None;
        for cut_after in cuts {
            let plan = RunPlan {
                answer: scenario.answers.clone(),
                fault: Some(fault),
                cut_after,
                ..RunPlan::default()
            };
            let exchange = self.exchange(&scenario.says, None, plan, pair).await;
            let before = verdict.losses.len();
            exchange.judge_arrival(pair, verdict);
            if verdict.losses.len() == before {
                let strict = (fault, scenario.strict_error);
                fault_rules::judge(strict, &exchange.view, &exchange.reply, verdict);
            }
            let mut found = verdict.losses.split_off(before);
            // The same at every cut is said once.
            found.retain(|loss| !verdict.losses.iter().any(|known| known.starts_with(loss)));
            if matches!(fault, UpstreamFault::Cut) && pair.is_stream {
                let place = format!(" (cut after {cut_after} events)");
                found.iter_mut().for_each(|loss| *loss += &place);
            }
            if !found.is_empty() && shown.is_none() {
                shown = Some(exchange);
            }
            verdict.losses.append(&mut found);
        }
        verdict.losses.truncate(3);
        shown
    }

    async fn exchange(
        &self,
        says: &SaidRequest,
        raw: Option<&Value>,
        plan: RunPlan,
        pair: RunPair,
    ) -> Exchange {
        let run = self.new_run();
        let mark = StrictUpstream::mark(run);
        let mut marked = says.clone();
        marked.mark(&mark);
        let model = self
            .gateway
            .models
            .get(&pair.upstream)
            .map_or("", String::as_str);
        let mut sent = pair
            .client
            .request(&marked, model, &self.gateway.key, pair.is_stream);
        if let Some(raw) = raw {
            sent.body = marked_body(pair.client, raw, &mark, &sent.body);
        }
        let patience = match plan.fault {
            Some(UpstreamFault::Hang) => HANG_PATIENCE,
            _ => PATIENCE,
        };
        let upstream_sent = plan.response(pair.upstream, run);
        let counts_tokens = plan.answer.usage.is_some();
        let counts_finish = plan.is_about_finish();
        self.upstream.plan(run, plan);
        let reply = match ScoreConnection::open(&self.gateway.url, &self.gateway.headers).await {
            Ok(mut connection) => connection.send(&sent, patience).await,
            Err(reason) => Err(reason),
        };
        Exchange {
            view: view(pair.client, pair.is_stream, &reply),
            sent,
            mark,
            reply,
            requests: self.upstream.take(run),
            upstream_sent,
            counts_tokens,
            counts_finish,
        }
    }
}

const fn key(run: &ScoredRun) -> (&String, WireFormat, WireFormat, bool) {
    (&run.scenario, run.client, run.upstream, run.is_stream)
}

/// A body of a scenario file, with the mark and with what the driver decides.
fn marked_body(client: WireFormat, raw: &Value, mark: &str, written: &Value) -> Value {
    const MARK: &str = "{{mark}}";
    let text = raw.to_string();
    let mut body: Value = serde_json::from_str(&text.replace(MARK, mark)).unwrap_or_default();
    if !text.contains(MARK) {
        client.mark(&mut body, mark);
    }
    for field in ["model", "stream", "stream_options"] {
        if !written[field].is_null() {
            body[field] = written[field].clone();
        }
    }
    body
}
