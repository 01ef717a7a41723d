//! Runs the whole process over real sockets, with the mock behind it.

mod access_log;
mod account_caps;
mod admin;
mod audio;
mod bedrock;
mod bedrock_clients;
mod bodies;
mod browsers;
mod cloud_clients;
mod cloud_embeddings;
mod cloud_secrets;
mod clouds;
mod command_line;
mod console;
mod console_administration;
mod console_alerts;
mod console_attempts;
mod console_audit;
mod console_catalog;
mod console_explorer;
mod console_home;
mod console_identity;
mod console_inspect;
mod console_mail;
mod console_play;
mod console_second_factor;
mod console_teams;
mod console_usage;
mod conversation_owners;
mod conversations;
mod costs;
mod count_tokens;
mod demo;
mod discovery;
mod drain;
mod embeddings;
mod endpoints;
mod fetched_credentials;
mod header_conditions;
mod hooks;
mod http1_framing;
mod images;
mod import;
mod keep_alive;
mod kept_ids;
mod keys;
mod live_check;
mod model_lists;
mod model_patterns;
mod native;
mod open_files;
mod passthrough;
mod probes;
mod protocols;
mod provider_hosts;
mod providers;
mod proxies;
mod quick_start;
mod recordings;
mod refusals;
mod reload;
mod request_shapes;
mod resilience;
mod store_commands;
mod stored_reads;
mod streaming;
mod telemetry;
mod tool_loops;
mod translation;
mod upgrade;
mod upstream_models;
mod upstream_tls;
mod upstreams;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, every_format_config, new_client, request,
};

#[tokio::test]
async fn a_request_in_each_format_is_answered() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for stream in [false, true] {
            let (path, body) = request(format, &format!("same-{format}"), "hello", stream);
            let response = new_client()
                .post(gateway.url(&path))
                .bearer_auth(KEY)
                .json(&body)
                .send()
                .await
                .expect("an answer");
            assert_eq!(response.status(), 200, "{format}");
            let text = response.text().await.expect("a body");
            assert!(text.contains("hello"), "{format}: {text}");
        }
    }
}
