//! Fetches AWS credentials from the source that the chain has found.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use tokio::fs;
use url::form_urlencoded;

use super::chain::{
    AssumedRole, AwsEnvironment, AwsProvider, ContainerEndpoint, INSTANCE_ENDPOINT, find_provider,
};
use super::documents::{decode_metadata, decode_process, decode_sts, decode_sts_error};
use super::shared_files::SharedFiles;
use super::signature::{RequestToSign, body_hash, sign};
use crate::config::AwsSource;
use crate::credentials::command::run;
use crate::credentials::new_credential::NewCredential;
use crate::credentials::token_client::TokenClient;
use crate::credentials::token_response::left_until;
use crate::runtime::{AwsCredentials, CredentialValue, SigningScope};

/// How long credentials are used that do not expire, and how often they are read again: files change.
const STATIC_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
const STATIC_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// How long a token for the metadata service is valid. It is used at once.
const METADATA_TOKEN_SECONDS: &str = "60";

/// How messages call the metadata service.
const INSTANCE: &str = "the instance";

const FORM: &str = "application/x-www-form-urlencoded";

/// Fetches credentials by the chain of AWS.
pub(in crate::credentials) async fn fetch(
    source: &AwsSource,
    client: &TokenClient,
) -> Result<NewCredential, String> {
    let credentials = fetch_by_chain(source, client, None).await?;
    let left = credentials.expires_at.map(|at| {
        let unix = Duration::try_from_secs_f64(at.as_second().max(0) as f64);
        left_until(unix.unwrap_or_default(), SystemTime::now())
    });
    Ok(NewCredential {
        life: left.unwrap_or(STATIC_LIFE),
        refresh_in: left.is_none().then_some(STATIC_INTERVAL),
        value: CredentialValue::Aws {
            credentials,
            scope: SigningScope {
                region: source.region.clone(),
                service: source.service.clone(),
            },
        },
    })
}

/// The credentials of the workload that this is, by the chain of AWS without a config. `instance`: where the metadata service
/// is, if no variable says so.
pub(in crate::credentials) async fn workload_credentials(
    client: &TokenClient,
    region: &str,
    instance: Option<String>,
) -> Result<AwsCredentials, String> {
    let source = AwsSource {
        region: region.to_owned(),
        ..AwsSource::default()
    };
    fetch_by_chain(&source, client, instance).await
}

async fn fetch_by_chain(
    source: &AwsSource,
    client: &TokenClient,
    instance: Option<String>,
) -> Result<AwsCredentials, String> {
    let variable = |name: &str| {
        let instance = instance.clone().filter(|_| name == INSTANCE_ENDPOINT);
        std::env::var(name).ok().or(instance)
    };
    let config = read_shared_file("AWS_CONFIG_FILE", "config").await?;
    let credentials = read_shared_file("AWS_SHARED_CREDENTIALS_FILE", "credentials").await?;
    let provider = {
        let files = SharedFiles::parse(&config, &credentials)?;
        let environment = AwsEnvironment {
            variable: &variable,
            files: &files,
        };
        find_provider(source, &environment)?
    };
    let fetcher = AwsFetcher {
        client,
        region: &source.region,
        sts: variable("AWS_ENDPOINT_URL_STS"),
    };
    fetcher.fetch(&provider).await
}

/// The text of a shared file, or nothing where there is none.
async fn read_shared_file(variable: &str, name: &str) -> Result<String, String> {
    let named = std::env::var(variable).ok().filter(|path| !path.is_empty());
    let home = std::env::var("HOME").unwrap_or_default();
    let path = match named {
        Some(path) => match path.strip_prefix("~/") {
            Some(rest) => format!("{home}/{rest}"),
            None => path,
        },
        None if home.is_empty() => return Ok(String::new()),
        None => format!("{home}/.aws/{name}"),
    };
    match fs::read(&path).await {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| format!("{path} is no text")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{path} cannot be read: {error}")),
    }
}

/// A file with a token in it, which is replaced before the token expires.
async fn read_token(path: &str) -> Result<String, String> {
    let text = fs::read_to_string(path).await;
    let text = text.map_err(|error| format!("{path} cannot be read: {error}"))?;
    Ok(text.trim().to_owned())
}

/// Asks the sources of credentials.
struct AwsFetcher<'f> {
    client: &'f TokenClient,
    region: &'f str,
    /// The address of STS, where it is not that of the region.
    sts: Option<String>,
}

