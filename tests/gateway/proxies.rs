//! `upstreams[].proxy` and the proxies of the environment: tunnels, credentials, refusals, failover.

use omniglot_test_support::{
    CertificateAuthority, ConnectProxy, Gateway, KEY, Mock, RecordingServer, Response, Stderr,
    TlsProxy, client, echoed_request, request, send,
};
use serde_json::json;

/// A model of the same name for each upstream, in this order; `both` tries the first two in turn.
fn config(upstreams: &[(&str, String)]) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n"
    );
    for (name, settings) in upstreams {
        text += &format!("  - {{name: {name}, format: chat, breaker: off, {settings}}}\n");
    }
    text += "models:\n";
    for (name, _) in upstreams {
        text += &format!("  - {{id: {name}, upstreams: [{{name: {name}}}]}}\n");
    }
    if let [(first, _), (second, _), ..] = upstreams {
        text += &format!(
            "  - {{id: both, upstreams: [{{name: {first}}}, {{name: {second}, priority: 1}}]}}\n"
        );
    }
    text
}

async fn ask(gateway: &Gateway, model: &str) -> Response {
    let (path, body) = request("chat", model, "mock:echo", false);
    send(
        client()
            .post(gateway.url(&path))
            .bearer_auth(KEY)
            .json(&body),
    )
    .await
}

#[tokio::test]
async fn a_tunnel_is_opened_once_for_each_upstream_and_used_again() {
    let mock = Mock::start();
    let proxy = ConnectProxy::start(mock.address).await;
    let through = format!("proxy: \"http://user:pa%3Ass-hush@{}\"", proxy.address);
    let upstream =
        |port: &str| format!("base_url: \"http://models.acme.test{port}/v1\", {through}");
    let gateway = Gateway::start(&config(&[
        ("plain", upstream("")),
        ("other", upstream(":8000")),
    ]));
    for model in ["plain", "plain", "other", "plain", "other"] {
        let echo = echoed_request("chat", &ask(&gateway, model).await).to_string();
        assert!(echo.contains("models.acme.test"), "{echo}");
        assert!(!echo.contains("proxy-authorization"), "{echo}");
    }
    let tunnel = |target: &str| {
        format!(
            "CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\
             proxy-authorization: Basic dXNlcjpwYTpzcy1odXNo\r\n\r\n"
        )
    };
    let expected = [
        tunnel("models.acme.test:80"),
        tunnel("models.acme.test:8000"),
    ];
    assert_eq!(proxy.requests(), expected);
}

#[tokio::test]
async fn the_certificate_of_the_upstream_is_verified_through_the_tunnel() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    let ca = authority.file().display().to_string();
    for (protocol, negotiated) in [("auto", "h2"), ("http1", "http/1.1")] {
        let server = TlsProxy::start(&authority, "models.acme.test", mock.address).await;
        let proxy = ConnectProxy::start(server.address).await;
        let upstream = |host: &str| {
            format!(
                "base_url: \"https://{host}/v1\", protocol: {protocol}, tls: {{ca: {ca}}}, proxy: \"http://{}\"",
                proxy.address
            )
        };
        let gateway = Gateway::start(&config(&[
            ("right", upstream("models.acme.test")),
            ("wrong", upstream("other.acme.test")),
        ]));
        for _ in 0..2 {
            let response = ask(&gateway, "right").await;
            assert_eq!(response.status, 200, "{protocol}: {}", response.text());
        }
        assert_eq!(ask(&gateway, "wrong").await.status, 502);
        assert_eq!(server.negotiated(), [negotiated]);
        assert_eq!(server.server_names(), ["models.acme.test"]);
        let requests = proxy.requests();
        assert!(requests[0].starts_with("CONNECT models.acme.test:443 HTTP/1.1\r\n"));
        assert!(requests[1].starts_with("CONNECT other.acme.test:443 HTTP/1.1\r\n"));
        assert_eq!(requests.len(), 2, "{requests:?}");
    }
}

