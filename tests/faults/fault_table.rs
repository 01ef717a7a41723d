//! The table of faults: what the upstream does, and which response or error the client must get.

use std::io::Write as _;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::faulty_upstream::Step::{self, Close, Hang, Repeat, Reset, Write, WriteSlowly};
use crate::mock_responses::{RecordedResponse, Shape};

/// What the gateway of the matrix reads of a reply in one piece, in bytes.
pub const BODY_LIMIT: usize = 1 << 20;

/// What the gateway presents to its upstreams.
pub const CREDENTIAL: &str = "secret-of-the-upstream";

/// What an upstream says in its headers and what nobody but the gateway may know.
const HEADERS: &str = "set-cookie: secret-cookie\r\nx-account: secret-account\r\nserver: secret-server\r\n\
                       x-ratelimit-remaining-requests: 59-secret\r\n";

/// The way to the upstream that the fault needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamKind {
    /// Waits for as long as it takes.
    Patient,
    /// Gives up on silence soon.
    Impatient,
    /// Nobody listens there.
    Refused,
    /// TLS towards one that does not speak it.
    Tls,
    /// TLS towards one whose certificate nobody vouches for.
    Stranger,
}

/// What the client gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Good,
    /// This status, also where another upstream could have been asked.
    Refused(u16),
    /// One of these statuses, or the answer of another upstream.
    Failed(Vec<u16>),
    /// What came before, and then the error of the client's format.
    Broken,
    /// Either of the last two: what was on its way may be lost with the connection.
    Lost,
}

type StepsOfFault = Box<dyn Fn(&RecordedResponse) -> Vec<Step> + Send + Sync>;
type ExpectedOutcome = Box<dyn Fn(&RecordedResponse) -> Option<Outcome> + Send + Sync>;

pub struct Fault {
    pub name: String,
    pub kind: UpstreamKind,
    /// What made the mock give the reply that the fault is made of.
    pub words: &'static str,
    /// What the client must be told, where it is told an error.
    pub says: &'static str,
    pub steps: StepsOfFault,
    /// Nothing where the fault cannot befall this reply.
    pub outcome: ExpectedOutcome,
}

pub const GOOD: &str = "";
const ERROR_AS_SUCCESS: &str = "mock:status_200_error";
const ERROR_FIRST: &str = "mock:stream_error=0";
const ERROR_LATER: &str = "mock:stream_error=2";

/// More than any recorded stream has.
const MOST_PARTS: usize = 14;

/// All of them; the first is none.
pub fn all() -> Vec<Fault> {
    let mut faults = vec![fault("none", good, |_| Some(Outcome::Good))];
    faults.extend(connections());
    faults.extend(cuts());
    faults.extend(timeouts());
    faults.extend(statuses());
    faults.extend(unreadable());
    faults.extend(told_errors());
    faults.extend(told_credentials());
    faults.extend(too_much());
    faults.extend(framing());
    faults
}

fn fault(
    name: impl Into<String>,
    steps: impl Fn(&RecordedResponse) -> Vec<Step> + Send + Sync + 'static,
    outcome: impl Fn(&RecordedResponse) -> Option<Outcome> + Send + Sync + 'static,
) -> Fault {
    Fault {
        name: name.into(),
        kind: UpstreamKind::Patient,
        words: GOOD,
        says: "",
        steps: Box::new(steps),
        outcome: Box::new(outcome),
    }
}

/// The same bytes to everybody, and then the end.
fn bytes(name: &str, text: &'static str, steps: &'static [Step]) -> Fault {
    let play = move |_: &RecordedResponse| {
        let mut all = vec![Write(text.into())];
        all.extend_from_slice(steps);
        all
    };
    fault(name, play, failed(502))
}

fn failed(status: u16) -> impl Fn(&RecordedResponse) -> Option<Outcome> {
    move |_| Some(Outcome::Failed(vec![status]))
}

fn connections() -> Vec<Fault> {
    let mut refused = fault("nobody listens", |_| vec![], failed(502));
    refused.kind = UpstreamKind::Refused;
    let mut tls = fault("no TLS", |_| vec![], failed(502));
    tls.kind = UpstreamKind::Tls;
    let mut stranger = fault("a stranger's certificate", good, failed(502));
    stranger.kind = UpstreamKind::Stranger;
    vec![
        refused,
        tls,
        stranger,
        bytes("reset before a byte", "", &[Reset]),
        bytes("closed before a byte", "", &[Close]),
        bytes("reset in the status line", "HTTP/1.1 2", &[Reset]),
        bytes(
            "closed in the header",
            "HTTP/1.1 200 OK\r\ncontent-ty",
            &[Close],
        ),
        bytes(
            "reset in the header",
            "HTTP/1.1 200 OK\r\ncontent-ty",
            &[Reset],
        ),
        fault("reset in the body", lost_in_the_body, |_| {
            Some(Outcome::Lost)
        }),
    ]
}

