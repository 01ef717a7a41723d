//! The chain of AWS credentials: which source is taken, in the order of AWS's own tools.
//!
//! The config's own keys, the environment, a profile with a role, a web identity, the shared files, a
//! `credential_process`, a container, and at last the instance. A profile or a web identity that the config names leaves
//! the environment out.

use std::net::IpAddr;

use jiff::Timestamp;
use url::Url;

use super::documents::parse_time;
use super::shared_files::{Profile, SharedFiles, split_words};
use crate::config::AwsSource;
use crate::runtime::AwsCredentials;

/// Where AWS credentials come from, and how.
#[derive(Debug)]
pub(super) enum AwsProvider {
    /// They are there.
    Static(AwsCredentials),
    /// STS gives them to whoever holds other ones.
    Role {
        source: Box<AwsProvider>,
        role: AssumedRole,
    },
    /// STS gives them for the token in a file.
    WebIdentity {
        token_file: String,
        role: AssumedRole,
    },
    /// A program prints them.
    Process(Vec<String>),
    /// The agent of a container has them.
    Container(ContainerEndpoint),
    /// The metadata service of the instance has them.
    Instance { endpoint: String },
}

/// What STS is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AssumedRole {
    pub(super) arn: String,
    pub(super) session_name: String,
    pub(super) external_id: Option<String>,
    pub(super) duration_seconds: Option<u32>,
}

/// The endpoint of a container's credentials, and what it is asked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerEndpoint {
    pub(super) url: String,
    /// Read for each request: the file is replaced before the token in it expires.
    pub(super) token_file: Option<String>,
    pub(super) token: Option<String>,
}

/// The session name of roles that have none.
const SESSION_NAME: &str = "omniglot";

/// The variable that names the metadata service of the instance.
pub(super) const INSTANCE_ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

const CONTAINER_HOST: &str = "http://169.254.170.2";
const INSTANCE_HOST: &str = "http://169.254.169.254";
const INSTANCE_HOST_IPV6: &str = "http://[fd00:ec2::254]";

/// The hosts of container agents, beside loopback addresses.
const CONTAINER_HOSTS: [&str; 4] = [
    "169.254.170.2",
    "169.254.170.23",
    "[fd00:ec2::23]",
    "localhost",
];

/// What the chain looks at beside the config.
pub(super) struct AwsEnvironment<'a> {
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(super) files: &'a SharedFiles,
}

impl AwsEnvironment<'_> {
    /// The value of a variable that is not empty.
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }
}

/// Finds the source of credentials. `Err`: there is none, or one is incomplete; the text says what to do.
pub(super) fn find_provider(
    config: &AwsSource,
    environment: &AwsEnvironment<'_>,
) -> Result<AwsProvider, String> {
    let role = config.role_arn.as_ref().map(|arn| AssumedRole {
        arn: arn.clone(),
        session_name: or_default(config.role_session_name.clone()),
        external_id: config.external_id.clone(),
        duration_seconds: None,
    });
    let (token_file, mut chain) = (&config.web_identity_token_file, Chain::new(environment));
    match (role, token_file) {
        (Some(role), Some(token_file)) => Ok(AwsProvider::WebIdentity {
            token_file: token_file.clone(),
            role,
        }),
        (Some(role), None) => Ok(AwsProvider::Role {
            source: Box::new(chain.base(config)?),
            role,
        }),
        (None, _) => chain.base(config),
    }
}

fn or_default(session_name: Option<String>) -> String {
    session_name.unwrap_or_else(|| SESSION_NAME.to_owned())
}

/// The search for a source.
struct Chain<'e> {
    environment: &'e AwsEnvironment<'e>,
    /// The profiles that lead to the one at hand.
    visited: Vec<String>,
}

