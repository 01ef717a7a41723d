//! Upstreams on Azure and on Google Cloud: their requests, and the tokens that they are sent with.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, RecordedRequest, RecordingServer, Stderr, echoed_request, post,
    request,
};
use ring::rsa::KeyPair;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

/// A key for tests alone.
const TEST_KEY: &str = include_str!("clouds/test_key.pem");

const CLIENT_SECRET: &str = "client-secret-that-nobody-may-see";

/// A token endpoint that gives out `cloud-token-1`, `cloud-token-2`, …
fn token_server() -> RecordingServer {
    RecordingServer::start(|_, number| {
        let token = format!("cloud-token-{}", number + 1);
        let body = json!({"access_token": token, "expires_in": 3599, "token_type": "Bearer"});
        (
            200,
            "application/json\r\nmetadata-flavor: Google",
            body.to_string(),
        )
    })
}

/// The presets with their settings, the path that each is asked at, and where a stream is.
fn presets(mock: &Mock, credentials: &str) -> Vec<(&'static str, String, String, String)> {
    let base = format!("http://{}", mock.address);
    let entra = format!(
        "auth: {{azure: {{tenant: t-1, client_id: c-1, client_secret: {CLIENT_SECRET}, authority: 'AUTHORITY'}}}}"
    );
    let google =
        format!("project: p-1, location: eu, auth: {{google: {{credentials: '{credentials}'}}}}");
    let location = "/projects/p-1/locations/eu";
    let models = format!("/v1beta1{location}/publishers/google/models/m");
    let claude = format!("/v1{location}/publishers/anthropic/models/m");
    let open = format!("/v1{location}/endpoints/openapi/chat/completions");
    vec![
        (
            "azure",
            format!("base_url: '{base}/openai/v1', {entra}"),
            "/openai/v1/chat/completions".into(),
            String::new(),
        ),
        (
            "azure-classic",
            format!("base_url: '{base}', {entra}"),
            "/openai/deployments/m/chat/completions?api-version=2024-10-21".into(),
            String::new(),
        ),
        (
            "azure-anthropic",
            format!("base_url: '{base}/anthropic', {entra}"),
            "/anthropic/v1/messages".into(),
            String::new(),
        ),
        (
            "vertex",
            format!("base_url: '{base}', {google}"),
            format!("{models}:generateContent"),
            format!("{models}:streamGenerateContent?alt=sse"),
        ),
        (
            "vertex-anthropic",
            format!("base_url: '{base}', {google}"),
            format!("{claude}:rawPredict"),
            format!("{claude}:streamRawPredict"),
        ),
        (
            "vertex-openai",
            format!("base_url: '{base}', {google}"),
            open,
            String::new(),
        ),
    ]
}

#[tokio::test]
async fn gemini_is_asked_with_a_key_and_without_a_project() {
    let mock = Mock::start();
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n  \
         - {{provider: vertex-express, base_url: 'http://{}', auth: {{header: {{name: x-goog-api-key, value: express-key}}}}}}\n\
         models:\n  - {{id: express, upstreams: [{{name: vertex-express, model: m}}]}}\n",
        mock.address
    ));
    let model = "/v1beta1/publishers/google/models/m";
    for (client, _) in FORMATS {
        let (url, body) = request(client, "express", "mock:echo", false);
        let response = post(gateway.url(&url), body.to_string()).await;
        let echo = echoed_request(client, &response);
        assert_eq!(echo["path"], format!("{model}:generateContent"), "{client}");
        assert_eq!(echo["headers"]["x-goog-api-key"], "express-key", "{client}");
        assert_eq!(echo["headers"]["authorization"], Value::Null, "{client}");
        let (url, body) = request(client, "express", "mock:echo", true);
        let response = post(gateway.url(&url), body.to_string()).await;
        let text = text_of(response.text());
        let path = format!("{model}:streamGenerateContent?alt=sse");
        assert!(text.contains(&path), "{client}: {text}");
    }
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "one two"}]}]});
    let url = gateway.url("/v1beta/models/express:countTokens");
    let response = post(url, body.to_string()).await;
    assert_eq!(response.json()["totalTokens"], 2, "{}", response.text());
}

