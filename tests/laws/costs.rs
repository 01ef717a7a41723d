//! A response costs the same whether it is streamed or whole, translated or not: the sum over its token counts.

use bytes::Bytes;
use omniglot::config::{Amount, Pricing};
use omniglot::formats::{Framing, Operation, ResponseOptions};
use omniglot::model::{
    Choice, Finish, Format, Losses, Money, Part, PartKind, Response, TranslationState, Usage,
};
use omniglot::runtime::Prices;
use omniglot::sse::SseWriter;
use omniglot::translate::{MeasuredUsage, RequestSummary, ResponseTranslator};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::pieces;

/// A billionth of the currency: prices are whole numbers of it here.
const NANO: u128 = 1_000_000_000;

fn response_options(stream: bool) -> ResponseOptions {
    ResponseOptions {
        model: "m".to_owned(),
        stream,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req_1".to_owned(),
        created_at: 1,
        translation_state: TranslationState::default(),
    }
}

fn response(usage: Usage) -> Response<'static> {
    Response {
        id: "id-1".into(),
        model: "theirs".into(),
        created: 1,
        choices: vec![Choice {
            parts: vec![Part {
                kind: PartKind::Text("Some words.".into()),
                at: None,
            }],
            citations: Vec::new(),
            logprobs: Vec::new(),
            finish: Finish::Stop,
        }],
        usage: Some(usage),
    }
}

/// What the gateway counts when an upstream's bytes pass through it, in pieces.
fn metered(from: Format, to: Format, usage: Usage, stream: bool, cuts: &[u8]) -> MeasuredUsage {
    let (asked, response) = (response_options(stream), response(usage));
    let codec = from.codec();
    let (kind, bytes) = if stream {
        let mut out = SseWriter::default();
        let mut encoder = codec.stream_encoder(&asked);
        response.unfold(&mut |event| encoder.encode_event(event, &mut out));
        ("text/event-stream", out.take().to_vec())
    } else {
        let body = codec.encode_response(&response, &asked, &mut Losses::default());
        ("application/json", body)
    };
    let operation = match stream {
        true => Operation::Stream(Framing::Sse),
        false => Operation::Generate,
    };
    let expected = RequestSummary::new(to.codec(), operation, Some("m"), b"{}").expect("a request");
    let reply = ResponseTranslator::new(to, from, &expected, asked, kind, usize::MAX);
    let mut reply = reply.expect("a reply");
    for piece in pieces(&bytes, cuts) {
        let mut chunk = Some(Bytes::copy_from_slice(piece));
        reply
            .translate_chunk(&mut chunk, false)
            .expect("a good piece");
    }
    reply
        .translate_chunk(&mut None, true)
        .expect("a proper end");
    reply.usage(|| panic!("the upstream has counted"))
}

/// Counts with shares that fit into their whole, as far as a format can tell them.
fn usage(format: Format) -> impl Strategy<Value = Usage> {
    let count = || {
        prop_oneof![
            Just(0u64),
            1..100_000u64,
            Just(u64::from(u32::MAX)),
            1..(1u64 << 50),
        ]
    };
    (count(), count(), count(), count(), count()).prop_map(
        move |(plain, cached, written, said, thinking)| {
            let cache_written = if format == Format::Native { 0 } else { written };
            Usage {
                // Nothing is free of input; a count of zero is no count.
                input: plain + cached + cache_written + 1,
                cached,
                cache_written,
                output: said + thinking,
                thinking,
                ..Usage::default()
            }
        },
    )
}

/// Prices in billionths, up to the largest that can be written.
fn price() -> impl Strategy<Value = Option<u128>> {
    let nanos = prop_oneof![
        Just(0),
        1..NANO,
        Just(NANO * NANO - 1),
        any::<u64>().prop_map(|nanos| u128::from(nanos) % (1000 * NANO)),
    ];
    option::of(nanos)
}

fn amount(nanos: u128) -> Amount {
    let written = format!("{}.{:09}", nanos / NANO, nanos % NANO);
    Amount {
        money: Money::parse(&written).expect("an amount"),
        written,
    }
}

type Nanos = [Option<u128>; 8];

