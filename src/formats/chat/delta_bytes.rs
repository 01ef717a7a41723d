//! The content of a delta, of which a stream that passes through is billed by its length where it breaks off.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::formats::ContentTokens;
use crate::json::{FromJson, Present, RawJson, decode_json, from_json};

from_json! {
    /// The fields of a delta that hold content.
    pub(super) struct PeekedDelta<'a> {
        "content" => content: Option<RawJson<'a>>,
        "tool_calls" => tool_calls: Option<RawJson<'a>>,
        "function_call" => function_call: Option<RawJson<'a>>,
        "reasoning" => reasoning: Option<RawJson<'a>>,
        "reasoning_content" => reasoning_content: Option<RawJson<'a>>,
        "reasoning_details" => reasoning_details: Option<RawJson<'a>>,
        "refusal" => refusal: Option<RawJson<'a>>,
        "audio" => audio: Option<RawJson<'a>>,
        "images" => images: Option<RawJson<'a>>,
    }
}

from_json! {
    struct PeekedCall<'a> {
        "function" => function: Option<PeekedFunction<'a>>,
        "custom" => custom: Option<PeekedCustom<'a>>,
    }
}

from_json! {
    struct PeekedFunction<'a> {
        "name" => name: Option<RawJson<'a>>,
        "arguments" => arguments: Option<RawJson<'a>>,
    }
}

from_json! {
    struct PeekedCustom<'a> {
        "name" => name: Option<RawJson<'a>>,
        "input" => input: Option<RawJson<'a>>,
    }
}

from_json! {
    struct PeekedAudio<'a> {
        "id" => id: Option<RawJson<'a>>,
        "data" => data: Option<RawJson<'a>>,
        "transcript" => transcript: Option<RawJson<'a>>,
    }
}

from_json! {
    struct PeekedReasoning<'a> {
        "text" => text: Option<RawJson<'a>>,
        "summary" => summary: Option<RawJson<'a>>,
        "data" => data: Option<RawJson<'a>>,
    }
}

/// What cannot be decoded passes through uncounted.
fn lenient<'a, T: FromJson<'a>>(raw: Option<RawJson<'a>>) -> T {
    let decoded = raw.and_then(|raw| decode_json(raw.get()).ok());
    decoded.unwrap_or_default()
}

impl<'a> PeekedDelta<'a> {
    /// Returns the id under which the upstream keeps the audio.
    pub(super) fn audio_id(&self) -> Option<Cow<'a, str>> {
        let audio: PeekedAudio<'a> = lenient(Some(self.audio?));
        audio.id?.text()
    }

    pub(super) fn holds_content(&self) -> bool {
        self.content.is_some_and(|content| content.get() != "\"\"")
            || self.tool_calls.is_some()
            || self.function_call.is_some()
            || self.reasoning.is_some()
            || self.reasoning_content.is_some()
            || self.reasoning_details.is_some()
            || self.refusal.is_some()
            || self.audio.is_some()
            || self.images.is_some()
    }

    pub(super) fn count(&self, uncounted: &mut ContentTokens) {
        uncounted.add_value(self.content);
        uncounted.add_text(self.refusal);
        if self.tool_calls.is_some() {
            let calls: SmallVec<[PeekedCall<'_>; 1]> = lenient(self.tool_calls);
            for call in &calls {
                count_call(call.function.as_ref(), uncounted);
                if let Some(custom) = &call.custom {
                    uncounted.add_text(custom.name);
                    uncounted.add_text(custom.input);
                }
            }
        }
        if self.function_call.is_some() {
            count_call(Some(&lenient(self.function_call)), uncounted);
        }
        self.count_reasoning(uncounted);
        if self.audio.is_some() {
            let audio: PeekedAudio<'_> = lenient(self.audio);
            uncounted.add_audio(audio.data);
            uncounted.add_text(audio.transcript);
        }
        if self.images.is_some() {
            let images: SmallVec<[Present; 1]> = lenient(self.images);
            images.iter().for_each(|_| uncounted.add_image());
        }
    }

    /// Backends that send several of these fields send the same text in each.
    fn count_reasoning(&self, uncounted: &mut ContentTokens) {
        let plain = self.reasoning_content.or(self.reasoning);
        uncounted.add_reasoning(plain);
        if self.reasoning_details.is_none() {
            return;
        }
        let details: SmallVec<[PeekedReasoning<'_>; 1]> = lenient(self.reasoning_details);
        for detail in &details {
            uncounted.add_signature(detail.data);
            if plain.is_none() {
                uncounted.add_reasoning(detail.text.or(detail.summary));
            }
        }
    }
}

fn count_call(function: Option<&PeekedFunction<'_>>, uncounted: &mut ContentTokens) {
    if let Some(function) = function {
        uncounted.add_text(function.name);
        uncounted.add_text(function.arguments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(delta: &str) -> ContentTokens {
        let delta: PeekedDelta<'_> = decode_json(delta).expect(delta);
        let mut content = ContentTokens::default();
        delta.count(&mut content);
        content
    }

    #[test]
    fn content_of_every_kind_is_counted() {
        for (delta, text, reasoning) in [
            (r#"{"content":"fourfour"}"#, 2, 0),
            (r#"{"content":"\u4eca\u65e5"}"#, 2, 0),
            (r#"{"content":[{"type":"text","text":"four"}]}"#, 12, 0),
            (
                r#"{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}"#,
                2,
                0,
            ),
            (
                r#"{"tool_calls":[{"type":"custom","custom":{"name":"f","input":"fourfour"}}]}"#,
                3,
                0,
            ),
            (r#"{"function_call":{"name":"f","arguments":"{}"}}"#, 2, 0),
            (r#"{"audio":{"id":"a","transcript":"four"}}"#, 1, 0),
            (
                r#"{"reasoning_details":[{"type":"reasoning.text","text":"four"}]}"#,
                0,
                1,
            ),
            (
                r#"{"reasoning":"four","reasoning_details":[{"text":"four"}]}"#,
                0,
                1,
            ),
            (r#"{"reasoning":"four","reasoning_content":"four"}"#, 0, 1),
            (
                r#"{"tool_calls":"no","function_call":"no","audio":[],"images":{},"reasoning_details":1}"#,
                0,
                0,
            ),
        ] {
            let content = counted(delta);
            let tokens = (content.text_tokens(), content.reasoning_tokens());
            assert_eq!(tokens, (text, reasoning), "{delta}");
        }
        let images = counted(r#"{"images":[{"image_url":{"url":"a"}},{}]}"#);
        assert_eq!(images.image_tokens(), 2 * 765);
        let hidden =
            counted(r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"abcd"}]}"#);
        assert_eq!(hidden.reasoning_tokens(), 1);
        // A second of audio at 64 KiB has not as many tokens as so much text.
        let audio = counted(&format!(
            r#"{{"audio":{{"data":"{}"}}}}"#,
            "A".repeat(64 << 10)
        ));
        assert_eq!(audio.text_tokens(), 49);
    }
}
