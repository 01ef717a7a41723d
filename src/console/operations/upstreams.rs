//! The state of the upstreams, as this gateway knows it.

use std::time::Instant;

use crate::console::actor::ConsoleCall;
use crate::console::refusal::Refusal;
use crate::console::views::UpstreamView;

/// All upstreams by name, with what this gateway knows of their health.
pub async fn list_upstreams(call: &ConsoleCall) -> Result<Vec<UpstreamView>, Refusal> {
    call.check_admin()?;
    let Some(runtime) = &call.console.runtime else {
        return Ok(Vec::new());
    };
    let (snapshot, now) = (runtime.snapshot(), Instant::now());
    let upstreams = snapshot.upstreams.iter();
    let mut views: Vec<UpstreamView> = upstreams
        .map(|upstream| UpstreamView::new(upstream, &snapshot, now))
        .collect();
    views.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(views)
}
