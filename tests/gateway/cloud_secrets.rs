//! No credential of a cloud is shown: not in a log of any level, not in an error, not in a metric.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omniglot_test_support::{
    Gateway, KEY, RecordedRequest, RecordingServer, Stderr, post, request,
};
use serde_json::{Value, json};

/// A key for tests alone.
const TEST_KEY: &str = include_str!("clouds/test_key.pem");

/// What every secret of this test begins with.
const SECRET: &str = "hush-";

/// Whatever a cloud gives out at its token endpoints and metadata services.
fn give_out(request: &RecordedRequest) -> String {
    let keys = |of: &str| {
        json!({
            "Code": "Success", "AccessKeyId": format!("ASIA{of}"), "SecretAccessKey": format!("{SECRET}secret-{of}"),
            "Token": format!("{SECRET}session-{of}"), "Expiration": "2999-01-01T00:00:00Z",
        })
        .to_string()
    };
    let roles = "GET /latest/meta-data/iam/security-credentials/";
    match request.line.as_str() {
        "PUT /latest/api/token" => format!("{SECRET}metadata"),
        line if line == roles => "the-role".to_owned(),
        line if line.starts_with(roles) => keys("instance"),
        "GET /container" => keys("container"),
        "GET /subject" => format!("{SECRET}subject-of-a-url"),
        _ if request.body.contains("Action=AssumeRole") => format!(
            "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIASTS</AccessKeyId>\
             <SecretAccessKey>{SECRET}secret-of-sts</SecretAccessKey><SessionToken>{SECRET}session-of-sts</SessionToken>\
             <Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
        ),
        "POST /act:generateAccessToken" => {
            let token = format!("{SECRET}acting-token");
            json!({"accessToken": token, "expireTime": "2999-01-01T00:00:00Z"}).to_string()
        }
        _ => json!({"access_token": format!("{SECRET}access-token"), "expires_in": 3599, "token_type": "Bearer"})
        .to_string(),
    }
}

/// All that a server was told, as one that is not careful repeats it.
fn repeated(request: &RecordedRequest) -> String {
    let headers: Vec<String> = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    format!("{} {} {}", request.line, headers.join(" "), request.body)
}

/// A server of credentials. `refuses`: it gives out none, and repeats what it was told in its errors.
fn token_server(refuses: bool) -> RecordingServer {
    RecordingServer::start(move |request, _| match refuses {
        true => {
            let told = repeated(request);
            let body =
                json!({"error": "invalid_client", "error_description": told, "message": told});
            (401, "application/json", body.to_string())
        }
        false => {
            let kind = "application/json\r\nmetadata-flavor: Google";
            (200, kind, give_out(request))
        }
    })
}

/// An upstream that answers, or repeats what it was told in an error, as the prompt says.
fn upstream() -> RecordingServer {
    RecordingServer::start(|request, _| {
        let told = repeated(request);
        let error = |status| {
            let body =
                json!({"error": {"message": told, "type": "odd", "code": told, "param": null}});
            (status, "application/json", body.to_string())
        };
        match &request.body {
            body if body.contains("say-401") => error(401),
            body if body.contains("say-403") => error(403),
            body if body.contains("say-400") => error(400),
            body if body.contains("say-500") => error(500),
            body if body.contains("say-200") => (200, "application/json", told.clone()),
            _ => {
                let body = json!({
                    "id": "1", "object": "chat.completion", "created": 1, "model": "m",
                    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                });
                (200, "application/json", body.to_string())
            }
        }
    })
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// Every kind of credential that an upstream can have, in the words of the config.
fn kinds(folder: &Path, tokens: &RecordingServer) -> Vec<(&'static str, String)> {
    let url = |path: &str| tokens.url(path);
    let app = format!("tenant: t, client_id: c, authority: '{}'", url(""));
    let federated = file(folder, "federated", &format!("{SECRET}federated-token"));
    let identity = file(folder, "identity", &format!("{SECRET}web-identity-token"));
    let subject = file(folder, "subject", &format!("{SECRET}subject-of-a-file"));
    let external = json!({
        "type": "external_account", "audience": "a", "subject_token_type": "jwt", "token_url": url("/sts"),
        "credential_source": {"file": subject},
    });
    let mut acting = external.clone();
    acting["credential_source"] = json!({"url": url("/subject")});
    acting["service_account_impersonation_url"] = json!(url("/act:generateAccessToken"));
    let account = json!({
        "type": "service_account", "private_key": TEST_KEY, "client_email": "a@b", "token_uri": url("/token"),
    });
    let user = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": format!("{SECRET}user-secret"),
        "refresh_token": format!("{SECRET}refresh-token"), "token_uri": url("/user"),
    });
    let google = |name: &str, json: &Value| {
        let path = file(folder, name, &json.to_string());
        format!("{{google: {{credentials: '{path}'}}}}")
    };
    let printing = format!("[/bin/sh, -c, 'echo {SECRET}printed-token']");
    let keys = format!(
        "region: us-east-1, access_key_id: AKIA, secret_access_key: {SECRET}own-secret, session_token: {SECRET}own-session"
    );
    vec![
        (
            "azure-secret",
            format!("{{azure: {{{app}, client_secret: {SECRET}client-secret}}}}"),
        ),
        (
            "azure-federated",
            format!("{{azure: {{{app}, federated_token_file: '{federated}'}}}}"),
        ),
        (
            "azure-machine",
            "{azure: {managed_identity: true}}".to_owned(),
        ),
        ("google-account", google("account", &account)),
        ("google-user", google("user", &user)),
        ("google-external", google("external", &external)),
        ("google-acting", google("acting", &acting)),
        ("aws-keys", format!("{{aws: {{{keys}}}}}")),
        (
            "aws-role",
            format!("{{aws: {{{keys}, role_arn: 'arn:aws:iam::1:role/r', external_id: ext}}}}"),
        ),
        (
            "aws-web",
            format!(
                "{{aws: {{region: us-east-1, role_arn: 'arn:aws:iam::1:role/w', web_identity_token_file: '{identity}'}}}}"
            ),
        ),
        (
            "aws-profile",
            "{aws: {region: us-east-1, profile: program}}".to_owned(),
        ),
        ("aws-machine", "{aws: {region: us-east-1}}".to_owned()),
        ("command", format!("{{command: {printing}}}")),
        ("bearer", format!("{{bearer: {SECRET}bearer-key}}")),
        (
            "header",
            format!("{{header: {{name: api-key, value: {SECRET}header-key}}}}"),
        ),
        (
            "query",
            format!("{{query: {{name: key, value: {SECRET}query-key}}}}"),
        ),
    ]
}

