//! Removes the fields of a request that an upstream refuses, as its capabilities name them.

use crate::formats::{Capabilities, to_json_string};
use crate::json::{DecodeResult, JsonReader};

pub(super) const NEWER_LIMIT: &str = "max_completion_tokens";
pub(super) const OLDER_LIMIT: &str = "max_tokens";

/// What begins the name of a field that is in every message.
const IN_MESSAGES: &str = "messages.";

/// Returns the field by which an upstream limits the output, and the other one: whoever refuses one of them knows the other.
pub(super) fn limit_fields(capabilities: &Capabilities) -> [&'static str; 2] {
    let refused = [NEWER_LIMIT, OLDER_LIMIT].map(|name| capabilities.refuses(name));
    let is_older = match refused {
        [true, false] => true,
        [false, true] => false,
        _ => capabilities.chat_old_max_field,
    };
    match is_older {
        true => [OLDER_LIMIT, NEWER_LIMIT],
        false => [NEWER_LIMIT, OLDER_LIMIT],
    }
}

/// Returns the body without the fields that the upstream refuses, and reports the path of each. `None`: it has none of
/// them, or is not an object.
///
/// A limit of the output is not removed but renamed, where the upstream knows it by its other name.
pub(super) fn remove_unsupported(
    body: &str,
    capabilities: &Capabilities,
    report: &mut dyn FnMut(String),
) -> Option<Vec<u8>> {
    if !capabilities.changes_passthrough() {
        return None;
    }
    let [limit, other_limit] = limit_fields(capabilities);
    // Without any limit, an upstream would generate more than was asked and reserved for.
    let is_refused = |name: &str| name != limit && capabilities.refuses(name);
    let in_messages = |name: &str| {
        let mut names = capabilities.chat_unsupported.iter();
        names.any(|refused| refused.strip_prefix(IN_MESSAGES) == Some(name))
    };
    let is_renamed = |name: &str| {
        name == other_limit && (capabilities.chat_old_max_field || capabilities.refuses(name))
    };
    let is_affected = |name: &str| is_refused(name) || is_renamed(name);
    // Most bodies have none of these fields, and are not copied.
    if !has_field(body, &is_affected, &in_messages) {
        return None;
    }
    let mut reader = JsonReader::new(body);
    let (mut kept, mut is_changed) = (KeptMembers::default(), false);
    let (mut has_limit, mut renamed) = (false, None);
    let read = reader.object(|reader, name| {
        let value = reader.raw()?;
        match name {
            _ if is_renamed(name) && value != "null" => {
                renamed = Some(value);
                is_changed = true;
            }
            _ if name == limit && value == "null" => {}
            _ if name == limit => {
                has_limit = true;
                kept.push(name, value);
            }
            _ if is_refused(name) => {
                report(name.to_owned());
                is_changed = true;
            }
            "messages" => match messages_without(value, &in_messages, report) {
                Some(messages) => {
                    kept.push(name, &messages);
                    is_changed = true;
                }
                None => kept.push(name, value),
            },
            _ => kept.push(name, value),
        }
        Ok(())
    });
    if let Some(value) = renamed.filter(|_| !has_limit) {
        kept.push(limit, value);
    }
    (read.is_ok() && is_changed).then(|| kept.finish())
}

/// Tells whether the body, or one of its messages, has a field of these.
fn has_field(
    body: &str,
    is_affected: &dyn Fn(&str) -> bool,
    in_messages: &dyn Fn(&str) -> bool,
) -> bool {
    let mut is_found = false;
    // What cannot be read is not changed.
    let _ = JsonReader::new(body).object(|reader, name| {
        is_found |= is_affected(name);
        if name != "messages" || reader.peek() != Some(b'[') {
            return reader.skip();
        }
        reader.array(|reader| match reader.peek() {
            Some(b'{') => reader.object(|reader, name| {
                is_found |= in_messages(name);
                reader.skip()
            }),
            _ => reader.skip(),
        })
    });
    is_found
}

/// The messages without the fields that are refused in each. `None`: no message has one.
fn messages_without(
    messages: &str,
    is_refused: &dyn Fn(&str) -> bool,
    report: &mut dyn FnMut(String),
) -> Option<String> {
    let (mut out, mut is_changed, mut count) = (String::from("["), false, 0);
    let mut reader = JsonReader::new(messages);
    let read = reader.array(|reader| {
        if count > 0 {
            out.push(',');
        }
        let message = reader.raw()?;
        match message_without(message, count, is_refused, report)? {
            Some(shorter) => {
                out.push_str(&shorter);
                is_changed = true;
            }
            None => out.push_str(message),
        }
        count += 1;
        Ok(())
    });
    out.push(']');
    (read.is_ok() && is_changed).then_some(out)
}

