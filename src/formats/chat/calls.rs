//! Tool calls and tool results, in requests, responses and streams.

use std::collections::VecDeque;

use serde::Serialize;

use super::parts::decode_required_content;
use super::reader::{one_of, required};
use super::role::MessageRole;
use super::text::non_empty;
use super::tools::TOOL_KINDS;
use crate::formats::ids::past_call_id;
use crate::json::{Fields, Node, from_json};
use crate::model::{
    ApiError, Arguments, Call, Json, Losses, PartKind, Role, Text, ToolKind, ToolResult, Turn,
    append, borrowed,
};

/// Decodes one entry of `tool_calls` in a request.
pub(super) fn decode_call<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Call<'a>, ApiError> {
    let id = required(&mut fields, "id")?.text()?;
    let kind = match fields.node("type") {
        Some(node) => one_of(node, &TOOL_KINDS)?,
        None => ToolKind::Function,
    };
    let call = match kind {
        ToolKind::Function => {
            decode_function_call(required(&mut fields, "function")?, Some(id), losses)?
        }
        ToolKind::Custom => required(&mut fields, "custom")?.fields(|mut custom| {
            let call = Call {
                id: Some(id),
                name: required(&mut custom, "name")?.text()?,
                arguments: Arguments::Text(custom.text("input")?.unwrap_or_default()),
                signature: None,
                kind,
            };
            custom.finish(losses);
            Ok(call)
        })?,
    };
    fields.finish(losses);
    Ok(call)
}

/// Decodes the name and arguments of a function, also of the deprecated `function_call`.
pub(super) fn decode_function_call<'a>(
    node: Node<'a, '_>,
    id: Option<Text<'a>>,
    losses: &mut Losses,
) -> Result<Call<'a>, ApiError> {
    node.fields(|mut function| {
        let call = Call {
            id,
            name: required(&mut function, "name")?.text()?,
            arguments: Arguments::Text(function.text("arguments")?.unwrap_or_default()),
            signature: None,
            kind: ToolKind::Function,
        };
        function.finish(losses);
        Ok(call)
    })
}

/// The id of a call in a request, made from its position where it has none.
pub(super) fn id_in_history<'a>(call: &'a Call<'_>, turn: &Turn<'_>, ordinal: usize) -> Text<'a> {
    match &call.id {
        Some(id) => Text::Borrowed(id),
        None => {
            let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
            past_call_id(turn.at.unwrap_or_default(), ordinal, &call.name).into()
        }
    }
}

/// Encodes one entry of `tool_calls` in a request; functions always have arguments.
pub(super) fn encode_call_in_history<'a>(call: &'a Call<'_>, id: Text<'a>) -> ChatToolCall<'a> {
    let mut text = call.arguments.to_text();
    if call.kind == ToolKind::Function && text.trim().is_empty() {
        text = "{}".into();
    }
    ChatToolCall::complete(id, call.kind, borrowed(&call.name), text)
}

/// Decodes a tool message; results of the deprecated functions have a name instead of an id.
pub(super) fn decode_result<'a>(
    message: &mut Fields<'a, '_>,
    role: MessageRole,
    losses: &mut Losses,
) -> Result<ToolResult<'a>, ApiError> {
    let (id, name) = if role == MessageRole::Tool {
        let id = required(message, "tool_call_id")?.text()?;
        (Some(id), message.text("name")?)
    } else {
        (None, Some(required(message, "name")?.text()?))
    };
    Ok(ToolResult {
        id,
        name,
        parts: decode_required_content(message, role, losses)?,
        failed: false,
    })
}

