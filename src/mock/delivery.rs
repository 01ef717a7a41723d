//! Sends a response as its plan says: at once, slowly, on signals, compressed, or cut.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use std::vec;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream::{self, Stream};
use http::{HeaderMap, HeaderValue, header};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::plan::DeliveryPlan;
use super::response::{EVENTS, MockBody, MockResponse};
use super::state::{MockState, RequestGuard};

/// Headers of vendors that clients of a gateway should never see.
const VENDOR_HEADERS: [(&str, &str); 6] = [
    ("openai-organization", "mock-organization"),
    ("x-ratelimit-remaining-requests", "59"),
    ("set-cookie", "__cf_bm=mock; path=/; HttpOnly; Secure"),
    ("request-id", "req_mock"),
    ("cf-ray", "0123456789abcdef-MCK"),
    ("server", "mock-vendor"),
];

/// Bytes that are not flushed yet are lost with the connection, so the cut comes this much later.
const FLUSH_DELAY: Duration = Duration::from_millis(20);

/// Makes the response whose body follows the plan.
pub(super) async fn deliver(
    state: &MockState,
    mut planned: MockResponse,
    delivery: DeliveryPlan,
    mut guard: RequestGuard,
) -> Response {
    if let Some(name) = &delivery.name {
        state.name(&mut guard, name);
    }
    if let Some(slow) = delivery.slow {
        sleep(slow).await;
    }
    let signal = delivery.wait.as_deref().map(|name| state.signal(name));
    let headers = headers(&mut planned, &delivery);
    let mut response = match planned.body {
        MockBody::Whole(body) => {
            if let Some(signal) = &signal {
                guard.wait(signal).await;
            }
            whole(body, &delivery, guard)
        }
        MockBody::Chunks(chunks) => Response::new(in_chunks(chunks, &delivery, signal, guard)),
    };
    *response.status_mut() = planned.status;
    response.headers_mut().extend(headers);
    response
}

fn headers(planned: &mut MockResponse, delivery: &DeliveryPlan) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let content_type = HeaderValue::from_static(planned.content_type);
    headers.insert(header::CONTENT_TYPE, content_type);
    if planned.content_type == EVENTS {
        let no_cache = HeaderValue::from_static("no-cache");
        headers.insert(header::CACHE_CONTROL, no_cache);
    }
    headers.extend(
        planned
            .header
            .take()
            .map(|(name, value)| (Some(name), value)),
    );
    if delivery.vendor_headers {
        for (name, value) in VENDOR_HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    if delivery.gzip {
        compress(&mut planned.body);
        let gzip = HeaderValue::from_static("gzip");
        headers.insert(header::CONTENT_ENCODING, gzip);
    }
    headers
}

fn whole(body: Bytes, delivery: &DeliveryPlan, mut guard: RequestGuard) -> Response {
    if delivery.cut.is_none() {
        guard.finish();
        return Response::new(Body::from(body));
    }
    let half = body.slice(..body.len() / 2);
    let cut = DeliveryPlan {
        cut: Some(1),
        ..DeliveryPlan::default()
    };
    let mut response = Response::new(in_chunks(vec![half], &cut, None, guard));
    let promised = HeaderValue::from(body.len());
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, promised);
    response
}

fn in_chunks(
    chunks: Vec<Bytes>,
    delivery: &DeliveryPlan,
    signal: Option<Arc<Semaphore>>,
    guard: RequestGuard,
) -> Body {
    let chunks = ReadyChunks {
        chunks: chunks.into_iter(),
        guard,
    };
    if delivery.pace.is_none() && delivery.cut.is_none() && signal.is_none() {
        return Body::from_stream(stream::iter(chunks.map(Ok::<_, PlannedCut>)));
    }
    Body::from_stream(paced(PacedChunks {
        chunks,
        sent: 0,
        pace: delivery.pace,
        cut: delivery.cut,
        signal,
    }))
}

/// All chunks, one after the other, without a timer or a channel: load tests use this.
struct ReadyChunks {
    chunks: vec::IntoIter<Bytes>,
    guard: RequestGuard,
}

impl Iterator for ReadyChunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let chunk = self.chunks.next();
        if self.chunks.len() == 0 {
            self.guard.finish();
        }
        chunk
    }
}

/// Chunks that are sent with delays, on signals, or not to the end.
struct PacedChunks {
    chunks: ReadyChunks,
    sent: usize,
    pace: Option<Duration>,
    cut: Option<usize>,
    signal: Option<Arc<Semaphore>>,
}

fn paced(paced: PacedChunks) -> impl Stream<Item = Result<Bytes, PlannedCut>> {
    stream::unfold(Some(paced), async |paced| {
        let mut paced = paced?;
        if paced.cut == Some(paced.sent) {
            sleep(FLUSH_DELAY).await;
            paced.chunks.guard.finish();
            return Some((Err(PlannedCut), None));
        }
        paced.wait().await;
        let chunk = paced.chunks.next()?;
        paced.sent += 1;
        Some((Ok(chunk), Some(paced)))
    })
}

