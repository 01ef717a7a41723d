//! Lines of the audit log.

use serde::Serialize;

use super::Moment;
use crate::store::AuditLine;

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AuditView {
    pub changes: Vec<AuditLineView>,
    /// The `after` of the page that follows; null: this is the last one.
    pub next: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AuditLineView {
    pub id: String,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub time: Moment,
    /// The username; empty: nobody was signed in.
    pub actor: String,
    /// `console`, `api` or `cli`.
    pub via: String,
    /// Such as `key.create`.
    pub action: String,
    /// The name of what was changed.
    pub target: String,
    pub change: String,
    /// The address of the client; empty: the command line.
    pub remote: String,
}

impl From<AuditLine> for AuditLineView {
    fn from(line: AuditLine) -> AuditLineView {
        AuditLineView {
            id: line.id,
            time: Moment(line.at),
            actor: line.actor,
            via: line.via,
            action: line.action,
            target: line.target,
            change: line.change,
            remote: line.remote,
        }
    }
}
