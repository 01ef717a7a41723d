//! What a request was and became on its way out, so that the reply can speak as the client did.

use super::{Tool, ToolKind};
use std::ops::Range;

/// Empty for most requests, and then it costs nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranslationState {
    pub renamed: Vec<Renamed>,
    /// The client's names of tools that take free text, which not every format has.
    pub custom: Vec<String>,
    pub namespaced: Vec<Namespaced>,
    /// The upstream writes its thoughts into the text, between tags.
    pub think_tags: bool,
    /// Images are made from images.
    pub edits: bool,
    pub thread: Option<ConversationState>,
}

/// Of a conversation that goes on from a reply that was kept, and whose replies may be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationState {
    pub previous: Option<String>,
    /// The client wants to go on from the reply, or to fetch it again.
    pub keep: bool,
    /// Where the request says what it adds to the conversation.
    pub added: Range<usize>,
}

/// A name that the upstream's format does not take, and the one that stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    pub client: String,
    pub upstream: String,
}

/// A tool that the client declared inside of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespaced {
    /// Both names in one, as the neutral model has it.
    pub name: String,
    pub namespace: String,
}

impl TranslationState {
    pub fn of_tools(tools: &[Tool<'_>]) -> TranslationState {
        let mut memory = TranslationState::default();
        for tool in tools {
            if tool.kind == ToolKind::Custom {
                memory.custom.push(tool.name.clone().into_owned());
            }
            if let Some(namespace) = &tool.namespace {
                memory.namespaced.push(Namespaced {
                    name: tool.name.clone().into_owned(),
                    namespace: namespace.clone().into_owned(),
                });
            }
        }
        memory
    }

    /// Whether every call of the reply already is as the client knows it.
    pub fn is_plain(&self) -> bool {
        self.renamed.is_empty() && self.custom.is_empty()
    }

    /// What the client calls a tool that the upstream called; `None`: the same.
    pub fn client_name(&self, upstream: &str) -> Option<&str> {
        let renamed = self.renamed.iter().find(|name| name.upstream == upstream);
        renamed.map(|name| name.client.as_str())
    }

    pub fn is_custom(&self, client_name: &str) -> bool {
        self.custom.iter().any(|name| name == client_name)
    }

    pub fn namespace_of(&self, client_name: &str) -> Option<&str> {
        let mut namespaced = self.namespaced.iter();
        let found = namespaced.find(|tool| tool.name == client_name);
        found.map(|tool| tool.namespace.as_str())
    }
}