fn lost_in_the_body(response: &RecordedResponse) -> Vec<Step> {
    match response.shape {
        Shape::Json => vec![Write(half(response)), Reset],
        _ => vec![Write(begun(response, response.before_end())), Reset],
    }
}

/// Streams that break, or end as if all were well, after each of their events.
fn cuts() -> Vec<Fault> {
    let cut = |at: usize| {
        let steps = move |response: &RecordedResponse| vec![Write(begun(response, at)), Close];
        fault(format!("cut after {at}"), steps, broken_at(at))
    };
    let stop = |at: usize| {
        let steps = move |response: &RecordedResponse| vec![Write(ended(begun(response, at)))];
        fault(format!("an end after {at}"), steps, broken_at(at))
    };
    let half = |response: &RecordedResponse| vec![Write(half(response)), Close];
    let mut faults = vec![fault("half a document", half, only(Shape::Json, 502))];
    faults.extend((0..MOST_PARTS).flat_map(|at| [cut(at), stop(at)]));
    faults
}

fn only(shape: Shape, status: u16) -> impl Fn(&RecordedResponse) -> Option<Outcome> {
    move |response| (response.shape == shape).then(|| Outcome::Failed(vec![status]))
}

/// A stream that does not go on after so many parts.
fn broken_at(at: usize) -> impl Fn(&RecordedResponse) -> Option<Outcome> {
    move |response| {
        if response.shape == Shape::Json || at > response.before_end() {
            return None;
        }
        Some(match response.has_content(at) {
            true => Outcome::Broken,
            false => Outcome::Failed(vec![502]),
        })
    }
}

fn timeouts() -> Vec<Fault> {
    let silent = fault("silence", |_| vec![Hang], failed(504));
    let header = |response: &RecordedResponse| {
        vec![Write(head(200, response.content_type(), CHUNKED)), Hang]
    };
    let header = fault("silence after the header", header, failed(504));
    let middle = |response: &RecordedResponse| {
        let text = match response.shape {
            Shape::Json => half(response),
            _ => begun(response, response.before_end()),
        };
        vec![Write(text), Hang]
    };
    let middle = fault("silence in the middle", middle, |response| {
        Some(match response.shape {
            Shape::Json => Outcome::Failed(vec![504]),
            _ => Outcome::Broken,
        })
    });
    let early = |_: &RecordedResponse| {
        vec![WriteSlowly(
            b"HTTP/1.1 103 Early Hints\r\nx-a: b\r\n\r\n".to_vec(),
        )]
    };
    // The limit of their number comes first, or the timeout.
    let early = fault("1xx without end", early, |_| {
        Some(Outcome::Failed(vec![502, 504]))
    });
    let dripping = |_: &RecordedResponse| {
        let begin = Write(b"HTTP/1.1 200 OK\r\nx-a: ".to_vec());
        vec![begin, WriteSlowly(b"a".to_vec())]
    };
    let dripping = fault("a header drop by drop", dripping, failed(504));
    let mut all = vec![silent, header, middle, early, dripping];
    for fault in &mut all {
        fault.kind = UpstreamKind::Impatient;
    }
    all
}

fn statuses() -> Vec<Fault> {
    const ALL: [(u16, &str); 13] = [
        (400, "mock:error=400,as-told"),
        (404, "mock:error=404,as-told"),
        (413, "mock:error=413,as-told"),
        (422, "mock:error=422,as-told"),
        (401, "mock:error=401,secret-words"),
        (403, "mock:error=403,secret-words"),
        (408, "mock:error=408,as-told"),
        (429, "mock:error=429,as-told"),
        (500, "mock:error=500,as-told"),
        (502, "mock:error=502,as-told"),
        (503, "mock:error=503,as-told"),
        (504, "mock:error=504,as-told"),
        (529, "mock:error=529,as-told"),
    ];
    let by_status = ALL.into_iter().map(|(status, words)| {
        let steps = move |response: &RecordedResponse| {
            assert_eq!(response.status, status, "what the mock was asked for");
            let more = if status == 429 {
                "retry-after: 7\r\n"
            } else {
                ""
            };
            vec![Write(document(
                status,
                "application/json",
                more,
                &response.text(),
            ))]
        };
        let outcome = move |_: &RecordedResponse| {
            Some(match status {
                400 | 404 | 413 | 422 => Outcome::Refused(status),
                401 | 403 => Outcome::Failed(vec![502]),
                status => Outcome::Failed(vec![status]),
            })
        };
        Fault {
            words,
            ..fault(format!("status {status}"), steps, outcome)
        }
    });
    by_status.collect()
}