fn service_account(token_uri: &str) -> String {
    let file = json!({
        "type": "service_account", "project_id": "p-1", "private_key_id": "key-1",
        "private_key": TEST_KEY, "client_email": "gateway@p-1.example", "token_uri": token_uri,
    });
    file.to_string()
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

/// The text of all events of a stream of any format.
fn text_of(stream: &str) -> String {
    stream.replace("\\\"", "\"")
}

#[tokio::test]
async fn clients_of_every_format_reach_every_cloud() {
    let (mock, tokens) = (Mock::start(), token_server());
    let folder = tempfile::tempdir().expect("a folder");
    let account = service_account(&tokens.url("/token"));
    let account = written(folder.path(), "account.json", &account);
    let presets = presets(&mock, &account.display().to_string());
    let (mut upstreams, mut models) = (String::new(), String::new());
    for (name, settings, ..) in &presets {
        let settings = settings.replace("AUTHORITY", &tokens.url(""));
        upstreams += &format!("  - {{provider: {name}, {settings}}}\n");
        models += &format!("  - {{id: {name}, upstreams: [{{name: {name}, model: m}}]}}\n");
    }
    let stderr = Stderr::new();
    let gateway = Gateway::start_with(
        &format!(
            "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
             upstreams:\n{upstreams}models:\n{models}"
        ),
        |command| {
            command.env("RUST_LOG", "trace,h2=off,hyper=off");
            stderr.attach(command);
        },
    );
    for (name, _, path, stream_path) in &presets {
        for (client, _) in FORMATS {
            // Passed through where the formats are the same, else translated.
            let (url, body) = request(client, name, "mock:echo", false);
            let response = post(gateway.url(&url), body.to_string()).await;
            assert_eq!(
                response.status,
                200,
                "{name}, {client}: {}",
                response.text()
            );
            let echo = echoed_request(client, &response);
            let is_responses = *name == "azure" && client == "responses";
            let expected = match is_responses {
                true => "/openai/v1/responses",
                false => path,
            };
            assert_eq!(echo["path"], *expected, "{name}, {client}");
            let authorization = echo["headers"]["authorization"]
                .as_str()
                .unwrap_or_default();
            assert!(
                authorization.starts_with("Bearer cloud-token-"),
                "{name}: {authorization}"
            );
            assert!(!echo.to_string().contains(KEY), "{name}, {client}");

            let (url, body) = request(client, name, "mock:echo", true);
            let response = post(gateway.url(&url), body.to_string()).await;
            assert_eq!(
                response.status,
                200,
                "{name}, {client}: {}",
                response.text()
            );
            if !stream_path.is_empty() {
                let verb = stream_path.rsplit(':').next().expect("a verb");
                let text = text_of(response.text());
                assert!(text.contains(verb), "{name}, {client}: {text}");
            }

            let (url, body) = with_tool(client, name);
            let response = post(gateway.url(&url), body.to_string()).await;
            assert_eq!(
                response.status,
                200,
                "{name}, {client}: {}",
                response.text()
            );
            assert!(
                response.text().contains("weather"),
                "{name}: {}",
                response.text()
            );
        }
    }
    // All upstreams with the same source share a token.
    assert_eq!(tokens.requests().len(), 2);
    let log = stderr.text();
    assert!(log.contains("upstream_request_filter"), "the log is there");
    for secret in [CLIENT_SECRET, "cloud-token-", "PRIVATE KEY"] {
        assert!(!log.contains(secret), "the log has {secret}");
    }
}

/// A request with a tool that the mock calls.
fn with_tool(client: &str, model: &str) -> (String, Value) {
    let (path, mut body) = request(client, model, "mock:tool=weather", false);
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    body["tools"] = match client {
        "chat" => {
            json!([{"type": "function", "function": {"name": "weather", "parameters": schema}}])
        }
        "messages" => json!([{"name": "weather", "input_schema": schema}]),
        "responses" => {
            json!([{"type": "function", "name": "weather", "parameters": schema, "strict": false}])
        }
        _ => json!([{"functionDeclarations": [{"name": "weather", "parameters": schema}]}]),
    };
    (path, body)
}

#[tokio::test]
async fn tokens_are_counted_where_claude_is() {
    let (mock, tokens) = (Mock::start(), token_server());
    let account = service_account(&tokens.url("/token")).replace('\'', "''");
    let (base, authority) = (format!("http://{}", mock.address), tokens.url(""));
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n\
         - {{provider: vertex-anthropic, base_url: '{base}', project: p, location: global, auth: {{google: {{credentials: '{account}'}}}}}}\n\
         - {{provider: azure-anthropic, base_url: '{base}/anthropic', auth: {{azure: {{tenant: t, client_id: c, client_secret: {CLIENT_SECRET}, authority: '{authority}'}}}}}}\n\
         models:\n\
         - {{id: v, upstreams: [{{name: vertex-anthropic}}]}}\n\
         - {{id: a, upstreams: [{{name: azure-anthropic}}]}}\n"
    ));
    for model in ["v", "a"] {
        let body =
            json!({"model": model, "messages": [{"role": "user", "content": "one two three"}]});
        let response = post(gateway.url("/v1/messages/count_tokens"), body.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(
            response.json()["input_tokens"],
            3,
            "{model}: the mock counts words"
        );
    }
}

