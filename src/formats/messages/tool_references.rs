//! Tools that a conversation brings in by their names: the upstream puts in the whole of a tool for each of them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::formats::kept_ids::may_have_word;
use crate::formats::normalized_text::longest;
use crate::json::{DecodeResult, JsonReader, RawJson, decode_json, from_json};

const REFERENCE: &str = "tool_reference";

from_json! {
    struct ReferringRequest<'a> {
        "tools" => tools: Option<Vec<RawJson<'a>>>,
        "messages" => messages: Option<RawJson<'a>>,
    }
}

from_json! {
    struct ReferredTool<'a> {
        "name" => name: Option<Cow<'a, str>>,
    }
}

/// The tools of a request, and what refers to them.
#[derive(Default)]
struct References<'a> {
    /// The length of each tool, as a tokenizer may normalize it.
    tools: HashMap<Cow<'a, str>, u64>,
    all_tools: u64,
    /// Those that stand in the body once for a first reference.
    seen: HashSet<Cow<'a, str>>,
    repeated_bytes: u64,
}

/// Returns how many bytes of tools the upstream puts in beside those that the body has.
pub(super) fn repeated_tool_bytes(body: &[u8]) -> u64 {
    let text = str::from_utf8(body).unwrap_or_default();
    if !may_have_word(body, &[REFERENCE]) {
        return 0;
    }
    // A request with a field twice has been found to be unknown.
    let Ok(request) = decode_json::<ReferringRequest<'_>>(text) else {
        return 0;
    };
    let mut references = References::default();
    for tool in request.tools.iter().flatten() {
        let length = longest(tool.get());
        references.all_tools += length;
        let named = decode_json::<ReferredTool<'_>>(tool.get());
        if let Some(name) = named.ok().and_then(|named| named.name) {
            references.tools.insert(name, length);
        }
    }
    if let Some(messages) = request.messages {
        // What is no JSON has been refused before.
        let _ = references.read(&mut JsonReader::new(messages.get()));
    }
    references.repeated_bytes
}

impl<'a> References<'a> {
    fn read(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        match reader.peek() {
            Some(b'[') => reader.array(|reader| self.read(reader)),
            Some(b'{') => {
                let (mut is_reference, mut name) = (false, None);
                reader.object(|reader, key| {
                    if reader.peek() != Some(b'"') {
                        return self.read(reader);
                    }
                    match key {
                        "type" => is_reference |= reader.text()? == REFERENCE,
                        "tool_name" | "name" => name = Some(reader.text()?),
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?;
                if is_reference {
                    self.refer(name);
                }
                Ok(())
            }
            _ => reader.skip(),
        }
    }

    /// Adds the tool of a reference, unless it is the first one to it. What is no tool may be a set of them.
    fn refer(&mut self, name: Option<Cow<'a, str>>) {
        let named = name.and_then(|name| Some((*self.tools.get(&name)?, name)));
        let bytes = match named {
            Some((_, name)) if self.seen.insert(name.clone()) => 0,
            Some((bytes, _)) => bytes,
            None => self.all_tools,
        };
        self.repeated_bytes = self.repeated_bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::repeated_tool_bytes;

    #[test]
    fn a_tool_counts_for_each_reference_behind_the_first() {
        let tools = r#"[{"name":"f"},{"name":"long"}]"#;
        let reference = |name: &str| format!(r#"{{"type":"tool_reference",{name}}}"#);
        let (f, long) = (
            reference(r#""tool_name":"f""#),
            reference(r#""name":"long""#),
        );
        let set = reference(r#""toolset_name":"s""#);
        for (blocks, bytes) in [
            (f.clone(), 0),
            (format!("{f},{long}"), 0),
            (format!("{f},{f},{f}"), 24),
            (
                format!(r#"{{"type":"tool_result","content":[{long},{{"tool":{long}}}]}}"#),
                15,
            ),
            (set, 27),
            (
                r#"{"type":"tool_\u0072eference","tool_name":"f"},{"tool_name":"f","type":"tool_\u0072eference"}"#
                    .to_owned(),
                12,
            ),
        ] {
            let body = format!(
                r#"{{"tools":{tools},"messages":[{{"role":"user","content":[{blocks}]}}]}}"#
            );
            assert_eq!(repeated_tool_bytes(body.as_bytes()), bytes, "{blocks}");
        }
        assert_eq!(repeated_tool_bytes(br#"{"messages":"tool_reference"}"#), 0);
        let body = format!(
            r#"{{"tools":[{{"name":"ﷺ"}}],"messages":[{}]}}"#,
            reference(r#""tool_name":"none""#)
        );
        assert_eq!(repeated_tool_bytes(body.as_bytes()), 14 + 30);
    }
}
