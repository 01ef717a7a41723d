//! What a request was and became on its way out, so that the reply can speak as the client did.

use super::{Tool, ToolKind};
use std::ops::Range;

/// Empty for most requests, and then it costs nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranslationState {
    pub renamed_tools: Vec<RenamedTool>,
    /// The client's names of tools that take free text, which not every format has.
    pub custom_tools: Vec<String>,
    pub namespaced_tools: Vec<NamespacedTool>,
    /// The upstream writes its thoughts into the text, between tags.
    pub think_tags: bool,
    /// Images are made from images.
    pub image_edit: bool,
    pub conversation: Option<ConversationState>,
}

/// Of a conversation that goes on from a reply that was kept, and whose replies may be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationState {
    pub previous_response_id: Option<String>,
    /// The client wants to go on from the reply, or to fetch it again.
    pub store: bool,
    /// Where the request says what it adds to the conversation.
    pub input_range: Range<usize>,
}

/// A name that the upstream's format does not take, and the one that stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedTool {
    pub client: String,
    pub upstream: String,
}

/// A tool that the client declared inside of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacedTool {
    /// Both names in one, as the neutral model has it.
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

    /// Whether every call of the reply already is as the client knows it.
    pub fn is_identity(&self) -> bool {
        self.renamed_tools.is_empty() && self.custom_tools.is_empty()
    }

    /// What the client calls a tool that the upstream called; `None`: the same.
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