impl<'e> Chain<'e> {
    fn new(environment: &'e AwsEnvironment<'e>) -> Chain<'e> {
        Chain {
            environment,
            visited: Vec::new(),
        }
    }

    /// The source without a role that the config sets.
    fn base(&mut self, config: &AwsSource) -> Result<AwsProvider, String> {
        if let (Some(id), Some(secret)) = (&config.access_key_id, &config.secret_access_key) {
            let token = config.session_token.as_ref();
            return Ok(AwsProvider::Static(AwsCredentials {
                access_key_id: id.clone(),
                secret_access_key: secret.expose().to_owned().into(),
                session_token: token.map(|token| token.expose().to_owned().into()),
                expires_at: None,
            }));
        }
        let is_chosen = config.profile.is_some();
        let named = config.profile.clone();
        let named = named.or_else(|| self.environment.get("AWS_DEFAULT_PROFILE"));
        let named = named.or_else(|| self.environment.get("AWS_PROFILE"));
        let profile = named.clone().unwrap_or_else(|| "default".to_owned());
        if named.is_some() && self.environment.files.profile(&profile).is_none() {
            return Err(no_profile(&profile));
        }
        if !is_chosen && let Some(found) = self.find_variables()? {
            return Ok(found);
        }
        if let Some(found) = self.find_role_of(&profile)? {
            return Ok(found);
        }
        if let Some(found) = self.find_profile(&profile, !is_chosen)? {
            return Ok(found);
        }
        if let Some(found) = self.find_container()? {
            return Ok(found);
        }
        self.find_instance().ok_or_else(|| {
            "no AWS credentials: set access_key_id and secret_access_key, a profile, or the variables of AWS".to_owned()
        })
    }

    fn find_variables(&self) -> Result<Option<AwsProvider>, String> {
        let Some(access_key_id) = self.environment.get("AWS_ACCESS_KEY_ID") else {
            return Ok(None);
        };
        let secret = self.environment.get("AWS_SECRET_ACCESS_KEY");
        let secret = secret.ok_or("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not")?;
        let token = self.environment.get("AWS_SECURITY_TOKEN");
        let token = token.or_else(|| self.environment.get("AWS_SESSION_TOKEN"));
        let expires_at = self.environment.get("AWS_CREDENTIAL_EXPIRATION");
        let expires_at: Option<Timestamp> = expires_at
            .map(|text| parse_time(&text))
            .transpose()
            .map_err(|_| "AWS_CREDENTIAL_EXPIRATION is no time")?;
        Ok(Some(AwsProvider::Static(AwsCredentials {
            access_key_id,
            secret_access_key: secret.into(),
            session_token: token.map(Into::into),
            expires_at,
        })))
    }

    /// The role of a profile, with the source that the profile names for it.
    fn find_role_of(&mut self, name: &str) -> Result<Option<AwsProvider>, String> {
        let profile = self.environment.files.profile(name).unwrap_or_default();
        let Some(arn) = role_of(&profile) else {
            return Ok(None);
        };
        if profile.contains_key("mfa_serial") {
            let message =
                format!("the AWS profile {name} asks for a code of a device: use another");
            return Err(message);
        }
        let role = AssumedRole {
            arn: arn.clone(),
            session_name: or_default(profile.get("role_session_name").cloned()),
            external_id: profile.get("external_id").cloned(),
            duration_seconds: profile
                .get("duration_seconds")
                .and_then(|text| text.parse().ok()),
        };
        if self.visited.is_empty() {
            self.visited.push(name.to_owned());
        }
        let source = match (
            profile.get("source_profile"),
            profile.get("credential_source"),
        ) {
            (Some(_), Some(_)) => Err(format!(
                "the AWS profile {name} has both source_profile and credential_source"
            )),
            (None, None) => Err(format!(
                "the AWS profile {name} has a role_arn, but no source_profile and no credential_source"
            )),
            (Some(source), None) => self.find_source_profile(name, source),
            (None, Some(source)) => self.find_named_source(name, source),
        };
        let source = Box::new(source?);
        Ok(Some(AwsProvider::Role { source, role }))
    }

    fn find_source_profile(&mut self, name: &str, source: &str) -> Result<AwsProvider, String> {
        let profile = self.environment.files.profile(source);
        let profile = profile.ok_or_else(|| no_profile(source))?;
        let is_static = ["aws_access_key_id", "aws_secret_access_key"]
            .iter()
            .any(|key| profile.contains_key(*key));
        let is_visited = self.visited.iter().any(|visited| visited == source);
        if is_visited && !(source == name && is_static) {
            return Err(format!(
                "the AWS profile {source} is its own source_profile"
            ));
        }
        self.visited.push(source.to_owned());
        let found = match is_static || role_of(&profile).is_none() {
            true => self.find_profile(source, false)?,
            false => self.find_role_of(source)?,
        };
        found.ok_or_else(|| format!("the AWS profile {source} has no credentials"))
    }

    fn find_named_source(&self, name: &str, source: &str) -> Result<AwsProvider, String> {
        let found = match source.to_ascii_lowercase().as_str() {
            "environment" => self.find_variables()?,
            "ecscontainer" => self.find_container()?,
            "ec2instancemetadata" => self.find_instance(),
            _ => {
                let message = format!("the AWS profile {name} has an unknown credential_source");
                return Err(message);
            }
        };
        found.ok_or_else(|| {
            format!("the AWS profile {name} has the credential_source {source}, which has none")
        })
    }

    /// What a profile itself has: a web identity, keys, or a command.
    fn find_profile(
        &self,
        name: &str,
        with_variables: bool,
    ) -> Result<Option<AwsProvider>, String> {
        let profile = self.environment.files.profile(name).unwrap_or_default();
        if let Some(found) = self.find_web_identity(&profile, with_variables)? {
            return Ok(Some(found));
        }
        let files = self.environment.files;
        if profile.contains_key("sso_start_url") || profile.contains_key("sso_session") {
            return Err(format!(
                "the AWS profile {name} signs in by SSO: use one with `credential_process = aws configure export-credentials --profile {name}`"
            ));
        }
        if let Some(found) = static_keys(name, files.in_credentials_file(name))? {
            return Ok(Some(found));
        }
        if let Some(command) = profile.get("credential_process") {
            let words = split_words(command).filter(|words| !words.is_empty());
            let words = words.ok_or_else(|| {
                format!("the credential_process of the AWS profile {name} is no command")
            })?;
            return Ok(Some(AwsProvider::Process(words)));
        }
        static_keys(name, files.in_config_file(name))
    }

    fn find_web_identity(
        &self,
        profile: &Profile,
        with_variables: bool,
    ) -> Result<Option<AwsProvider>, String> {
        let setting = |variable: &str, key: &str| {
            let variable = self.environment.get(variable).filter(|_| with_variables);
            variable.or_else(|| profile.get(key).cloned())
        };
        let token_file = setting("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
        let Some(token_file) = token_file else {
            return Ok(None);
        };
        let arn = setting("AWS_ROLE_ARN", "role_arn");
        let arn = arn.ok_or("a web identity of AWS is set, but no role (AWS_ROLE_ARN)")?;
        Ok(Some(AwsProvider::WebIdentity {
            token_file,
            role: AssumedRole {
                arn,
                session_name: or_default(setting("AWS_ROLE_SESSION_NAME", "role_session_name")),
                external_id: None,
                duration_seconds: None,
            },
        }))
    }

    fn find_container(&self) -> Result<Option<AwsProvider>, String> {
        let relative = self
            .environment
            .get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let full = self.environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        let url = match (relative, full) {
            (Some(relative), _) => format!("{CONTAINER_HOST}{relative}"),
            (None, Some(full)) => full,
            (None, None) => return Ok(None),
        };
        if !is_allowed_container(&url) {
            let message = "AWS_CONTAINER_CREDENTIALS_FULL_URI must have https, a loopback address, or the host of an agent";
            return Err(message.to_owned());
        }
        Ok(Some(AwsProvider::Container(ContainerEndpoint {
            url,
            token_file: self
                .environment
                .get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
            token: self.environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        })))
    }

    fn find_instance(&self) -> Option<AwsProvider> {
        let disabled = self.environment.get("AWS_EC2_METADATA_DISABLED");
        if disabled.is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return None;
        }
        let endpoint = self.environment.get(INSTANCE_ENDPOINT);
        let mode = self
            .environment
            .get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
        let is_ipv6 = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6"));
        let default = if is_ipv6 {
            INSTANCE_HOST_IPV6
        } else {
            INSTANCE_HOST
        };
        let endpoint = endpoint.unwrap_or_else(|| default.to_owned());
        Some(AwsProvider::Instance {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
        })
    }
}