fn unreadable() -> Vec<Fault> {
    const PAGE: &str = "<html><body>secret-page of a proxy</body></html>";
    let same = |text: &'static str| {
        move |response: &RecordedResponse| {
            vec![Write(document(200, response.content_type(), "", text))]
        }
    };
    let page = |status: u16| {
        let steps =
            move |_: &RecordedResponse| vec![Write(document(status, "text/html", "", PAGE))];
        fault(
            format!("a page with {status}"),
            steps,
            move |_: &RecordedResponse| {
                Some(match status {
                    // 404: a model API says it in its own format, so the path is wrong.
                    200 | 404 => Outcome::Failed(vec![502]),
                    // Not in the upstream's own words, so in those of the client's format.
                    503 => Outcome::Failed(vec![503, 529]),
                    status => Outcome::Failed(vec![status]),
                })
            },
        )
    };
    let truncated = |response: &RecordedResponse| {
        let text = response.text();
        vec![Write(document(
            200,
            response.content_type(),
            "",
            &text[..text.len() / 2],
        ))]
    };
    let plain = |response: &RecordedResponse| {
        vec![Write(document(200, "text/plain", "", &response.text()))]
    };
    let other = |response: &RecordedResponse| {
        let kind = match response.shape {
            Shape::Json => "text/event-stream",
            _ => "application/xml",
        };
        vec![Write(document(200, kind, "", &response.text()))]
    };
    let redirect = |status: u16| {
        let said = format!(
            "HTTP/1.1 {status} Elsewhere\r\n{HEADERS}location: {}/v1\r\ncontent-length: 0\r\n\r\n",
            crate::faulty_upstream::GOOD_PATH
        );
        let steps = move |_: &RecordedResponse| vec![Write(said.clone().into_bytes())];
        fault(format!("redirect {status}"), steps, failed(502))
    };
    vec![
        fault(
            "half a document of full length",
            truncated,
            only(Shape::Json, 502),
        ),
        fault("garbage", same("secret-garbage {]"), failed(502)),
        fault("broken JSON", same("{\"id\":\"secret"), failed(502)),
        fault("nothing", same(""), failed(502)),
        fault("null", same("null"), failed(502)),
        fault("an empty object", same("{}"), failed(502)),
        fault("plain text", plain, failed(502)),
        fault("another content type", other, failed(502)),
        page(200),
        page(404),
        page(500),
        page(503),
        redirect(301),
        redirect(302),
        redirect(307),
        redirect(308),
        bytes("no content", "HTTP/1.1 204 No Content\r\n\r\n", &[]),
        bytes(
            "another protocol",
            "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
            &[Close],
        ),
    ]
}

/// Errors that an upstream tells under a status of success.
fn told_errors() -> Vec<Fault> {
    let first = || |_: &RecordedResponse| Some(Outcome::Failed(vec![500, 502]));
    let later =
        |response: &RecordedResponse| (response.shape != Shape::Json).then_some(Outcome::Broken);
    let in_stream = |response: &RecordedResponse| {
        (response.shape != Shape::Json).then(|| Outcome::Failed(vec![500, 502]))
    };
    let malformed = |text: &'static str, at: Option<usize>| {
        let steps = move |response: &RecordedResponse| {
            let at = at.unwrap_or_else(|| response.before_end());
            let mut parts = response.parts[..at].to_vec();
            parts.push(text.to_owned());
            vec![Write(ended(chunked(response, &parts)))]
        };
        let name = format!("{text:?} after {at:?}");
        fault(name, steps, move |response| match (response.shape, at) {
            (Shape::Json | Shape::Array, _) => None,
            (Shape::Events, Some(_)) => Some(Outcome::Failed(vec![502])),
            (Shape::Events, None) => Some(Outcome::Broken),
        })
    };
    let mut all = vec![
        Fault {
            words: ERROR_AS_SUCCESS,
            ..fault("an error as a success", good, first())
        },
        Fault {
            words: ERROR_FIRST,
            ..fault("an error at once", good, in_stream)
        },
        Fault {
            words: ERROR_LATER,
            ..fault("an error after content", good, later)
        },
    ];
    for text in [
        "data: {\"broken\n\n",
        "data: what\n\n",
        "data: 7\n\n",
        "data: [[[[\n\n",
        "<html>a page</html>\n\n",
    ] {
        all.push(malformed(text, Some(0)));
        all.push(malformed(text, None));
    }
    all
}

