//! What the translation of a request changed, so that the response uses the client's names.

use super::{Tool, ToolKind};
use std::ops::Range;

/// The changes of a request's translation; empty for most requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranslationState {
    pub renamed_tools: Vec<RenamedTool>,
    /// The client's names of custom tools, which not every format has.
    pub custom_tools: Vec<String>,
    pub namespaced_tools: Vec<NamespacedTool>,
    /// The upstream writes its reasoning into the text, between `<think>` tags.
    pub think_tags: bool,
    /// The request edits images.
    pub image_edit: bool,
    pub conversation: Option<ConversationState>,
}

/// A conversation that continues a stored response, or whose response is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationState {
    pub previous_response_id: Option<String>,
    /// The response is to be stored.
    pub store: bool,
    /// The range of the input in the request body.
    pub input_range: Range<usize>,
}

/// A tool name that the upstream's format does not allow, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedTool {
    pub client: String,
    pub upstream: String,
}

/// A tool that the client declared inside of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacedTool {
    /// The full name, with the namespace.
    pub name: String,
    pub namespace: String,
}

impl TranslationState {
    pub fn of_tools(tools: &[Tool<'_>]) -> TranslationState {
        let mut state = TranslationState::default();
        for tool in tools {
            if tool.kind == ToolKind::Custom {
                state.custom_tools.push(tool.name.clone().into_owned());
            }
            if let Some(namespace) = &tool.namespace {
                state.namespaced_tools.push(NamespacedTool {
                    name: tool.name.clone().into_owned(),
                    namespace: namespace.clone().into_owned(),
                });
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
        let renamed = self
            .renamed_tools
            .iter()
            .find(|name| name.upstream == upstream);
        renamed.map(|name| name.client.as_str())
    }

    pub fn is_custom(&self, client_name: &str) -> bool {
        self.custom_tools.iter().any(|name| name == client_name)
    }

    pub fn namespace_of(&self, client_name: &str) -> Option<&str> {
        let mut namespaced = self.namespaced_tools.iter();
        let found = namespaced.find(|tool| tool.name == client_name);
        found.map(|tool| tool.namespace.as_str())
    }
}
