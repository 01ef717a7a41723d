//! The rounds of tools that the upstream runs itself.

use crate::formats::tool_rounds::{
    DEFAULT_TOOL_ROUNDS, OwnTools, ToolRunner, decode_rounds, decode_tools, may_name_tools,
    sum_of_rounds,
};
use crate::json::{
    ConversationRules, DecodeResult, FromJson, JsonReader, RawJson, decode_json, from_json,
    is_same_but_for_case,
};

/// How the types of tools begin that the client runs.
const OWN_TYPES: [&str; 4] = ["bash_", "text_editor_", "computer_", "memory_"];

const OWN_TOOLS: OwnTools = OwnTools {
    is_own: |kind| kind == "custom" || OWN_TYPES.iter().any(|own| kind.starts_with(own)),
    may_lack_type: true,
    fields: &[
        "name",
        "description",
        "input_schema",
        "input_examples",
        "cache_control",
        "strict",
        "defer_loading",
        "allowed_callers",
        "eager_input_streaming",
        "display_width_px",
        "display_height_px",
        "display_number",
        "enable_zoom",
        "max_characters",
    ],
};

/// The type of what stands for a tool that is declared among those of the request, and its fields.
const REFERENCE: &str = "tool_reference";
const REFERENCE_FIELDS: [&str; 4] = ["name", "tool_name", "toolset_name", "cache_control"];

/// Blocks beside those that are known that only tell what has been done.
const PAST_BLOCKS: [&str; 8] = [
    "server_tool_use",
    "mcp_tool_use",
    "search_result",
    "container_upload",
    "browser_state",
    "compaction",
    "fallback",
    "web_search_result",
];

/// What in messages may have the upstream run tools.
pub(super) const CONVERSATION: ConversationRules = ConversationRules {
    fields: &["messages", "system"],
    is_past: |kind| {
        let ends = ["_result", "_result_error", "_output"];
        PAST_BLOCKS.contains(&kind) || ends.iter().any(|end| kind.ends_with(end))
    },
    past_fields: &["caller"],
    listings: &["tool_removal"],
    has_hosted,
    may_name_tools,
};

/// Tells whether one of the tools of a block is the upstream's.
fn has_hosted(written: &str) -> bool {
    let tools = decode_tools::<RawJson<'_>>(written);
    let is_hosted = |tool: &RawJson<'_>| {
        let declared = decode_json::<DeclaredMessagesTool>(tool.get());
        let is_own = declared.is_ok_and(|tool| !tool.runner.is_hosted(&OWN_TOOLS));
        !is_own && !is_reference(tool.get())
    };
    tools.is_none_or(|tools| tools.iter().any(is_hosted))
}

/// Tells whether an object is such a reference and nothing else.
fn is_reference(written: &str) -> bool {
    let (mut types, mut is_plain) = (0, true);
    let read = JsonReader::new(written).object(|reader, key| {
        types += usize::from(key == "type");
        is_plain &= match key {
            "type" => reader.clone().text().is_ok_and(|kind| kind == REFERENCE),
            _ => REFERENCE_FIELDS.contains(&key),
        };
        reader.skip()
    });
    read.is_ok() && is_plain && types == 1
}

const MAX_USES: &str = "max_uses";

from_json! {
    struct RequestedMessagesTools<'a> {
        "tools" => tools: Option<Vec<DeclaredMessagesTool>>,
        "mcp_servers" => mcp_servers: Option<RawJson<'a>>,
    }
}

#[derive(Default)]
struct DeclaredMessagesTool {
    runner: ToolRunner,
    has_limit: bool,
    /// The largest that stands there; `None`: there is none.
    max_uses: Option<u64>,
}

