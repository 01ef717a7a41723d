//! The rounds of tools that the upstream runs itself.

use crate::formats::tool_rounds::{DEFAULT_TOOL_ROUNDS, decode_rounds, sum_of_rounds};
use crate::json::{RawJson, decode_json, from_json};

/// How the types of tools begin that the client runs.
const OWN_TOOLS: [&str; 4] = ["bash_", "text_editor_", "computer_", "memory_"];

from_json! {
    struct RequestedMessagesTools<'a> {
        "tools" => tools: Option<Vec<DeclaredMessagesTool<'a>>>,
        "mcp_servers" => mcp_servers: Option<RawJson<'a>>,
    }
}

from_json! {
    struct DeclaredMessagesTool<'a> {
        "type" => kind: Option<RawJson<'a>>,
        "max_uses" => max_uses: Option<RawJson<'a>>,
    }
}

impl DeclaredMessagesTool<'_> {
    fn is_hosted(&self) -> bool {
        let Some(kind) = self.kind else {
            return false;
        };
        let kind = kind.text().unwrap_or_default();
        kind != "custom" && !OWN_TOOLS.iter().any(|own| kind.starts_with(own))
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
    let hosted = tools.filter(|tool| tool.is_hosted());
    let limits = hosted.map(|tool| decode_rounds(tool.max_uses));
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
                3,
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
            (r#""tools":{"type":"web_search_20250305"}"#, 10),
            (r#""mcp_servers":[]"#, 0),
            (r#""mcp_servers":[{"type":"url"}]"#, 10),
        ] {
            assert_eq!(tool_rounds(&format!("{{{fields}}}")), rounds, "{fields}");
        }
    }
}
