//! Presets as they are, with their own hosts: each is played by the mock, which refuses what the real host would.

use std::path::{Path, PathBuf};
use std::process::Command;

use omniglot::config::providers;
use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, ProviderHosts, Response, client, is_end, is_error, post, request,
    response_text, send, stream_events,
};
use serde_json::{Value, json};

/// Names and values.
type Headers<'a> = Vec<(&'a str, &'a str)>;

/// A key for tests alone.
const TEST_KEY: &str = include_str!("clouds/test_key.pem");

/// The clouds: their presets with the least that they need, the upstream's name of the model, and their hosts.
const CLOUDS: [(&str, &str, &str, &str); 11] = [
    (
        "azure",
        "resource: res",
        "my-gpt",
        "res.openai.azure.com:443",
    ),
    (
        "azure-classic",
        "resource: other, auth: {azure: {tenant: t-1, client_id: c-1, client_secret: client-secret-of-the-test}}",
        "my gpt",
        "other.openai.azure.com:443",
    ),
    (
        "azure-anthropic",
        "resource: res",
        "my-claude",
        "res.services.ai.azure.com:443",
    ),
    (
        "vertex",
        "project: p-1, location: global",
        "gemini-2.5-pro",
        "aiplatform.googleapis.com:443",
    ),
    (
        "vertex-express",
        "headers: {x-team: a}",
        "gemini-2.5-pro",
        "aiplatform.googleapis.com:443",
    ),
    (
        "vertex-anthropic",
        "project: p-1, location: eu",
        "claude-sonnet-4-5@20250929",
        "aiplatform.eu.rep.googleapis.com:443",
    ),
    (
        "vertex-openai",
        "project: p-1, location: us-east5",
        "meta/llama",
        "us-east5-aiplatform.googleapis.com:443",
    ),
    (
        "bedrock",
        "region: us-east-1",
        "us.anthropic.claude-v1:0",
        "bedrock-runtime.us-east-1.amazonaws.com:443",
    ),
    (
        "bedrock-openai",
        "region: cn-north-1",
        "openai.gpt-oss-120b-1:0",
        "bedrock-runtime.cn-north-1.amazonaws.com.cn:443",
    ),
    (
        "bedrock-mantle",
        "region: eu-central-1",
        "openai.gpt-oss-120b",
        "bedrock-mantle.eu-central-1.api.aws:443",
    ),
    (
        "bedrock-mantle-anthropic",
        "region: eu-central-1, auth: {aws: {role_arn: 'arn:aws:iam::1:role/r'}}",
        "anthropic.claude-opus-4-6",
        "bedrock-mantle.eu-central-1.api.aws:443",
    ),
];

/// The file of a service account, whose tokens come from Google's own host.
fn service_account(folder: &Path) -> PathBuf {
    let account = json!({
        "type": "service_account", "project_id": "p-1", "private_key_id": "key-1",
        "private_key": TEST_KEY, "client_email": "gateway@p-1.example",
    });
    let path = folder.join("account.json");
    std::fs::write(&path, account.to_string()).expect("a file");
    path
}

/// The credentials of all providers, where each looks for its own.
fn with_credentials(command: &mut Command, hosts: &ProviderHosts, account: &Path) {
    hosts.prepare(command);
    for name in providers().iter().flat_map(|provider| &provider.keys) {
        command.env(name, format!("key-in-{name}"));
    }
    // Requests to AWS are signed.
    command.env_remove("AWS_BEARER_TOKEN_BEDROCK");
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    command.env("AWS_SECRET_ACCESS_KEY", "secret-of-the-environment");
    command.env("AWS_SESSION_TOKEN", "session-of-the-environment");
    command.env("GOOGLE_APPLICATION_CREDENTIALS", account);
    command.env("OMNIGLOT_KEY", KEY);
}

fn config_of_clouds() -> String {
    let (mut upstreams, mut models) = (String::new(), String::new());
    for (name, settings, model, _) in CLOUDS {
        upstreams += &format!("  - {{provider: {name}, breaker: off, {settings}}}\n");
        models += &format!("  - {{id: {name}, upstreams: [{{name: {name}, model: '{model}'}}]}}\n");
    }
    format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n{upstreams}models:\n{models}"
    )
}

