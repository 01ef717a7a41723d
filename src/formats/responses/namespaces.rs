//! Tool names within a namespace.

use crate::formats::MAX_TOOL_NAME;
use crate::json::Path;
use crate::model::{ApiError, Text};

const SEPARATOR: &str = "__";

/// Checks the length of the name of a namespace, or of a tool in one: each tool is known by both together.
pub(super) fn check_length(name: &str, path: &Path<'_>) -> Result<(), ApiError> {
    match name.len() {
        0..=MAX_TOOL_NAME => Ok(()),
        length => {
            let expected =
                format!("at most {MAX_TOOL_NAME} bytes for a namespace or a tool in one");
            Err(path.wrong(&format!("{expected}, got {length}")))
        }
    }
}

/// Joins namespace and name, so that two namespaces may have tools of the same name.
pub(super) fn qualified_name<'a>(namespace: Option<&str>, name: Text<'a>) -> Text<'a> {
    match namespace {
        Some(namespace) => format!("{namespace}{SEPARATOR}{name}").into(),
        None => name,
    }
}

/// Takes the namespace off a name again.
pub(super) fn unqualified_name<'n>(namespace: &str, qualified: &'n str) -> &'n str {
    let rest = qualified.strip_prefix(namespace);
    let name = rest.and_then(|rest| rest.strip_prefix(SEPARATOR));
    name.unwrap_or(qualified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::RequestHead;
    use crate::model::{Format, Losses};

    /// What is said of a namespace with one tool.
    fn problem(namespace: &str, kind: &str, name: &str) -> Option<String> {
        let tool = format!(r#"{{"type":"{kind}","name":"{name}"}}"#);
        let tools = format!(r#"[{{"type":"namespace","name":"{namespace}","tools":[{tool}]}}]"#);
        let body = format!(r#"{{"model":"m","input":"A","tools":{tools}}}"#);
        let (head, mut losses) = (RequestHead::default(), Losses::default());
        let codec = Format::Responses.codec();
        let decoded = codec.decode_request(&head, body.as_bytes(), &mut losses);
        decoded.err().map(|api_error| api_error.message.clone())
    }

    #[test]
    fn long_names_in_namespaces_are_refused_before_they_are_joined() {
        let (longest, longer) = ("n".repeat(MAX_TOOL_NAME), "n".repeat(MAX_TOOL_NAME + 1));
        let refused = |field: &str| {
            let limit = "at most 256 bytes for a namespace or a tool in one";
            Some(format!("{field}: expected {limit}, got 257"))
        };
        for kind in ["function", "custom"] {
            assert_eq!(problem(&longest, kind, &longest), None);
            assert_eq!(problem(&longer, kind, "f"), refused("tools[0].name"));
            let of_tool = refused("tools[0].tools[0].name");
            assert_eq!(problem("n", kind, &longer), of_tool);
        }
    }

    #[test]
    fn a_namespace_is_taken_off_the_name_it_was_joined_with() {
        for name in ["f", "a__f", "__f", ""] {
            let both = qualified_name(Some("a__b"), name.into());
            assert_eq!(unqualified_name("a__b", &both), name);
        }
        assert_eq!(unqualified_name("a", "b__f"), "b__f");
    }
}