/// Gives an id to each call whose id is empty, which some backends send, and the same id to the result
/// that answers it: results come in the order of their calls.
pub(super) fn assign_call_ids(turns: &mut [Turn<'_>]) {
    let mut open_ids: VecDeque<String> = VecDeque::new();
    let mut previous_role = Role::User;
    for turn in turns {
        // Calls that have no result before the next step of the model never get one.
        if turn.role == Role::Model && previous_role != Role::Model {
            open_ids.clear();
        }
        previous_role = turn.role;
        let position = turn.at.unwrap_or_default();
        let mut ordinal = 0;
        for part in &mut turn.parts {
            match &mut part.kind {
                PartKind::Call(call) => {
                    if is_empty_id(call.id.as_ref()) {
                        let id = past_call_id(position, ordinal, &call.name);
                        open_ids.push_back(id.clone());
                        call.id = Some(id.into());
                    }
                    ordinal += 1;
                }
                PartKind::Result(result) if is_empty_id(result.id.as_ref()) => {
                    if let Some(id) = open_ids.pop_front() {
                        result.id = Some(id.into());
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_empty_id(id: Option<&Text<'_>>) -> bool {
    id.is_some_and(|id| id.is_empty())
}

from_json! {
    /// One entry of `tool_calls` in a response, or a delta of one.
    pub(super) struct CompletionToolCall<'a> {
        "index" => pub(super) index: Option<u32>,
        "id" => pub(super) id: Option<Text<'a>>,
        "function" => pub(super) function: Option<CompletionFunction<'a>>,
        "custom" => pub(super) custom: Option<Box<CompletionFunction<'a>>>,
    }
}

from_json! {
    /// A called function or custom tool.
    pub(super) struct CompletionFunction<'a> {
        "name" => pub(super) name: Option<Text<'a>>,
        /// A string, or an object in some dialects.
        "arguments" | "input" => pub(super) arguments: Option<Json<'a>>,
    }
}

/// A decoded call, or a part of one.
pub(super) struct CallFragment<'a> {
    pub(super) index: Option<u32>,
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Text<'a>,
    pub(super) arguments: Arguments<'a>,
    pub(super) kind: ToolKind,
}

impl CallFragment<'_> {
    /// Whether it holds anything: one backend sends an empty call in every response.
    pub(super) fn is_filled(&self) -> bool {
        let has_no_arguments = matches!(&self.arguments, Arguments::Text(text) if text.is_empty());
        self.id.is_some() || !self.name.is_empty() || !has_no_arguments
    }
}

/// Decodes one entry of `tool_calls` in a response or a chunk.
pub(super) fn decode_tool_call<'a>(call: &mut CompletionToolCall<'a>) -> CallFragment<'a> {
    let (called, kind) = match (&mut call.function, &mut call.custom) {
        (None, Some(custom)) => (&mut **custom, ToolKind::Custom),
        (function, _) => (function.get_or_insert_default(), ToolKind::Function),
    };
    CallFragment {
        index: call.index,
        id: non_empty(call.id.take()),
        kind,
        ..decode_function(called)
    }
}

/// Decodes the deprecated `function_call` of a response, or the function of a tool call.
pub(super) fn decode_function<'a>(called: &mut CompletionFunction<'a>) -> CallFragment<'a> {
    CallFragment {
        index: None,
        id: None,
        name: non_empty(called.name.take()).unwrap_or_default(),
        arguments: match called.arguments.take() {
            None | Some(Json::Null) => Arguments::Text(Text::default()),
            Some(Json::Str(text)) => Arguments::Text(text),
            Some(tree) => Arguments::Tree(tree),
        },
        kind: ToolKind::Function,
    }
}

/// An encoded tool call: a complete one, or a delta of one in a stream. Only the first delta has id and
/// name.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize)]
pub(super) struct ChatToolCall<'a> {
    index: Option<u32>,
    id: Option<Text<'a>>,
    r#type: Option<&'static str>,
    function: Option<ChatCalled<'a>>,
    custom: Option<ChatCalled<'a>>,
}

/// What is called: arguments are of a function, input is of a custom tool.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize)]
struct ChatCalled<'a> {
    name: Option<Text<'a>>,
    arguments: Option<Text<'a>>,
    input: Option<Text<'a>>,
}

impl<'a> ChatToolCall<'a> {
    /// A complete call.
    pub(super) fn complete(id: Text<'a>, kind: ToolKind, name: Text<'a>, text: Text<'a>) -> Self {
        let type_name = match kind {
            ToolKind::Function => "function",
            ToolKind::Custom => "custom",
        };
        ChatToolCall {
            id: Some(id),
            r#type: Some(type_name),
            ..ChatToolCall::new(kind, Some(name), text)
        }
    }

    /// A call without an id: with no name either, more of the arguments of the one before.
    pub(super) fn new(kind: ToolKind, name: Option<Text<'a>>, text: Text<'a>) -> Self {
        let mut called = ChatCalled {
            name,
            ..ChatCalled::default()
        };
        let mut call = ChatToolCall::default();
        match kind {
            ToolKind::Function => {
                called.arguments = Some(text);
                call.function = Some(called);
            }
            ToolKind::Custom => {
                called.input = Some(text);
                call.custom = Some(called);
            }
        }
        call
    }

    /// A delta of the call with this number.
    pub(super) fn numbered(self, index: u32) -> Self {
        ChatToolCall {
            index: Some(index),
            ..self
        }
    }

    /// Adds a delta to the calls of a message, which are not numbered.
    pub(super) fn gather(mut self, calls: &mut Vec<ChatToolCall<'a>>) {
        let last = calls.last_mut().filter(|_| self.id.is_none());
        match (last.and_then(ChatToolCall::text), self.text()) {
            (Some(whole), Some(more)) => append(whole, std::mem::take(more)),
            _ => {
                self.index = None;
                calls.push(self);
            }
        }
    }

    /// The arguments or the input.
    fn text(&mut self) -> Option<&mut Text<'a>> {
        let called = self.function.as_mut().or(self.custom.as_mut())?;
        called.arguments.as_mut().or(called.input.as_mut())
    }
}