/// A request with a tool that the mock calls.
fn with_tool(client: &str, model: &str, stream: bool) -> (String, Value) {
    let (path, mut body) = request(client, model, "mock:tool=weather", stream);
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

async fn ask(gateway: &Gateway, (path, body): (String, Value)) -> Response {
    post(gateway.url(&path), body.to_string()).await
}

/// Every client format on every cloud: JSON, a stream, tools, and errors in the client's own shape.
#[tokio::test]
async fn clients_of_every_format_are_served_by_every_cloud() {
    let hosts = ProviderHosts::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let account = service_account(folder.path());
    let gateway = Gateway::start_with(&config_of_clouds(), |command| {
        with_credentials(command, &hosts, &account);
    });
    for (name, _, _, host) in CLOUDS {
        for (client, _) in FORMATS {
            let case = format!("{client} at {name}");
            let response = ask(&gateway, request(client, name, "good morning", false)).await;
            assert_eq!(response.status, 200, "{case}: {}", response.text());
            let text = response_text(client, &response.json());
            assert_eq!(text, "You said: good morning", "{case}");

            let response = ask(&gateway, request(client, name, "good morning", true)).await;
            assert_eq!(response.status, 200, "{case}: {}", response.text());
            let events = stream_events(client, response.text());
            assert!(events.iter().any(|event| is_end(client, event)), "{case}");
            assert!(response.text().contains("morning"), "{case}");

            for stream in [false, true] {
                let response = ask(&gateway, with_tool(client, name, stream)).await;
                assert_eq!(response.status, 200, "{case}: {}", response.text());
                for word in ["weather", "city"] {
                    assert!(
                        response.text().contains(word),
                        "{case}: {}",
                        response.text()
                    );
                }
                for (status, prompt) in [
                    (429, "mock:error=429,mock-says-no"),
                    (400, "mock:error=400,mock-says-no"),
                ] {
                    let response = ask(&gateway, request(client, name, prompt, stream)).await;
                    assert_eq!(response.status, status, "{case}: {}", response.text());
                    let message = response.error(client);
                    assert!(message.contains("mock-says-no"), "{case}: {message}");
                }
            }
            let prompt = "one two three four mock:stream_error=2";
            let response = ask(&gateway, request(client, name, prompt, true)).await;
            assert_eq!(response.status, 200, "{case}: {}", response.text());
            let events = stream_events(client, response.text());
            let last = events.last().expect("an event");
            assert!(is_error(client, last), "{case}: {}", response.text());
        }
        assert!(hosts.asked().iter().any(|asked| asked == host), "{host}");
    }
    let asked = hosts.asked();
    for tokens in ["oauth2.googleapis.com:443", "login.microsoftonline.com:443"] {
        assert!(asked.iter().any(|asked| asked == tokens), "{asked:?}");
    }
    assert!(
        asked.iter().any(|asked| asked.starts_with("sts.")),
        "{asked:?}"
    );
}

/// The configs of the page about providers are copied and run as they are.
#[tokio::test]
async fn the_config_of_each_preset_in_the_docs_is_served() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/providers.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, section) = page
        .split_once("## A config for each preset")
        .expect("the section");
    let hosts = ProviderHosts::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let account = service_account(folder.path());
    let mut count = 0;
    for block in section.split("```yaml\n").skip(1) {
        let (config, _) = block.split_once("```").expect("the end of a block");
        let model = config.split("{id: ").nth(1).expect("a model");
        let (model, _) = model.split_once(',').expect("its upstreams");
        let whole = format!("server: {{listen: LISTEN, admin: ADMIN}}\n{config}");
        let gateway = Gateway::start_with(&whole, |command| {
            with_credentials(command, &hosts, &account);
        });
        let before = hosts.asked().len();
        for (client, _) in FORMATS {
            for stream in [false, true] {
                // Fields that strict providers refuse.
                let (path, mut body) = request(client, model, "good morning", stream);
                if client == "chat" {
                    body["seed"] = json!(7);
                    body["user"] = json!("someone");
                    body["messages"][0]["name"] = json!("Ann");
                }
                let response = ask(&gateway, (path, body)).await;
                assert_eq!(
                    response.status,
                    200,
                    "{client}: {config}{}",
                    response.text()
                );
                assert!(response.text().contains("morning"), "{client}: {config}");
            }
        }
        assert!(hosts.asked().len() > before, "{config}: its own host");
        count += 1;
    }
    assert_eq!(count, providers().len());
}

