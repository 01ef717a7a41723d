//! Identity providers: OpenID Connect by the authorization code, with PKCE, state and nonce.

mod flow;
mod id_token;
mod metadata;
mod signatures;

pub use flow::BrowserFlow;
pub use id_token::ProvenIdentity;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Request, StatusCode};
use serde_json::Value;
use tokio::sync::Mutex;
use url::{Url, form_urlencoded};

use crate::config::IdentityConfig;
use crate::credentials::TokenClient;
use id_token::{Expected, verify};
use metadata::{Claims, Metadata, ProviderKeys};

/// For how long what a provider says of itself is believed.
const METADATA_FOR: Duration = Duration::from_secs(3600);
/// Keys that are not known are asked for again, but not more often.
const KEYS_PAUSE: Duration = Duration::from_secs(30);

/// One identity provider.
pub struct IdentityProvider {
    pub settings: IdentityConfig,
    client: Arc<TokenClient>,
    known: Mutex<Option<Known>>,
}

/// What a provider has said of itself.
#[derive(Clone)]
struct Known {
    metadata: Arc<Metadata>,
    keys: Arc<ProviderKeys>,
    at: Instant,
}

/// What a provider sends the browser back with.
#[derive(Debug, Default, serde::Deserialize)]
pub struct ProviderAnswer {
    pub code: Option<String>,
    pub state: Option<String>,
    pub iss: Option<String>,
    pub error: Option<String>,
}

impl IdentityProvider {
    pub fn new(settings: IdentityConfig, client: Arc<TokenClient>) -> IdentityProvider {
        IdentityProvider {
            settings,
            client,
            known: Mutex::new(None),
        }
    }

