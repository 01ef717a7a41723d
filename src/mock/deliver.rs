//! A reply sent as its plan says: at once, or slowly, on signals, compressed, or not to its end.

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

use super::reply::{EVENTS, Payload, Reply};
use super::script::Delivery;
use super::signals::{Stage, Visit};

/// What real vendors send along and clients of a gateway should never see.
const VENDOR_HEADERS: [(&str, &str); 6] = [
    ("openai-organization", "mock-organization"),
    ("x-ratelimit-remaining-requests", "59"),
    ("set-cookie", "__cf_bm=mock; path=/; HttpOnly; Secure"),
    ("request-id", "req_mock"),
    ("cf-ray", "0123456789abcdef-MCK"),
    ("server", "mock-vendor"),
];

/// Bytes that were handed over but not flushed are lost with the connection, so the cut comes a little later.
const FLUSH: Duration = Duration::from_millis(20);

pub(super) async fn deliver(
    stage: &Stage,
    mut reply: Reply,
    delivery: Delivery,
    mut visit: Visit,
) -> Response {
    if let Some(name) = &delivery.name {
        stage.name(&mut visit, name);
    }
    if let Some(slow) = delivery.slow {
        sleep(slow).await;
    }
    let signal = delivery.wait.as_deref().map(|name| stage.signal(name));
    let headers = headers(&mut reply, &delivery);
    let mut response = match reply.body {
        Payload::Whole(body) => {
            if let Some(signal) = &signal {
                visit.wait(signal).await;
            }
            whole(body, &delivery, visit)
        }
        Payload::Pieces(pieces) => Response::new(in_pieces(pieces, &delivery, signal, visit)),
    };
    *response.status_mut() = reply.status;
    response.headers_mut().extend(headers);
    response
}

fn headers(reply: &mut Reply, delivery: &Delivery) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let content_type = HeaderValue::from_static(reply.content_type);
    headers.insert(header::CONTENT_TYPE, content_type);
    if reply.content_type == EVENTS {
        let no_cache = HeaderValue::from_static("no-cache");
        headers.insert(header::CACHE_CONTROL, no_cache);
    }
    headers.extend(reply.header.take().map(|(name, value)| (Some(name), value)));
    if delivery.vendor_headers {
        for (name, value) in VENDOR_HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    if delivery.gzip {
        compress(&mut reply.body);
        let gzip = HeaderValue::from_static("gzip");
        headers.insert(header::CONTENT_ENCODING, gzip);
    }
    headers
}

fn whole(body: Bytes, delivery: &Delivery, mut visit: Visit) -> Response {
    if delivery.cut.is_none() {
        visit.finish();
        return Response::new(Body::from(body));
    }
    let half = body.slice(..body.len() / 2);
    let cut = Delivery {
        cut: Some(1),
        ..Delivery::default()
    };
    let mut response = Response::new(in_pieces(vec![half], &cut, None, visit));
    let promised = HeaderValue::from(body.len());
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, promised);
    response
}

fn in_pieces(
    pieces: Vec<Bytes>,
    delivery: &Delivery,
    signal: Option<Arc<Semaphore>>,
    visit: Visit,
) -> Body {
    let pieces = Ready {
        pieces: pieces.into_iter(),
        visit,
    };
    if delivery.pace.is_none() && delivery.cut.is_none() && signal.is_none() {
        return Body::from_stream(stream::iter(pieces.map(Ok::<_, Cut>)));
    }
    Body::from_stream(paced(Paced {
        pieces,
        sent: 0,
        pace: delivery.pace,
        cut: delivery.cut,
        signal,
    }))
}

/// All pieces, one after the other, without a timer or a channel: this is what load tests run on.
struct Ready {
    pieces: vec::IntoIter<Bytes>,
    visit: Visit,
}

impl Iterator for Ready {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let piece = self.pieces.next();
        if self.pieces.len() == 0 {
            self.visit.finish();
        }
        piece
    }
}

struct Paced {
    pieces: Ready,
    sent: usize,
    pace: Option<Duration>,
    cut: Option<usize>,
    signal: Option<Arc<Semaphore>>,
}

fn paced(paced: Paced) -> impl Stream<Item = Result<Bytes, Cut>> {
    stream::unfold(Some(paced), async |paced| {
        let mut paced = paced?;
        if paced.cut == Some(paced.sent) {
            sleep(FLUSH).await;
            paced.pieces.visit.finish();
            return Some((Err(Cut), None));
        }
        paced.hold().await;
        let piece = paced.pieces.next()?;
        paced.sent += 1;
        Some((Ok(piece), Some(paced)))
    })
}

