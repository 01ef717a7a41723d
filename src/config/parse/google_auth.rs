//! `auth.google`: access tokens of Google Cloud.

use std::path::PathBuf;

use crate::config::settings::{GoogleCredentials, GoogleSource, Secret};
use crate::config::table::{ConfigField, ConfigReader};
use crate::config::values;

const DEFAULT_SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const METADATA_HOST: &str = "metadata.google.internal";
const USER_FILE: &str = "application_default_credentials.json";

/// What is left out is found as the SDKs find it.
pub fn parse(reader: &mut ConfigReader, field: ConfigField) -> Option<GoogleSource> {
    let mut table = reader.table("google", field)?;
    let credentials = table.take("credentials");
    let scopes = reader.items(&mut table, "scopes", values::name);
    reader.finish(table);
    // The content of a file is a secret; it may be given by a variable.
    let credentials = match credentials {
        Some(field) => named(reader.hidden(field, file_or_json)?.value),
        None => default(reader),
    };
    let mut scopes: Vec<String> = scopes.into_iter().map(|scope| scope.value).collect();
    if scopes.is_empty() {
        scopes.push(DEFAULT_SCOPE.to_owned());
    }
    Some(GoogleSource {
        credentials,
        scopes,
    })
}

/// The credentials that the environment has.
pub fn default_source(reader: &ConfigReader) -> GoogleSource {
    GoogleSource {
        credentials: default(reader),
        scopes: vec![DEFAULT_SCOPE.to_owned()],
    }
}

fn file_or_json(text: &str) -> values::Parsed<String> {
    let is_json = text.trim_start().starts_with('{');
    match is_json && serde_json::from_str::<serde_json::Value>(text).is_err() {
        false if !text.is_empty() => Ok(text.to_owned()),
        _ => {
            Err("the path of a file of credentials, or its JSON (it is not shown here)".to_owned())
        }
    }
}

fn named(text: String) -> GoogleCredentials {
    match text.trim_start().starts_with('{') {
        true => GoogleCredentials::Json(Secret::new(text)),
        false => GoogleCredentials::File(text.into()),
    }
}

fn default(reader: &ConfigReader) -> GoogleCredentials {
    let variable = |name: &str| (reader.env)(name).filter(|value| !value.is_empty());
    if let Some(file) = variable("GOOGLE_APPLICATION_CREDENTIALS") {
        return GoogleCredentials::File(file.into());
    }
    let folder = variable("CLOUDSDK_CONFIG").map(PathBuf::from);
    let in_home = || Some(PathBuf::from(variable("HOME")?).join(".config/gcloud"));
    GoogleCredentials::Default {
        file: folder.or_else(in_home).map(|folder| folder.join(USER_FILE)),
        metadata_host: variable("GCE_METADATA_HOST").unwrap_or_else(|| METADATA_HOST.to_owned()),
    }
}
