//! `upstreams[].tls`: authorities, client certificates and server names of upstreams.

use std::path::Path;

use omniglot_test_support::{
    CertificateAuthority, Gateway, KEY, Mock, Response, Stderr, TlsProxy, client, echoed_request,
    omniglot, request, send, single_upstream_config, wait_until,
};

/// A model for each upstream, all of which are the same server.
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

fn shown(file: &Path) -> String {
    file.display().to_string()
}

#[tokio::test]
async fn an_authority_of_the_config_is_trusted_for_its_upstream_alone() {
    let mock = Mock::start();
    let (right, wrong) = (CertificateAuthority::new(), CertificateAuthority::new());
    for protocol in ["auto", "http1"] {
        let server = TlsProxy::start(&right, "localhost", mock.address).await;
        let base = format!(
            "protocol: {protocol}, base_url: \"https://localhost:{}/v1\"",
            server.address.port()
        );
        let trusting =
            |ca: &CertificateAuthority| format!("{base}, tls: {{ca: {}}}", shown(&ca.file()));
        let stderr = Stderr::new();
        let mut gateway = Gateway::start_with(
            &config(&[
                ("right", trusting(&right)),
                ("wrong", trusting(&wrong)),
                ("system", base.clone()),
            ]),
            |command| stderr.attach(command),
        );
        // The connections of one are idle when the others look for some.
        for _ in 0..2 {
            for (model, status) in [("right", 200), ("wrong", 502), ("system", 502)] {
                let response = ask(&gateway, model).await;
                assert_eq!(response.status, status, "{model}: {}", response.text());
            }
        }
        assert_eq!(server.negotiated().len(), 1, "one connection, used again");
        let line = stderr.line_with("upstream wrong: ", &mut gateway.process);
        let line = line.expect("a line");
        assert!(line.contains("invalid peer certificate"), "{line}");
        let failures = gateway.metric("omniglot_upstream_failures").await;
        let tls = failures.iter().filter(|line| line.contains("\"tls\""));
        assert_eq!(tls.count(), 2, "{failures:?}");
    }
}

#[tokio::test]
async fn an_upstream_gets_the_client_certificate_that_it_demands() {
    let mock = Mock::start();
    let (servers, clients) = (CertificateAuthority::new(), CertificateAuthority::new());
    let server =
        TlsProxy::start_for_clients(&servers, "localhost", mock.address, Some(&clients)).await;
    let (cert, key) = clients.issue_files("gateway");
    let (other_cert, other_key) = servers.issue_files("gateway");
    let both = tempfile::NamedTempFile::new().expect("a file");
    let read = |file: &Path| std::fs::read_to_string(file).expect("a PEM file");
    std::fs::write(both.path(), read(&cert) + &read(&key)).expect("it is written");
    let base = format!(
        "base_url: \"https://localhost:{}/v1\"",
        server.address.port()
    );
    let ca = shown(&servers.file());
    let with = |more: &str| format!("{base}, tls: {{ca: {ca}{more}}}");
    let pair = |cert: &Path, key: &Path| {
        with(&format!(
            ", certificate: {}, key: {}",
            shown(cert),
            shown(key)
        ))
    };
    let gateway = Gateway::start(&config(&[
        ("known", pair(&cert, &key)),
        (
            "one-file",
            with(&format!(", certificate: {}", shown(both.path()))),
        ),
        ("stranger", pair(&other_cert, &other_key)),
        ("nobody", with("")),
    ]));
    for _ in 0..2 {
        for (model, status) in [
            ("known", 200),
            ("one-file", 200),
            ("stranger", 502),
            ("nobody", 502),
        ] {
            let response = ask(&gateway, model).await;
            assert_eq!(response.status, status, "{model}: {}", response.text());
        }
    }
}

