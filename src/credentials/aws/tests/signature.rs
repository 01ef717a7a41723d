//! Signatures that botocore makes of the same requests: cases of AWS's own test suite, and requests to Bedrock.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct SignatureCase {
    name: String,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
    region: String,
    service: String,
    token: Option<String>,
    time: String,
    authorization: String,
}

impl SignatureCase {
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().expect("a name");
            headers.append(name, value.parse().expect("a value"));
        }
        headers
    }

    fn sign(&self, headers: &mut HeaderMap) {
        let body = self.body.as_bytes();
        let request = RequestToSign {
            method: &self.method,
            target: &self.target,
            // However it is cut.
            body_hash: body_hash(body.chunks(5)),
        };
        let credentials = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: self.token.clone().map(Into::into),
            expires_at: None,
        };
        let scope = SigningScope {
            region: self.region.clone(),
            service: self.service.clone(),
        };
        let (date, time) = self.time.split_once('T').expect("a date and a time");
        let text = format!(
            "{}-{}-{}T{}:{}:{}Z",
            &date[..4],
            &date[4..6],
            &date[6..],
            &time[..2],
            &time[2..4],
            &time[4..6]
        );
        let now = text.parse().expect("a time");
        sign(headers, &request, &credentials, &scope, now).expect("headers can hold it");
    }
}

fn cases() -> Vec<SignatureCase> {
    serde_json::from_str(include_str!("signatures.json")).expect("the cases")
}

#[test]
fn requests_are_signed_as_botocore_signs_them() {
    let cases = cases();
    assert_eq!(cases.len(), 26);
    for case in &cases {
        let mut headers = case.headers();
        case.sign(&mut headers);
        let name = &case.name;
        assert_eq!(headers[AUTHORIZATION], case.authorization, "{name}");
        assert_eq!(headers[X_AMZ_DATE], case.time, "{name}");
        assert!(headers[AUTHORIZATION].is_sensitive());
        let token = headers.get(X_AMZ_SECURITY_TOKEN);
        assert_eq!(
            token.map(|token| token.to_str().expect("text")),
            case.token.as_deref(),
            "{name}"
        );
    }
}

/// Headers of an earlier signature, and those that proxies change, have no part in it.
#[test]
fn a_request_can_be_signed_again() {
    for case in cases() {
        let mut headers = case.headers();
        for name in [
            "user-agent",
            "content-length",
            "x-amzn-trace-id",
            "accept-encoding",
        ] {
            headers.insert(name, HeaderValue::from_static("1"));
        }
        headers.insert(X_AMZ_SECURITY_TOKEN, HeaderValue::from_static("old"));
        for _ in 0..2 {
            case.sign(&mut headers);
            assert_eq!(headers[AUTHORIZATION], case.authorization, "{}", case.name);
        }
    }
}

#[test]
fn what_no_header_can_hold_is_refused() {
    let credentials = AwsCredentials {
        access_key_id: "AKID\n".to_owned(),
        secret_access_key: "secret".into(),
        session_token: None,
        expires_at: None,
    };
    let request = RequestToSign {
        method: "POST",
        target: "/",
        body_hash: body_hash([b""]),
    };
    let scope = SigningScope {
        region: "us-east-1".to_owned(),
        service: "bedrock".to_owned(),
    };
    let signed = sign(
        &mut HeaderMap::new(),
        &request,
        &credentials,
        &scope,
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(signed, None);
}
