//! The JSON in which token endpoints answer: a token and how long it is valid, or an error.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response};
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::new_credential::NewCredential;
use crate::model::truncated;

/// A token that seems to have expired before it arrived is used for so long: the clock is wrong, not the token.
const SHORTEST_LIFE: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
pub(super) struct TokenResponse {
    #[serde(alias = "accessToken")]
    access_token: Option<String>,
    /// Seconds, as a number or a text.
    expires_in: Option<Value>,
    /// Unix seconds, as a number or a text.
    expires_on: Option<Value>,
    refresh_in: Option<Value>,
}

impl TokenResponse {
    pub(super) fn decode(body: &[u8]) -> Result<TokenResponse, String> {
        // What the parser quotes may be a part of the token.
        serde_json::from_slice(body).map_err(|_| "the response is no JSON with a token".to_owned())
    }

    /// The token. `life`: how long it is valid where the response does not say so.
    pub(super) fn into_credential(self, life: Option<Duration>) -> Result<NewCredential, String> {
        self.into_credential_at(life, SystemTime::now())
    }

    fn into_credential_at(
        self,
        life: Option<Duration>,
        now: SystemTime,
    ) -> Result<NewCredential, String> {
        let token = self.access_token.as_deref();
        let token = token.ok_or_else(|| "the response has no access_token".to_owned())?;
        let stated = match (seconds(&self.expires_in), seconds(&self.expires_on)) {
            (Some(left), _) => Some(left),
            (None, Some(at)) => Some(left_until(at, now)),
            (None, None) => life,
        };
        let stated = stated.ok_or_else(|| "the response has no expires_in".to_owned())?;
        let life = if stated.is_zero() {
            SHORTEST_LIFE
        } else {
            stated
        };
        Ok(NewCredential {
            refresh_in: seconds(&self.refresh_in),
            ..NewCredential::bearer(token, life)?
        })
    }
}

/// How long it is until a point in time, in seconds since 1970.
pub(super) fn left_until(unix: Duration, now: SystemTime) -> Duration {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = unix.saturating_sub(now);
    match left.is_zero() {
        true => {
            log::warn!(
                "a credential had expired when it was fetched; is the clock of this machine right?"
            );
            SHORTEST_LIFE
        }
        false => left,
    }
}

fn seconds(value: &Option<Value>) -> Option<Duration> {
    let seconds = match value.as_ref()? {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // Longer than any token lives, and short enough to add to the time.
    Duration::try_from_secs_f64(seconds.clamp(0.0, 1e10)).ok()
}

/// What a token endpoint says of a request that it refuses; no other text of its body is shown.
pub(super) fn refusal(status: u16, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(|text| truncated(text).to_string());
    let error = &body["error"];
    let code = text(error).or_else(|| text(&error["status"]));
    let description = text(&body["error_description"]).or_else(|| text(&error["message"]));
    let mut message = format!("status {status}");
    for part in [code, description].into_iter().flatten() {
        message.push_str(": ");
        message.push_str(&part);
    }
    message
}

/// The token of a response.
pub(super) fn token(response: &Response<Bytes>) -> Result<NewCredential, String> {
    match response.status().as_u16() {
        200 => TokenResponse::decode(response.body())?.into_credential(None),
        status => Err(refusal(status, response.body())),
    }
}

/// A request with a form.
pub(super) fn form_request(url: &str, form: &[(&str, &str)]) -> Result<Request<Bytes>, String> {
    let form = Serializer::new(String::new()).extend_pairs(form).finish();
    let request = Request::builder()
        .method(Method::POST)
        .uri(url)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(ACCEPT, "application/json")
        .body(Bytes::from(form));
    // It would quote what is wrong.
    request.map_err(|_| "the URL of the token endpoint is not valid".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life_of(body: &str, now: u64) -> Result<Duration, String> {
        let now = UNIX_EPOCH + Duration::from_secs(now);
        let response = TokenResponse::decode(body.as_bytes())?;
        Ok(response.into_credential_at(None, now)?.life)
    }

    #[test]
    fn the_life_of_a_token_is_read_from_numbers_and_texts() {
        for (body, expected) in [
            (r#"{"access_token":"t","expires_in":3599}"#, 3599),
            (r#"{"access_token":"t","expires_in":"86399"}"#, 86399),
            (r#"{"access_token":"t","expires_on":"1100"}"#, 100),
            (
                r#"{"access_token":"t","expires_on":1100,"expires_in":"7"}"#,
                7,
            ),
            // The clock is ahead.
            (r#"{"access_token":"t","expires_on":"900"}"#, 60),
            (r#"{"access_token":"t","expires_in":0}"#, 60),
            (r#"{"access_token":"t","expires_in":-5}"#, 60),
            (r#"{"access_token":"t","expires_in":1e300}"#, 10_000_000_000),
        ] {
            assert_eq!(
                life_of(body, 1000),
                Ok(Duration::from_secs(expected)),
                "{body}"
            );
        }
    }

    #[test]
    fn a_response_without_a_token_is_refused_without_quoting_it() {
        for body in [
            r#"{"access_token":"","expires_in":3599}"#,
            r#"{"access_token":"a secret\n","expires_in":3599}"#,
            r#"{"token":"secret","expires_in":3599}"#,
            r#"{"access_token":"secret"}"#,
            r#"{"access_token":"secret""#,
            "secret",
            "[]",
        ] {
            let error = life_of(body, 1000).expect_err(body);
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_endpoint() {
        for (body, expected) in [
            (
                r#"{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret"}"#,
                "status 401: invalid_client: AADSTS7000215: Invalid client secret",
            ),
            (
                r#"{"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED"}}"#,
                "status 401: PERMISSION_DENIED: Permission denied",
            ),
            ("<html>secret</html>", "status 401"),
            (r#"{"token":"secret"}"#, "status 401"),
        ] {
            assert_eq!(refusal(401, body.as_bytes()), expected);
        }
    }
}
