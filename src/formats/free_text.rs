//! Wraps free text as the only argument of a function, for formats without custom tools.

use serde::Deserialize;

use crate::model::Json;

/// Describes the grammar of a custom tool for a model, where the format cannot enforce it.
pub fn describe_grammar(grammar: &Json<'_>) -> Option<String> {
    let field = |key| grammar.get(key).as_str();
    let (syntax, definition) = (field("syntax")?, field("definition")?);
    Some(format!("Must match this {syntax} grammar:\n{definition}"))
}

#[derive(Deserialize)]
struct WrappedText {
    input: String,
}

/// Decodes the free text out of a call's arguments. `None`: the model used other arguments.
pub fn unwrap_free_text(arguments: &str) -> Option<String> {
    // Derived decoders accept an array in place of an object.
    let inner = arguments.trim_ascii().strip_prefix('{')?;
    // No text, as in a stream whose call has no deltas.
    if inner.trim_ascii_start() == "}" {
        return Some(String::new());
    }
    let wrapped: WrappedText = serde_json::from_str(arguments).ok()?;
    Some(wrapped.input)
}

#[cfg(test)]
mod tests {
    use super::unwrap_free_text;

    #[test]
    fn only_the_wrapped_text_is_decoded() {
        let text = unwrap_free_text(r#" {"input": "a \"b\"\n"}"#);
        assert_eq!(text.as_deref(), Some("a \"b\"\n"));
        for nothing in ["{}", " { }\n"] {
            assert_eq!(unwrap_free_text(nothing).as_deref(), Some(""));
        }
        for other in ["", "{", r#"{"input": 1}"#, r#"["a"]"#, r#"{"input": "cut"#] {
            assert_eq!(unwrap_free_text(other), None, "{other}");
        }
    }
}
