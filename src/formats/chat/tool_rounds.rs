//! The rounds of tools that the upstream runs itself.

use crate::formats::tool_rounds::DEFAULT_TOOL_ROUNDS;
use crate::json::{Present, RawJson, decode_json, from_json};

from_json! {
    struct RequestedChatTools<'a> {
        "tools" => tools: Option<Vec<DeclaredChatTool<'a>>>,
        "web_search_options" => web_search_options: Option<Present>,
    }
}

from_json! {
    struct DeclaredChatTool<'a> {
        "type" => kind: Option<RawJson<'a>>,
    }
}

/// Returns how often the upstream may read the prompt again for its own tools, of which the format has no limit.
pub(super) fn tool_rounds(body: &str) -> u64 {
    // What is no list of tools, or has a field twice, may be anything to the upstream.
    let Ok(request) = decode_json::<RequestedChatTools<'_>>(body) else {
        return DEFAULT_TOOL_ROUNDS;
    };
    let is_hosted = |tool: &DeclaredChatTool<'_>| {
        let kind = tool.kind.map(|kind| kind.text().unwrap_or_default());
        kind.is_some_and(|kind| !matches!(&*kind, "function" | "custom"))
    };
    let mut tools = request.tools.iter().flatten();
    match request.web_search_options.is_some() || tools.any(is_hosted) {
        true => DEFAULT_TOOL_ROUNDS,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::tool_rounds;

    #[test]
    fn rounds_are_those_of_hosted_tools() {
        for (fields, rounds) in [
            (r#""tools":[{"type":"function"},{"type":"custom"},{}]"#, 0),
            (r#""tools":[{"type":"browser_search"}]"#, 10),
            (r#""tools":[{"type":7}]"#, 10),
            (r#""web_search_options":{}"#, 10),
            (r#""web_search_options":null"#, 0),
        ] {
            assert_eq!(tool_rounds(&format!("{{{fields}}}")), rounds, "{fields}");
        }
    }
}
