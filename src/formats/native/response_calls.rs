//! `functionCall` in the candidates of a response.

use serde::Serialize;
use serde_json_borrow::ObjectAsVec;

use super::finish_reason::is_cut_off;
use crate::json::{RawJson, decode_json, from_json};
use crate::model::{
    Arguments, Call, FieldLocation, Finish, Json, Losses, Signature, Text, ToolKind,
};

from_json! {
    pub(super) struct UpstreamFunctionCall<'a> {
        "id" => pub(super) id: Option<Text<'a>>,
        "name" => pub(super) name: Option<Text<'a>>,
        "args" => pub(super) args: Option<Json<'a>>,
        "partialArgs" => pub(super) partial_args: Option<Vec<PartialArg<'a>>>,
        "willContinue" => pub(super) will_continue: Option<bool>,
    }
}

from_json! {
    /// One argument of a call, or a fragment of it.
    pub(super) struct PartialArg<'a> {
        "jsonPath" => pub(super) json_path: Option<Text<'a>>,
        "stringValue" => pub(super) string_value: Option<Text<'a>>,
        "numberValue" => pub(super) number_value: Option<RawJson<'a>>,
        "boolValue" => pub(super) bool_value: Option<bool>,
    }
}

impl<'a> UpstreamFunctionCall<'a> {
    /// Decodes a call that came in one part.
    pub(super) fn decode(self, signature: Option<Signature<'a>>) -> Call<'a> {
        Call {
            id: self.id.filter(|id| !id.is_empty()),
            name: self.name.unwrap_or_default(),
            arguments: Arguments::Tree(decode_args(self.args)),
            signature,
            kind: ToolKind::Function,
        }
    }
}

/// Decodes the arguments of a call; absent ones are an empty object.
pub(super) fn decode_args(args: Option<Json<'_>>) -> Json<'_> {
    args.filter(Json::is_object)
        .unwrap_or_else(|| Json::Object(Vec::new().into()))
}

/// The `functionCall` of a response to a client.
#[derive(Serialize)]
pub(super) struct ClientFunctionCall<'a> {
    name: &'a str,
    args: ClientArgs<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ClientArgs<'a> {
    Borrowed(&'a Json<'a>),
    Owned(Json<'a>),
}

/// Encodes a call with the arguments that [`encode_args`] returned. Absent arguments become an empty
/// object; text that is not an object is passed on under the key `_raw`.
pub(super) fn encode_function_call<'a>(
    call: &'a Call<'_>,
    args: Option<ClientArgs<'a>>,
) -> ClientFunctionCall<'a> {
    let raw = || match call.arguments.to_text().into_owned() {
        blank if blank.trim_ascii().is_empty() => {
            ClientArgs::Owned(Json::Object(ObjectAsVec::default()))
        }
        text => ClientArgs::Owned(Json::Object(vec![("_raw", Json::from(text))].into())),
    };
    ClientFunctionCall {
        name: &call.name,
        args: args.unwrap_or_else(raw),
        id: call.id.as_deref(),
    }
}

/// Encodes the arguments of a call; `None` if they are incomplete or not an object.
pub(super) fn encode_args<'a>(call: &'a Call<'_>) -> Option<ClientArgs<'a>> {
    match (&call.arguments, call.kind) {
        (Arguments::Text(text), ToolKind::Custom) => {
            let input = Json::Str(text.as_ref().into());
            Some(ClientArgs::Owned(Json::Object(
                vec![("input", input)].into(),
            )))
        }
        (Arguments::Text(text), ToolKind::Function) => {
            let tree: Json<'a> = decode_json(text).ok()?;
            tree.is_object().then_some(ClientArgs::Owned(tree))
        }
        (Arguments::Tree(tree), _) => tree.is_object().then_some(ClientArgs::Borrowed(tree)),
    }
}

/// Reports what a call loses, and tells whether the response keeps it: a call that was cut off at
/// the end of the response is left out.
pub(super) fn keeps_call(
    call: &Call<'_>,
    args: Option<&ClientArgs<'_>>,
    is_last: bool,
    finish: &Finish<'_>,
    location: impl FnOnce() -> FieldLocation,
    losses: &mut Losses,
) -> bool {
    if args.is_none() && is_last && is_cut_off(finish) {
        losses.dropped(location());
        return false;
    }
    let is_blank = || call.arguments.to_text().trim_ascii().is_empty();
    if call.kind == ToolKind::Custom || args.is_none() && !is_blank() {
        losses.approximated(location());
    }
    true
}