/// A gateway with one chat upstream, which records what it is sent.
fn gateway_with(
    upstream: &RecordingServer,
    auth: &str,
    environment: &[(&str, String)],
) -> (Gateway, Stderr) {
    let stderr = Stderr::new();
    let url = upstream.url("");
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: up, format: chat, base_url: '{url}', auth: {auth}}}]\n\
         models: [{{id: m, upstreams: [{{name: up}}], retries: {{attempts: 1}}}}]\n"
    );
    let gateway = Gateway::start_with(&config, |command| {
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        stderr.attach(command);
    });
    (gateway, stderr)
}

fn chat_upstream() -> RecordingServer {
    RecordingServer::start(|_, _| {
        let body = json!({
            "id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        });
        (200, "application/json", body.to_string())
    })
}

/// What the token endpoint was asked, once the upstream was sent the token.
async fn token_request(
    tokens: &RecordingServer,
    auth: &str,
    environment: &[(&str, String)],
) -> RecordedRequest {
    let upstream = chat_upstream();
    let (gateway, _stderr) = gateway_with(&upstream, auth, environment);
    let (path, body) = request("chat", "m", "hi", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 200, "{auth}: {}", response.text());
    let sent = upstream.requests().pop().expect("a request");
    let asked = tokens.requests();
    let expected = format!("Bearer cloud-token-{}", asked.len());
    assert_eq!(sent.header("authorization"), expected, "{auth}");
    asked.last().expect("a request").clone()
}

fn form(request: &RecordedRequest) -> Vec<(String, String)> {
    let pairs = url::form_urlencoded::parse(request.body.as_bytes());
    pairs
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

fn field<'f>(form: &'f [(String, String)], name: &str) -> &'f str {
    let mut found = form.iter().filter(|(of, _)| of == name);
    let value = found.next().map_or("", |(_, value)| value);
    assert!(found.next().is_none(), "{name} is there twice");
    value
}

#[tokio::test]
async fn entra_is_asked_with_a_secret_a_federated_token_or_as_a_managed_identity() {
    let tokens = token_server();
    let authority = tokens.url("");
    let scope = "https://cognitiveservices.azure.com/.default";
    let auth = format!(
        "{{azure: {{tenant: t-1, client_id: c-1, client_secret: {CLIENT_SECRET}, authority: '{authority}'}}}}"
    );
    let asked = token_request(&tokens, &auth, &[]).await;
    assert_eq!(asked.line, "POST /t-1/oauth2/v2.0/token");
    assert_eq!(
        asked.header("content-type"),
        "application/x-www-form-urlencoded"
    );
    let sent = form(&asked);
    for (name, value) in [
        ("grant_type", "client_credentials"),
        ("client_id", "c-1"),
        ("client_secret", CLIENT_SECRET),
        ("scope", scope),
    ] {
        assert_eq!(field(&sent, name), value);
    }

    let folder = tempfile::tempdir().expect("a folder");
    let file = written(folder.path(), "token", "workload-token\n");
    let environment = [
        ("AZURE_TENANT_ID", "t-2".to_owned()),
        ("AZURE_CLIENT_ID", "c-2".to_owned()),
        ("AZURE_FEDERATED_TOKEN_FILE", file.display().to_string()),
        ("AZURE_AUTHORITY_HOST", authority.clone()),
    ];
    let asked = token_request(
        &tokens,
        "{azure: {scope: 'https://ai.azure.com/.default'}}",
        &environment,
    )
    .await;
    assert_eq!(asked.line, "POST /t-2/oauth2/v2.0/token");
    let sent = form(&asked);
    assert_eq!(field(&sent, "client_assertion"), "workload-token");
    assert_eq!(
        field(&sent, "client_assertion_type"),
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    assert_eq!(field(&sent, "scope"), "https://ai.azure.com/.default");

    let host = [("AZURE_POD_IDENTITY_AUTHORITY_HOST", tokens.url(""))];
    let asked = token_request(
        &tokens,
        "{azure: {managed_identity: true, client_id: c-3}}",
        &host,
    )
    .await;
    assert_eq!(
        asked.line,
        "GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fcognitiveservices.azure.com&client_id=c-3"
    );
    assert_eq!(asked.header("metadata"), "true");

    let service = [
        ("IDENTITY_ENDPOINT", tokens.url("/msi/token")),
        ("IDENTITY_HEADER", "identity-secret".to_owned()),
    ];
    let asked = token_request(&tokens, "{azure: {}}", &service).await;
    assert_eq!(
        asked.line,
        "GET /msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fcognitiveservices.azure.com"
    );
    assert_eq!(asked.header("x-identity-header"), "identity-secret");
}

#[tokio::test]
async fn a_service_account_signs_its_claim() {
    let tokens = token_server();
    let folder = tempfile::tempdir().expect("a folder");
    let account = service_account(&tokens.url("/token"));
    let file = written(folder.path(), "account.json", &account);
    let environment = [("GOOGLE_APPLICATION_CREDENTIALS", file.display().to_string())];
    let asked = token_request(&tokens, "{google: {}}", &environment).await;
    assert_eq!(asked.line, "POST /token");
    let sent = form(&asked);
    assert_eq!(
        field(&sent, "grant_type"),
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    );
    let assertion = field(&sent, "assertion");
    let (signed, signature) = assertion.rsplit_once('.').expect("a signature");
    let pem: String = TEST_KEY
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    let key = KeyPair::from_pkcs8(&STANDARD.decode(pem).expect("base64")).expect("a key");
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public().as_ref());
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64");
    public
        .verify(signed.as_bytes(), &signature)
        .expect("the key's own signature");
    let mut parts = signed.split('.').map(|part| {
        let json = URL_SAFE_NO_PAD.decode(part).expect("base64");
        serde_json::from_slice::<Value>(&json).expect("JSON")
    });
    let header = parts.next().expect("a header");
    assert_eq!(
        header,
        json!({"alg": "RS256", "typ": "JWT", "kid": "key-1"})
    );
    let claims = parts.next().expect("claims");
    assert_eq!(claims["iss"], "gateway@p-1.example");
    assert_eq!(
        claims["scope"],
        "https://www.googleapis.com/auth/cloud-platform"
    );
    assert_eq!(claims["aud"], tokens.url("/token"));
    let (from, to) = (claims["iat"].as_u64(), claims["exp"].as_u64());
    assert_eq!(to.zip(from).map(|(to, from)| to - from), Some(3600));
}

#[tokio::test]
async fn google_tokens_come_from_metadata_users_and_other_clouds_too() {
    let tokens = token_server();
    let folder = tempfile::tempdir().expect("a folder");
    let host = [
        ("GCE_METADATA_HOST", tokens.address.to_string()),
        ("CLOUDSDK_CONFIG", folder.path().display().to_string()),
    ];
    let asked = token_request(&tokens, "{google: {}}", &host).await;
    assert_eq!(
        asked.line,
        "GET /computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fcloud-platform"
    );
    assert_eq!(asked.header("metadata-flavor"), "Google");

    let user = json!({
        "type": "authorized_user", "client_id": "id", "client_secret": "s", "refresh_token": "r",
        "token_uri": tokens.url("/user"),
    });
    written(
        folder.path(),
        "application_default_credentials.json",
        &user.to_string(),
    );
    let asked = token_request(&tokens, "{google: {}}", &host).await;
    assert_eq!(asked.line, "POST /user");
    let sent = form(&asked);
    assert_eq!(field(&sent, "grant_type"), "refresh_token");
    assert_eq!(field(&sent, "refresh_token"), "r");

    let subject = written(
        folder.path(),
        "subject.json",
        r#"{"id_token":"subject-token"}"#,
    );
    let external = json!({
        "type": "external_account", "audience": "//iam.example/pool",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": tokens.url("/sts"),
        "credential_source": {"file": subject, "format": {"type": "json", "subject_token_field_name": "id_token"}},
    });
    let file = written(folder.path(), "external.json", &external.to_string());
    let auth = format!(
        "{{google: {{credentials: '{}', scopes: [scope-a, scope-b]}}}}",
        file.display()
    );
    let asked = token_request(&tokens, &auth, &[]).await;
    assert_eq!(asked.line, "POST /sts");
    let sent = form(&asked);
    for (name, value) in [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ),
        ("audience", "//iam.example/pool"),
        ("scope", "scope-a scope-b"),
        (
            "requested_token_type",
            "urn:ietf:params:oauth:token-type:access_token",
        ),
        ("subject_token", "subject-token"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
    ] {
        assert_eq!(field(&sent, name), value);
    }
}

#[tokio::test]
async fn a_workload_acts_as_a_service_account() {
    let tokens = RecordingServer::start(|request, _| {
        let body = match request.line.as_str() {
            "GET /subject" => return (200, "text/plain", "subject-token".to_owned()),
            "POST /sts" => json!({"access_token": "own-token", "expires_in": 3599}),
            _ => json!({"accessToken": "acting-token", "expireTime": "2999-01-01T00:00:00Z"}),
        };
        (200, "application/json", body.to_string())
    });
    let external = json!({
        "type": "external_account", "audience": "a", "subject_token_type": "jwt", "token_url": tokens.url("/sts"),
        "service_account_impersonation_url": tokens.url("/act:generateAccessToken"),
        "credential_source": {"url": tokens.url("/subject"), "headers": {"x-platform": "here"}},
    });
    let auth = format!("{{google: {{credentials: '{external}', scopes: [scope-a]}}}}");
    let upstream = chat_upstream();
    let (gateway, _stderr) = gateway_with(&upstream, &auth, &[]);
    let (path, body) = request("chat", "m", "hi", false);
    assert_eq!(post(gateway.url(&path), body.to_string()).await.status, 200);
    let sent = upstream.requests().pop().expect("a request");
    assert_eq!(sent.header("authorization"), "Bearer acting-token");
    let asked = tokens.requests();
    assert_eq!(asked[0].header("x-platform"), "here");
    let last = asked.last().expect("a request");
    assert_eq!(last.header("authorization"), "Bearer own-token");
    assert_eq!(
        last.json(),
        json!({"scope": ["scope-a"], "lifetime": "3600s"})
    );
}

#[tokio::test]
async fn a_workload_on_aws_shows_google_a_signed_request() {
    let tokens = RecordingServer::start(|request, number| {
        let body = match request.line.as_str() {
            "PUT /latest/api/token" => return (200, "text/plain", "metadata-token".to_owned()),
            "GET /zone" => return (200, "text/plain", "eu-west-2b".to_owned()),
            "GET /latest/meta-data/iam/security-credentials/" => {
                return (200, "text/plain", "role".to_owned());
            }
            "GET /latest/meta-data/iam/security-credentials/role" => json!({
                "Code": "Success", "AccessKeyId": "ASIAINSTANCE", "SecretAccessKey": "instance-secret",
                "Token": "session", "Expiration": "2999-01-01T00:00:00Z",
            }),
            _ => json!({"access_token": format!("cloud-token-{}", number + 1), "expires_in": 3599}),
        };
        (200, "application/json", body.to_string())
    });
    let folder = tempfile::tempdir().expect("a folder");
    let external = json!({
        "type": "external_account", "audience": "//iam.example/pool", "token_url": tokens.url("/sts"),
        "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request",
        "credential_source": {
            "environment_id": "aws1", "region_url": tokens.url("/zone"),
            "url": tokens.url("/latest/meta-data/iam/security-credentials"),
            "regional_cred_verification_url": "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
        },
    });
    let auth = format!("{{google: {{credentials: '{external}'}}}}");
    let home = ("HOME", folder.path().display().to_string());
    let keys = [
        home.clone(),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "AKIAVARIABLE".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "variable-secret".to_owned()),
    ];
    for (variables, region, id, signed) in [
        (
            &[home][..],
            "eu-west-2",
            "ASIAINSTANCE",
            "host;x-amz-date;x-amz-security-token;",
        ),
        (&keys[..], "us-east-1", "AKIAVARIABLE", "host;x-amz-date;"),
    ] {
        let asked = token_request(&tokens, &auth, variables).await;
        assert_eq!(asked.line, "POST /sts");
        let sent = form(&asked);
        let subject = percent_encoding::percent_decode_str(field(&sent, "subject_token"));
        let subject = subject.decode_utf8().expect("a text");
        let subject: Value = serde_json::from_str(&subject).expect("JSON");
        assert_eq!(subject["method"], "POST");
        assert_eq!(
            subject["url"],
            format!(
                "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"
            )
        );
        let headers = subject["headers"].as_array().expect("headers");
        let header = |name: &str| {
            let found = headers.iter().find(|header| header["key"] == name);
            found
                .and_then(|header| header["value"].as_str())
                .unwrap_or_default()
        };
        assert_eq!(header("host"), format!("sts.{region}.amazonaws.com"));
        assert_eq!(header("x-goog-cloud-target-resource"), "//iam.example/pool");
        let authorization = header("authorization");
        assert!(
            authorization.contains(&format!("Credential={id}/")),
            "{authorization}"
        );
        assert!(
            authorization.contains(&format!("/{region}/sts/aws4_request")),
            "{authorization}"
        );
        let signed = format!("SignedHeaders={signed}x-goog-cloud-target-resource, ");
        assert!(authorization.contains(&signed), "{authorization}");
        assert!(!subject.to_string().contains("secret"), "{subject}");
    }
    let zone = tokens
        .requests()
        .into_iter()
        .find(|request| request.line == "GET /zone");
    let zone = zone.expect("the zone was asked for");
    assert_eq!(zone.header("x-aws-ec2-metadata-token"), "metadata-token");
}

