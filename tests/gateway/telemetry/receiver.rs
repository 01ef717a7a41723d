//! A receiver of OTLP over HTTP, with the official messages.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AttributeValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};

/// What has come, and what is refused.
#[derive(Default)]
struct Received {
    requests: Vec<(HeaderMap, Bytes)>,
    /// Those that were taken.
    exports: Vec<ExportTraceServiceRequest>,
    failures: VecDeque<u16>,
}

/// A receiver on a port of its own.
pub struct OtlpReceiver {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
}

impl OtlpReceiver {
    pub async fn start() -> OtlpReceiver {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let received: Arc<Mutex<Received>> = Arc::default();
        let router = Router::new()
            .route("/base/v1/traces", post(receive))
            .with_state(received.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        OtlpReceiver { address, received }
    }

    /// The base URL, with a path before `/v1/traces`.
    pub fn endpoint(&self) -> String {
        format!("http://{}/base", self.address)
    }

    /// Answers the next export with a status.
    pub fn fail_next(&self, status: u16) {
        self.lock().failures.push_back(status);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Received> {
        self.received.lock().expect("no test has failed in it")
    }

    /// The bodies of all exports, also of those that were refused.
    pub fn bodies(&self) -> Vec<Bytes> {
        let received = self.lock();
        received
            .requests
            .iter()
            .map(|(_, body)| body.clone())
            .collect()
    }

    /// A header of the first export.
    pub fn header(&self, name: &str) -> String {
        let received = self.lock();
        let (headers, _) = received.requests.first().expect("an export");
        headers[name].to_str().expect("text").to_owned()
    }

    /// All spans that were taken.
    pub fn spans(&self) -> Vec<Span> {
        let received = self.lock();
        let resources = received
            .exports
            .iter()
            .flat_map(|export| &export.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// The attributes of the resource.
    pub fn resource(&self) -> BTreeMap<String, Value> {
        let received = self.lock();
        let first = &received.exports.first().expect("an export").resource_spans[0];
        attributes(&first.resource.as_ref().expect("a resource").attributes)
    }
}

async fn receive(
    State(received): State<Arc<Mutex<Received>>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let mut received = received.lock().expect("no test has failed in it");
    received.requests.push((headers, body.clone()));
    if let Some(status) = received.failures.pop_front() {
        return StatusCode::from_u16(status).expect("a status");
    }
    let export = ExportTraceServiceRequest::decode(body).expect("an export");
    received.exports.push(export);
    StatusCode::OK
}

/// Attributes as JSON.
pub fn attributes(list: &[KeyValue]) -> BTreeMap<String, Value> {
    let pairs = list.iter().map(|pair| {
        let value = pair.value.as_ref().expect("a value");
        (pair.key.clone(), to_json(value))
    });
    pairs.collect()
}

fn to_json(value: &AnyValue) -> Value {
    match value.value.as_ref().expect("a value") {
        AttributeValue::StringValue(text) => json!(text),
        AttributeValue::BoolValue(flag) => json!(flag),
        AttributeValue::IntValue(number) => json!(number),
        AttributeValue::DoubleValue(number) => json!(number),
        AttributeValue::ArrayValue(list) => list.values.iter().map(to_json).collect(),
        other => panic!("{other:?}"),
    }
}
