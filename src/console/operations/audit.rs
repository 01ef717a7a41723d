//! The audit log: who has changed what, which nobody changes.

use serde::Deserialize;

use crate::console::actor::ConsoleCall;
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{AuditLineView, AuditView};
use crate::store::AuditFilter;

/// Lines on a page.
const PAGE: usize = 50;

/// No id is longer.
const MAX_CURSOR: usize = 64;

/// Which changes are asked for. What is empty is absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(default)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct AuditInput {
    /// The username of who did it.
    pub actor: String,
    /// Such as `key.create`, or `key` for all of its kind.
    pub action: String,
    /// The name of what was changed.
    pub target: String,
    /// The `next` of the page before.
    pub after: String,
}

/// Some changes, the newest first.
pub async fn list_changes(call: &ConsoleCall, input: &AuditInput) -> Result<AuditView, Refusal> {
    call.check_admin()?;
    if input.after.len() > MAX_CURSOR {
        return Err(InputProblem::Cursor.into());
    }
    let filter = AuditFilter {
        actor: input.actor.trim().to_owned(),
        action: input.action.trim().to_owned(),
        target: input.target.trim().to_owned(),
        before: input.after.clone(),
    };
    let mut lines = call.console.store.audit_lines(&filter, PAGE + 1).await?;
    let has_more = lines.len() > PAGE;
    lines.truncate(PAGE);
    let last = lines.last().filter(|_| has_more);
    Ok(AuditView {
        next: last.map(|last| last.id.clone()),
        changes: lines.into_iter().map(AuditLineView::from).collect(),
    })
}
