//! How often an upstream reads the prompt again for tools that it runs itself.

use crate::json::{DecodeResult, FromJson, JsonReader, RawJson, decode_json};

/// The rounds of tools that the request does not limit: vendors stop after about so many.
pub const DEFAULT_TOOL_ROUNDS: u64 = 10;

/// Adds up the rounds of tools, each with its own limit of uses. These lower nothing: to a use too many the model is told
/// that it is one, which is a round too.
pub(super) fn sum_of_rounds(limits: impl Iterator<Item = Option<u64>>) -> u64 {
    let (mut limited, mut unlimited, mut least) = (0_u64, 0, 0);
    for limit in limits {
        least = DEFAULT_TOOL_ROUNDS;
        match limit {
            Some(limit) => limited = limited.saturating_add(limit),
            None => unlimited = DEFAULT_TOOL_ROUNDS,
        }
    }
    limited.saturating_add(unlimited).max(least)
}

/// Decodes a limit, as the most lenient upstream may read it: also `9.0`, and a number in quotes. One that cannot be read is
/// none, and so is one of 0, by which some mean that there is none.
pub(super) fn decode_rounds(limit: Option<RawJson<'_>>) -> Option<u64> {
    let limit = limit?;
    let number: f64 = limit.get().trim_matches('"').trim().parse().ok()?;
    Some(number.ceil() as u64).filter(|limit| *limit > 0)
}

/// Returns the rounds of tools that share one limit, if one of them is the upstream's.
pub(super) fn shared_rounds(is_hosted: bool, limit: Option<u64>) -> u64 {
    match is_hosted {
        true => limit.unwrap_or(DEFAULT_TOOL_ROUNDS),
        false => 0,
    }
}

/// Tells whether a field that is not known may have tools, as far as its name tells.
pub(super) fn may_name_tools(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["tool", "plugin", "mcp"]
        .iter()
        .any(|word| key.contains(word))
}

/// Decodes a tool, or a list of them.
pub(super) fn decode_tools<'a, T: FromJson<'a> + Default>(written: &'a str) -> Option<Vec<T>> {
    match written.starts_with('[') {
        true => decode_json(written).ok(),
        false => decode_json(written).ok().map(|tool| vec![tool]),
    }
}

/// How tools look that the client runs.
pub(super) struct OwnTools {
    /// Tells whether a type is one of theirs.
    pub(super) is_own: fn(&str) -> bool,
    /// They may have no type.
    pub(super) may_lack_type: bool,
    /// Their fields beside the type.
    pub(super) fields: &'static [&'static str],
}

/// Who runs a tool, as far as its fields tell. Whatever the gateway does not know may be one of the upstream's.
#[derive(Default)]
pub(super) struct ToolRunner {
    has_type: bool,
    has_field: bool,
    is_hosted: bool,
}

impl ToolRunner {
    /// Notes a field and passes over its value. A type that stands there twice, or in another case, is not the client's.
    pub(super) fn note(
        &mut self,
        reader: &mut JsonReader<'_>,
        key: &str,
        own: &OwnTools,
    ) -> DecodeResult {
        if reader.peek() == Some(b'n') {
            return reader.skip();
        }
        if key == "type" {
            let mut kind = RawJson::default();
            kind.decode(reader)?;
            let is_own = kind.text().is_some_and(|kind| (own.is_own)(&kind));
            self.is_hosted |= self.has_type || !is_own;
            self.has_type = true;
            return Ok(());
        }
        let is_own = own.fields.contains(&key);
        self.has_field |= is_own;
        self.is_hosted |= !is_own;
        reader.skip()
    }

