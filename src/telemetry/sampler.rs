//! Decides by the id of a trace whether it is sampled, so that every process that uses the same rule decides alike.

use super::trace_context::TraceId;

/// The random bits of an id that decide: its last 7 bytes.
const RANDOM_BITS: u32 = 56;

/// Samples a part of all traces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampler {
    /// The lowest value of the random bits that is sampled.
    threshold: u64,
}

impl Sampler {
    /// `ratio`: from 0 to 1.
    pub(super) fn new(ratio: f64) -> Sampler {
        let all = (1u64 << RANDOM_BITS) as f64;
        Sampler {
            threshold: ((1.0 - ratio) * all) as u64,
        }
    }

    pub(super) fn samples(self, id: &TraceId) -> bool {
        let [.., a, b, c, d, e, f, g] = *id;
        u64::from_be_bytes([0, a, b, c, d, e, f, g]) >= self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_the_traces() {
        for (ratio, want) in [(0.0, 0), (0.25, 64), (0.5, 128), (1.0, 256)] {
            let sampler = Sampler::new(ratio);
            let ids = (0..=255u8).map(|first| {
                let mut id = [0xab; 16];
                id[9] = first;
                id
            });
            let sampled = ids.filter(|id| sampler.samples(id)).count();
            assert_eq!(sampled, want, "{ratio}");
        }
    }
}