impl PacedChunks {
    async fn wait(&self) {
        if self.sent == 0 || self.chunks.chunks.len() == 0 {
            return;
        }
        if let Some(pace) = self.pace {
            sleep(pace).await;
        }
        if let Some(signal) = &self.signal {
            self.chunks.guard.wait(signal).await;
        }
    }
}

/// Ends the connection in the middle of a body.
#[derive(Debug)]
struct PlannedCut;

impl fmt::Display for PlannedCut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("cut off, as planned")
    }
}

impl std::error::Error for PlannedCut {}

/// Compresses a body; each chunk can be decompressed as soon as it has come.
fn compress(body: &mut MockBody) {
    const INFALLIBLE: &str = "writing to memory does not fail";
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    match body {
        MockBody::Whole(bytes) => {
            encoder.write_all(bytes).expect(INFALLIBLE);
            *bytes = encoder.finish().expect(INFALLIBLE).into();
        }
        MockBody::Chunks(chunks) => {
            for chunk in chunks.iter_mut() {
                encoder.write_all(chunk).expect(INFALLIBLE);
                encoder.flush().expect(INFALLIBLE);
                *chunk = std::mem::take(encoder.get_mut()).into();
            }
            chunks.push(encoder.finish().expect(INFALLIBLE).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::pin::pin;
    use std::task::Poll;

    use futures_util::{StreamExt as _, poll};
    use http::StatusCode;

    use super::*;

    fn chunks() -> Vec<Bytes> {
        ["one", "two", "three"].map(Bytes::from).to_vec()
    }

    fn streamed() -> MockResponse {
        MockResponse {
            status: StatusCode::OK,
            content_type: EVENTS,
            header: None,
            body: MockBody::Chunks(chunks()),
        }
    }

    fn seen(state: &MockState) -> serde_json::Value {
        serde_json::to_value(state.counts("me")).unwrap()
    }

    fn planned() -> DeliveryPlan {
        DeliveryPlan {
            name: Some("me".to_owned()),
            ..DeliveryPlan::default()
        }
    }

    #[tokio::test]
    async fn a_plain_stream_is_ready_from_end_to_end() {
        let state = MockState::default();
        let response = deliver(&state, streamed(), planned(), state.start_request()).await;
        let body = pin!(response.into_body().into_data_stream());
        let Poll::Ready(all) = poll!(body.map(Result::unwrap).collect::<Vec<_>>()) else {
            panic!("nothing to wait for");
        };
        assert_eq!(all, chunks());
        assert_eq!(seen(&state)["finished"], 1);
    }

    #[tokio::test]
    async fn every_event_after_the_first_waits_for_a_signal() {
        let state = MockState::default();
        let delivery = DeliveryPlan {
            wait: Some("go".to_owned()),
            ..planned()
        };
        let response = deliver(&state, streamed(), delivery, state.start_request()).await;
        let mut body = response.into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), "one");
        for chunk in ["two", "three"] {
            assert!(poll!(body.next()).is_pending());
            assert_eq!(seen(&state)["waiting"], 1);
            state.signal("go").add_permits(1);
            assert_eq!(body.next().await.unwrap().unwrap(), chunk);
        }
        assert!(body.next().await.is_none());
        let finished =
            serde_json::json!({"started": 1, "finished": 1, "cancelled": 0, "waiting": 0});
        assert_eq!(seen(&state), finished);
    }

    #[tokio::test]
    async fn a_client_that_leaves_is_counted() {
        let state = MockState::default();
        let delivery = DeliveryPlan {
            wait: Some("never".to_owned()),
            ..planned()
        };
        let response = deliver(&state, streamed(), delivery, state.start_request()).await;
        let mut body = response.into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), "one");
        assert!(poll!(body.next()).is_pending());
        drop(body);
        let cancelled =
            serde_json::json!({"started": 1, "finished": 0, "cancelled": 1, "waiting": 0});
        assert_eq!(seen(&state), cancelled);
    }

    #[tokio::test]
    async fn a_cut_comes_after_its_events() {
        let state = MockState::default();
        for cut in 0..3 {
            let delivery = DeliveryPlan {
                cut: Some(cut),
                ..planned()
            };
            let response = deliver(&state, streamed(), delivery, state.start_request()).await;
            let items = response.into_body().into_data_stream();
            let items: Vec<_> = items.collect().await;
            assert_eq!(items.len(), cut + 1);
            assert!(items[..cut].iter().all(Result::is_ok) && items[cut].is_err());
        }
    }

    #[test]
    fn compressed_chunks_can_be_decompressed_one_by_one() {
        let mut body = MockBody::Chunks(chunks());
        compress(&mut body);
        let MockBody::Chunks(compressed) = body else {
            panic!("still in chunks");
        };
        let mut read = flate2::write::GzDecoder::new(Vec::new());
        for (chunk, plain) in compressed.iter().zip(chunks()) {
            read.write_all(chunk).unwrap();
            read.flush().unwrap();
            assert_eq!(std::mem::take(read.get_mut()), plain);
        }
        let mut text = String::new();
        let all = compressed.concat();
        let mut whole = flate2::read::GzDecoder::new(&all[..]);
        whole.read_to_string(&mut text).unwrap();
        assert_eq!(text, "onetwothree");
    }
}