/// Errors that hold the gateway's own credential, written in more than one way.
fn told_credentials() -> Vec<Fault> {
    const WRITTEN: [&str; 2] = [CREDENTIAL, "\\u0073ecret\\u002dof-the-upstream"];
    let told = |words: &'static str, instead_of: &'static str, written: &'static str| {
        let steps = move |response: &RecordedResponse| {
            assert!(response.text().contains(instead_of), "{}", response.text());
            let parts = response.parts.iter();
            let parts: Vec<String> = parts
                .map(|part| part.replace(instead_of, written))
                .collect();
            let whole = response.shape == Shape::Json || response.status != 200;
            vec![Write(match whole {
                true => document(response.status, "application/json", "", &parts.concat()),
                false => ended(chunked(response, &parts)),
            })]
        };
        let outcome = move |response: &RecordedResponse| match (words, response.shape) {
            (ERROR_LATER | ERROR_FIRST, Shape::Json) => None,
            (ERROR_LATER, _) => Some(Outcome::Broken),
            _ if response.status == 400 => Some(Outcome::Refused(400)),
            _ => Some(Outcome::Failed(vec![500, 502])),
        };
        Fault {
            words,
            says: "***",
            ..fault(format!("{written} in {words}"), steps, outcome)
        }
    };
    let mut all = Vec::new();
    for written in WRITTEN {
        all.push(told("mock:error=400,as-told", "as-told", written));
        all.push(told("mock:error=500,as-told", "as-told", written));
        for words in [ERROR_AS_SUCCESS, ERROR_FIRST, ERROR_LATER] {
            all.push(told(words, "as it was told", written));
        }
    }
    all
}

/// Replies that would fill the memory.
fn too_much() -> Vec<Fault> {
    let oversize = |reply: &RecordedResponse| {
        let fill = vec![b'a'; BODY_LIMIT / 4];
        let begin = match reply.shape {
            Shape::Json => "{\"id\":\"",
            Shape::Events => "data: {\"id\":\"",
            Shape::Array => "[{\"id\":\"",
        };
        vec![
            Write(head(200, reply.content_type(), "connection: close\r\n")),
            Write(begin.into()),
            Repeat(fill, 5),
            Write(b"\"}\n\n".to_vec()),
            Close,
        ]
    };
    let bomb = |status: u16, coding: &'static str, member: Vec<u8>, times: usize| {
        let steps = move |reply: &RecordedResponse| {
            let kind = reply.content_type();
            let more = format!("content-encoding: {coding}\r\nconnection: close\r\n");
            vec![
                Write(head(status, kind, &more)),
                Repeat(member.clone(), times),
                Close,
            ]
        };
        let message = if status == 200 { 502 } else { status };
        fault(
            format!("a bomb of {coding} with {status}"),
            steps,
            failed(message),
        )
    };
    let gzip = zipped(&vec![b'0'; 10 << 20]);
    let filling = gzip.clone();
    let later = move |reply: &RecordedResponse| {
        let more = "content-encoding: gzip\r\nconnection: close\r\n";
        let parts = reply.parts[..reply.before_end()].concat();
        vec![
            Write(head(200, reply.content_type(), more)),
            Write(zipped(parts.as_bytes())),
            Repeat(filling.clone(), 100),
            Close,
        ]
    };
    // Where both come in one piece, it is none that can be read.
    let lost = |reply: &RecordedResponse| (reply.shape != Shape::Json).then_some(Outcome::Lost);
    let endless = |_: &RecordedResponse| {
        let line = b"x-header: secret-header\r\n".repeat(1000);
        vec![
            Write(b"HTTP/1.1 200 OK\r\n".to_vec()),
            Repeat(line, 1000),
            Close,
        ]
    };
    vec![
        fault("oversize", oversize, failed(502)),
        // Ten megabytes that stand for ten gigabytes.
        bomb(200, "gzip", gzip.clone(), 1000),
        bomb(500, "gzip", gzip, 1000),
        bomb(200, "br", white_brotli(), 1),
        fault("a bomb after content", later, lost),
        fault("a header without end", endless, failed(502)),
    ]
}

