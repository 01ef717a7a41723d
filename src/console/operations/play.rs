//! Play: a conversation with a model by one of one's own keys, through the gateway's own listener, so that caps, limits and
//! bills are real.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::config::InspectorAccess;
use crate::console::actor::ConsoleCall;
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::texts::ENGLISH;
use crate::console::views::{
    InspectionView, PlayEventView, PlayKeyView, PlayOptionsView, PlayOutcomeView,
};
use crate::formats::{Capabilities, Codec, Operation, StreamDecoder, UpstreamTarget};
use crate::model::{
    Block, Delta, Event, Format, Losses, Part, PartKind, Request, Role, Sampling, Turn,
};
use crate::runtime::{InspectedKey, Inspection, InspectionSwitch, Runtime};
use crate::sse::SseFrames;
use crate::store::MembershipRole;

/// The formats that a client can converse in.
pub const FORMATS: [Format; 4] = [
    Format::Chat,
    Format::Responses,
    Format::Messages,
    Format::Native,
];

/// How many turns a conversation may have.
const MAX_TURNS: usize = 100;
/// How much text all of them together, in KiB.
const MAX_TEXT: usize = 32;
/// The longest answer where nothing else is asked for, in tokens.
const MAX_TOKENS: u64 = 1024;
/// How many models are named.
const MAX_MODELS: usize = 500;
/// How much of an error is read.
const ERROR_LIMIT: usize = 64 << 10;
/// How long what was captured is waited for once the answer is there.
const CAPTURE_WAIT: Duration = Duration::from_secs(5);

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct PlayInput {
    /// The id of the key.
    pub key: String,
    pub model: String,
    /// The format of the client.
    pub format: String,
    pub system: String,
    /// In turns, the first and the last of which are the person's.
    pub turns: Vec<String>,
    pub max_tokens: Option<u64>,
}

/// The keys and models that the actor can play with.
pub async fn list_options(call: &ConsoleCall) -> Result<PlayOptionsView, Refusal> {
    let person = &call.signed_in()?.person;
    let store = &call.console.store;
    let mut keys = Vec::new();
    for account in store.accounts(Some(&person.id)).await? {
        if call.check_may_write(&account.name).await.is_err() {
            continue;
        }
        let of_account = store.keys_of_account(&account.name).await?.into_iter();
        keys.extend(of_account.map(|key| PlayKeyView {
            id: key.id,
            name: key.settings.name,
        }));
    }
    let Some(runtime) = &call.console.runtime else {
        return Ok(PlayOptionsView {
            keys,
            models: Vec::new(),
        });
    };
    let snapshot = runtime.snapshot();
    if call.is_admin() {
        let mut of_config: Vec<PlayKeyView> = snapshot
            .keys
            .values()
            .map(|key| PlayKeyView {
                id: key.id.to_string(),
                name: key.name.to_string(),
            })
            .collect();
        of_config.sort_by(|one, other| one.name.cmp(&other.name));
        keys.extend(of_config);
    }
    let models = snapshot.models.iter().filter(|model| {
        let settings = &model.settings;
        !settings.is_pattern() && settings.serves(Operation::Generate)
    });
    let models = models.map(|model| model.settings.id.clone());
    let discovered = snapshot.discovered().map(|(name, _)| name);
    Ok(PlayOptionsView {
        keys,
        models: models.chain(discovered).take(MAX_MODELS).collect(),
    })
}

/// Sends a message, and returns its answer as it comes.
pub async fn play(call: &ConsoleCall, input: &PlayInput) -> Result<PlayedAnswer, Refusal> {
    let key = own_key(call, &input.key).await?;
    let format = FORMATS.into_iter().find(|it| it.name() == input.format);
    let format = format.ok_or(InputProblem::Format("format"))?;
    check_size(input)?;
    let codec = format.codec();
    let (target, body) = encode(codec, input)?;
    let console = &call.console;
    let runtime = console.runtime.as_ref().ok_or(Refusal::Unavailable)?;
    let gateway = console.gateway.as_ref().ok_or(Refusal::PlayUnavailable)?;
    let switch = Arc::<InspectionSwitch>::default();
    let secret = gateway
        .keyring
        .issue_secret(runtime, &key.id, switch.clone());
    let secret = secret.await.map_err(|_| Refusal::Unavailable)?;
    let inspection = capture(call, runtime, key, switch);
    let gateway = gateway.clone();
    let asking = async move { gateway.post(&target, &secret, body).await };
    Ok(PlayedAnswer {
        codec,
        asking: Some(Box::pin(asking)),
        is_stream: false,
        body: None,
        frames: SseFrames::default(),
        decoder: codec.stream_decoder(),
        is_reasoning: false,
        ready: VecDeque::new(),
        inspection,
        outcome: PlayOutcomeView::default(),
        gateway_name: console.gateway_name.clone(),
        is_over: false,
    })
}

