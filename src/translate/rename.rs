//! Tools under names that the upstream takes, wherever a request speaks of them.

use crate::formats::NameRule;
use crate::model::{
    Losses, Memory, Namespaced, PartKind, Place, Renamed, Request, Text, ToolChoice, ToolKind,
};

/// Renames what must be renamed, and says what the reply will have to undo.
pub(super) fn rename(request: &mut Request<'_>, rule: NameRule, losses: &mut Losses) -> Memory {
    let mut memory = Memory::default();
    for tool in &request.tools {
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
    memory.renamed = rule.broken(names(request));
    if !memory.renamed.is_empty() {
        apply(request, &memory.renamed, losses);
    }
    memory
}

/// Every name that a tool goes by, declared or not: a conversation may go on without the tools
/// that it was held with.
fn names<'r>(request: &'r Request<'_>) -> impl Iterator<Item = &'r str> + Clone {
    let declared = request.tools.iter().map(|tool| &tool.name);
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let called = parts.filter_map(|part| match &part.kind {
        PartKind::Call(call) => Some(&call.name),
        PartKind::Result(result) => result.name.as_ref(),
        _ => None,
    });
    let chosen = match &request.tool_choice {
        Some(ToolChoice::One(name)) => std::slice::from_ref(name),
        Some(ToolChoice::Subset { names, .. }) => names,
        _ => &[],
    };
    declared.chain(called).chain(chosen).map(|name| &**name)
}

fn apply(request: &mut Request<'_>, renamed: &[Renamed], losses: &mut Losses) {
    let change = |name: &mut Text<'_>| {
        let found = renamed.iter().find(|known| known.client == **name);
        if let Some(known) = found {
            *name = known.upstream.clone().into();
        }
        found.is_some()
    };
    for tool in &mut request.tools {
        if change(&mut tool.name) {
            losses.approximated(Place::Tool { tool: tool.at });
        }
    }
    for part in request.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        match &mut part.kind {
            PartKind::Call(call) => {
                change(&mut call.name);
            }
            PartKind::Result(result) => {
                result.name.as_mut().map(change);
            }
            _ => {}
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
