//! Where AWS credentials come from, what happens when they expire, and that no log shows them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use omniglot_test_support::{
    Gateway, Http1Connection, Http1Message, Http1Upstream, Mock, Stderr, post, request,
};
use serde_json::{Value, json};

use super::{config, echo, with_keys, without_aws};

/// The credentials in the config, the id of the key that is used, and the variables.
type SourceCase<'c> = (&'c str, &'c str, Vec<(&'c str, &'c str)>);

/// Credentials as containers and instances give them.
fn document(id: &str) -> String {
    let expiration = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(6);
    json!({
        "Code": "Success", "AccessKeyId": id, "SecretAccessKey": format!("secret-of-{id}"),
        "Token": format!("token-of-{id}"), "Expiration": expiration.to_string(),
    })
    .to_string()
}

/// Credentials as STS gives them.
fn sts_answer(id: &str) -> String {
    let expiration = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    format!(
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>{id}</AccessKeyId>\
         <SecretAccessKey>secret-of-{id}</SecretAccessKey><SessionToken>token-of-{id}</SessionToken>\
         <Expiration>{expiration}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
}

/// What the services of AWS answer that give credentials; `None`: the request is not what they expect.
fn answer(request: &Http1Message) -> Option<String> {
    let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
    let body = request.text();
    let roles = "GET /latest/meta-data/iam/security-credentials/";
    let line = request.line.trim_end_matches(" HTTP/1.1");
    match line {
        "PUT /latest/api/token" => {
            let seconds = header("x-aws-ec2-metadata-token-ttl-seconds");
            (!seconds.is_empty()).then(|| "metadata-token".to_owned())
        }
        _ if line.starts_with(roles) && header("x-aws-ec2-metadata-token") == "metadata-token" => {
            match line.strip_prefix(roles) {
                Some("") => Some("the-role".to_owned()),
                Some("the-role") => Some(document("ASIAINSTANCE")),
                _ => None,
            }
        }
        "GET /container" if header("authorization") == "container-token" => {
            Some(document("ASIACONTAINER"))
        }
        "POST /" if body.contains("Action=AssumeRoleWithWebIdentity") => {
            let is_right = body.contains("WebIdentityToken=jwt-of-the-pod")
                && header("authorization").is_empty();
            is_right.then(|| sts_answer("ASIAWEB"))
        }
        "POST /" if body.contains("Action=AssumeRole&") => {
            // The signature itself is checked by botocore in tests/sdk.
            let source = header("authorization");
            let source = source.split_once("Credential=")?.1.split('/').next()?;
            let external_id = body.split("ExternalId=").nth(1).unwrap_or_default();
            Some(sts_answer(&format!("ASIAROLE-{source}-{external_id}")))
        }
        _ => None,
    }
}

async fn serve(mut connection: Http1Connection, _: usize) {
    let Some(request) = connection.read_message().await else {
        return;
    };
    let (status, body) = match answer(&request) {
        Some(body) => ("200 OK", body),
        None => ("403 Forbidden", String::new()),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    connection.send(head + &body).await;
}

/// The id of the key that signed a request.
fn signer(echo: &Value) -> String {
    let authorization = echo["headers"]["authorization"]
        .as_str()
        .expect("a signature");
    let id = authorization.split_once("Credential=").expect("an id").1;
    id.split('/').next().expect("an id").to_owned()
}

#[tokio::test]
async fn credentials_come_from_wherever_tools_of_aws_find_them() {
    let mock = Mock::start();
    let aws = Http1Upstream::start(serve).await;
    let aws = format!("http://{}", aws.address);
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("it is written");
        path.display().to_string()
    };
    let printed = json!({"Version": 1, "AccessKeyId": "AKIAPROCESS", "SecretAccessKey": "s"});
    let program = file("program", &format!("#!/bin/sh\necho '{printed}'\n"));
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&program, executable).expect("it may be run");
    let token = file("token", "jwt-of-the-pod\n");
    let container_token = file("container-token", "container-token");
    let shared = file(
        "config",
        &format!(
            "[profile keys]\naws_access_key_id = AKIAFILE\naws_secret_access_key = s\n\
             [profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = keys\nexternal_id = ext\n\
             [profile process]\ncredential_process = {program}\n"
        ),
    );
    let cases: [SourceCase<'_>; 9] = [
        (
            "auth: {aws: {access_key_id: AKIAOWN, secret_access_key: own}}",
            "AKIAOWN",
            vec![("AWS_ACCESS_KEY_ID", "AKIAENV")],
        ),
        (
            "",
            "AKIAENV",
            vec![
                ("AWS_ACCESS_KEY_ID", "AKIAENV"),
                ("AWS_SECRET_ACCESS_KEY", "s"),
            ],
        ),
        ("auth: {aws: {profile: keys}}", "AKIAFILE", vec![]),
        ("", "ASIAROLE-AKIAFILE-ext", vec![("AWS_PROFILE", "role")]),
        (
            "auth: {aws: {access_key_id: AKIAOWN, secret_access_key: own, role_arn: \"arn:aws:iam::1:role/r\"}}",
            "ASIAROLE-AKIAOWN-",
            vec![],
        ),
        ("auth: {aws: {profile: process}}", "AKIAPROCESS", vec![]),
        (
            "",
            "ASIAWEB",
            vec![
                ("AWS_WEB_IDENTITY_TOKEN_FILE", &token),
                ("AWS_ROLE_ARN", "arn:aws:iam::1:role/web"),
            ],
        ),
        (
            "",
            "ASIACONTAINER",
            vec![
                ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS/container"),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &container_token),
            ],
        ),
        (
            "",
            "ASIAINSTANCE",
            vec![("AWS_EC2_METADATA_DISABLED", "false")],
        ),
    ];
    for (more, expected, variables) in cases {
        let address = format!("http://{}", mock.address);
        let more = format!("region: us-east-1, {more}");
        let gateway = Gateway::start_with(&config(&address, &more), |command| {
            without_aws(command);
            command.env("AWS_CONFIG_FILE", &shared);
            command.env("AWS_ENDPOINT_URL_STS", &aws);
            command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", &aws);
            for (name, value) in &variables {
                command.env(name, value.replace("AWS/", &format!("{aws}/")));
            }
        });
        let seen = echo(&gateway, "claude", &[], &[]).await;
        assert_eq!(signer(&seen), expected);
    }
}

