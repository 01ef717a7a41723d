//! The rounds of tools that the upstream runs itself.

use crate::formats::tool_rounds::{DEFAULT_TOOL_ROUNDS, decode_rounds};
use crate::json::{Present, RawJson, decode_json, from_json};

/// The types of tools that the client runs.
const OWN_TOOLS: [&str; 6] = [
    "function",
    "custom",
    "local_shell",
    "computer_use_preview",
    "computer",
    "apply_patch",
];

from_json! {
    struct RequestedResponsesTools<'a> {
        "tools" => tools: Option<Vec<DeclaredResponsesTool<'a>>>,
        "max_tool_calls" => max_tool_calls: Option<RawJson<'a>>,
        /// A stored prompt may have tools.
        "prompt" => prompt: Option<Present>,
    }
}

from_json! {
    struct DeclaredResponsesTool<'a> {
        "type" => kind: Option<RawJson<'a>>,
        /// Of a namespace.
        "tools" => tools: Option<Vec<DeclaredResponsesTool<'a>>>,
    }
}

impl DeclaredResponsesTool<'_> {
    fn is_hosted(&self) -> bool {
        let kind = self.kind.and_then(RawJson::text).unwrap_or_default();
        match &self.tools {
            Some(tools) if kind == "namespace" => {
                tools.iter().any(DeclaredResponsesTool::is_hosted)
            }
            _ => !OWN_TOOLS.contains(&&*kind),
        }
    }
}

/// Returns how often the upstream may read the prompt again for its own tools.
pub(super) fn tool_rounds(body: &str) -> u64 {
    // What is no list of tools, or has a field twice, may be anything to the upstream.
    let Ok(request) = decode_json::<RequestedResponsesTools<'_>>(body) else {
        return DEFAULT_TOOL_ROUNDS;
    };
    let mut tools = request.tools.iter().flatten();
    match request.prompt.is_some() || tools.any(DeclaredResponsesTool::is_hosted) {
        true => decode_rounds(request.max_tool_calls).unwrap_or(DEFAULT_TOOL_ROUNDS),
        false => 0,
    }
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
            (r#""tools":[{"type":"mcp"}],"max_tool_calls":"4""#, 10),
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
            (r#""prompt":{"id":"pmpt_1"}"#, 10),
            (r#""tools":[{}]"#, 10),
        ] {
            assert_eq!(tool_rounds(&format!("{{{fields}}}")), rounds, "{fields}");
        }
    }
}