/// A key that the actor may use: who may give it another secret has the secret anyway.
async fn own_key(call: &ConsoleCall, id: &str) -> Result<InspectedKey, Refusal> {
    let person = &call.signed_in()?.person;
    let by = person.handle.clone();
    let snapshot = call.console.runtime.as_ref().map(|it| it.snapshot());
    let mut of_config = snapshot.iter().flat_map(|snapshot| snapshot.keys.values());
    if let Some(key) = of_config.find(|key| &*key.id == id) {
        call.check_admin()?;
        return Ok(InspectedKey {
            id: id.to_owned(),
            name: key.name.to_string(),
            account: String::new(),
            by,
        });
    }
    let store = &call.console.store;
    let key = store.key_by_id(id).await?;
    let key = key.filter(|key| key.revoked.is_none());
    let key = key.ok_or(Refusal::NotFound)?;
    // Not by the role of an administrator: nobody spends what is another's.
    match store.membership(&person.id, &key.account).await? {
        None if call.is_admin() => return Err(Refusal::Forbidden),
        None => return Err(Refusal::NotFound),
        Some(MembershipRole::Viewer) => return Err(Refusal::Forbidden),
        Some(MembershipRole::Owner | MembershipRole::Member) => {}
    }
    call.check_may_write(&key.account).await?;
    Ok(InspectedKey {
        id: key.id,
        name: key.settings.name,
        account: key.account,
        by,
    })
}

/// Captures the request that comes next by this switch, unless the inspector is off.
fn capture(
    call: &ConsoleCall,
    runtime: &Runtime,
    key: InspectedKey,
    switch: Arc<InspectionSwitch>,
) -> Option<Arc<Inspection>> {
    let is_on = call.console.settings.inspector == InspectorAccess::Owners;
    is_on.then(|| runtime.state.inspector.start_play(key, switch))
}

fn check_size(input: &PlayInput) -> Result<(), Refusal> {
    let texts = input.turns.iter().chain([&input.system, &input.model]);
    let size: usize = texts.map(String::len).sum();
    let last = input.turns.last().map(|text| text.trim());
    if last.is_none_or(str::is_empty) {
        return Err(InputProblem::Message.into());
    }
    if size > MAX_TEXT << 10 || input.turns.len() > MAX_TURNS {
        return Err(InputProblem::InputTooLarge(MAX_TEXT).into());
    }
    Ok(())
}

/// Path and body of the request, as a client of the format sends it.
fn encode(codec: &dyn Codec, input: &PlayInput) -> Result<(String, Vec<u8>), Refusal> {
    let turn = |role, text: &'_ str| Turn {
        role,
        parts: vec![Part {
            kind: PartKind::Text(text.to_owned().into()),
            at: None,
        }],
        at: None,
    };
    let system = Some(input.system.trim()).filter(|text| !text.is_empty());
    let system = system.map(|text| turn(Role::System, text));
    let turns = input.turns.iter().enumerate().map(|(at, text)| {
        let role = if at % 2 == 0 { Role::User } else { Role::Model };
        turn(role, text)
    });
    let request = Request {
        turns: system.into_iter().chain(turns).collect(),
        sampling: Sampling {
            max_tokens: Some(input.max_tokens.unwrap_or(MAX_TOKENS)),
            ..Sampling::default()
        },
        ..Request::default()
    };
    let target = UpstreamTarget {
        model: input.model.trim(),
        stream: true,
        max_output_tokens: None,
        capabilities: &Capabilities::default(),
        brand: "",
        images_only: false,
    };
    let body = codec.encode_request(&request, &target, &mut Losses::default());
    let body = body.map_err(|error| InputProblem::Body(error.message.clone()))?;
    let operation = codec.upstream_operation(&request, true);
    let path = codec.upstream_path(operation, target.model);
    let version = if path.starts_with("/v1") { "" } else { "/v1" };
    let query = codec.upstream_query(operation);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Ok((format!("{version}{path}{query}"), body))
}

