//! The paths of what a translation has lost, for headers, logs and usage records.

use std::collections::HashSet;

use super::RequestContext;
use crate::model::{Action, Losses};

/// Longer lists of losses are cut: they must fit into a header.
const LIST_LIMIT: usize = 4096;

/// As long as lists in usage records may be.
const SHORT_LIST_LIMIT: usize = 1024;

/// The client's paths of the losses of some kind, as a list.
pub(in crate::proxy) fn loss_paths(
    ctx: &RequestContext,
    losses: &Losses,
    which: impl Fn(Action) -> bool,
) -> String {
    list(ctx, losses, which, LIST_LIMIT)
}

/// The same for a usage record, of which there are many.
pub(in crate::proxy) fn short_loss_paths(
    ctx: &RequestContext,
    which: impl Fn(Action) -> bool,
) -> String {
    list(ctx, &ctx.attempt.losses, which, SHORT_LIST_LIMIT)
}

fn list(
    ctx: &RequestContext,
    losses: &Losses,
    which: impl Fn(Action) -> bool,
    limit: usize,
) -> String {
    let codec = ctx.client.codec();
    let (mut list, mut named) = (String::new(), HashSet::new());
    for loss in losses.0.iter().filter(|loss| which(loss.action)) {
        let path = codec.path_of(&loss.location);
        if named.contains(&path) {
            continue;
        }
        if list.len() + path.len() > limit {
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.reserve(path.len());
        // Keys are the client's own words and may hold anything; a header may not.
        list.extend(path.chars().map(|letter| match letter {
            ' '..='~' => letter,
            _ => '?',
        }));
        named.insert(path);
    }
    list
}
