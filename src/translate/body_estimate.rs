//! Estimates the tokens of a request from the size of its body.

use crate::formats::{
    Codec, InputSummary, RequestFindings, RequestHead, estimate_json_tokens, max_growth,
};
use crate::model::InputMedia;

/// The bytes of a token in most languages, on average.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

/// How much of a request's body is text, how many pages of data there are, such as images, and what is not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BodyEstimate {
    text: u64,
    /// The bytes that the text may become longer by before it is cut into tokens, or that are read once more.
    added: u64,
    /// The tokens of the text can be counted by its characters.
    is_readable: bool,
    /// Tokens that the body has as numbers.
    token_ids: u64,
    pages: u64,
    /// How many images, recordings and documents the pages belong to.
    media: u64,
    /// Images that the upstream fetches.
    linked_images: u64,
    /// How many inputs there are, where a request may have several; 0 stands for one.
    inputs: u64,
    /// There is more input than the body holds, at an upstream of any format.
    has_unseen: bool,
    /// There may be more input than the body holds, at an upstream of the client's format: the body has
    /// something that only such an upstream knows.
    is_unknown: bool,
    /// The upstream adds to the prompt by itself.
    has_vendor_prompt: bool,
}

/// The most samples of a body, and the shortest section that may be data.
const MAX_SAMPLES: usize = 4096;
const MIN_SECTION: usize = 4 << 10;
/// The length of a sample. Text has a space, a quote or punctuation in it.
const SAMPLE: usize = 48;

/// Tokens of a page of a document, and its size in base64. Images have fewer tokens.
const TOKENS_PER_PAGE: u64 = 1000;
const BYTES_PER_PAGE: u64 = (64 << 10) / 3 * 4;

/// The bytes of base64 that would be a token, were they text.
const BASE64_PER_TOKEN: u64 = 2;

/// The likely tokens of an image behind a URL, and those of the largest, however few bytes it has: models scale larger ones
/// down.
const TOKENS_PER_LINK: u64 = 1000;
const MAX_TOKENS_PER_IMAGE: u64 = 5000;

/// The most that an upstream adds to a prompt with tools or a schema of the output. Anthropic documents up to 530 tokens for tools,
/// the others tell nothing; twice that leaves room for new models.
const MAX_VENDOR_PROMPT: u64 = 1024;

impl BodyEstimate {
    /// Estimates by samples of the body, where nothing is paid by it: an image of 20 MiB need not be
    /// scanned to recognise it.
    pub fn sampled(body: &[u8]) -> BodyEstimate {
        let data = sampled_data(body);
        BodyEstimate {
            text: body.len() as u64 - data,
            pages: data.div_ceil(BYTES_PER_PAGE),
            ..BodyEstimate::default()
        }
    }

    /// Counts every byte as text but those of media, by the format's own decoder: text may look like
    /// data. A body that it refuses is text.
    pub fn exact(codec: &dyn Codec, head: &RequestHead<'_>, body: &[u8]) -> BodyEstimate {
        let media = match sampled_data(body) {
            0 => InputMedia::default(),
            _ => codec.input_media(head, body).unwrap_or_default(),
        };
        BodyEstimate::of(body, &media)
    }

    /// The same, and whether there is more input than the body holds.
    pub fn with_unseen(
        codec: &dyn Codec,
        head: &RequestHead<'_>,
        body: &[u8],
        findings: &RequestFindings,
    ) -> BodyEstimate {
        // Most requests are of this kind, and decoding them would cost more than all else that is done for a cap.
        let has_vendor_prompt = findings.has_prompting_field;
        if findings.has_only_text {
            return BodyEstimate {
                added: max_growth(body),
                has_vendor_prompt,
                is_readable: true,
                ..BodyEstimate::of(body, &InputMedia::default())
            };
        }
        let media = codec.input_media(head, body);
        BodyEstimate {
            added: max_growth(body).saturating_add(findings.repeated_bytes),
            is_unknown: findings.unknown_field.is_some()
                || media
                    .as_ref()
                    .map_or(true, |media| media.count < findings.media),
            has_vendor_prompt,
            is_readable: true,
            ..BodyEstimate::of(body, &media.unwrap_or_default())
        }
    }

    /// Counts the input of a request beside conversations, which is text in its body unless the summary says otherwise.
    pub fn of_input(body_length: usize, summary: &InputSummary) -> BodyEstimate {
        BodyEstimate {
            text: (body_length as u64)
                .saturating_sub(summary.token_bytes)
                .saturating_add(summary.repeated_bytes),
            token_ids: summary.token_ids,
            inputs: summary.inputs,
            has_unseen: summary.has_unseen,
            ..BodyEstimate::default()
        }
    }