impl AwsFetcher<'_> {
    async fn fetch(&self, provider: &AwsProvider) -> Result<AwsCredentials, String> {
        match provider {
            AwsProvider::Static(credentials) => Ok(credentials.clone()),
            AwsProvider::Role { source, role } => {
                // A role may be taken with another one.
                let source = Box::pin(self.fetch(source)).await?;
                self.assume_role(role, &source).await
            }
            AwsProvider::WebIdentity { token_file, role } => {
                let token = read_token(token_file).await?;
                let form = role.form("AssumeRoleWithWebIdentity", Some(&token));
                self.ask_sts(self.sts_request(form)?).await
            }
            AwsProvider::Process(words) => {
                let (program, arguments) = words.split_first().ok_or("no command")?;
                let output = run(program, arguments).await?;
                decode_process(&output).map_err(|reason| format!("{program}: {reason}"))
            }
            AwsProvider::Container(endpoint) => self.ask_container(endpoint).await,
            AwsProvider::Instance { endpoint } => self.ask_instance(endpoint).await,
        }
    }

    async fn assume_role(
        &self,
        role: &AssumedRole,
        source: &AwsCredentials,
    ) -> Result<AwsCredentials, String> {
        let mut request = self.sts_request(role.form("AssumeRole", None))?;
        let authority = request
            .uri()
            .authority()
            .map(|authority| authority.as_str());
        let host = HeaderValue::from_str(authority.unwrap_or_default());
        let host = host.map_err(|error| error.to_string())?;
        let target = request.uri().path_and_query();
        let target = target.map_or("/", |target| target.as_str()).to_owned();
        let signed = RequestToSign {
            method: "POST",
            target: &target,
            body_hash: body_hash([&request.body()[..]]),
        };
        let scope = SigningScope {
            region: self.region.to_owned(),
            service: "sts".to_owned(),
        };
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        let signed = sign(headers, &signed, source, &scope, Timestamp::now());
        signed.ok_or("no header can hold the credentials")?;
        self.ask_sts(request).await
    }

    fn sts_request(&self, form: String) -> Result<Request<Bytes>, String> {
        let regional = || format!("https://sts.{}.{}/", self.region, domain(self.region));
        let address = self.sts.clone().unwrap_or_else(regional);
        let request = Request::builder()
            .method(Method::POST)
            .uri(address)
            .header(CONTENT_TYPE, FORM)
            .body(Bytes::from(form));
        request.map_err(|error| format!("the address of STS is wrong: {error}"))
    }

    async fn ask_sts(&self, request: Request<Bytes>) -> Result<AwsCredentials, String> {
        let response = self.client.send(request).await?;
        let body = String::from_utf8_lossy(response.body());
        if response.status() != StatusCode::OK {
            let reason = decode_sts_error(&body).unwrap_or_default();
            let status = response.status().as_u16();
            return Err(format!("STS answered with status {status}: {reason}"));
        }
        decode_sts(&body).map_err(|reason| format!("STS: {reason}"))
    }

    async fn ask_container(&self, endpoint: &ContainerEndpoint) -> Result<AwsCredentials, String> {
        let token = match &endpoint.token_file {
            Some(path) => Some(read_token(path).await?),
            None => endpoint.token.clone(),
        };
        let mut request = Request::get(&endpoint.url).header(ACCEPT, "application/json");
        if let Some(token) = token {
            let mut token = HeaderValue::try_from(token)
                .map_err(|_| "no header can hold the token of the container".to_owned())?;
            token.set_sensitive(true);
            request = request.header(AUTHORIZATION, token);
        }
        let response = ask(self.client, "the container", request).await?;
        decode_metadata(response.body()).map_err(|reason| format!("the container: {reason}"))
    }

    /// The second version of the metadata service: a token first, which no request from elsewhere can have.
    async fn ask_instance(&self, endpoint: &str) -> Result<AwsCredentials, String> {
        let (name, token) = metadata_token(self.client, endpoint)
            .await
            .map_err(|reason| {
                format!(
                    "{reason} (no other source of AWS credentials was found before the instance)"
                )
            })?;
        let roles = format!("{endpoint}/latest/meta-data/iam/security-credentials/");
        let asking = |uri: &str| Request::get(uri).header(name, &token);
        let listed = ask(self.client, INSTANCE, asking(&roles)).await?;
        let listed = String::from_utf8_lossy(listed.body());
        let role = listed.lines().next().unwrap_or_default().trim();
        if role.is_empty() {
            return Err(format!("{INSTANCE} has no role"));
        }
        let found = ask(self.client, INSTANCE, asking(&format!("{roles}{role}"))).await?;
        decode_metadata(found.body()).map_err(|reason| format!("{INSTANCE}: {reason}"))
    }
}

/// A token for the second version of the metadata service, with the name of its header.
pub(in crate::credentials) async fn metadata_token(
    client: &TokenClient,
    endpoint: &str,
) -> Result<(&'static str, HeaderValue), String> {
    let asked = Request::put(format!("{endpoint}/latest/api/token")).header(
        "x-aws-ec2-metadata-token-ttl-seconds",
        METADATA_TOKEN_SECONDS,
    );
    let token = ask(client, INSTANCE, asked).await?;
    let token = HeaderValue::from_bytes(token.body().trim_ascii());
    let token = token.map_err(|_| format!("{INSTANCE} gave a token that no header can hold"))?;
    Ok(("x-aws-ec2-metadata-token", token))
}

/// Sends a request to a service on the link, which must answer with success.
async fn ask(
    client: &TokenClient,
    who: &str,
    request: http::request::Builder,
) -> Result<Response<Bytes>, String> {
    let request = request.body(Bytes::new());
    let request = request.map_err(|error| format!("the address of {who} is wrong: {error}"))?;
    let response = client.send(request).await?;
    match response.status() {
        StatusCode::OK => Ok(response),
        status => Err(format!("{who} answered with status {}", status.as_u16())),
    }
}

impl AssumedRole {
    /// The form that STS is sent.
    fn form(&self, action: &str, web_identity: Option<&str>) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("Action", action);
        form.append_pair("Version", "2011-06-15");
        form.append_pair("RoleArn", &self.arn);
        form.append_pair("RoleSessionName", &self.session_name);
        if let Some(token) = web_identity {
            form.append_pair("WebIdentityToken", token);
        }
        if let Some(id) = &self.external_id {
            form.append_pair("ExternalId", id);
        }
        if let Some(seconds) = self.duration_seconds {
            form.append_pair("DurationSeconds", &seconds.to_string());
        }
        form.finish()
    }
}

/// The domain of the partition that a region is in.
fn domain(region: &str) -> &'static str {
    match region {
        china if china.starts_with("cn-") => "amazonaws.com.cn",
        europe if europe.starts_with("eusc-") => "amazonaws.eu",
        _ => "amazonaws.com",
    }
}