#[tokio::test]
async fn a_refused_secret_is_told_in_the_log_without_it() {
    let tokens = RecordingServer::start(|request, _| {
        let description = format!("AADSTS7000215: wrong secret in {}", request.body);
        let body = json!({"error": "invalid_client", "error_description": description});
        (401, "application/json", body.to_string())
    });
    let upstream = chat_upstream();
    let authority = tokens.url("");
    let auth = format!(
        "{{azure: {{tenant: t, client_id: c, client_secret: {CLIENT_SECRET}, authority: '{authority}'}}}}"
    );
    let (gateway, stderr) = gateway_with(&upstream, &auth, &[]);
    let (path, body) = request("chat", "m", "hi", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 502, "{}", response.text());
    assert!(upstream.requests().is_empty());
    let log = stderr.text();
    assert!(log.contains("invalid_client: AADSTS7000215"), "{log}");
    assert!(!log.contains(CLIENT_SECRET), "{log}");
    assert!(!response.text().contains("AADSTS"), "{}", response.text());
}

#[tokio::test]
async fn errors_of_google_reach_clients_in_their_own_format() {
    let google = json!({"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}});
    for body in [google.to_string(), json!([google]).to_string()] {
        let upstream = RecordingServer::start(move |_, _| (429, "application/json", body.clone()));
        let url = upstream.url("");
        let gateway = Gateway::start(&format!(
            "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
             upstreams: [{{provider: vertex-anthropic, base_url: '{url}', project: p, location: eu, auth: {{bearer: some-token}}}}]\n\
             models: [{{id: m, upstreams: [{{name: vertex-anthropic}}], retries: {{attempts: 1}}}}]\n"
        ));
        for (client, _) in FORMATS {
            let (path, body) = request(client, "m", "hi", false);
            let response = post(gateway.url(&path), body.to_string()).await;
            assert_eq!(response.status, 429, "{client}");
            assert!(
                response.error(client).contains("Quota exceeded"),
                "{}",
                response.text()
            );
        }
        let (path, body) = request("messages", "m", "hi", false);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.json()["error"]["type"], "rate_limit_error");
    }
}

#[tokio::test]
async fn a_stream_of_azure_begins_with_its_content_filters() {
    let stream = concat!(
        r#"data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}"#,
        "\n\n",
        r#"data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hel"},"finish_reason":null,"content_filter_results":{}}]}"#,
        "\n\n",
        r#"data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"content_filter","content_filter_results":{"hate":{"filtered":true}}}]}"#,
        "\n\ndata: [DONE]\n\n",
    );
    let refused = json!({"error": {
        "code": "content_filter", "message": "The prompt was filtered", "param": "prompt", "type": null, "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }});
    let upstream =
        RecordingServer::start(move |request, _| match request.body.contains("refuse") {
            true => (400, "application/json", refused.to_string()),
            false => (200, "text/event-stream", stream.to_owned()),
        });
    let url = upstream.url("");
    let gateway = Gateway::start_with(
        &format!(
            "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
             upstreams: [{{provider: azure-classic, base_url: '{url}'}}]\n\
             models: [{{id: m, upstreams: [{{name: azure-classic, model: my gpt}}]}}]\n"
        ),
        |command| {
            command.env("AZURE_OPENAI_API_KEY", "azure-key");
        },
    );
    let ends = [
        ("chat", "\"finish_reason\":\"content_filter\""),
        ("messages", "\"stop_reason\":\"refusal\""),
        ("responses", "content_filter"),
        ("native", "\"finishReason\":\"SAFETY\""),
    ];
    for (client, end) in ends {
        let (path, body) = request(client, "m", "hi", true);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 200, "{client}: {}", response.text());
        let text = response.text().replace(": ", ":");
        assert!(
            text.contains("hel") && text.contains(end),
            "{client}: {text}"
        );
        let sent = upstream.requests().pop().expect("a request");
        assert_eq!(
            sent.line,
            "POST /openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"
        );
        assert_eq!(sent.header("api-key"), "azure-key");
        assert_eq!(sent.json()["model"], "my gpt");
        let (path, body) = request(client, "m", "refuse", false);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 400, "{client}: {}", response.text());
        assert!(
            response.text().contains("The prompt was filtered"),
            "{client}"
        );
    }
}