impl Paced {
    async fn hold(&self) {
        if self.sent == 0 || self.pieces.pieces.len() == 0 {
            return;
        }
        if let Some(pace) = self.pace {
            sleep(pace).await;
        }
        if let Some(signal) = &self.signal {
            self.pieces.visit.wait(signal).await;
        }
    }
}

/// Ends the connection in the middle of a body.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("cut off, as planned")
    }
}

impl std::error::Error for Cut {}

/// Each piece stays a piece that can be read as soon as it is there.
fn compress(body: &mut Payload) {
    const MEMORY: &str = "writing to memory does not fail";
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    match body {
        Payload::Whole(bytes) => {
            encoder.write_all(bytes).expect(MEMORY);
            *bytes = encoder.finish().expect(MEMORY).into();
        }
        Payload::Pieces(pieces) => {
            for piece in pieces.iter_mut() {
                encoder.write_all(piece).expect(MEMORY);
                encoder.flush().expect(MEMORY);
                *piece = std::mem::take(encoder.get_mut()).into();
            }
            pieces.push(encoder.finish().expect(MEMORY).into());
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

    fn pieces() -> Vec<Bytes> {
        ["one", "two", "three"].map(Bytes::from).to_vec()
    }

    fn streamed() -> Reply {
        Reply {
            status: StatusCode::OK,
            content_type: EVENTS,
            header: None,
            body: Payload::Pieces(pieces()),
        }
    }

    fn seen(stage: &Stage) -> serde_json::Value {
        serde_json::to_value(stage.seen("me")).unwrap()
    }

    fn planned() -> Delivery {
        Delivery {
            name: Some("me".to_owned()),
            ..Delivery::default()
        }
    }

    #[tokio::test]
    async fn a_plain_stream_is_ready_from_end_to_end() {
        let stage = Stage::default();
        let response = deliver(&stage, streamed(), planned(), stage.enter()).await;
        let body = pin!(response.into_body().into_data_stream());
        let Poll::Ready(all) = poll!(body.map(Result::unwrap).collect::<Vec<_>>()) else {
            panic!("nothing to wait for");
        };
        assert_eq!(all, pieces());
        assert_eq!(seen(&stage)["finished"], 1);
    }

    #[tokio::test]
    async fn every_event_after_the_first_waits_for_a_signal() {
        let stage = Stage::default();
        let delivery = Delivery {
            wait: Some("go".to_owned()),
            ..planned()
        };
        let response = deliver(&stage, streamed(), delivery, stage.enter()).await;
        let mut body = response.into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), "one");
        for piece in ["two", "three"] {
            assert!(poll!(body.next()).is_pending());
            assert_eq!(seen(&stage)["waiting"], 1);
            stage.signal("go").add_permits(1);
            assert_eq!(body.next().await.unwrap().unwrap(), piece);
        }
        assert!(body.next().await.is_none());
        let finished =
            serde_json::json!({"started": 1, "finished": 1, "cancelled": 0, "waiting": 0});
        assert_eq!(seen(&stage), finished);
    }

    #[tokio::test]
    async fn a_client_that_leaves_is_counted() {
        let stage = Stage::default();
        let delivery = Delivery {
            wait: Some("never".to_owned()),
            ..planned()
        };
        let response = deliver(&stage, streamed(), delivery, stage.enter()).await;
        let mut body = response.into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), "one");
        assert!(poll!(body.next()).is_pending());
        drop(body);
        let cancelled =
            serde_json::json!({"started": 1, "finished": 0, "cancelled": 1, "waiting": 0});
        assert_eq!(seen(&stage), cancelled);
    }

    #[tokio::test]
    async fn a_cut_comes_after_its_events() {
        let stage = Stage::default();
        for cut in 0..3 {
            let delivery = Delivery {
                cut: Some(cut),
                ..planned()
            };
            let response = deliver(&stage, streamed(), delivery, stage.enter()).await;
            let items = response.into_body().into_data_stream();
            let items: Vec<_> = items.collect().await;
            assert_eq!(items.len(), cut + 1);
            assert!(items[..cut].iter().all(Result::is_ok) && items[cut].is_err());
        }
    }

    #[test]
    fn compressed_pieces_can_be_read_one_by_one() {
        let mut body = Payload::Pieces(pieces());
        compress(&mut body);
        let Payload::Pieces(compressed) = body else {
            panic!("still in pieces");
        };
        let mut read = flate2::write::GzDecoder::new(Vec::new());
        for (piece, plain) in compressed.iter().zip(pieces()) {
            read.write_all(piece).unwrap();
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