#[tokio::test]
async fn token_endpoints_are_reached_through_the_proxy_of_the_environment() {
    let (mock, authority) = (Mock::start(), CertificateAuthority::new());
    let tokens = RecordingServer::start(|_, _| {
        let body =
            json!({"access_token": "token-of-a-cloud", "expires_in": 3599, "token_type": "Bearer"});
        (200, "application/json", body.to_string())
    });
    let server = TlsProxy::start(&authority, "login.acme.test", tokens.address).await;
    let proxy = ConnectProxy::start(server.address).await;
    let auth = "auth: {azure: {tenant: t, client_id: c, client_secret: hush-hush, authority: 'https://login.acme.test'}}";
    let upstream = format!("base_url: \"http://{}/v1\", {auth}", mock.address);
    let gateway = Gateway::start_with(&config(&[("cloud", upstream)]), |command| {
        command.env("https_proxy", proxy.address.to_string());
        command.env("SSL_CERT_FILE", authority.file());
    });
    let response = ask(&gateway, "cloud").await;
    let echo = echoed_request("chat", &response);
    assert_eq!(echo["headers"]["authorization"], "Bearer token-of-a-cloud");
    assert_eq!(server.server_names(), ["login.acme.test"]);
    let requests = proxy.requests();
    assert!(
        requests[0].starts_with("CONNECT login.acme.test:443 HTTP/1.1\r\n"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_proxy_that_opens_no_tunnel_is_a_failure_of_the_upstream() {
    let mock = Mock::start();
    for (answer, logged) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n<p>who?</p>",
            "refused the tunnel with status 407",
        ),
        (
            "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
            "refused the tunnel with status 502",
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n",
            "sent more than a header",
        ),
        ("220 ready\r\n\r\n", "sent no HTTP response to CONNECT"),
        ("HTTP/1.1 200 OK\r\n", "opened no tunnel in time"),
        ("", "sent no whole response to CONNECT"),
    ] {
        let proxy = ConnectProxy::answering(answer, mock.address).await;
        let stderr = Stderr::new();
        let mut gateway = Gateway::start_with(
            &config(&[
                (
                    "proxied",
                    format!(
                        "base_url: \"http://models.acme.test/v1\", timeouts: {{connect: 1s}}, proxy: \"http://user:hush-hush@{}\"",
                        proxy.address
                    ),
                ),
                (
                    "direct",
                    format!("base_url: \"http://{}/v1\"", mock.address),
                ),
            ]),
            |command| stderr.attach(command),
        );
        let response = ask(&gateway, "both").await;
        assert_eq!(response.status, 200, "{answer:?}");
        assert_eq!(response.header("x-omniglot-upstream"), "direct");
        assert_eq!(response.header("x-omniglot-attempts"), "2");
        let line = stderr.line_with(logged, &mut gateway.process);
        let line = line.expect("a line");
        assert!(line.contains("upstream proxied: "), "{line}");
        let failed = ask(&gateway, "proxied").await;
        assert!(matches!(failed.status, 502 | 504), "{}", failed.text());
        let address = proxy.address.to_string();
        assert!(!failed.text().contains(&address), "{}", failed.text());
        let log = stderr.text();
        assert!(
            !log.contains("hush") && !log.contains("aHVzaC1odXNo"),
            "{log}"
        );
    }
}

#[tokio::test]
async fn proxies_of_the_environment_are_used_but_for_exceptions() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    let server = TlsProxy::start(&authority, "models.acme.test", mock.address).await;
    let secure = ConnectProxy::start(server.address).await;
    let plain = ConnectProxy::start(mock.address).await;
    let own = ConnectProxy::start(mock.address).await;
    let stderr = Stderr::new();
    let mut gateway = Gateway::start_with(
        &config(&[
            (
                "secure",
                format!(
                    "base_url: \"https://models.acme.test/v1\", tls: {{ca: {}}}",
                    authority.file().display()
                ),
            ),
            (
                "plain",
                "base_url: \"http://plain.acme.test/v1\"".to_owned(),
            ),
            (
                "own",
                format!(
                    "base_url: \"http://own.acme.test/v1\", proxy: \"http://{}\"",
                    own.address
                ),
            ),
            ("near", format!("base_url: \"http://{}/v1\"", mock.address)),
            (
                "excepted",
                "base_url: \"http://excepted.acme.test:8000/v1\"".to_owned(),
            ),
            (
                "never",
                "base_url: \"http://never.acme.test/v1\", proxy: none".to_owned(),
            ),
        ]),
        |command| {
            stderr.attach(command);
            command.env(
                "HTTPS_PROXY",
                format!("http://user:hush-hush@{}", secure.address),
            );
            command.env("http_proxy", plain.address.to_string());
            command.env("NO_PROXY", "excepted.acme.test:8000,10.0.0.0/8");
        },
    );
    for (model, status) in [
        ("secure", 200),
        ("plain", 200),
        ("own", 200),
        ("near", 200),
        // There are no such hosts.
        ("excepted", 502),
        ("never", 502),
    ] {
        let response = ask(&gateway, model).await;
        assert_eq!(response.status, status, "{model}: {}", response.text());
    }
    let targets = |proxy: &ConnectProxy| -> Vec<String> {
        let requests = proxy.requests();
        let targets = requests
            .iter()
            .filter_map(|request| request.split(' ').nth(1));
        targets.map(str::to_owned).collect()
    };
    assert_eq!(targets(&secure), ["models.acme.test:443"]);
    assert_eq!(targets(&plain), ["plain.acme.test:80"]);
    assert_eq!(targets(&own), ["own.acme.test:80"]);
    let line = stderr.line_with("through the proxy", &mut gateway.process);
    assert!(line.is_some());
    assert!(!stderr.text().contains("hush"), "{}", stderr.text());
}
