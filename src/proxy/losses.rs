//! Reports what a translation has lost: of requests in headers, of responses in the log.

use http::HeaderName;

use super::context::RequestContext;
use crate::formats::HeaderFields;
use crate::model::{Action, Losses};

/// Longer lists are cut: they must fit into a header.
const LIST_LIMIT: usize = 4096;

const DROPPED: HeaderName = HeaderName::from_static("x-omniglot-dropped");
const ADJUSTED: HeaderName = HeaderName::from_static("x-omniglot-adjusted");

/// Adds the headers that name what the upstream's format could not express of the request.
pub(super) fn add_headers(ctx: &RequestContext, fields: &mut HeaderFields) {
    for (name, dropped) in [(DROPPED, true), (ADJUSTED, false)] {
        let of_kind = |action| (action == Action::Dropped) == dropped;
        let paths = paths(ctx, &ctx.attempt.losses, of_kind);
        if !paths.is_empty() {
            fields.insert_bytes(name, paths.as_bytes());
        }
    }
}

/// Logs what the client's format could not express of the response: the headers speak of the
/// request alone. A part that says something else now may explain what a client does next; one that
/// is missing is common.
pub(super) fn log_response(ctx: &mut RequestContext) {
    let Some(translator) = &mut ctx.response.translator else {
        return;
    };
    let losses = translator.take_losses();
    if losses.0.is_empty() {
        return;
    }
    let is_dropped = |action| action == Action::Dropped;
    let adjusted = losses.0.iter().any(|loss| !is_dropped(loss.action));
    let level = match adjusted {
        true => log::Level::Info,
        false => log::Level::Debug,
    };
    if log::log_enabled!(level) {
        log::log!(
            level,
            "{}: response of upstream {}: dropped [{}], adjusted [{}]",
            ctx.client.request_id(),
            ctx.route.upstream_name(),
            paths(ctx, &losses, is_dropped),
            paths(ctx, &losses, |action| !is_dropped(action)),
        );
    }
}

/// The client's paths of the losses of some kind, as a list.
pub(super) fn paths(
    ctx: &RequestContext,
    losses: &Losses,
    which: impl Fn(Action) -> bool,
) -> String {
    let codec = ctx.client.codec();
    let mut list = String::new();
    for loss in losses.0.iter().filter(|loss| which(loss.action)) {
        let path = codec.path_of(&loss.location);
        if list.len() + path.len() > LIST_LIMIT {
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        // Keys are the client's own words and may hold anything; a header may not.
        list.extend(path.chars().map(|letter| match letter {
            ' '..='~' => letter,
            _ => '?',
        }));
    }
    list
}
