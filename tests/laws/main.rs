//! Properties that hold for every input, tried on random ones.

mod costs;
mod decoders;
mod event_order;
mod folding;
mod framing;
mod json;
mod random_events;
mod random_responses;
mod reservations;
mod round_trips;

use proptest::prelude::ProptestConfig;

/// Enough for rare pairs of rare things, and still a minute for all laws in a debug build.
fn many() -> ProptestConfig {
    ProptestConfig {
        cases: 10_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// `bytes` in pieces; each cut is a share of the length, out of 256.
fn pieces<'b>(bytes: &'b [u8], cuts: &[u8]) -> Vec<&'b [u8]> {
    let mut ends: Vec<usize> = cuts
        .iter()
        .map(|&cut| bytes.len() * usize::from(cut) / 256)
        .collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut start = 0;
    let piece = |end: usize| {
        let piece = &bytes[start..end];
        start = end;
        piece
    };
    ends.into_iter().map(piece).collect()
}
