//! Identity providers, and who a person is for them.

use serde::Serialize;

use super::Moment;
use crate::store::StoredIdentity;

/// An identity provider that people may sign in at.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ProviderView {
    pub name: String,
    pub label: String,
}

/// Who one is for an identity provider.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct IdentityView {
    pub id: String,
    /// What the provider is called.
    pub label: String,
    pub issuer: String,
    pub email: Option<String>,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub created: Moment,
}

impl IdentityView {
    pub fn new(label: String, identity: StoredIdentity) -> IdentityView {
        IdentityView {
            id: identity.id,
            label,
            issuer: identity.issuer,
            email: identity.email,
            created: Moment(identity.created),
        }
    }
}

/// Somebody who has signed in at a provider, and has no account yet.
#[derive(Debug, Clone)]
pub struct WelcomeView {
    pub email: Option<String>,
    pub display: String,
}
