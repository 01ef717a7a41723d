//! Renames tools whose names the upstream does not accept, everywhere in a request.

use std::collections::{BTreeMap, BTreeSet};

use crate::formats::{MAX_TOOL_NAME, ToolNameRule};
use crate::model::{
    ApiError, FieldLocation, Losses, PartKind, Request, Setting, Text, ToolChoice, TranslationState,
};

/// Renames the tools of a request. Returns the state that restores the names in the response.
pub(super) fn rename_tools(
    request: &mut Request<'_>,
    rule: ToolNameRule,
    losses: &mut Losses,
) -> Result<TranslationState, ApiError> {
    check_lengths(request)?;
    let mut translation_state = TranslationState::of_tools(&request.tools);
    let renamed = rule.replacements(tool_names(request));
    if !renamed.is_empty() {
        let renamed = renamed
            .into_iter()
            .map(|(client, upstream)| (client.to_owned(), upstream));
        let renamed = renamed.collect();
        apply(request, &renamed, losses);
        let by_upstream = renamed
            .into_iter()
            .map(|(client, upstream)| (upstream, client));
        translation_state.renamed_tools = by_upstream.collect();
    }
    Ok(translation_state)
}

/// Returns every tool name in a request, also of tools that it does not declare: a conversation may
/// continue without the tools that it called.
fn tool_names<'r>(request: &'r Request<'_>) -> impl Iterator<Item = &'r str> + Clone {
    let declared = request.tools.iter().map(|tool| &*tool.name);
    let called = called_names(request).map(|(name, _)| name);
    let chosen = chosen_names(request).iter().map(|name| &**name);
    declared.chain(called).chain(chosen)
}

/// Returns the name of each call and result, with its location.
fn called_names<'r>(
    request: &'r Request<'_>,
) -> impl Iterator<Item = (&'r str, FieldLocation)> + Clone {
    let parts = request
        .turns
        .iter()
        .flat_map(|turn| turn.parts.iter().map(|part| (turn.at, part)));
    parts.filter_map(|(turn, part)| {
        let name = match &part.kind {
            PartKind::Call(call) => &call.name,
            PartKind::Result(result) => result.name.as_ref()?,
            _ => return None,
        };
        let part = part.at;
        Some((&**name, FieldLocation::Part { turn, part }))
    })
}

fn chosen_names<'r, 'a>(request: &'r Request<'a>) -> &'r [Text<'a>] {
    match &request.tool_choice {
        Some(ToolChoice::One(name)) => std::slice::from_ref(name),
        Some(ToolChoice::Subset { names, .. }) => names,
        _ => &[],
    }
}

/// Refuses names that are too long to be restored in each call of a response. The name of a tool in a namespace was
/// checked before both were joined.
fn check_lengths(request: &Request<'_>) -> Result<(), ApiError> {
    let is_long = |name: &str| name.len() > MAX_TOOL_NAME;
    let in_namespaces = request.tools.iter();
    let in_namespaces = in_namespaces.filter(|tool| tool.namespace.is_some());
    let in_namespaces = in_namespaces.map(|tool| &*tool.name);
    let in_namespaces: BTreeSet<&str> = in_namespaces.filter(|name| is_long(name)).collect();
    let is_refused = |name: &str| is_long(name) && !in_namespaces.contains(name);
    let declared = request.tools.iter().map(|tool| {
        let location = FieldLocation::Tool { tool: tool.at };
        (&*tool.name, location)
    });
    let chosen = chosen_names(request).iter().map(|name| {
        let location = FieldLocation::Setting(Setting::ToolChoice);
        (&**name, location)
    });
    let mut names = declared.chain(called_names(request)).chain(chosen);
    match names.find(|(name, _)| is_refused(name)) {
        Some((name, location)) => {
            let length = name.len();
            let message = format!(
                "the name of a tool has {length} bytes: use a name of at most {MAX_TOOL_NAME}"
            );
            Err(ApiError::invalid(message).at_location(location))
        }
        None => Ok(()),
    }
}

/// Renames by the client's names.
fn apply(request: &mut Request<'_>, renamed: &BTreeMap<String, String>, losses: &mut Losses) {
    let change = |name: &mut Text<'_>| {
        let upstream = renamed.get(&**name);
        if let Some(upstream) = upstream {
            *name = upstream.clone().into();
        }
        upstream.is_some()
    };
    let declared = request.tools.iter().map(|tool| tool.name.to_string());
    let declared: BTreeSet<String> = declared.collect();
    for tool in &mut request.tools {
        if change(&mut tool.name) {
            losses.approximated(FieldLocation::Tool { tool: tool.at });
        }
    }
    for turn in &mut request.turns {
        for part in &mut turn.parts {
            match &mut part.kind {
                PartKind::Call(call) => {
                    // The loss of a declared tool is recorded with its declaration.
                    let is_declared = declared.contains(&*call.name);
                    if change(&mut call.name) && !is_declared {
                        losses.approximated(FieldLocation::Part {
                            turn: turn.at,
                            part: part.at,
                        });
                    }
                }
                PartKind::Result(result) => {
                    result.name.as_mut().map(change);
                }
                _ => {}
            }
        }
    }
    let chosen = match &mut request.tool_choice {
        Some(ToolChoice::One(name)) => std::slice::from_mut(name),
        Some(ToolChoice::Subset { names, .. }) => names,
        _ => &mut [],
    };
    for name in chosen {
        change(name);
    }
}

#[cfg(test)]
mod tests {
    use super::rename_tools;
    use crate::formats::{MAX_TOOL_NAME, RequestHead};
    use crate::model::{Format, Losses, PartKind, Request, ToolChoice, TranslationState};
    use crate::translate::request::with_client_path;