#[tokio::test]
async fn a_chain_without_credentials_is_an_error_that_the_log_explains() {
    let mock = Mock::start();
    let address = format!("http://{}", mock.address);
    let stderr = Stderr::new();
    let mut gateway = Gateway::start_with(&config(&address, "region: us-east-1"), |command| {
        without_aws(command);
        stderr.attach(command);
    });
    let (path, body) = request("chat", "claude", "hello", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 502, "{}", response.text());
    assert!(
        response.text().contains("could not get a credential"),
        "{}",
        response.text()
    );
    let line = stderr.line_with("no AWS credentials", &mut gateway.process);
    assert!(line.is_some(), "{}", stderr.text());
}

/// Bedrock as it is when a session has ended: the first key is refused.
async fn serve_expired(mut connection: Http1Connection, _: usize) {
    while let Some(request) = connection.read_message().await {
        let authorization = request.header("authorization").unwrap_or_default();
        let (status, more, body) = match authorization.contains("Credential=KEY-1/") {
            true => (
                "403 Forbidden",
                "x-amzn-errortype: ExpiredTokenException:http://internal/\r\n",
                json!({"message": "The security token included in the request is expired"}),
            ),
            false => (
                "200 OK",
                "",
                json!({
                    "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                    "content": [{"type": "text", "text": authorization}], "stop_reason": "end_turn",
                    "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
                }),
            ),
        };
        let body = body.to_string();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n"
        );
        connection.send(head + &body).await;
    }
}

/// A program that prints another key each time it is run.
fn counting_program(directory: &std::path::Path) -> String {
    let program = directory.join("program");
    let count = directory.join("count");
    let text = format!(
        "#!/bin/sh\necho x >> {count}\nn=$(wc -l < {count})\n\
         printf '{{\"Version\":1,\"AccessKeyId\":\"KEY-%s\",\"SecretAccessKey\":\"secret\"}}' $n\n",
        count = count.display()
    );
    fs::write(&program, text).expect("it is written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it may be run");
    program.display().to_string()
}

#[tokio::test]
async fn expired_credentials_are_fetched_again_and_the_request_is_repeated_once() {
    let bedrock = Http1Upstream::start(serve_expired).await;
    let directory = tempfile::tempdir().expect("a directory");
    let program = counting_program(directory.path());
    let shared = directory.path().join("config");
    fs::write(
        &shared,
        format!("[default]\ncredential_process = {program}\n"),
    )
    .expect("written");
    let address = format!("http://{}", bedrock.address);
    let gateway = Gateway::start_with(&config(&address, "region: us-east-1"), |command| {
        without_aws(command);
        command.env("AWS_CONFIG_FILE", &shared);
    });
    for _ in 0..2 {
        let (path, body) = request("messages", "claude", "hello", false);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert!(
            response.text().contains("Credential=KEY-2/"),
            "{}",
            response.text()
        );
    }
}

/// Everything that is logged at every level: neither keys nor tokens nor signatures are in it.
#[tokio::test]
async fn no_log_shows_credentials() {
    let mock = Mock::start();
    let address = format!("http://{}", mock.address);
    let stderr = Stderr::new();
    let prepare = |command: &mut Command| {
        with_keys(command);
        command.env("RUST_LOG", "trace");
        stderr.attach(command);
    };
    let gateway = Gateway::start_with(&config(&address, ""), prepare);
    let mut signatures = Vec::new();
    for (client, stream, prompt) in [
        ("messages", false, "mock:echo"),
        ("chat", true, "hello"),
        ("chat", false, "mock:error=403"),
        ("messages", true, "mock:stream_error"),
        ("responses", false, "mock:html"),
    ] {
        let (path, body) = request(client, "claude", prompt, stream);
        let response = post(gateway.url(&path), body.to_string()).await;
        if prompt == "mock:echo" {
            let text = response.text();
            let (_, rest) = text.split_once("Signature=").expect("a signature");
            signatures.push(rest[..64].to_owned());
        }
    }
    drop(gateway);
    let log = stderr.text();
    assert!(log.contains("TRACE"), "everything is logged");
    let secrets = ["secret-of-the-environment", "token-of-the-environment"];
    let secrets = secrets
        .into_iter()
        .chain(signatures.iter().map(String::as_str));
    for secret in secrets {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}