fn message_without(
    message: &str,
    index: usize,
    is_refused: &dyn Fn(&str) -> bool,
    report: &mut dyn FnMut(String),
) -> DecodeResult<Option<String>> {
    let (mut kept, mut is_changed) = (KeptMembers::default(), false);
    let mut reader = JsonReader::new(message);
    if reader.peek() != Some(b'{') {
        return Ok(None);
    }
    reader.object(|reader, name| {
        let value = reader.raw()?;
        if is_refused(name) {
            report(format!("messages[{index}].{name}"));
            is_changed = true;
        } else {
            kept.push(name, value);
        }
        Ok(())
    })?;
    Ok(is_changed.then(|| kept.text + "}"))
}

/// An object that is written member by member.
struct KeptMembers {
    text: String,
}

impl Default for KeptMembers {
    fn default() -> KeptMembers {
        KeptMembers {
            text: "{".to_owned(),
        }
    }
}

impl KeptMembers {
    fn push(&mut self, name: &str, value: &str) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text += &String::from_utf8_lossy(&to_json_string(name));
        self.text.push(':');
        self.text += value;
    }

    fn finish(self) -> Vec<u8> {
        (self.text + "}").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(body: &str, names: &str) -> (Option<String>, Vec<String>) {
        removed_by(body, names, "max_tokens")
    }

    fn removed_by(body: &str, names: &str, max_field: &str) -> (Option<String>, Vec<String>) {
        let mut capabilities = Capabilities::default();
        for (name, value) in [("chat_unsupported", names), ("chat_max_field", max_field)] {
            capabilities.set(name, value).expect("a capability");
        }
        let mut paths = Vec::new();
        let body = remove_unsupported(body, &capabilities, &mut |path| paths.push(path));
        let body = body.map(|body| String::from_utf8(body).expect("text"));
        (body, paths)
    }

    #[test]
    fn refused_fields_are_removed_and_reported() {
        let body = r#"{"model":"m","store":true,"messages":[{"role":"user","name":"Ann","content":"{\"name\":1}"},{"role":"user","content":"x"}],"logit_bias":{"1":2}}"#;
        let (shorter, paths) = removed(body, "store,logit_bias,messages.name");
        assert_eq!(
            shorter.as_deref(),
            Some(
                r#"{"model":"m","messages":[{"role":"user","content":"{\"name\":1}"},{"role":"user","content":"x"}]}"#
            )
        );
        assert_eq!(paths, ["store", "messages[0].name", "logit_bias"]);
    }

    #[test]
    fn a_body_without_refused_fields_stays_as_it_is() {
        for body in [
            r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#,
            "[1]",
            "{",
        ] {
            assert_eq!(removed(body, "store,messages.name"), (None, vec![]));
        }
    }

    #[test]
    fn a_limit_is_renamed_and_never_doubled() {
        let (renamed, paths) = removed(r#"{"max_completion_tokens":9}"#, "max_completion_tokens");
        assert_eq!(renamed.as_deref(), Some(r#"{"max_tokens":9}"#));
        assert!(paths.is_empty());
        let both = r#"{"max_completion_tokens":9,"max_tokens":5}"#;
        let (one, _) = removed(both, "max_completion_tokens");
        assert_eq!(one.as_deref(), Some(r#"{"max_tokens":5}"#));
        for with_null in [
            r#"{"max_tokens":null,"max_completion_tokens":9}"#,
            r#"{"max_completion_tokens":9,"max_tokens":null}"#,
        ] {
            for names in ["max_completion_tokens", ""] {
                let (renamed, _) = removed(with_null, names);
                assert_eq!(
                    renamed.as_deref(),
                    Some(r#"{"max_tokens":9}"#),
                    "{with_null}"
                );
            }
        }
    }

    #[test]
    fn a_refused_limit_has_the_other_name_and_one_always_stays() {
        let (newer, older) = ("max_completion_tokens", "max_tokens");
        for (names, max_field, limit) in [
            ("max_tokens", newer, newer),
            ("max_tokens", older, newer),
            ("max_tokens,temperature", newer, newer),
            ("max_completion_tokens", newer, older),
            // No config may name both, but an upstream and a model may each name one.
            ("max_tokens,max_completion_tokens", newer, newer),
            ("max_tokens,max_completion_tokens", older, older),
        ] {
            let expected = format!(r#"{{"{limit}":5}}"#);
            for sent in [newer, older] {
                let body = format!(r#"{{"{sent}":5}}"#);
                let (shorter, _) = removed_by(&body, names, max_field);
                assert_eq!(shorter.unwrap_or(body), expected, "{names}, {max_field}");
            }
            let (one, _) = removed_by(
                r#"{"max_tokens":5,"max_completion_tokens":5}"#,
                names,
                max_field,
            );
            assert_eq!(one.as_deref(), Some(&*expected), "{names}, {max_field}");
        }
    }
}
