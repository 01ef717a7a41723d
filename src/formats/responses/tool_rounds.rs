//! The rounds of tools that the upstream runs itself.

use crate::formats::tool_rounds::{
    DEFAULT_TOOL_ROUNDS, OwnTools, ToolRunner, decode_rounds, decode_tools, may_name_tools,
    shared_rounds,
};
use crate::json::{
    ConversationRules, DecodeResult, FromJson, JsonReader, Present, RawJson, decode_json, from_json,
};

/// The types of tools that the client runs; a namespace has such.
const OWN_TYPES: [&str; 7] = [
    "function",
    "custom",
    "local_shell",
    "computer_use_preview",
    "computer",
    "apply_patch",
    "namespace",
];

const OWN_TOOLS: OwnTools = OwnTools {
    is_own: |kind| OWN_TYPES.contains(&kind),
    may_lack_type: false,
    fields: &[
        "name",
        "description",
        "parameters",
        "strict",
        "format",
        "output_schema",
        "defer_loading",
        "display_width",
        "display_height",
        "environment",
    ],
};

/// Items and parts beside those that are known that only tell what has been done, or have their tools in a field.
const PAST_ITEMS: [&str; 11] = [
    "compaction",
    "item_reference",
    "configuration_update",
    "additional_tools",
    "tool_search_output",
    "program",
    "program_output",
    "computer_screenshot",
    "input_audio",
    "input_video",
    "context_compaction",
];

/// What in the items of the input may have the upstream run tools.
pub(super) const CONVERSATION: ConversationRules = ConversationRules {
    fields: &["input", "instructions"],
    is_past: |kind| {
        let is_call = kind.ends_with("_call") || kind.ends_with("_call_output");
        is_call || kind.starts_with("mcp_") || PAST_ITEMS.contains(&kind)
    },
    past_fields: &["caller"],
    listings: &["mcp_list_tools"],
    has_hosted,
    may_name_tools,
};

/// Tells whether one of the tools of an item is the upstream's.
fn has_hosted(written: &str) -> bool {
    let tools = decode_tools::<DeclaredResponsesTool>(written);
    tools.is_none_or(|tools| tools.iter().any(DeclaredResponsesTool::is_hosted))
}

from_json! {
    struct RequestedResponsesTools<'a> {
        "tools" => tools: Option<Vec<DeclaredResponsesTool>>,
        "max_tool_calls" => max_tool_calls: Option<RawJson<'a>>,
        /// A stored prompt may have tools.
        "prompt" => prompt: Option<Present>,
    }
}

#[derive(Default)]
struct DeclaredResponsesTool {
    runner: ToolRunner,
    /// One of the tools of a namespace is the upstream's.
    has_hosted: bool,
}

impl<'a> FromJson<'a> for DeclaredResponsesTool {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.object(|reader, key| {
            if key != "tools" {
                return self.runner.note(reader, key, &OWN_TOOLS);
            }
            let mut tools: Option<Vec<DeclaredResponsesTool>> = None;
            tools.decode(reader)?;
            let mut tools = tools.iter().flatten();
            self.has_hosted |= tools.any(DeclaredResponsesTool::is_hosted);
            Ok(())
        })
    }
}

impl DeclaredResponsesTool {
    fn is_hosted(&self) -> bool {
        self.has_hosted || self.runner.is_hosted(&OWN_TOOLS)
    }
}

/// Returns how often the upstream may read the prompt again for its own tools.
pub(super) fn tool_rounds(body: &str) -> u64 {
    // What is no list of tools, or has a field twice, may be anything to the upstream.
    let Ok(request) = decode_json::<RequestedResponsesTools<'_>>(body) else {
        return DEFAULT_TOOL_ROUNDS;
    };
    let mut tools = request.tools.iter().flatten();
    let is_hosted = request.prompt.is_some() || tools.any(DeclaredResponsesTool::is_hosted);
    shared_rounds(is_hosted, decode_rounds(request.max_tool_calls))
}

#[cfg(test)]
mod tests {
    use super::tool_rounds;

    #[test]
    fn rounds_are_those_of_hosted_tools() {
        for (fields, rounds) in [
            (r#""input":"Hi""#, 0),
            (
                r#""tools":[{"type":"function","name":"f"},{"type":"local_shell"}]"#,
                0,
            ),
            (r#""tools":[{"type":"web_search"}]"#, 10),
            (r#""tools":[{"type":"mcp"}],"max_tool_calls":4"#, 4),
            (r#""tools":[{"type":"mcp"}],"max_tool_calls":"40""#, 40),
            (r#""tools":[{"type":"mcp"}],"max_tool_calls":4e1"#, 40),
            (r#""tools":[{"type":"mcp"}],"max_tool_calls":"many""#, 10),
            (
                r#""tools":[{"type":"mcp"}],"max_tool_calls":4,"max_tool_calls":40"#,
                10,
            ),
            (
                r#""tools":[{"type":"namespace","tools":[{"type":"function"}]}]"#,
                0,
            ),
            (
                r#""tools":[{"type":"namespace","tools":[{"type":"mcp"}]}]"#,
                10,
            ),
            (
                r#""tools":[{"type":"namespace","Tools":[{"type":"mcp"}]}]"#,
                10,
            ),
            (
                r#""tools":[{"type":"function","tools":[{"type":"mcp"}]}]"#,
                10,
            ),
            (r#""tools":[{"type":"mcp"}],"max_tool_calls":0"#, 10),
            (r#""prompt":{"id":"pmpt_1"}"#, 10),
            (r#""tools":[{}]"#, 10),
        ] {
            assert_eq!(tool_rounds(&format!("{{{fields}}}")), rounds, "{fields}");
        }
    }
}
