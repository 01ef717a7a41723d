//! Free text as the one argument of a function, for formats without tools that take free text.

use serde::Deserialize;

use crate::model::Json;

/// The grammar of a tool's free text, told to a model that nothing else holds to it.
pub fn describe_grammar(grammar: &Json<'_>) -> Option<String> {
    let word = |key| grammar.get(key).as_str();
    let (syntax, definition) = (word("syntax")?, word("definition")?);
    Some(format!("Must match this {syntax} grammar:\n{definition}"))
}

#[derive(Deserialize)]
struct Wrapped {
    input: String,
}

/// What a model wrote for a tool of free text; `None`: it did not keep to the one argument.
pub fn unwrap_free_text(arguments: &str) -> Option<String> {
    // Derived readers would take an array for an object.
    let inner = arguments.trim_ascii().strip_prefix('{')?;
    // Nothing was said, as in a stream whose call has no pieces.
    if inner.trim_ascii_start() == "}" {
        return Some(String::new());
    }
    let wrapped: Wrapped = serde_json::from_str(arguments).ok()?;
    Some(wrapped.input)
}

#[cfg(test)]
mod tests {
    use super::unwrap_free_text;

    #[test]
    fn only_the_one_argument_is_taken_out() {
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