    /// The same for a body that is here, whose characters can be counted if it is JSON with texts.
    pub fn of_input_in(body: &[u8], summary: &InputSummary) -> BodyEstimate {
        BodyEstimate {
            added: max_growth(body),
            is_readable: summary.token_ids == 0 && body.trim_ascii_start().starts_with(b"{"),
            ..BodyEstimate::of_input(body.len(), summary)
        }
    }

    fn of(body: &[u8], media: &InputMedia) -> BodyEstimate {
        let pages = media.lengths.iter();
        let pages = pages.map(|length| length.div_ceil(BYTES_PER_PAGE));
        BodyEstimate {
            text: (body.len() as u64).saturating_sub(media.lengths.iter().sum()),
            pages: pages.sum(),
            media: media.lengths.len() as u64,
            linked_images: media.linked_images,
            has_unseen: media.has_unseen,
            ..BodyEstimate::default()
        }
    }

    /// Returns the bytes of text.
    pub const fn text(self) -> u64 {
        self.text
    }

    /// Returns the estimate of a body with so much more text.
    pub const fn with_more_text(self, bytes: u64) -> BodyEstimate {
        BodyEstimate {
            text: self.text.saturating_add(bytes),
            ..self
        }
    }

    /// Returns how many inputs there are, each of which may be as long as the model takes.
    pub fn inputs(self) -> u64 {
        self.inputs.max(1)
    }

    /// Tells whether an upstream may read more input than the body holds.
    pub const fn has_unseen_input(self, is_passthrough: bool) -> bool {
        self.has_unseen || (is_passthrough && self.is_unknown)
    }

    /// Returns the likely number of tokens, by the size of the text.
    pub fn tokens(self) -> u64 {
        likely_tokens_of_text(self.text) + self.tokens_beside_text()
    }

    /// Returns the likely number of tokens, by the characters of the body that was estimated: whoever leaves before the
    /// upstream has counted them pays by this.
    pub fn read_tokens(self, body: &[u8]) -> u64 {
        if !self.is_readable {
            return self.tokens();
        }
        let length = body.len() as u64;
        let data = length.saturating_sub(self.text);
        let tokens = estimate_json_tokens(body);
        let text = match data {
            // The upstream reads some of it more than once.
            _ if self.text > length => {
                let all = u128::from(tokens) * u128::from(self.text);
                u64::try_from(all.div_ceil(u128::from(length.max(1)))).unwrap_or(u64::MAX)
            }
            0 => tokens,
            _ => tokens
                .saturating_sub(data.div_ceil(BASE64_PER_TOKEN))
                .max(likely_tokens_of_text(self.text))
                .min(max_tokens_of_text(self.text)),
        };
        text + self.tokens_beside_text()
    }

    const fn tokens_beside_text(self) -> u64 {
        self.token_ids + self.data_tokens() + self.linked_images * TOKENS_PER_LINK
    }

    /// Returns the most tokens of the body, and of the images that it links to. `per_image`: the most that the model counts an
    /// image as, where that is known.
    pub fn max_tokens(self, per_image: Option<u64>) -> u64 {
        let images = self.linked_images + self.media;
        let images = images.saturating_mul(per_image.unwrap_or(MAX_TOKENS_PER_IMAGE));
        let vendor_prompt = match self.has_vendor_prompt {
            true => MAX_VENDOR_PROMPT,
            false => 0,
        };
        let text = max_tokens_of_text(self.text.saturating_add(self.added)) + vendor_prompt;
        images.saturating_add(text + self.token_ids + self.data_tokens())
    }

    const fn data_tokens(self) -> u64 {
        // At most 1000 tokens per page: no overflow below an exabyte.
        self.pages * TOKENS_PER_PAGE
    }
}

