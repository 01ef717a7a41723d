//! How tokens of Microsoft Entra are fetched.

use std::path::PathBuf;

use super::secret::Secret;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AzureSource {
    pub scope: String,
    pub grant: AzureGrant,
}

/// What proves who the gateway is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AzureGrant {
    ClientSecret {
        app: AzureApp,
        secret: Secret,
    },
    /// The token of a workload, in a file that is replaced before it expires.
    FederatedToken {
        app: AzureApp,
        file: PathBuf,
    },
    ManagedIdentity {
        identity: ManagedIdentity,
        /// Absent: the identity of the machine itself.
        client_id: Option<String>,
    },
}

/// An app that is registered with a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AzureApp {
    /// `https://login.microsoftonline.com`.
    pub authority: String,
    pub tenant: String,
    pub client_id: String,
}

impl AzureApp {
    pub fn token_url(&self) -> String {
        let AzureApp {
            authority, tenant, ..
        } = self;
        format!("{authority}/{tenant}/oauth2/v2.0/token")
    }
}

/// Who gives out the tokens of a managed identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ManagedIdentity {
    /// The metadata service of a virtual machine.
    Metadata { host: String },
    /// App Service and Container Apps.
    AppService { endpoint: String, secret: Secret },
}