/// The two kinds of machines: a container, and an instance.
fn on_machine(command: &mut Command, folder: &Path, tokens: &RecordingServer, is_container: bool) {
    for (name, _) in std::env::vars() {
        if ["AWS_", "AZURE_", "GOOGLE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    let shared = file(
        folder,
        "shared",
        &format!(
            "[profile program]\ncredential_process = /bin/echo '{}'\n",
            json!({"Version": 1, "AccessKeyId": "AKIAP", "SecretAccessKey": format!("{SECRET}program-secret")})
        ),
    );
    command.env("AWS_CONFIG_FILE", shared);
    command.env("AWS_ENDPOINT_URL_STS", tokens.url(""));
    command.env("RUST_LOG", "trace,h2=off,hyper=off");
    if is_container {
        command.env(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            tokens.url("/container"),
        );
        command.env(
            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
            format!("{SECRET}container-token"),
        );
        command.env("IDENTITY_ENDPOINT", tokens.url("/msi/token"));
        command.env("IDENTITY_HEADER", format!("{SECRET}identity-header"));
    } else {
        command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", tokens.url(""));
        command.env("AZURE_POD_IDENTITY_AUTHORITY_HOST", tokens.url(""));
    }
}

/// What a request was sent with that no list of secrets has: the signatures of claims and of requests.
fn signatures(servers: [&RecordingServer; 2]) -> Vec<String> {
    let requests = servers.into_iter().flat_map(RecordingServer::requests);
    let found = requests.flat_map(|request| {
        let authorization = request.header("authorization").to_owned();
        let signature = authorization.split_once("Signature=");
        let signature = signature.map(|(_, signature)| signature.to_owned());
        let assertion = request.body.split_once("assertion=ey");
        let assertion = assertion.map(|(_, rest)| rest[..40].to_owned());
        [signature, assertion]
    });
    found.flatten().collect()
}

async fn search(refuses: bool, is_container: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let (tokens, upstream) = (token_server(refuses), upstream());
    let kinds = kinds(folder.path(), &tokens);
    let (mut upstreams, mut models) = (String::new(), String::new());
    for (name, auth) in &kinds {
        let url = upstream.url("/v1");
        upstreams += &format!(
            "  - {{name: {name}, format: chat, base_url: '{url}', breaker: off, auth: {auth}, timeouts: {{connect: 2s}}}}\n"
        );
        models += &format!("  - {{id: {name}, upstreams: [{{name: {name}}}]}}\n");
    }
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN, access_log: json}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n{upstreams}models:\n{models}"
    );
    let stderr = Stderr::new();
    let mut gateway = Gateway::start_with(&config, |command| {
        on_machine(command, folder.path(), &tokens, is_container);
        stderr.attach(command);
    });
    let mut told = Vec::new();
    for (name, _) in &kinds {
        // What is refused is not fetched a second time in this test: one request suffices.
        let prompts: &[&str] = match refuses {
            true => &["hello"],
            false => &[
                "hello", "say-401", "say-403", "say-400", "say-500", "say-200",
            ],
        };
        for prompt in prompts {
            for stream in [false, true] {
                let (path, body) = request("chat", name, prompt, stream);
                let response = post(gateway.url(&path), body.to_string()).await;
                if !refuses && *prompt == "hello" && !stream {
                    let about: Vec<String> = stderr
                        .text()
                        .lines()
                        .filter(|line| line.contains("credential"))
                        .map(str::to_owned)
                        .collect();
                    assert_eq!(response.status, 200, "{name}: {about:#?}");
                }
                told.push((*name, *prompt, response.text().to_owned()));
            }
        }
    }
    let metrics = gateway.metric("").await.join("\n");
    assert!(metrics.contains("omniglot_requests_total"), "{metrics}");
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
    let access_log = gateway.process.lines_to_the_end().join("\n");
    let log = stderr.text();
    assert!(log.contains("TRACE"), "everything is logged");
    assert!(access_log.contains("\"upstream\""), "{access_log}");
    let key: String = TEST_KEY.lines().skip(1).take(1).collect();
    let mut secrets = vec![SECRET.to_owned(), "PRIVATE KEY".to_owned(), key];
    secrets.push(STANDARD.encode(SECRET)[..6].to_owned());
    secrets.extend(signatures([&tokens, &upstream]));
    for secret in &secrets {
        for (what, text) in [
            ("log", &log),
            ("access log", &access_log),
            ("metrics", &metrics),
        ] {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} is in the {what}");
        }
        for (name, prompt, text) in &told {
            assert!(
                !text.contains(secret),
                "{secret} is told to clients of {name} by {prompt}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn credentials_that_work_are_shown_nowhere() {
    search(false, true).await;
    search(false, false).await;
}

#[tokio::test]
async fn credentials_that_are_refused_are_shown_nowhere() {
    search(true, true).await;
    search(true, false).await;
}