impl<'a> FromJson<'a> for DeclaredMessagesTool {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.object(|reader, key| {
            if !is_same_but_for_case(key, MAX_USES) {
                return self.runner.note(reader, key, &OWN_TOOLS);
            }
            let mut limit = RawJson::default();
            limit.decode(reader)?;
            let limit = decode_rounds(Some(limit));
            let is_only = key == MAX_USES && !self.has_limit;
            self.max_uses = match is_only {
                true => limit,
                // An upstream may take either of two, or none.
                false => self.max_uses.max(limit).max(Some(DEFAULT_TOOL_ROUNDS)),
            };
            self.has_limit = true;
            Ok(())
        })
    }
}

/// Returns how often the upstream may read the prompt again for its own tools.
pub(super) fn tool_rounds(body: &str) -> u64 {
    // What is no list of tools, or has a field twice, may be anything to the upstream.
    let Ok(request) = decode_json::<RequestedMessagesTools<'_>>(body) else {
        return DEFAULT_TOOL_ROUNDS;
    };
    let servers = request
        .mcp_servers
        .map(|servers| decode_json::<Vec<RawJson<'_>>>(servers.get()));
    let has_servers = servers.is_some_and(|servers| !servers.is_ok_and(|list| list.is_empty()));
    let tools = request.tools.iter().flatten();
    let hosted = tools.filter(|tool| tool.runner.is_hosted(&OWN_TOOLS));
    let limits = hosted.map(|tool| tool.max_uses);
    sum_of_rounds(limits.chain(has_servers.then_some(None)))
}

#[cfg(test)]
mod tests {
    use super::tool_rounds;

    #[test]
    fn rounds_are_those_of_hosted_tools() {
        for (fields, rounds) in [
            (r#""tools":null"#, 0),
            (
                r#""tools":[{"name":"f"},{"type":"custom","name":"g"},{"type":"bash_20250124"}]"#,
                0,
            ),
            (r#""tools":[{"type":"web_search_20250305"}]"#, 10),
            (
                r#""tools":[{"type":"web_search_20250305","max_uses":3}]"#,
                10,
            ),
            (
                r#""tools":[{"type":"web_search_20250305","max_uses":12}]"#,
                12,
            ),
            (
                r#""tools":[{"type":"web_search_20250305","max_uses":3},{"type":"web_fetch_1","max_uses":2},{"type":"code_execution_1"},{"type":"tool_1"}]"#,
                15,
            ),
            (
                r#""tools":[{"type":"web_search_20250305","max_uses":-1}]"#,
                10,
            ),
            (
                r#""tools":[{"type":"web_search_1","max_uses":1,"max_uses":9}]"#,
                10,
            ),
            (r#""tools":[{"type":"web_search_1","max_uses":0}]"#, 10),
            (
                r#""tools":[{"type":"web_search_1","max_uses":1,"Max_Uses":50}]"#,
                50,
            ),
            (
                r#""tools":[{"type":"web_search_1","Max_Uses":50,"max_uses":1}]"#,
                50,
            ),
            (
                r#""tools":[{"type":"web_search_1","max_u\u0073es":1,"max_uſes":50}]"#,
                50,
            ),
            (r#""tools":[{"type":"web_search_1","max_uses":1e2}]"#, 100),
            (r#""tools":[{"type":"web_search_1","max_uses":"100"}]"#, 100),
            (r#""tools":[{"type":"web_search_1","max_uses":99.5}]"#, 100),
            (r#""tools":[{"type":"web_search_1","max_uses":"all"}]"#, 10),
            (r#""tools":[{"googleSearch":{}}]"#, 10),
            (r#""tools":[{"name":"f","googleSearch":{}}]"#, 10),
            (r#""tools":[{"name":"f","Type":"web_search_1"}]"#, 10),
            (r#""tools":{"type":"web_search_20250305"}"#, 10),
            (r#""mcp_servers":[]"#, 0),
            (r#""mcp_servers":[{"type":"url"}]"#, 10),
        ] {
            assert_eq!(tool_rounds(&format!("{{{fields}}}")), rounds, "{fields}");
        }
    }
}
