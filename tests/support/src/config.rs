//! Configs of gateways under test, in which `LISTEN` and `ADMIN` stand for free addresses.

use std::net::SocketAddr;

/// The API key of a test's gateway that may use every model.
pub const KEY: &str = "test-key-of-everything";

/// Each format with the path that its base URL ends in.
pub const FORMATS: [(&str, &str); 4] = [
    ("chat", "/v1"),
    ("messages", ""),
    ("native", ""),
    ("responses", "/v1"),
];

/// Returns a config with one upstream per format on the mock, each with a model of the same name at both ends
/// (`same-chat` …) and one whose upstream calls it otherwise (`other-chat` → `theirs-chat` …).
pub fn every_format_config(mock: SocketAddr) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys:\n  - {{name: all, secret: {KEY}}}\n  \
         - {{name: some, secret: key-of-some, models: [\"same-*\"]}}\nupstreams:\n"
    );
    for (format, prefix) in FORMATS {
        text += &format!(
            "  - {{name: mock-{format}, format: {format}, base_url: \"http://{mock}{prefix}\", \
             auth: {{bearer: secret-of-the-upstream}}}}\n"
        );
    }
    text += "models:\n";
    for (format, _) in FORMATS {
        text += &format!(
            "  - {{id: same-{format}, upstreams: [{{name: mock-{format}}}]}}\n  \
             - {{id: other-{format}, upstreams: [{{name: mock-{format}, model: theirs-{format}}}]}}\n"
        );
    }
    text
}

/// Returns a config with one model `m` at one chat upstream `up`. The arguments are settings of the server and of the
/// upstream, as YAML in braces.
pub fn single_upstream_config(server: &str, upstream: &str) -> String {
    format!(
        "server: {{listen: LISTEN, admin: ADMIN, {server}}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: up, format: chat, {upstream}}}]\n\
         models: [{{id: m, upstreams: [{{name: up}}]}}]\n"
    )
}