fn pricing(nanos: Nanos) -> Pricing {
    let [
        input,
        output,
        per_request,
        per_second,
        cached_input,
        cache_write,
        thinking,
        image_output,
    ] = nanos.map(|nanos| nanos.map(amount));
    Pricing {
        currency: None,
        input,
        output,
        per_request,
        per_second,
        per_audio_minute: None,
        cached_input,
        cache_write,
        thinking,
        image_output,
    }
}

/// The cost worked out apart, as digits: sums of products of whole numbers, with fifteen of them
/// behind the point.
fn expected(nanos: Nanos, usage: &Usage, milliseconds: u64) -> String {
    let [input, output, request, second, cached, written, thinking, _] = nanos;
    let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    let plain = usage.input - usage.cached - usage.cache_written;
    let text = usage.output - usage.thinking;
    let tokens = u128::from(plain) * input
        + u128::from(usage.cached) * cached.unwrap_or(input)
        + u128::from(usage.cache_written) * written.unwrap_or(input)
        + u128::from(text) * output
        + u128::from(usage.thinking) * thinking.unwrap_or(output);
    let time = u128::from(milliseconds) * second.unwrap_or(0) * 1000;
    let sum = tokens + time + request.unwrap_or(0) * 1_000_000;
    let digits = format!("{sum:016}");
    let (whole, decimals) = digits.split_at(digits.len() - 15);
    let written = format!("{whole}.{decimals}");
    let trimmed = written.trim_end_matches('0').trim_end_matches('.');
    trimmed.to_owned()
}

/// An upstream that has answered counts something of the input and of the answer: a count of zero stands for none, and what has none
/// is estimated.
fn reported_usage() -> impl Strategy<Value = (Format, Usage)> {
    let counted = |mut usage: Usage| {
        usage.input += u64::from(usage.input == 0);
        usage.output += u64::from(usage.output == usage.thinking);
        usage
    };
    select(&Format::ALL[..])
        .prop_flat_map(move |format| (Just(format), usage(format).prop_map(counted)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..crate::many() })]

    #[test]
    fn streams_and_whole_responses_cost_the_sum_over_their_counts(
        (from, usage) in reported_usage(),
        to in select(&Format::ALL[..]),
        prices in proptest::array::uniform8(price()),
        milliseconds in 0..1u64 << 40,
        cuts in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let whole = metered(from, to, usage, false, &[]);
        let streamed = metered(from, to, usage, true, &cuts);
        prop_assert_eq!(whole, MeasuredUsage { usage, estimated: false });
        prop_assert_eq!(streamed, whole);
        let cost = Prices::from_pricing(&pricing(prices)).map(|prices| {
            prices.cost(&streamed.usage, milliseconds).to_string()
        });
        let is_free = prices.iter().all(Option::is_none);
        let expected = (!is_free).then(|| expected(prices, &usage, milliseconds));
        prop_assert_eq!(cost, expected);
    }

    #[test]
    fn nothing_costs_more_than_its_reservation(
        (_, usage) in reported_usage(),
        prices in proptest::array::uniform8(price()),
        milliseconds in 0..1u64 << 40,
    ) {
        if let Some(prices) = Prices::from_pricing(&pricing(prices)) {
            let most = prices.max_cost(usage.input, usage.output, milliseconds);
            prop_assert!(prices.cost(&usage, milliseconds) <= most);
        }
    }

    #[test]
    fn contradictory_counts_still_have_a_cost(counts in any::<[u64; 6]>()) {
        let [input, cached, cache_written, output, thinking, image_output] = counts;
        let usage = Usage { input, cached, cache_written, output, thinking, image_output, ..Usage::default() };
        let one = Some(NANO);
        let prices = Prices::from_pricing(&pricing([one, one, None, None, one, one, one, one]));
        let cost = prices.expect("prices").cost(&usage, 0);
        // At one price for all, every token counts once.
        let same = Prices::from_pricing(&pricing([one, one, None, None, None, None, None, None]));
        let whole = Usage { input, output, ..Usage::default() };
        prop_assert_eq!(cost, same.expect("prices").cost(&whole, 0));
    }
}