/// Returns the likely number of tokens in so many bytes of text.
pub const fn likely_tokens_of_text(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Returns the most tokens in so many bytes of text, as a tokenizer gets it: words have fewer, but digits, random letters and rare scripts may have one
/// to a byte.
pub const fn max_tokens_of_text(bytes: u64) -> u64 {
    bytes
}

/// About how many bytes look like data.
fn sampled_data(body: &[u8]) -> u64 {
    let section = (body.len() / MAX_SAMPLES).max(MIN_SECTION);
    let sections = body.chunks_exact(section).filter(|part| {
        let middle = part.len() / 2;
        let sample = &part[middle..part.len().min(middle + SAMPLE)];
        is_base64(sample) || !is_text(sample)
    });
    (sections.count() * section) as u64
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
    use crate::model::Format;

    fn exact(body: &str) -> BodyEstimate {
        BodyEstimate::exact(
            Format::Chat.codec(),
            &RequestHead::default(),
            body.as_bytes(),
        )
    }

    #[test]
    fn text_of_any_length_is_text() {
        for words in ["The quick brown fox. ", "今日は世界。", "{\"a\":1}"] {
            for times in [1, 1000, 100_000] {
                let body = words.repeat(times);
                let length = body.len() as u64;
                for estimate in [BodyEstimate::sampled(body.as_bytes()), exact(&body)] {
                    assert_eq!((estimate.text, estimate.pages), (length, 0), "{words}");
                    assert_eq!(estimate.tokens(), length.div_ceil(4));
                    assert_eq!(estimate.max_tokens(None), length);
                }
            }
        }
        assert_eq!(BodyEstimate::sampled(b"").max_tokens(None), 0);
    }

    #[test]
    fn what_becomes_longer_or_is_read_again_counts() {
        let (codec, head) = (Format::Messages.codec(), RequestHead::default());
        let most = |body: &str| {
            let findings = codec.findings(body.as_bytes());
            let estimate = BodyEstimate::with_unseen(codec, &head, body.as_bytes(), &findings);
            estimate.max_tokens(None) - body.len() as u64
        };
        let text = |text: &str| {
            format!(
                r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":"{text}"}}]}}"#
            )
        };
        assert_eq!(most(&text(&"今".repeat(100))), 0);
        assert_eq!(most(&text(&"\u{fdfa}".repeat(100))), 3000);
        let input = InputSummary::default();
        let body = format!(r#"{{"input":"{}"}}"#, "\u{fdfa}".repeat(100));
        let estimate = BodyEstimate::of_input_in(body.as_bytes(), &input);
        assert_eq!(estimate.max_tokens(None), body.len() as u64 + 3000);
        let tool = format!(
            r#"{{"name":"f","description":"{}","input_schema":{{}},"defer_loading":true}}"#,
            "a".repeat(2000)
        );
        let references = [r#"{"type":"tool_reference","tool_name":"f"}"#; 5].join(",");
        let turns = format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{references}]}}]}}"#
        );
        let body =
            format!(r#"{{"model":"m","max_tokens":1,"tools":[{tool}],"messages":[{turns}]}}"#);
        assert_eq!(most(&body), MAX_VENDOR_PROMPT + 4 * tool.len() as u64);
    }

    #[test]
    fn text_of_short_tokens_is_read_for_a_cap() {
        let findings = RequestFindings::default();
        let tokens = |body: &str| {
            let (codec, head) = (Format::Chat.codec(), RequestHead::default());
            let estimate = BodyEstimate::with_unseen(codec, &head, body.as_bytes(), &findings);
            let tokens = estimate.read_tokens(body.as_bytes());
            assert!(tokens <= estimate.max_tokens(None), "{body}");
            tokens
        };
        let body = |content: &str| {
            format!(r#"{{"model":"m","messages":[{{"role":"user","content":{content}}}]}}"#)
        };
        let plain = |text: &str| body(&format!("\"{text}\""));
        let empty = tokens(&plain(""));
        for (text, expected) in [("7", 1000), ("word", 1000), ("今", 1000), (r"\u4eca", 1000)] {
            assert_eq!(
                tokens(&plain(&text.repeat(1000))) - empty,
                expected,
                "{text}"
            );
        }
        // What is data counts as such.
        let data = "iVBORw0K+/9a".repeat(10_000);
        let image = format!(
            r#"[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}]"#
        );
        let pages = (data.len() as u64).div_ceil(BYTES_PER_PAGE) * TOKENS_PER_PAGE;
        let read = tokens(&body(&image));
        assert!((pages..pages + 150).contains(&read), "{read}");
    }

    #[test]
    fn input_beside_conversations_is_read_for_a_cap_too() {
        let digits = format!(r#"{{"input":"{}"}}"#, "7".repeat(1000));
        let tokens = |body: &str, summary: &InputSummary| {
            let estimate = BodyEstimate::of_input_in(body.as_bytes(), summary);
            estimate.read_tokens(body.as_bytes())
        };
        let plain = InputSummary::default();
        assert!((1000..1010).contains(&tokens(&digits, &plain)));
        let repeated = InputSummary {
            repeated_bytes: digits.len() as u64,
            ..plain
        };
        assert!((2000..2020).contains(&tokens(&digits, &repeated)));
        // What is no JSON, and tokens that are there as numbers, are measured by their bytes.
        let form = format!("--b\r\n{}", "7".repeat(1000));
        assert_eq!(tokens(&form, &plain), (form.len() as u64).div_ceil(4));
        let ids = InputSummary {
            token_ids: 500,
            token_bytes: 1000,
            ..plain
        };
        assert!((500..510).contains(&tokens(&digits, &ids)));
    }

    #[test]
    fn media_that_the_decoder_leaves_out_are_not_known() {
        let png = r#""mimeType":"image/png","data":"iVBORw0K""#;
        let data = "data:image/png;base64,iVBORw0K";
        let image = format!(r#"{{"type":"image_url","image_url":{{"url":"{data}"}}}}"#);
        let block = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0K"}}"#;
        let input_image = format!(r#"{{"type":"input_image","image_url":"{data}"}}"#);
        for (format, turn, is_unknown) in [
            (
                Format::Native,
                format!(r#""parts":[{{"inlineData":{{{png}}}}}]"#),
                false,
            ),
            (
                Format::Native,
                format!(r#""role":"model","parts":[{{"thought":true,"inlineData":{{{png}}}}}]"#),
                true,
            ),
            (
                Format::Chat,
                format!(r#""role":"user","content":[{image}]"#),
                false,
            ),
            (
                Format::Chat,
                format!(r#""role":"assistant","content":"a","images":[{image},{image}]"#),
                false,
            ),
            (
                Format::Chat,
                format!(r#""role":"user","content":"a","images":[{image}]"#),
                true,
            ),
            (
                Format::Chat,
                format!(r#""role":"user","content":"a","images":["{data}"]"#),
                true,
            ),
            (
                Format::Messages,
                format!(r#""role":"user","content":[{block}]"#),
                false,
            ),
            (
                Format::Messages,
                format!(
                    r#""role":"user","content":[{{"type":"text","text":"a","content":[{block}]}}]"#
                ),
                true,
            ),
            (
                Format::Responses,
                format!(r#""role":"user","content":[{input_image}]"#),
                false,
            ),
            (
                Format::Responses,
                format!(r#""role":"user","content":"a","output":[{input_image}]"#),
                true,
            ),
        ] {
            let body = match format {
                Format::Native => format!(r#"{{"contents":[{{{turn}}}]}}"#),
                Format::Responses => format!(r#"{{"model":"m","input":[{{{turn}}}]}}"#),
                _ => format!(r#"{{"model":"m","max_tokens":1,"messages":[{{{turn}}}]}}"#),
            };
            let (codec, head) = (format.codec(), RequestHead::default());
            let findings = codec.findings(body.as_bytes());
            let estimate = BodyEstimate::with_unseen(codec, &head, body.as_bytes(), &findings);
            assert_eq!(estimate.has_unseen_input(true), is_unknown, "{body}");
        }
    }

    #[test]
    fn images_do_not_count_as_text() {
        let prompt = "What is on it? ".repeat(2000);
        for size in [1usize << 20, 20 << 20] {
            let data = "iVBORw0K+/9a".repeat(size / 12);
            let body = format!("{prompt}\"{data}\"");
            let estimate = BodyEstimate::sampled(body.as_bytes());
            let section = (body.len() / MAX_SAMPLES).max(MIN_SECTION) as u64;
            let text = prompt.len() as u64;
            let near = text - section..=text + 3 * section;
            assert!(near.contains(&estimate.text), "{estimate:?}");
            let image = format!(
                r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}"#
            );
            let body = format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"text","text":"{prompt}"}},{image}]}}]}}"#
            );
            let estimate = exact(&body);
            assert_eq!(estimate.text, (body.len() - data.len()) as u64);
            assert_eq!(estimate.pages, (data.len() as u64).div_ceil(BYTES_PER_PAGE));
            let more = estimate.max_tokens(Some(48_000)) - estimate.max_tokens(None);
            assert_eq!(more, 43_000);
        }
    }

    #[test]
    fn text_that_looks_like_data_is_text() {
        for text in ["_", "a", "iVBORw0K+/9a"] {
            let text = text.repeat(100_000);
            let words = [
                format!(r#"{{"role":"user","content":"{text}"}}"#),
                format!(
                    r#"{{"role":"user","content":[{{"type":"file","file":{{"filename":"a.txt","file_data":"data:text/plain;base64,{text}"}}}}]}}"#
                ),
                format!(r#"{{"role":"user","content":[{{"type":"unknown","data":"{text}"}}]}}"#),
            ];
            for words in words {
                let body = format!(r#"{{"model":"m","messages":[{words}]}}"#);
                let estimate = exact(&body);
                assert_eq!((estimate.text, estimate.pages), (body.len() as u64, 0));
            }
        }
    }
}
