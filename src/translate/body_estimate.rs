//! Estimates the tokens of a request from the size of its body.

/// The bytes of a token in most languages, on average.
pub(super) const BYTES_PER_TOKEN: u64 = 4;
/// The fewest bytes of a token: one Chinese character has three.
const MIN_BYTES_PER_TOKEN: u64 = 3;

/// How much of a request's body is text and how much is data, such as images.
///
/// Only samples of the body are read: an image of 20 MiB must not be scanned to recognise it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BodyEstimate {
    text: u64,
    data: u64,
}

/// The most samples of a body, and the shortest section that may be data.
const MAX_SAMPLES: usize = 4096;
const MIN_SECTION: usize = 4 << 10;
/// The length of a sample. Text has a space, a quote or punctuation in it.
const SAMPLE: usize = 48;

/// Tokens of a page of a document, and its size in base64. Images have fewer tokens.
const TOKENS_PER_PAGE: u64 = 1000;
const BYTES_PER_PAGE: u64 = (64 << 10) / 3 * 4;

impl BodyEstimate {
    /// Samples a body.
    pub fn of(body: &[u8]) -> BodyEstimate {
        let section = (body.len() / MAX_SAMPLES).max(MIN_SECTION);
        let mut estimate = BodyEstimate::default();
        for part in body.chunks(section) {
            let middle = part.len() / 2;
            let sample = &part[middle..part.len().min(middle + SAMPLE)];
            let bytes = part.len() as u64;
            match part.len() == section && (is_base64(sample) || !is_text(sample)) {
                true => estimate.data += bytes,
                false => estimate.text += bytes,
            }
        }
        estimate
    }

    /// Returns the likely number of tokens.
    pub fn tokens(self) -> u64 {
        self.text.div_ceil(BYTES_PER_TOKEN) + self.data_tokens()
    }

    /// Returns an upper estimate of the tokens.
    pub fn max_tokens(self) -> u64 {
        self.text.div_ceil(MIN_BYTES_PER_TOKEN) + self.data_tokens()
    }

    const fn data_tokens(self) -> u64 {
        // At most 1000 tokens per page: no overflow below an exabyte.
        self.data.div_ceil(BYTES_PER_PAGE) * TOKENS_PER_PAGE
    }
}

fn is_base64(bytes: &[u8]) -> bool {
    let in_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    bytes.iter().all(in_alphabet)
}

/// Tells whether a sample is UTF-8; characters may be cut at either end.
fn is_text(bytes: &[u8]) -> bool {
    let start = bytes.iter().take_while(|byte| *byte & 0xc0 == 0x80).count();
    match std::str::from_utf8(&bytes[start.min(3)..]) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_length_is_text() {
        for words in ["The quick brown fox. ", "今日は世界。", "{\"a\":1}"] {
            for times in [1, 1000, 100_000] {
                let body = words.repeat(times);
                let length = body.len() as u64;
                let estimate = BodyEstimate::of(body.as_bytes());
                assert_eq!((estimate.text, estimate.data), (length, 0), "{words}");
                assert_eq!(estimate.tokens(), length.div_ceil(4));
                assert_eq!(estimate.max_tokens(), length.div_ceil(3));
            }
        }
        assert_eq!(BodyEstimate::of(b"").max_tokens(), 0);
    }

    #[test]
    fn images_do_not_count_as_text() {
        let prompt = "What is on it? ".repeat(2000);
        for size in [1usize << 20, 20 << 20] {
            let body = format!("{prompt}\"{}\"", "iVBORw0K+/9a".repeat(size / 12));
            let estimate = BodyEstimate::of(body.as_bytes());
            assert_eq!(estimate.text + estimate.data, body.len() as u64);
            let section = (body.len() / MAX_SAMPLES).max(MIN_SECTION) as u64;
            let text = prompt.len() as u64;
            let near = text - section..=text + 3 * section;
            assert!(near.contains(&estimate.text), "{estimate:?}");
        }
    }
}
