//! The trace context of W3C: the trace and the span that a request belongs to, in `traceparent` and `tracestate`.

use http::{HeaderMap, HeaderName, HeaderValue};
use rand::RngExt as _;

pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// `00-`, 32 digits, `-`, 16 digits, `-` and 2 digits.
const TRACEPARENT_LEN: usize = 55;
const SAMPLED: u8 = 1;

/// Every receiver takes as much of `tracestate`; a longer one is not passed on.
const MAX_TRACESTATE: usize = 512;
const MAX_STATE_MEMBERS: usize = 32;
const MAX_STATE_KEY: usize = 256;
const MAX_STATE_VALUE: usize = 256;

pub type TraceId = [u8; 16];
pub type SpanId = [u8; 8];

/// The trace of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: TraceId,
    /// The span of the request.
    pub span_id: SpanId,
    /// The client's span; `None`: the trace begins here.
    pub parent: Option<SpanId>,
    pub is_sampled: bool,
    /// What other systems have noted in the trace; passed on as it came.
    pub state: Option<HeaderValue>,
}

impl TraceContext {
    /// Continues the trace of a client. `None`: its header has no valid one.
    pub fn of_client(headers: &HeaderMap) -> Option<TraceContext> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return None;
        };
        let (trace_id, parent, is_sampled) = parse_traceparent(value.as_bytes())?;
        Some(TraceContext {
            trace_id,
            span_id: new_span_id(),
            parent: Some(parent),
            is_sampled,
            state: parse_tracestate(headers),
        })
    }

    /// Begins a trace, which is not sampled yet.
    pub fn new() -> TraceContext {
        // An array would be drawn byte by byte, each from a number of its own.
        let mut trace_id: TraceId = rand::rng().random::<u128>().to_be_bytes();
        // All zeros are no id.
        trace_id[0] |= u8::from(trace_id == [0; 16]);
        TraceContext {
            trace_id,
            span_id: new_span_id(),
            parent: None,
            is_sampled: false,
            state: None,
        }
    }

    /// The `traceparent` for an upstream, whose parent is the span of the attempt.
    pub fn traceparent(&self, span: SpanId) -> HeaderValue {
        let mut text = [b'-'; TRACEPARENT_LEN];
        write_hex(&[0], &mut text[..2]);
        write_hex(&self.trace_id, &mut text[3..35]);
        write_hex(&span, &mut text[36..52]);
        write_hex(&[u8::from(self.is_sampled)], &mut text[53..]);
        HeaderValue::from_bytes(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

impl Default for TraceContext {
    fn default() -> TraceContext {
        TraceContext::new()
    }
}

pub fn new_span_id() -> SpanId {
    let id: u64 = rand::rng().random();
    id.max(1).to_be_bytes()
}

/// The two digits of every byte.
const HEX_PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

fn write_hex(bytes: &[u8], out: &mut [u8]) {
    let (pairs, _) = out.as_chunks_mut();
    for (byte, pair) in bytes.iter().zip(pairs) {
        *pair = HEX_PAIRS[usize::from(*byte)];
    }
}

/// Reads lower-case hex digits, which alone are valid here.
fn parse_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// Later versions may only add fields behind those that are known.
fn parse_traceparent(value: &[u8]) -> Option<(TraceId, SpanId, bool)> {
    let (known, rest) = value.split_at_checked(TRACEPARENT_LEN)?;
    let [version] = parse_hex(&known[..2])?;
    let is_whole = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest.starts_with(b"-"),
    };
    let has_dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    let trace_id: TraceId = parse_hex(&known[3..35])?;
    let parent: SpanId = parse_hex(&known[36..52])?;
    let [flags] = parse_hex(&known[53..])?;
    let is_valid = is_whole && has_dashes && trace_id != [0; 16] && parent != [0; 8];
    is_valid.then_some((trace_id, parent, flags & SAMPLED != 0))
}

/// The state of a trace, joined in one value. `None`: there is none, or it is not valid.
fn parse_tracestate(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut members = Vec::new();
    for value in headers.get_all(TRACESTATE) {
        let value = value.to_str().ok()?;
        let trimmed = value
            .split(',')
            .map(|member| member.trim_matches([' ', '\t']));
        for member in trimmed.filter(|member| !member.is_empty()) {
            members.push(is_state_member(member).then_some(member)?);
        }
        if members.len() > MAX_STATE_MEMBERS {
            return None;
        }
    }
    let joined = members.join(",");
    let fits = !joined.is_empty() && joined.len() <= MAX_TRACESTATE;
    fits.then(|| HeaderValue::try_from(joined).ok()).flatten()
}

fn is_state_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else {
        return false;
    };
    let is_key_letter =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let is_value_letter = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    let starts_well =
        key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    starts_well
        && key.len() <= MAX_STATE_KEY
        && key.bytes().all(is_key_letter)
        && key.matches('@').count() <= 1
        && !value.is_empty()
        && value.len() <= MAX_STATE_VALUE
        && value.bytes().all(is_value_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let fields = fields.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).expect("a value");
            (HeaderName::from_static(name), value)
        });
        let mut headers = HeaderMap::new();
        fields.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    #[test]
    fn a_valid_traceparent_is_continued() {
        for (flags, is_sampled) in [("00", false), ("01", true), ("03", true), ("02", false)] {
            let value = format!("00-{TRACE}-{SPAN}-{flags}");
            let context = TraceContext::of_client(&headers(&[("traceparent", &value)]));
            let context = context.expect("a valid header");
            assert_eq!(context.is_sampled, is_sampled, "{flags}");
            let parent = context.parent.expect("the client's span");
            assert_ne!(context.span_id, parent);
            let again = context.traceparent(parent);
            let flag = u8::from(is_sampled);
            assert_eq!(again, format!("00-{TRACE}-{SPAN}-0{flag}"));
        }
        let later = format!("cc-{TRACE}-{SPAN}-01-what-the-future-holds");
        assert!(TraceContext::of_client(&headers(&[("traceparent", &later)])).is_some());
    }

    #[test]
    fn what_is_no_traceparent_begins_a_trace() {
        let zeros = |count: usize| "0".repeat(count);
        for value in [
            String::new(),
            "00".to_owned(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("cc-{TRACE}-{SPAN}-01.more"),
            format!("00-{}-{SPAN}-01", zeros(32)),
            format!("00-{TRACE}-{}-01", zeros(16)),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{SPAN}-0"),
            format!("00-{TRACE}-{SPAN}-0x"),
            format!("00_{TRACE}-{SPAN}-01"),
            format!(" 00-{TRACE}-{SPAN}-01"),
        ] {
            let headers = headers(&[("traceparent", &value)]);
            assert_eq!(TraceContext::of_client(&headers), None, "{value:?}");
        }
        let good = format!("00-{TRACE}-{SPAN}-01");
        let twice = headers(&[("traceparent", &good), ("traceparent", &good)]);
        assert_eq!(TraceContext::of_client(&twice), None);
    }

    #[test]
    fn a_state_is_passed_on_if_all_of_it_is_valid() {
        let good = format!("00-{TRACE}-{SPAN}-01");
        let state = |states: &[&str]| {
            let fields = states.iter().map(|state| ("tracestate", *state));
            let fields: Vec<_> = fields.chain([("traceparent", &*good)]).collect();
            let context = TraceContext::of_client(&headers(&fields)).expect("a valid header");
            context
                .state
                .map(|state| state.to_str().expect("text").to_owned())
        };
        assert_eq!(
            state(&["a=1, b@c=two words ,"]).as_deref(),
            Some("a=1,b@c=two words")
        );
        assert_eq!(state(&["a=1", "b=2"]).as_deref(), Some("a=1,b=2"));
        assert_eq!(state(&[""]), None);
        for wrong in ["a", "A=1", "a=1=2", "a=", "=1", "a@b@c=1", "_a=1"] {
            assert_eq!(state(&["ok=1", wrong]), None, "{wrong}");
        }
        assert_eq!(state(&[&format!("a={}", "x".repeat(257))]), None);
        assert_eq!(state(&[&vec!["a=1"; 33].join(",")]), None);
    }
}
