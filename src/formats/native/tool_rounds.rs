//! The rounds of tools that the upstream runs itself.

use super::field_names::FUNCTION_DECLARATIONS;
use crate::formats::tool_rounds::{decode_tools, shared_rounds};
use crate::json::{
    ConversationRules, DecodeResult, FromJson, JsonReader, Present, decode_json, from_json,
};

/// What in contents may have the upstream run tools. Their parts have no types but fields.
pub(super) const CONVERSATION: ConversationRules = ConversationRules {
    fields: &["contents", "systemInstruction", "system_instruction"],
    is_past: |_| false,
    past_fields: &[
        "toolCall",
        "tool_call",
        "toolResponse",
        "tool_response",
        "videoMetadata",
        "video_metadata",
        "mediaResolution",
        "media_resolution",
        "audioTranscription",
        "audio_transcription",
    ],
    listings: &[],
    has_hosted,
    may_name_tools: |_| true,
};

/// Tells whether one of the tools of a content is the upstream's.
fn has_hosted(written: &str) -> bool {
    let tools = decode_tools::<DeclaredNativeTool>(written);
    tools.is_none_or(|tools| tools.iter().any(|tool| tool.is_hosted))
}

from_json! {
    struct RequestedNativeTools {
        "tools" => tools: Option<Vec<DeclaredNativeTool>>,
        /// What the upstream has cached may have tools.
        "cachedContent" => cached: Option<Present>,
        "cached_content" => other_cached: Option<Present>,
    }
}

#[derive(Default)]
struct DeclaredNativeTool {
    is_hosted: bool,
}

impl<'a> FromJson<'a> for DeclaredNativeTool {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.object(|reader, key| {
            let is_own = FUNCTION_DECLARATIONS.contains(&key);
            self.is_hosted |= !is_own && reader.peek() != Some(b'n');
            reader.skip()
        })
    }
}

/// Returns how often the upstream may read the prompt again for its own tools, of which the format has no limit.
pub(super) fn tool_rounds(body: &str) -> u64 {
    // What is no list of tools may be anything to the upstream.
    let request = decode_json::<RequestedNativeTools>(body);
    let is_own = request.is_ok_and(|request| {
        let mut tools = request.tools.iter().flatten();
        let is_cached = request.cached.or(request.other_cached).is_some();
        !is_cached && tools.all(|tool| !tool.is_hosted)
    });
    shared_rounds(!is_own, None)
}

#[cfg(test)]
mod tests {
    use super::tool_rounds;

    #[test]
    fn cached_content_may_have_tools() {
        for (fields, rounds) in [
            (r#""cachedContent":"cachedContents/a""#, 10),
            (r#""cached_content":"cachedContents/a""#, 10),
            (r#""cachedContent":null"#, 0),
        ] {
            assert_eq!(tool_rounds(&format!("{{{fields}}}")), rounds, "{fields}");
        }
    }

    #[test]
    fn rounds_are_those_of_hosted_tools() {
        for (tools, rounds) in [
            ("null", 0),
            (
                r#"[{"functionDeclarations":[]},{"function_declarations":[]}]"#,
                0,
            ),
            (r#"[{"googleSearch":{}}]"#, 10),
            (r#"[{"functionDeclarations":[],"code_execution":{}}]"#, 10),
            (r#"{"googleSearch":{}}"#, 10),
        ] {
            assert_eq!(
                tool_rounds(&format!(r#"{{"tools":{tools}}}"#)),
                rounds,
                "{tools}"
            );
        }
    }
}
