//! What the sources of AWS credentials answer: JSON of containers, instances and commands, XML of STS.

use jiff::Timestamp;
use serde::Deserialize;

use crate::runtime::AwsCredentials;

/// Credentials in JSON. Containers and instances call the token `Token`, commands call it `SessionToken`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CredentialsDocument {
    version: Option<u64>,
    code: Option<String>,
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    #[serde(alias = "SessionToken")]
    token: Option<String>,
    expiration: Option<String>,
}

/// Decodes what a container or an instance answers.
pub(super) fn decode_metadata(body: &[u8]) -> Result<AwsCredentials, String> {
    let document = decode(body)?;
    if let Some(code) = document.code.as_deref().filter(|code| *code != "Success") {
        let code: String = code.chars().take(100).collect();
        return Err(format!("it has no credentials: {code}"));
    }
    document.into_credentials()
}

/// Decodes what a `credential_process` prints.
pub(super) fn decode_process(output: &[u8]) -> Result<AwsCredentials, String> {
    let document = decode(output)?;
    match document.version {
        Some(1) => document.into_credentials(),
        Some(other) => Err(format!("its output has `Version` {other}, not 1")),
        None => Err("its output has no `Version`".to_owned()),
    }
}

/// The text itself is a secret: an error tells only where it is wrong.
fn decode(body: &[u8]) -> Result<CredentialsDocument, String> {
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("its answer is no JSON with credentials (line {line}, column {column})")
    })
}

impl CredentialsDocument {
    fn into_credentials(self) -> Result<AwsCredentials, String> {
        let required = |value: Option<String>, name: &str| {
            let value = value.filter(|value| !value.is_empty());
            value.ok_or_else(|| format!("its answer has no `{name}`"))
        };
        Ok(AwsCredentials {
            access_key_id: required(self.access_key_id, "AccessKeyId")?,
            secret_access_key: required(self.secret_access_key, "SecretAccessKey")?.into(),
            session_token: self.token.filter(|token| !token.is_empty()).map(Into::into),
            expires_at: self.expiration.map(|text| parse_time(&text)).transpose()?,
        })
    }
}

/// Reads a time as AWS writes it.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, String> {
    let time = text.trim().parse();
    time.map_err(|_| "its answer has an `Expiration` that is no time".to_owned())
}

/// Decodes what STS answers to `AssumeRole` and `AssumeRoleWithWebIdentity`.
pub(super) fn decode_sts(xml: &str) -> Result<AwsCredentials, String> {
    let credentials = element(xml, "Credentials").ok_or("its answer has no `Credentials`")?;
    let required = |name: &str| {
        let text = element(credentials, name).map(unescape);
        let text = text.filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("its answer has no `{name}`"))
    };
    Ok(AwsCredentials {
        access_key_id: required("AccessKeyId")?,
        secret_access_key: required("SecretAccessKey")?.into(),
        session_token: Some(required("SessionToken")?.into()),
        expires_at: Some(parse_time(&required("Expiration")?)?),
    })
}

/// The code and the message of an error of STS.
pub(super) fn decode_sts_error(xml: &str) -> Option<String> {
    let error = element(xml, "Error")?;
    let code = unescape(element(error, "Code")?);
    let message = element(error, "Message").map(unescape).unwrap_or_default();
    let text = format!("{code}: {message}");
    Some(text.chars().take(300).collect())
}

/// The content of the first element of a name. The answers of STS have no attributes, comments or elements of the same
/// name within each other.
fn element<'x>(xml: &'x str, name: &str) -> Option<&'x str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    Some(content)
}

fn unescape(text: &str) -> String {
    let text = text.trim();
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        // Last, since it makes the others.
        ("&amp;", "&"),
    ];
    let mut text = text.to_owned();
    for (entity, letter) in entities {
        text = text.replace(entity, letter);
    }
    text
}

#[cfg(test)]
#[path = "tests/documents.rs"]
mod tests;