/// `None`: the gateway cannot be reached.
type PendingResponse = Pin<Box<dyn Future<Output = Option<Response<Incoming>>> + Send>>;

/// An answer under way.
pub struct PlayedAnswer {
    codec: &'static dyn Codec,
    /// `None`: the header of the response is here.
    asking: Option<PendingResponse>,
    is_stream: bool,
    /// `None`: all of it was read.
    body: Option<Incoming>,
    frames: SseFrames,
    decoder: Box<dyn StreamDecoder>,
    is_reasoning: bool,
    ready: VecDeque<PlayEventView>,
    inspection: Option<Arc<Inspection>>,
    outcome: PlayOutcomeView,
    gateway_name: String,
    is_over: bool,
}

impl PlayedAnswer {
    /// The next step; `None`: that was all.
    pub(in crate::console) async fn next(&mut self) -> Option<PlayEventView> {
        if let Some(asking) = &mut self.asking {
            let response = asking.await;
            self.asking = None;
            self.begin(response);
        }
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match &mut self.body {
                None if self.is_over => return None,
                None => {
                    self.is_over = true;
                    return Some(PlayEventView::Done(self.finish().await));
                }
                Some(body) if self.is_stream => match body.frame().await {
                    Some(Ok(frame)) => {
                        let chunk = frame.into_data().unwrap_or_default();
                        self.decode(&chunk);
                    }
                    Some(Err(_)) | None => self.body = None,
                },
                Some(_) => self.read_error().await,
            }
        }
    }

    /// Takes the header of the response.
    fn begin(&mut self, response: Option<Response<Incoming>>) {
        let Some(response) = response else {
            return self.ready.push_back(PlayEventView::Failed {
                message: ENGLISH.refusal(&Refusal::Unavailable),
            });
        };
        let (head, body) = response.into_parts();
        let text = |name: HeaderName| head.headers.get(name)?.to_str().ok();
        let id = text(HeaderName::from_static("x-request-id"));
        self.outcome.request_id = id.unwrap_or_default().to_owned();
        self.outcome.status = head.status.as_u16();
        let content_type = text(CONTENT_TYPE);
        self.is_stream = content_type.is_some_and(|it| it.starts_with("text/event-stream"));
        self.body = Some(body);
    }

    fn decode(&mut self, chunk: &[u8]) {
        let PlayedAnswer {
            frames,
            decoder,
            is_reasoning,
            ready,
            ..
        } = self;
        frames.push(chunk, |frame| {
            let Some(data) = frame.data.as_deref().filter(|data| !data.is_empty()) else {
                return;
            };
            let decoded = decoder.decode_event(data, &mut |event| match event {
                Event::Open { block, .. } => *is_reasoning = matches!(block, Block::Reasoning),
                Event::Delta {
                    delta: Delta::Text(text),
                    ..
                } => {
                    let text = text.into_owned();
                    ready.push_back(match *is_reasoning {
                        true => PlayEventView::Reasoning { text },
                        false => PlayEventView::Text { text },
                    });
                }
                _ => {}
            });
            if let Err(error) = decoded {
                ready.push_back(PlayEventView::Failed {
                    message: error.message.clone(),
                });
            }
        });
    }

    /// What is no stream is an error: the gateway was asked for one.
    async fn read_error(&mut self) {
        let Some(mut body) = self.body.take() else {
            return;
        };
        let mut bytes = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            bytes.extend_from_slice(&frame.into_data().unwrap_or_default());
            if bytes.len() > ERROR_LIMIT {
                break;
            }
        }
        let error = self.codec.decode_error(self.outcome.status, &bytes);
        self.ready.push_back(PlayEventView::Failed {
            message: error.message.clone(),
        });
    }

    /// Waits until the gateway has settled the request.
    async fn finish(&mut self) -> PlayOutcomeView {
        let mut outcome = std::mem::take(&mut self.outcome);
        let Some(inspection) = self.inspection.take() else {
            return outcome;
        };
        let mut changes = inspection.watch();
        let settled = async {
            loop {
                let view = InspectionView::new(&inspection, &self.gateway_name);
                if view.is_final() && !view.requests.is_empty() {
                    return;
                }
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // What is not there by then can be looked at later.
        let _ = timeout(CAPTURE_WAIT, settled).await;
        outcome.add(&InspectionView::new(&inspection, &self.gateway_name));
        outcome
    }
}