fn framing() -> Vec<Fault> {
    let chunks = |tail: &'static str| {
        move |response: &RecordedResponse| {
            let mut said = match response.shape {
                Shape::Json => chunked(response, &[response.text()[..20].to_owned()]),
                _ => begun(response, response.before_end()),
            };
            said.extend_from_slice(tail.as_bytes());
            vec![Write(said), Close]
        }
    };
    let length = |difference: isize| {
        move |response: &RecordedResponse| {
            let text = response.text();
            let length = text.len().checked_add_signed(difference).expect("a length");
            let more = format!("content-length: {length}\r\n");
            let mut said = head(200, response.content_type(), &more);
            said.extend_from_slice(text.as_bytes());
            vec![Write(said), Close]
        }
    };
    let broken = || {
        |response: &RecordedResponse| {
            Some(match response.shape {
                Shape::Json => Outcome::Failed(vec![502]),
                _ => Outcome::Broken,
            })
        }
    };
    vec![
        fault("a chunk size that is none", chunks("zz\r\n"), broken()),
        fault(
            "a chunk size beyond all",
            chunks("fffffffffffffffffff\r\n"),
            broken(),
        ),
        fault(
            "a chunk longer than said",
            chunks("2\r\nlonger\r\n0\r\n\r\n"),
            broken(),
        ),
        fault("a length too long", length(100), only(Shape::Json, 502)),
        fault("a length too short", length(-20), only(Shape::Json, 502)),
        bytes("no status", "HTTP/1.1 OK\r\n\r\n{}", &[Close]),
        bytes("no header", "{\"error\":\"secret\"}", &[Close]),
        bytes(
            "another protocol's greeting",
            "220 secret-host ready\r\n",
            &[Close],
        ),
        bytes(
            "a line that is no header",
            "HTTP/1.1 200 OK\r\nsecret line\r\n\r\n{}",
            &[Close],
        ),
    ]
}

const CHUNKED: &str = "transfer-encoding: chunked\r\n";

/// The reply as it should be.
fn good(response: &RecordedResponse) -> Vec<Step> {
    vec![Write(match response.shape {
        Shape::Json => document(
            response.status,
            response.content_type(),
            "",
            &response.text(),
        ),
        _ => ended(chunked(response, &response.parts)),
    })]
}

fn head(status: u16, content_type: &str, more: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Whatever\r\ncontent-type: {content_type}\r\n{HEADERS}{more}\r\n")
        .into_bytes()
}

fn document(status: u16, content_type: &str, more: &str, text: &str) -> Vec<u8> {
    let more = format!("{more}content-length: {}\r\n", text.len());
    let mut said = head(status, content_type, &more);
    said.extend_from_slice(text.as_bytes());
    said
}

/// Header and half of a document.
fn half(response: &RecordedResponse) -> Vec<u8> {
    let mut whole = document(200, response.content_type(), "", &response.text());
    whole.truncate(whole.len() - response.text().len() / 2);
    whole
}

/// Header and the first parts of a stream.
fn begun(response: &RecordedResponse, parts: usize) -> Vec<u8> {
    chunked(response, &response.parts[..parts.min(response.parts.len())])
}

fn chunked(response: &RecordedResponse, parts: &[String]) -> Vec<u8> {
    let mut text = head(200, response.content_type(), CHUNKED);
    for part in parts {
        text.extend_from_slice(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes());
    }
    text
}

fn ended(mut text: Vec<u8>) -> Vec<u8> {
    text.extend_from_slice(b"0\r\n\r\n");
    text
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// 256 MiB of the same byte, as brotli has it.
fn white_brotli() -> Vec<u8> {
    const TEXT: &str = "z///fwAkYOKxQHLv//n//w+ABEAcFoDu/T////8BkACIwwLQvf/n//8/ABIAcVgAuvf//P//B0AC\
        IA4LQPf+n////wBIAMRhAeje//P//x8ACYA4LADd+3/+//8DIAEQhwWge//P//9/ACQA4rAAdO//+f//D4AEQBwWgO79\
        P////wGQAIjDAtC9/+f//z8AEgBxWAC69//8//8HQAIgDgtA9/6f////AEgAxGEB6N7/8///HwAJgDgsAN37//z//wcg\
        ARCHBaB7/w8=";
    base64::engine::general_purpose::STANDARD
        .decode(TEXT)
        .expect("base64")
}