    /// Where the browser goes to. With `is_fresh` the person has to sign in there again.
    pub async fn sign_in_url(
        &self,
        flow: &BrowserFlow,
        redirect: &str,
        is_fresh: bool,
    ) -> Result<String, String> {
        let known = self.known().await?;
        let mut url = Url::parse(&known.metadata.authorization_endpoint)
            .map_err(|_| "authorization_endpoint is no URL".to_owned())?;
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &self.settings.client_id)
                .append_pair("redirect_uri", redirect)
                .append_pair("scope", &self.settings.scopes.join(" "))
                .append_pair("state", &flow.state())
                .append_pair("nonce", &flow.nonce())
                .append_pair("code_challenge", &flow.challenge())
                .append_pair("code_challenge_method", "S256");
            if is_fresh {
                query
                    .append_pair("prompt", "login")
                    .append_pair("max_age", "0");
            }
        }
        Ok(url.into())
    }

    /// Who has signed in at the provider, by its answer. An error says why it cannot be believed.
    pub async fn redeem(
        &self,
        flow: &BrowserFlow,
        answer: &ProviderAnswer,
        redirect: &str,
    ) -> Result<ProvenIdentity, String> {
        if !flow.is_state(answer.state.as_deref().unwrap_or_default()) {
            return Err("the state is not that of this browser".to_owned());
        }
        let known = self.known().await?;
        match &answer.iss {
            Some(issuer) if *issuer != self.settings.issuer => {
                return Err(format!("the answer is of another issuer, {issuer:?}"));
            }
            None if known
                .metadata
                .authorization_response_iss_parameter_supported =>
            {
                return Err("the answer does not name its issuer".to_owned());
            }
            _ => {}
        }
        if let Some(error) = &answer.error {
            return Err(format!("the provider refuses: {error:?}"));
        }
        let code = answer.code.as_deref().ok_or("the answer has no code")?;
        let exchange = self.exchange(&known.metadata, flow, code, redirect)?;
        let tokens = self.fetch(exchange).await?;
        let id_token = tokens.get("id_token").and_then(Value::as_str);
        let id_token = id_token.ok_or("the response of token_endpoint has no id_token")?;
        let expected = Expected {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce: &flow.nonce(),
        };
        let keys = self.keys_for(known.clone(), id_token).await?;
        let mut claims = verify(id_token, &keys, &expected)?;
        let groups = self.settings.admins_group.as_ref();
        let groups = groups.map(|_| self.settings.groups_claim.as_str());
        let wanted = [Some("email"), groups];
        let mut wanted = wanted.into_iter().flatten();
        if wanted.any(|claim| !claims.contains_key(claim)) {
            self.add_user_info(&known.metadata, &tokens, &mut claims)
                .await?;
        }
        ProvenIdentity::of(claims, &self.settings)
    }

    /// The request that redeems the code for tokens.
    fn exchange(
        &self,
        metadata: &Metadata,
        flow: &BrowserFlow,
        code: &str,
        redirect: &str,
    ) -> Result<Request<Bytes>, String> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", redirect)
            .append_pair("code_verifier", &flow.verifier());
        let mut request = Request::post(&metadata.token_endpoint)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json");
        let id = &self.settings.client_id;
        match &self.settings.client_secret {
            Some(secret) if metadata.takes_basic() => {
                // RFC 6749 has both of them encoded like a form first.
                let encode = |text: &str| {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                let login = format!("{}:{}", encode(id), encode(secret.expose()));
                let login = format!("Basic {}", STANDARD.encode(login));
                request = request.header(AUTHORIZATION, login);
            }
            Some(secret) => {
                form.append_pair("client_id", id)
                    .append_pair("client_secret", secret.expose());
            }
            None => {
                form.append_pair("client_id", id);
            }
        }
        let request = request.body(Bytes::from(form.finish()));
        request.map_err(|error| error.to_string())
    }

    /// Adds what the provider tells only who asks with the access token.
    async fn add_user_info(
        &self,
        metadata: &Metadata,
        tokens: &Claims,
        claims: &mut Claims,
    ) -> Result<(), String> {
        let token = tokens.get("access_token").and_then(Value::as_str);
        let (Some(endpoint), Some(token)) = (&metadata.userinfo_endpoint, token) else {
            return Ok(());
        };
        let request = Request::get(endpoint)
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .header(ACCEPT, "application/json")
            .body(Bytes::new());
        let info = self
            .fetch(request.map_err(|error| error.to_string())?)
            .await?;
        if info.get("sub") != claims.get("sub") {
            return Err("userinfo_endpoint tells of another subject".to_owned());
        }
        for (name, value) in info {
            // What is signed comes first.
            claims.entry(name).or_insert(value);
        }
        Ok(())
    }

    async fn known(&self) -> Result<Known, String> {
        let mut known = self.known.lock().await;
        if let Some(known) = known
            .as_ref()
            .filter(|known| known.at.elapsed() < METADATA_FOR)
        {
            return Ok(known.clone());
        }
        let issuer = self.settings.issuer.trim_end_matches('/');
        let url = format!("{issuer}/.well-known/openid-configuration");
        let metadata = Metadata::parse(self.get(&url).await?, &self.settings.issuer)?;
        let keys = self.fetch_keys(&metadata).await?;
        let fetched = Known {
            metadata: Arc::new(metadata),
            keys: Arc::new(keys),
            at: Instant::now(),
        };
        *known = Some(fetched.clone());
        Ok(fetched)
    }

    /// The keys, asked for again where the one of a token is not among them: providers replace them.
    async fn keys_for(&self, known: Known, token: &str) -> Result<Arc<ProviderKeys>, String> {
        let is_recent = |at: Instant| at.elapsed() < KEYS_PAUSE;
        if known.keys.has_key_of(token) || known.keys.replaced.is_some_and(is_recent) {
            return Ok(known.keys);
        }
        let keys = self.fetch_keys(&known.metadata).await?;
        let keys = Arc::new(keys.replaced_now());
        let mut current = self.known.lock().await;
        *current = Some(Known {
            keys: keys.clone(),
            ..known
        });
        Ok(keys)
    }

    async fn fetch_keys(&self, metadata: &Metadata) -> Result<ProviderKeys, String> {
        Ok(ProviderKeys::parse(self.get(&metadata.jwks_uri).await?))
    }

    async fn get(&self, url: &str) -> Result<Claims, String> {
        let request = Request::get(url)
            .header(ACCEPT, "application/json")
            .body(Bytes::new());
        self.fetch(request.map_err(|error| error.to_string())?)
            .await
    }

    /// A JSON object. Redirects are not followed.
    async fn fetch(&self, request: Request<Bytes>) -> Result<Claims, String> {
        let url = request.uri().to_string();
        let response = self.client.send(request).await?;
        let body = response.body();
        let object: Option<Claims> = serde_json::from_slice(body).ok();
        if response.status() != StatusCode::OK {
            let reason = object.as_ref().and_then(|object| object.get("error"));
            let reason = reason.map(Value::to_string).unwrap_or_default();
            return Err(format!("{url} answers {} {reason}", response.status()));
        }
        object.ok_or_else(|| format!("{url} does not answer with a JSON object"))
    }
}
