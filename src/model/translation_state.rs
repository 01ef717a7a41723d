//! What the translation of a request changed, so that the response uses the client's names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{Tool, ToolKind};

/// The changes of a request's translation; empty for most requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranslationState {
    /// The client's names of tools that the upstream knows by another name, by that name.
    pub renamed_tools: BTreeMap<String, String>,
    /// The client's names of custom tools, which not every format has.
    pub custom_tools: BTreeSet<String>,
    /// The namespaces of tools that the client declared inside of one, by their full names.
    pub namespaced_tools: BTreeMap<String, String>,
    /// The upstream writes its reasoning into the text, between `<think>` tags.
    pub think_tags: bool,
    /// The client did not ask for reasoning and gets none, but its signatures.
    pub hides_reasoning: bool,
    /// The request edits images.
    pub image_edit: bool,
    pub conversation: Option<ConversationState>,
}

/// A conversation that continues a stored response, or whose response is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationState {
    pub previous_response_id: Option<String>,
    /// The conversation that the request continues, which only its upstream keeps.
    pub conversation_id: Option<String>,
    /// The response is to be stored.
    pub store: bool,
    /// The range of the input in the request body.
    pub input_range: Range<usize>,
}

impl TranslationState {
    pub fn of_tools(tools: &[Tool<'_>]) -> TranslationState {
        let mut state = TranslationState::default();
        for tool in tools {
            if tool.kind == ToolKind::Custom {
                state.custom_tools.insert(tool.name.clone().into_owned());
            }
            if let Some(namespace) = &tool.namespace {
                let (name, namespace) = (tool.name.clone(), namespace.clone());
                let namespaces = &mut state.namespaced_tools;
                namespaces.insert(name.into_owned(), namespace.into_owned());
            }
        }
        state
    }

    /// Tells whether the calls of a response need no changes.
    pub fn is_identity(&self) -> bool {
        self.renamed_tools.is_empty() && self.custom_tools.is_empty()
    }

    /// The client's name of a tool that the upstream calls; `None`: the same.
    pub fn client_name(&self, upstream: &str) -> Option<&str> {
        self.renamed_tools.get(upstream).map(String::as_str)
    }

    pub fn is_custom(&self, client_name: &str) -> bool {
        self.custom_tools.contains(client_name)
    }

    pub fn namespace_of(&self, client_name: &str) -> Option<&str> {
        self.namespaced_tools.get(client_name).map(String::as_str)
    }
}
