//! The rounds of tools that the upstream runs itself.

use crate::formats::tool_rounds::{
    DEFAULT_TOOL_ROUNDS, OwnTools, ToolRunner, decode_tools, may_name_tools, shared_rounds,
};
use crate::json::{
    ConversationRules, DecodeResult, FromJson, JsonReader, Present, decode_json, from_json,
};

/// The tools that the client runs; some send what others put into `function` beside the type.
const OWN_TOOLS: OwnTools = OwnTools {
    is_own: |kind| matches!(kind, "function" | "custom"),
    may_lack_type: true,
    fields: &[
        "function",
        "custom",
        "name",
        "description",
        "parameters",
        "strict",
        "cache_control",
    ],
};

/// The parts that vendors have beside those of the format.
const VENDOR_PARTS: [&str; 14] = [
    "input_text",
    "output_text",
    "input_image",
    "input_file",
    "input_video",
    "image",
    "audio",
    "video",
    "document",
    "thinking",
    "reasoning",
    "reference",
    "tool_reference",
    "tool_result",
];

/// What in messages may have the upstream run tools.
pub(super) const CONVERSATION: ConversationRules = ConversationRules {
    fields: &["messages"],
    is_past: |kind| kind.ends_with("_url") || VENDOR_PARTS.contains(&kind),
    past_fields: &["tool_calls", "tool_plan", "tool_results", "executed_tools"],
    listings: &[],
    has_hosted,
    may_name_tools,
};

/// Tells whether one of the tools of a message is the upstream's.
fn has_hosted(written: &str) -> bool {
    let tools = decode_tools::<DeclaredChatTool>(written);
    tools.is_none_or(|tools| tools.iter().any(|tool| tool.0.is_hosted(&OWN_TOOLS)))
}

from_json! {
    struct RequestedChatTools {
        "tools" => tools: Option<Vec<DeclaredChatTool>>,
        "web_search_options" => web_search_options: Option<Present>,
    }
}

#[derive(Default)]
struct DeclaredChatTool(ToolRunner);

impl<'a> FromJson<'a> for DeclaredChatTool {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.object(|reader, key| self.0.note(reader, key, &OWN_TOOLS))
    }
}

/// Returns how often the upstream may read the prompt again for its own tools, of which the format has no limit.
pub(super) fn tool_rounds(body: &str) -> u64 {
    // What is no list of tools, or has a field twice, may be anything to the upstream.
    let Ok(request) = decode_json::<RequestedChatTools>(body) else {
        return DEFAULT_TOOL_ROUNDS;
    };
    let mut tools = request.tools.iter().flatten();
    let is_hosted = tools.any(|tool| tool.0.is_hosted(&OWN_TOOLS));
    shared_rounds(request.web_search_options.is_some() || is_hosted, None)
}

#[cfg(test)]
mod tests {
    use super::tool_rounds;

    #[test]
    fn rounds_are_those_of_hosted_tools() {
        for (fields, rounds) in [
            (
                r#""tools":[{"type":"function","function":{}},{"type":"custom"},{"function":{}}]"#,
                0,
            ),
            (r#""tools":[{}]"#, 10),
            (r#""tools":[{"googleSearch":{}}]"#, 10),
            (r#""tools":[{"type":"function","googleSearch":{}}]"#, 10),
            (r#""tools":[{"type":"function","googleSearch":null}]"#, 0),
            (r#""tools":[{"type":"function","Type":"search"}]"#, 10),
            (r#""tools":[{"type":"function","type":"function"}]"#, 10),
            (r#""tools":[{"type":"browser_search"}]"#, 10),
            (r#""tools":[{"type":7}]"#, 10),
            (r#""web_search_options":{}"#, 10),
            (r#""web_search_options":null"#, 0),
        ] {
            assert_eq!(tool_rounds(&format!("{{{fields}}}")), rounds, "{fields}");
        }
    }
}
