//! Models without entries: aliases, `UPSTREAM/MODEL`, and names that nothing else matches.

use std::net::SocketAddr;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, echoed_request, post, request, send,
};
use serde_json::{Value, json};

use crate::images::echoed;
use crate::model_patterns::sent_body;

fn upstreams(mock: SocketAddr) -> String {
    let upstreams = FORMATS.map(|(format, prefix)| {
        format!("  - {{name: {format}, format: {format}, base_url: \"http://{mock}{prefix}\"}}\n")
    });
    format!(
        "keys:\n  - {{name: all, secret: {KEY}}}\n  - {{name: some, secret: key-of-some, models: [\"chat/*\", big]}}\n\
         upstreams:\n{}  - {{name: painter, format: images, base_url: \"http://{mock}/v1\"}}\n",
        upstreams.concat()
    )
}

async fn ask(gateway: &Gateway, key: &str, model: &str) -> Response {
    let (path, body) = request("chat", model, "mock:echo", false);
    send(
        client()
            .post(gateway.url(&path))
            .bearer_auth(key)
            .json(&body),
    )
    .await
}

/// The upstream that answers, and the name in the body that it was sent, if there is one.
async fn route(gateway: &Gateway, model: &str) -> (String, Value) {
    let response = ask(gateway, KEY, model).await;
    let echo = echoed_request("chat", &response);
    assert_eq!(response.json()["model"], model);
    let upstream = response.header("x-omniglot-upstream").to_owned();
    (upstream, sent_body(&echo)["model"].clone())
}

async fn ids(gateway: &Gateway, key: &str) -> Vec<String> {
    let list = send(client().get(gateway.url("/v1/models")).bearer_auth(key)).await;
    let list = list.json();
    let list = list["data"].as_array().expect("a list").iter();
    list.map(|model| model["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[tokio::test]
async fn a_config_without_models_serves_every_upstream_under_its_name() {
    let mock = Mock::start();
    let server = "server: {listen: LISTEN, admin: ADMIN}\n";
    let gateway = Gateway::start(&format!("{server}{}", upstreams(mock.address)));
    for name in ["chat", "messages", "responses"] {
        let found = route(&gateway, &format!("{name}/vendor/large")).await;
        assert_eq!(found, (name.to_owned(), json!("vendor/large")));
    }
    assert_eq!(route(&gateway, "native/large").await.0, "native");
    // With several upstreams it is not clear whose a bare name is.
    for name in ["large", "unknown/large", "chat"] {
        assert_eq!(ask(&gateway, KEY, name).await.status, 404, "{name}");
    }
    assert_eq!(ask(&gateway, "key-of-some", "chat/large").await.status, 200);
    assert_eq!(
        ask(&gateway, "key-of-some", "messages/large").await.status,
        403
    );
    let body = json!({"model": "painter/art", "prompt": "mock:echo"}).to_string();
    let painted = post(gateway.url("/v1/images/generations"), body).await;
    assert_eq!(sent_body(&echoed(&painted.json()))["model"], "art");
    assert_eq!(ids(&gateway, KEY).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_only_upstream_of_a_config_without_models_serves_bare_names_too() {
    let mock = Mock::start();
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: acme, format: chat, base_url: \"http://{}/v1\"}}]\n",
        mock.address
    ));
    for (name, sent) in [
        ("large", "large"),
        ("vendor/large", "vendor/large"),
        ("acme/large", "large"),
    ] {
        assert_eq!(
            route(&gateway, name).await,
            ("acme".to_owned(), json!(sent))
        );
    }
    // The empty list is a list.
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nmodels: []\n\
         upstreams: [{{name: acme, format: chat, base_url: \"http://{}/v1\"}}]\n",
        mock.address
    ));
    for name in ["large", "acme/large"] {
        assert_eq!(ask(&gateway, KEY, name).await.status, 404, "{name}");
    }
}

#[tokio::test]
async fn prefixes_and_a_default_stand_beside_a_list_when_they_are_switched_on() {
    let mock = Mock::start();
    let models = "models:\n  - {id: chat/own, upstreams: [{name: messages, model: theirs}]}\n";
    for (server, prefixed, bare) in [
        ("", 404, 404),
        (", upstream_prefixes: on", 200, 404),
        (", default_upstream: responses", 200, 200),
    ] {
        let server = format!("server: {{listen: LISTEN, admin: ADMIN{server}}}\n");
        let gateway = Gateway::start(&format!("{server}{}{models}", upstreams(mock.address)));
        let own = route(&gateway, "chat/own").await;
        assert_eq!(own, ("messages".to_owned(), json!("theirs")));
        assert_eq!(
            ask(&gateway, KEY, "chat/large").await.status,
            prefixed,
            "{server}"
        );
        assert_eq!(ask(&gateway, KEY, "large").await.status, bare, "{server}");
        if bare == 200 {
            let name = "chat/large";
            assert_eq!(
                route(&gateway, name).await,
                ("responses".to_owned(), json!(name))
            );
        }
    }
}

#[tokio::test]
async fn aliases_are_names_of_their_model() {
    let mock = Mock::start();
    let models = "models:\n  - {id: large, aliases: [big, vendor/big], upstreams: [{name: chat}]}\n  \
                  - {id: small, aliases: [tiny], upstreams: [{name: messages, model: theirs}], fallbacks: [big]}\n";
    let server = "server: {listen: LISTEN, admin: ADMIN}\n";
    let gateway = Gateway::start(&format!("{server}{}{models}", upstreams(mock.address)));
    for (name, upstream, sent) in [
        ("big", "chat", "large"),
        ("vendor/big", "chat", "large"),
        ("tiny", "messages", "theirs"),
    ] {
        assert_eq!(
            route(&gateway, name).await,
            (upstream.to_owned(), json!(sent))
        );
    }
    assert_eq!(
        ids(&gateway, KEY).await,
        ["large", "big", "vendor/big", "small", "tiny"]
    );
    assert_eq!(ids(&gateway, "key-of-some").await, ["big"]);
    assert_eq!(ask(&gateway, "key-of-some", "big").await.status, 200);
    assert_eq!(ask(&gateway, "key-of-some", "large").await.status, 403);
    let single = send(client().get(gateway.url("/v1/models/big")).bearer_auth(KEY)).await;
    assert_eq!(single.json()["id"], "big");
}