    pub(super) const fn is_hosted(&self, own: &OwnTools) -> bool {
        let is_typed = self.has_type || (own.may_lack_type && self.has_field);
        self.is_hosted || !is_typed
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Format;

    #[test]
    fn tools_may_stand_in_the_conversation() {
        let search = r#"{"type":"web_search_20250305","name":"web_search"}"#;
        for (format, field, item) in [
            (
                Format::Responses,
                "input",
                r#"{"type":"additional_tools","tools":[{"type":"web_search"}]}"#,
            ),
            (
                Format::Responses,
                "input",
                r#"{"tools":[{"type":"mcp"}],"type":"additional_tools"}"#,
            ),
            (
                Format::Responses,
                "input",
                r#"{"role":"user","content":"a","Tools":{"type":"mcp"}}"#,
            ),
            (
                Format::Responses,
                "input",
                r#"{"type":"configuration_update","configuration":{"tools":[{"type":"mcp"}]}}"#,
            ),
            (
                Format::Responses,
                "input",
                r#"{"type":"tool_search_output","tools":[{"type":"mcp"}]}"#,
            ),
            (Format::Responses, "input", r#"{"type":"run_this"}"#),
            (Format::Responses, "input", r#"{"Type":"run_this"}"#),
            (
                Format::Responses,
                "input",
                r#"{"type":"message","type":"run_this"}"#,
            ),
            (
                Format::Responses,
                "input",
                r#"{"role":"user","content":[{"type":"run_this"}]}"#,
            ),
            (
                Format::Responses,
                "input",
                r#"{"role":"user","content":"a","plugins":[{}]}"#,
            ),
            (
                Format::Messages,
                "messages",
                &format!(
                    r#"{{"role":"user","content":[{{"type":"tool_addition","tool":{search}}}]}}"#
                ),
            ),
            (
                Format::Messages,
                "messages",
                r#"{"role":"user","content":[{"type":"tool_addition","tool":{"type":"tool_reference","type":"web_search_1","name":"a"}}]}"#,
            ),
            (
                Format::Messages,
                "system",
                &format!(r#"{{"type":"tool_addition","tool":{search}}}"#),
            ),
            (
                Format::Messages,
                "messages",
                r#"{"role":"user","content":[{"type":"run_this"}]}"#,
            ),
            (
                Format::Messages,
                "messages",
                r#"{"role":"user","content":[{"type":"tool_result","content":[{"type":"run_this"}]}]}"#,
            ),
            (
                Format::Chat,
                "messages",
                r#"{"role":"user","content":"a","tools":[{"type":"web_search"}]}"#,
            ),
            (
                Format::Chat,
                "messages",
                r#"{"role":"user","content":"a","extra":{"mcp_servers":[{}]}}"#,
            ),
            (
                Format::Chat,
                "messages",
                r#"{"role":"user","content":[{"type":"run_this"}]}"#,
            ),
            (
                Format::Native,
                "contents",
                r#"{"parts":[{"text":"a"}],"tools":[{"googleSearch":{}}]}"#,
            ),
            (Format::Native, "contents", r#"{"parts":[{"runThis":{}}]}"#),
        ] {
            let body = format!(r#"{{"model":"m","{field}":[{item}]}}"#);
            let findings = format.codec().findings(body.as_bytes());
            assert!(findings.may_start_tools, "{format:?}: {item}");
        }
    }

    #[test]
    fn what_only_tells_of_tools_starts_none() {
        let items = [
            r#"{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"x"}]}"#,
            r#"{"type":"function_call","arguments":"{\"tools\":1}","name":"f","call_id":"c"}"#,
            r#"{"type":"additional_tools","tools":[{"type":"function","name":"f","parameters":{"tools":[]}}]}"#,
            r#"{"type":"additional_tools","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom"}]}]}"#,
            r#"{"type":"mcp_list_tools","server_label":"a","tools":[{"name":"f","input_schema":{"tools":1}}]}"#,
            r#"{"type":"mcp_call","server_label":"a","output":"x"}"#,
            r#"{"type":"web_search_call","action":{"type":"search","queries":["a"]}}"#,
            r#"{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"x"}}"#,
            r#"{"type":"shell_call_output","output":[{"stdout":"a","outcome":{"type":"exit"}}]}"#,
            r#"{"type":"item_reference","id":"a"}"#,
            r#"{"type":"compaction","encrypted_content":"a"}"#,
            r#"{"role":"user","content":"a","tools":null}"#,
        ];
        let blocks = [
            r#"{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}"#,
            r#"{"type":"tool_use","id":"a","name":"f","input":{"tools":[1],"type":"x"},"caller":{"type":"code_execution_20250825","tool_id":"b"}}"#,
            r#"{"type":"server_tool_use","id":"a","name":"web_search","input":{}}"#,
            r#"{"type":"web_search_tool_result","tool_use_id":"a","content":[{"type":"web_search_result","url":"x"}]}"#,
            r#"{"type":"code_execution_tool_result","content":{"type":"code_execution_result","content":[{"type":"code_execution_output","file_id":"f"}]}}"#,
            r#"{"type":"tool_search_tool_result","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"f"}]}}"#,
            r#"{"type":"mcp_tool_use","server_name":"a"}"#,
            r#"{"type":"container_upload","file_id":"f"}"#,
            r#"{"type":"search_result","source":"x","title":"t","content":[]}"#,
            r#"{"type":"tool_addition","tool":{"type":"tool_reference","tool_name":"f"}}"#,
            r#"{"type":"tool_addition","tool":{"name":"f","input_schema":{"tools":1}}}"#,
            r#"{"type":"tool_removal","tool":{"type":"web_search_20250305","name":"a"}}"#,
            r#"{"type":"image","source":{"type":"url","url":"x"}}"#,
        ];
        let blocks = blocks.map(|block| format!(r#"{{"role":"user","content":[{block}]}}"#));
        let messages = [
            r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}},{"type":"video_url","video_url":{"url":"x"}}]}"#,
            r#"{"role":"assistant","tool_calls":[{"type":"builtin_function","function":{"name":"a","arguments":"{}"}}],"reasoning_details":[{"type":"x"}]}"#,
            r#"{"role":"user","content":"a","tools":[{"type":"function","function":{"name":"f"}}]}"#,
        ];
        let contents = [
            r#"{"role":"model","parts":[{"text":"a","thoughtSignature":"b"},{"toolCall":{"toolType":"X","args":{"tools":1}}},{"executableCode":{"code":"a"}}]}"#,
            r#"{"role":"user","parts":[{"fileData":{"fileUri":"x","mimeType":"video/mp4"},"videoMetadata":{"fps":1}},{"functionResponse":{"name":"f","response":{"tools":1}}}]}"#,
        ];
        let all = items.map(|item| (Format::Responses, "input", item.to_owned()));
        let all = all
            .into_iter()
            .chain(blocks.map(|block| (Format::Messages, "messages", block)))
            .chain(messages.map(|one| (Format::Chat, "messages", one.to_owned())))
            .chain(contents.map(|one| (Format::Native, "contents", one.to_owned())));
        for (format, field, item) in all {
            let body = format!(r#"{{"model":"m","{field}":[{item}]}}"#);
            let findings = format.codec().findings(body.as_bytes());
            assert!(!findings.may_start_tools, "{format:?}: {item}");
        }
    }
}