/// The role of a profile that needs other credentials for it. With a web identity, it needs none.
fn role_of(profile: &Profile) -> Option<&String> {
    let role = profile.get("role_arn")?;
    (!profile.contains_key("web_identity_token_file")).then_some(role)
}

fn static_keys(name: &str, profile: Option<&Profile>) -> Result<Option<AwsProvider>, String> {
    let Some((profile, id)) =
        profile.and_then(|profile| Some((profile, profile.get("aws_access_key_id")?)))
    else {
        return Ok(None);
    };
    let secret = profile.get("aws_secret_access_key").ok_or_else(|| {
        format!("the AWS profile {name} has an aws_access_key_id, but no aws_secret_access_key")
    })?;
    let token = profile.get("aws_security_token");
    let token = token.or_else(|| profile.get("aws_session_token"));
    Ok(Some(AwsProvider::Static(AwsCredentials {
        access_key_id: id.clone(),
        secret_access_key: secret.clone().into(),
        session_token: token.map(|token| token.clone().into()),
        expires_at: None,
    })))
}

fn no_profile(name: &str) -> String {
    format!("there is no AWS profile {name} in the shared files")
}

/// Whether credentials may be asked for there: not of a host somewhere else, in clear.
fn is_allowed_container(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let Some(host) = url.host_str() else {
        return false;
    };
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    match url.scheme() {
        "https" => true,
        "http" => {
            CONTAINER_HOSTS.contains(&host) || address.is_ok_and(|address| address.is_loopback())
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "tests/chain.rs"]
mod tests;