    fn renamed(
        from: Format,
        to: Format,
        body: &str,
        check: impl FnOnce(&Request<'_>),
    ) -> TranslationState {
        let mut losses = Losses::default();
        let decoded =
            from.codec()
                .decode_request(&RequestHead::default(), body.as_bytes(), &mut losses);
        let mut request = decoded.expect("a request");
        let translation_state =
            rename_tools(&mut request, to.codec().tool_name_rule(), &mut losses)
                .expect("short names");
        check(&request);
        assert_eq!(losses.0.len(), translation_state.renamed_tools.len());
        translation_state
    }

    #[test]
    fn a_tool_is_renamed_in_declarations_calls_results_and_choice() {
        let body = r#"{
            "contents": [{"role": "user", "parts": [{"text": "A"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "a.b", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "a.b", "response": {}}}]}],
            "tools": [{"functionDeclarations": [{"name": "a.b"}, {"name": "a:b"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a.b"]}}
        }"#;
        let translation_state = renamed(Format::Native, Format::Chat, body, |request| {
            assert_eq!(request.tools[0].name, "a_b");
            assert!(request.tools[1].name.starts_with("a_b_"));
            assert_eq!(request.tool_choice, Some(ToolChoice::One("a_b".into())));
            let parts = request.turns.iter().flat_map(|turn| &turn.parts);
            let used = parts.filter_map(|part| match &part.kind {
                PartKind::Call(call) => Some(&call.name),
                PartKind::Result(result) => result.name.as_ref(),
                _ => None,
            });
            assert!(used.eq(["a_b", "a_b"]));
        });
        assert_eq!(translation_state.client_name("a_b"), Some("a.b"));
        assert_eq!(translation_state.client_name("a.b"), None);
        let same = renamed(Format::Native, Format::Native, body, |_| {});
        assert_eq!(same, TranslationState::default());
    }

    #[test]
    fn kinds_and_namespaces_are_found_by_the_clients_names() {
        let body = r#"{"model": "m", "input": "A", "tools": [
            {"type": "custom", "name": "free text"},
            {"type": "function", "name": "plain__f"},
            {"type": "namespace", "name": "n s", "tools": [{"type": "function", "name": "f"}]}
        ]}"#;
        let translation_state = renamed(Format::Responses, Format::Messages, body, |request| {
            assert_eq!(request.tools[2].name, "n_s__f");
        });
        assert!(
            translation_state.is_custom("free text") && !translation_state.is_custom("free_text")
        );
        assert_eq!(translation_state.client_name("n_s__f"), Some("n s__f"));
        assert_eq!(translation_state.namespace_of("n s__f"), Some("n s"));
        assert_eq!(translation_state.namespace_of("plain__f"), None);
    }

    /// Names of the native format are shorter anyway.
    #[test]
    fn long_names_are_refused_wherever_they_stand() {
        let refused = |from: Format, body: &str, name: &str| {
            let turn = r#"{"role":"user","content":"A"}"#;
            let body = body.replace("TURN", turn).replace("NAME", name);
            let mut losses = Losses::default();
            let head = RequestHead::default();
            let decoded = from
                .codec()
                .decode_request(&head, body.as_bytes(), &mut losses);
            let mut request = decoded.expect("a request");
            let rule = Format::Messages.codec().tool_name_rule();
            let renamed = rename_tools(&mut request, rule, &mut losses);
            renamed
                .err()
                .map(|api_error| with_client_path(from, api_error).message.clone())
        };
        let call = r#"{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"NAME","arguments":"{}"}}]}"#;
        let tool = r#""tools":[{"type":"function","function":{"name":"NAME"}}]"#;
        for (from, body, field) in [
            (
                Format::Chat,
                format!(r#"{{"model":"m","messages":[TURN],{tool}}}"#),
                "tools[0]",
            ),
            (
                Format::Chat,
                format!(r#"{{"model":"m","messages":[{call}]}}"#),
                "messages[0]",
            ),
            (
                Format::Chat,
                r#"{"model":"m","messages":[TURN],"tool_choice":{"type":"function","function":{"name":"NAME"}}}"#.to_owned(),
                "tool_choice",
            ),
            (
                Format::Messages,
                r#"{"model":"m","max_tokens":1,"messages":[TURN],"tools":[{"name":"NAME","input_schema":{}}]}"#.to_owned(),
                "tools[0]",
            ),
            (
                Format::Responses,
                r#"{"model":"m","input":"A","tools":[{"type":"custom","name":"NAME"}]}"#.to_owned(),
                "tools[0]",
            ),
        ] {
            assert_eq!(refused(from, &body, &"n".repeat(MAX_TOOL_NAME)), None);
            let message = refused(from, &body, &"n".repeat(MAX_TOOL_NAME + 1));
            let expected = format!(
                "{field}: the name of a tool has 257 bytes: use a name of at most 256"
            );
            assert_eq!(message, Some(expected));
        }
    }

    #[test]
    fn a_name_may_be_longer_in_its_namespace() {
        let name = "n".repeat(MAX_TOOL_NAME);
        let body = format!(
            r#"{{"model":"m","input":"A","tools":[{{"type":"namespace","name":"{name}","tools":[{{"type":"function","name":"{name}"}}]}}]}}"#
        );
        let translation_state = renamed(Format::Responses, Format::Messages, &body, |_| {});
        let restored = translation_state.renamed_tools.values().next();
        assert_eq!(restored, Some(&format!("{name}__{name}")));
    }
}
