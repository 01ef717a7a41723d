//! Webhooks: signed posts to hosts on the public network, as Standard Webhooks describes them.

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{Request, header};
use rand::RngExt as _;
use sha2::Sha256;
use url::Url;

use super::alert_failure::AlertFailure;
use crate::credentials::TokenClient;
use crate::formats::{is_public, is_public_https};
use crate::runtime::Resolver;

/// What the secrets of webhooks begin with.
const SECRET: &str = "whsec_";
/// Their random bytes.
const SECRET_BYTES: usize = 32;

const MAX_URL: usize = 2048;

/// Sends webhooks.
pub struct WebhookClient {
    client: TokenClient,
    resolver: Resolver,
    /// Which URLs and addresses may be asked.
    rule: WebhookRule,
}

/// Judges where a webhook may go.
#[derive(Clone, Copy)]
pub struct WebhookRule {
    pub url: fn(&str) -> bool,
    pub address: fn(IpAddr) -> bool,
}

/// The public network only.
const PUBLIC: WebhookRule = WebhookRule {
    url: is_public_https,
    address: is_public,
};

impl Default for WebhookClient {
    fn default() -> WebhookClient {
        WebhookClient::with_rule(PUBLIC)
    }
}

impl WebhookClient {
    fn with_rule(rule: WebhookRule) -> WebhookClient {
        WebhookClient {
            client: TokenClient::default(),
            resolver: Resolver::default(),
            rule,
        }
    }

    /// For receivers of the tests, which listen on this machine without TLS.
    #[cfg(test)]
    pub fn to_anywhere() -> WebhookClient {
        WebhookClient::with_rule(WebhookRule {
            url: |_| true,
            address: |_| true,
        })
    }

    /// Whether a webhook may have this URL. Its host is judged again with each message.
    pub fn may_be_asked(&self, url: &str) -> bool {
        url.len() <= MAX_URL && (self.rule.url)(url)
    }

    /// Posts a message once. The address that was judged is the one that is asked; a redirect is not followed.
    pub async fn post(
        &self,
        url: &str,
        secret: &str,
        (id, body): (&str, &str),
    ) -> Result<(), AlertFailure> {
        let parsed = Url::parse(url).map_err(|_| AlertFailure::NoPublicAddress)?;
        let host = parsed.host_str().unwrap_or_default().to_owned();
        let address = self.address(url, &parsed).await.map_err(|reason| {
            log::warn!("webhook to {host}: {reason}");
            AlertFailure::NoPublicAddress
        })?;
        let request = request(&parsed, secret, (id, body)).map_err(|reason| {
            log::warn!("webhook to {host}: {reason}");
            AlertFailure::Unreachable
        })?;
        let status = self.client.send_to(address, request).await;
        let status = status.map_err(|reason| {
            log::warn!("webhook: {reason}");
            AlertFailure::Unreachable
        })?;
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(AlertFailure::Redirect),
            status => Err(AlertFailure::Status(status.as_u16())),
        }
    }

    /// The address of the host to be asked, if those that were found may be.
    async fn address(&self, url: &str, parsed: &Url) -> Result<SocketAddr, String> {
        if !self.may_be_asked(url) {
            return Err("its URL is not public".to_owned());
        }
        let host = parsed.host_str().unwrap_or_default();
        let host = host.trim_matches(['[', ']']);
        let port = parsed.port_or_known_default().ok_or("it has no port")?;
        let found = match host.parse() {
            Ok(literal) => vec![SocketAddr::new(literal, port)],
            Err(_) => self.resolver.resolve_host(host, port).await?,
        };
        match found.iter().all(|found| (self.rule.address)(found.ip())) {
            true => found.first().copied().ok_or("no address".to_owned()),
            false => Err("it is not on the public network".to_owned()),
        }
    }
}

fn request(url: &Url, secret: &str, (id, body): (&str, &str)) -> Result<Request<Bytes>, String> {
    let timestamp = jiff::Timestamp::now().as_second();
    let signature = signature(secret, id, timestamp, body).ok_or("its secret cannot be used")?;
    let mut url = url.clone();
    url.set_fragment(None);
    let request = Request::post(url.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", signature)
        .body(Bytes::copy_from_slice(body.as_bytes()));
    request.map_err(|error| error.to_string())
}

/// The signature of a message, at a time in seconds since 1970; `None`: the secret is none.
fn signature(secret: &str, id: &str, timestamp: i64, body: &str) -> Option<String> {
    let key = STANDARD.decode(secret.strip_prefix(SECRET)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    Some(format!("v1,{signature}"))
}

/// A new secret to sign with.
pub fn new_webhook_secret() -> String {
    let bytes: [u8; SECRET_BYTES] = rand::rng().random();
    format!("{SECRET}{}", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_signed_as_standard_webhooks_says() {
        // The example of the specification.
        let signed = signature(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signed.as_deref(), Some(expected));
        assert_eq!(signature("no secret", "", 0, ""), None);
        let secret = new_webhook_secret();
        assert_ne!(secret, new_webhook_secret());
        assert!(signature(&secret, "msg_1", 1, "{}").is_some());
    }

    #[tokio::test]
    async fn nothing_on_a_private_network_is_asked() {
        let client = WebhookClient::default();
        let secret = new_webhook_secret();
        for url in [
            "http://example.com/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://10.0.0.1/",
            "https://100.64.0.1/",
            "https://169.254.169.254/latest",
            "https://localhost/",
            "https://2130706433/",
            "https://user:password@example.com/",
            "no url",
        ] {
            assert!(!client.may_be_asked(url), "{url}");
            let refused = client.post(url, &secret, ("msg_1", "{}")).await;
            assert_eq!(refused, Err(AlertFailure::NoPublicAddress), "{url}");
        }
        assert!(client.may_be_asked("https://hooks.example.com/a/b?c=d"));
        let long = format!("https://hooks.example.com/{}", "a".repeat(MAX_URL));
        assert!(!client.may_be_asked(&long));
    }

    /// The name looks public, and what it resolves to is not.
    #[tokio::test]
    async fn the_address_of_a_name_is_judged_before_it_is_asked() {
        let client = WebhookClient::with_rule(WebhookRule {
            url: |_| true,
            address: is_public,
        });
        let refused = client
            .post(
                "https://localhost:9/",
                &new_webhook_secret(),
                ("msg_1", "{}"),
            )
            .await;
        assert_eq!(refused, Err(AlertFailure::NoPublicAddress));
    }
}