#[tokio::test]
async fn the_mock_refuses_what_a_host_would_refuse() {
    let mock = Mock::start();
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let claude = json!({"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    let with = |body: &Value, more: Value| {
        let mut body = body.clone();
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    let vertex = "/v1/projects/p/locations/eu/publishers/anthropic/models/m:rawPredict";
    let versioned = with(&claude, json!({"anthropic_version": "vertex-2023-10-16"}));
    let deployment = "/openai/deployments/d/chat/completions";
    let signature = |scope: &str| {
        format!(
            "AWS4-HMAC-SHA256 Credential=AKID/20260101/{scope}/aws4_request, SignedHeaders=host;x-amz-date, Signature={}",
            "a".repeat(64)
        )
    };
    let (right, elsewhere) = (
        signature("us-east-1/bedrock"),
        signature("us-west-2/bedrock"),
    );
    let bedrock = with(&claude, json!({"anthropic_version": "bedrock-2023-05-31"}));
    let bearer = ("authorization", "Bearer k");
    let cases: Vec<(&str, &str, Headers<'_>, &Value, u16)> = vec![
        (
            "r.openai.azure.com",
            "/openai/v1/chat/completions",
            vec![("api-key", "k")],
            &chat,
            200,
        ),
        (
            "r.openai.azure.com",
            "/openai/v1/chat/completions",
            vec![],
            &chat,
            401,
        ),
        (
            "r.openai.azure.com",
            "/openai/v1/chat/completions?api-version=2024-10-21",
            vec![("api-key", "k")],
            &chat,
            400,
        ),
        (
            "r.openai.azure.com",
            deployment,
            vec![("api-key", "k")],
            &chat,
            404,
        ),
        (
            "r.openai.azure.com",
            "/openai/deployments/d/chat/completions?api-version=2024-10-21",
            vec![bearer],
            &chat,
            200,
        ),
        (
            "r.openai.azure.com",
            "/v1/chat/completions",
            vec![("api-key", "k")],
            &chat,
            404,
        ),
        (
            "aiplatform.eu.rep.googleapis.com",
            vertex,
            vec![bearer],
            &versioned,
            200,
        ),
        (
            "aiplatform.eu.rep.googleapis.com",
            vertex,
            vec![],
            &versioned,
            401,
        ),
        (
            "aiplatform.eu.rep.googleapis.com",
            vertex,
            vec![bearer],
            &claude,
            400,
        ),
        (
            "aiplatform.googleapis.com",
            vertex,
            vec![bearer],
            &versioned,
            404,
        ),
        (
            "bedrock-runtime.us-east-1.amazonaws.com",
            "/model/m/invoke",
            vec![("authorization", &right)],
            &bedrock,
            200,
        ),
        (
            "bedrock-runtime.us-east-1.amazonaws.com",
            "/model/m/invoke",
            vec![("authorization", &elsewhere)],
            &bedrock,
            401,
        ),
        (
            "bedrock-runtime.us-east-1.amazonaws.com",
            "/model/m/invoke",
            vec![bearer],
            &claude,
            400,
        ),
        (
            "bedrock-runtime.us-east-1.amazonaws.com",
            "/v1/chat/completions",
            vec![bearer],
            &chat,
            404,
        ),
        (
            "api.mistral.ai",
            "/v1/chat/completions",
            vec![bearer],
            &chat,
            200,
        ),
        ("api.mistral.ai", "/v1/chat/completions", vec![], &chat, 401),
        (
            "api.deepseek.com",
            "/chat/completions",
            vec![bearer],
            &chat,
            200,
        ),
        (
            "api.groq.com",
            "/v1/chat/completions",
            vec![bearer],
            &chat,
            404,
        ),
        (
            "api.groq.com",
            "/openai/v1/chat/completions",
            vec![bearer],
            &chat,
            200,
        ),
    ];
    for (host, path, headers, body, status) in cases {
        let mut asked = client().post(mock.url(path)).header("host", host);
        for (name, value) in &headers {
            asked = asked.header(*name, *value);
        }
        let response = send(asked.json(body)).await;
        assert_eq!(
            response.status,
            status,
            "{host}{path} {headers:?}: {}",
            response.text()
        );
    }
    let strict = with(&chat, json!({"stream_options": {"include_usage": true}}));
    for (host, path, status) in [
        ("api.mistral.ai", "/v1/chat/completions", 422),
        ("api.cohere.ai", "/compatibility/v1/chat/completions", 400),
        ("api.openai.com", "/v1/chat/completions", 200),
    ] {
        let asked = client().post(mock.url(path)).header("host", host);
        let response = send(asked.bearer_auth("k").json(&strict)).await;
        assert_eq!(response.status, status, "{host}: {}", response.text());
    }
}