#[tokio::test]
async fn a_server_name_is_asked_for_and_verified_in_place_of_the_host() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    let server = TlsProxy::start(&authority, "inner.example", mock.address).await;
    let base = format!(
        "protocol: http1, base_url: \"https://{}/v1\"",
        server.address
    );
    let ca = shown(&authority.file());
    let gateway = Gateway::start(&config(&[
        (
            "inner",
            format!("{base}, tls: {{ca: {ca}, server_name: inner.example}}"),
        ),
        ("outer", format!("{base}, tls: {{ca: {ca}}}")),
        (
            "other",
            format!("{base}, tls: {{ca: {ca}, server_name: other.example}}"),
        ),
    ]));
    let response = ask(&gateway, "inner").await;
    let echo = echoed_request("chat", &response).to_string();
    assert!(
        echo.contains(&server.address.to_string()),
        "the host stays: {echo}"
    );
    assert_eq!(server.server_names(), ["inner.example"]);
    for model in ["outer", "other"] {
        assert_eq!(ask(&gateway, model).await.status, 502, "{model}");
    }
}

#[tokio::test]
async fn a_reload_reads_the_files_again() {
    let mock = Mock::start();
    let (right, wrong) = (CertificateAuthority::new(), CertificateAuthority::new());
    let server = TlsProxy::start(&right, "localhost", mock.address).await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, &right.pem).expect("it is written");
    let upstream = format!(
        "breaker: off, base_url: \"https://localhost:{}/v1\", tls: {{ca: {}}}",
        server.address.port(),
        shown(&file)
    );
    let gateway = Gateway::start(&single_upstream_config("", &upstream));
    assert_eq!(ask(&gateway, "m").await.status, 200);
    for (outcome, pem, status) in [
        ("taken", wrong.pem.as_str(), 502),
        ("refused", "no certificate", 502),
    ] {
        std::fs::write(&file, pem).expect("it is written");
        gateway.process.signal("HUP");
        let metric = format!("omniglot_config_reloads_total{{outcome=\"{outcome}\"}}");
        wait_until("the reload is over", async || {
            let lines = gateway.metric(&metric).await;
            lines.iter().any(|line| line.ends_with(" 1"))
        })
        .await;
        // A connection that the old authority vouched for is idle.
        assert_eq!(ask(&gateway, "m").await.status, status, "{outcome}");
    }
}

#[tokio::test]
async fn the_check_refuses_files_that_do_not_fit_and_warns_of_old_ones() {
    let authority = CertificateAuthority::new();
    let (cert, _) = authority.issue_files("gateway");
    let stranger = CertificateAuthority::new();
    let (_, key) = stranger.issue_files("gateway");
    let expired = authority.issue_expired_file();
    let directory = tempfile::tempdir().expect("a directory");
    let check = |tls: &str| {
        let file = directory.path().join("check.yaml");
        let upstream = format!("base_url: \"https://a.example/v1\",\n  tls: {{{tls}}}");
        let text = single_upstream_config("", &upstream)
            .replace("LISTEN", "127.0.0.1:1")
            .replace("ADMIN", "127.0.0.1:2");
        std::fs::write(&file, text).expect("it is written");
        let output = omniglot().args(["check", "-c"]).arg(&file).output();
        let output = output.expect("it runs");
        let stderr = String::from_utf8(output.stderr).expect("text");
        (output.status.code(), stderr)
    };
    let (code, stderr) = check(&format!(
        "certificate: {}, key: {}",
        shown(&cert),
        shown(&key)
    ));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("check.yaml:4:8: upstreams.up: tls cannot be used: "),
        "{stderr}"
    );
    assert!(stderr.contains("do not fit together"), "{stderr}");
    let (code, stderr) = check(&format!("certificate: {}", shown(&expired)));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("check.yaml:4:22: warning: "), "{stderr}");
    assert!(stderr.contains("has expired on "), "{stderr}");
    let (code, stderr) = check("ca: no/such/file.pem");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("check.yaml:4:13: cannot read \"no/such/file.pem\""),
        "{stderr}"
    );
}
