//! `auth.azure`: tokens of Microsoft Entra.

use crate::config::problem::Position;
use crate::config::settings::{AzureApp, AzureGrant, AzureSource, ManagedIdentity, Secret};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable};
use crate::config::values;

const DEFAULT_AUTHORITY: &str = "https://login.microsoftonline.com";
const DEFAULT_SCOPE: &str = "https://cognitiveservices.azure.com/.default";
const METADATA_HOST: &str = "http://169.254.169.254";

/// What is left out is taken from the variables that the SDKs read.
pub fn parse(reader: &mut ConfigReader, field: ConfigField) -> Option<AzureSource> {
    let mut table = reader.table("azure", field)?;
    let position = table.position;
    let tenant = text(reader, &mut table, "tenant", "AZURE_TENANT_ID");
    let client_id = text(reader, &mut table, "client_id", "AZURE_CLIENT_ID");
    let authority = text(reader, &mut table, "authority", "AZURE_AUTHORITY_HOST");
    let secret = table.take("client_secret");
    let file = table.take("federated_token_file");
    let is_managed = reader.optional(&mut table, "managed_identity", values::switch);
    let scope = reader.optional(&mut table, "scope", values::name);
    reader.finish(table);
    let is_managed = is_managed.unwrap_or(false);
    let given = [secret.is_some(), file.is_some(), is_managed];
    if given.iter().filter(|is_given| **is_given).count() > 1 {
        let message = "azure takes one of \"client_secret\", \"federated_token_file\" and \"managed_identity\"";
        reader.problems.add(position, message);
        return None;
    }
    let secret = match secret {
        Some(field) => Some(reader.hidden(field, values::label)?.value),
        None => None,
    };
    let file = match file {
        Some(field) => Some(reader.value(field, values::label)?.value),
        None => None,
    };
    // What the config names wins over what the environment has.
    let is_open = secret.is_none() && file.is_none() && !is_managed;
    let secret = secret.or_else(|| variable(reader, "AZURE_CLIENT_SECRET").filter(|_| is_open));
    let is_open = is_open && secret.is_none();
    let file = file.or_else(|| variable(reader, "AZURE_FEDERATED_TOKEN_FILE").filter(|_| is_open));
    let grant = match (secret, file) {
        (Some(secret), _) => AzureGrant::ClientSecret {
            app: app(reader, position, authority, tenant, client_id)?,
            secret: Secret::new(secret),
        },
        (None, Some(file)) => AzureGrant::FederatedToken {
            app: app(reader, position, authority, tenant, client_id)?,
            file: file.into(),
        },
        (None, None) => AzureGrant::ManagedIdentity {
            identity: managed_identity(reader),
            client_id,
        },
    };
    Some(AzureSource {
        scope: scope.unwrap_or_else(|| DEFAULT_SCOPE.to_owned()),
        grant,
    })
}

fn app(
    reader: &mut ConfigReader,
    position: Position,
    authority: Option<String>,
    tenant: Option<String>,
    client_id: Option<String>,
) -> Option<AzureApp> {
    for (name, variable, value) in [
        ("tenant", "AZURE_TENANT_ID", &tenant),
        ("client_id", "AZURE_CLIENT_ID", &client_id),
    ] {
        if value.is_none() {
            let message = format!("azure needs {name:?}: write it, or set {variable}");
            reader.problems.add(position, message);
        }
    }
    let authority = authority.unwrap_or_else(|| DEFAULT_AUTHORITY.to_owned());
    let authority = match authority.contains("://") {
        true => authority,
        false => format!("https://{authority}"),
    };
    Some(AzureApp {
        authority: authority.trim_end_matches('/').to_owned(),
        tenant: tenant?,
        client_id: client_id?,
    })
}

fn managed_identity(reader: &ConfigReader) -> ManagedIdentity {
    let endpoint = variable(reader, "IDENTITY_ENDPOINT");
    if let Some((endpoint, secret)) = endpoint.zip(variable(reader, "IDENTITY_HEADER")) {
        let secret = Secret::new(secret);
        return ManagedIdentity::AppService { endpoint, secret };
    }
    let host = variable(reader, "AZURE_POD_IDENTITY_AUTHORITY_HOST");
    let host = host.unwrap_or_else(|| METADATA_HOST.to_owned());
    ManagedIdentity::Metadata {
        host: host.trim_end_matches('/').to_owned(),
    }
}

/// A value of the config, or else of a variable.
fn text(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    name: &'static str,
    of_variable: &str,
) -> Option<String> {
    match table.take(name) {
        Some(field) => reader.value(field, values::name).map(|value| value.value),
        None => variable(reader, of_variable),
    }
}

fn variable(reader: &ConfigReader, name: &str) -> Option<String> {
    (reader.env)(name).filter(|value| !value.is_empty())
}
