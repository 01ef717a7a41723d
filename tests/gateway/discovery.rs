//! `upstreams[].discover`: models that upstreams list are routed, shown, refreshed, and kept when a list fails.

use std::sync::{Arc, Mutex};

use omniglot_test_support::{
    FORMATS, Gateway, Http1Upstream, KEY, Mock, Response, Stderr, client, echoed_request, request,
    send, wait_for, wait_until,
};
use serde_json::{Value, json};

use crate::model_patterns::sent_body;

/// An upstream for each format, whose models have the format as their prefix.
fn config(mock: &Mock) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys:\n  - {{name: all, secret: {KEY}}}\n  \
         - {{name: some, secret: key-of-some, models: [\"chat/*\"]}}\nupstreams:\n"
    );
    for (format, prefix) in FORMATS {
        text += &format!(
            "  - {{name: {format}, format: {format}, base_url: \"http://{}{prefix}\", \
             discover: {{prefix: {format}/, exclude: [demo-image, demo-embedding, demo-completion]}}}}\n",
            mock.address
        );
    }
    text + "models:\n  - {id: chat/demo-native, upstreams: [{name: messages, model: mine}]}\n  \
            - {id: \"chat/demo-*\", upstreams: [{name: native}]}\n"
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

async fn get(gateway: &Gateway, path: &str, key: &str) -> Value {
    let response = send(client().get(gateway.url(path)).bearer_auth(key)).await;
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

async fn ids(gateway: &Gateway, key: &str) -> Vec<String> {
    let list = get(gateway, "/v1/models", key).await;
    let list = list["data"].as_array().expect("a list").iter();
    list.map(|model| model["id"].as_str().expect("an id").to_owned())
        .collect()
}

async fn until_listed(gateway: &Gateway, expected: &[&str]) {
    wait_until("the list is read", async || {
        ids(gateway, KEY).await == expected
    })
    .await;
}

#[tokio::test]
async fn the_models_that_upstreams_list_are_served_and_shown() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let listed = wait_for("all lists", async || {
        let ids = ids(&gateway, KEY).await;
        (ids.len() == 16).then_some(ids)
    })
    .await;
    assert_eq!(
        listed[0], "chat/demo-native",
        "that of the config, and once"
    );
    for (format, _) in FORMATS {
        for own in ["demo-chat", "demo-messages", "demo-responses"] {
            let name = format!("{format}/{own}");
            assert!(listed.contains(&name), "{name}: {listed:?}");
            let response = ask(&gateway, &name).await;
            let echo = echoed_request("chat", &response);
            assert_eq!(response.header("x-omniglot-upstream"), format, "{name}");
            assert_eq!(response.json()["model"], name.as_str());
            match format {
                "native" => assert!(echo["path"].to_string().contains(own), "{echo}"),
                _ => assert_eq!(sent_body(&echo)["model"], own),
            }
        }
    }
    // An id of the config wins, and a list wins over a pattern.
    let response = ask(&gateway, "chat/demo-native").await;
    assert_eq!(response.header("x-omniglot-upstream"), "messages");
    assert_eq!(
        sent_body(&echoed_request("chat", &response))["model"],
        "mine"
    );
    let response = ask(&gateway, "chat/demo-other").await;
    assert_eq!(response.header("x-omniglot-upstream"), "native");
    for unknown in ["messages/demo-image", "messages/other", "demo-chat"] {
        assert_eq!(ask(&gateway, unknown).await.status, 404, "{unknown}");
    }
    let catalog = get(&gateway, "/api/models?page_size=500", KEY).await;
    assert_eq!(catalog["total"], 16);
    let native = get(&gateway, "/v1beta/models?pageSize=1000", KEY).await;
    assert_eq!(native["models"].as_array().map(Vec::len), Some(16));
    let one = get(&gateway, "/v1/models/messages/demo-chat", KEY).await;
    assert_eq!(one["id"], "messages/demo-chat");
    let some = ids(&gateway, "key-of-some").await;
    assert!(some.iter().all(|id| id.starts_with("chat/")), "{some:?}");
    assert_eq!(some.len(), 4, "{some:?}");
    let counts = gateway.metric("omniglot_upstream_discovered_models").await;
    assert_eq!(counts.len(), 4, "{counts:?}");
    assert!(counts.iter().all(|line| line.ends_with(" 4")), "{counts:?}");
}

/// What an upstream answers to requests for its list: the status, and the body by the query.
type ListAnswer = Arc<Mutex<(u16, Box<dyn Fn(&str) -> String + Send>)>>;

async fn list_upstream(answer: &ListAnswer) -> Http1Upstream {
    let answer = Arc::clone(answer);
    Http1Upstream::start(move |mut connection, _| {
        let answer = Arc::clone(&answer);
        async move {
            while let Some(asked) = connection.read_message().await {
                let path = asked.line.split(' ').nth(1).unwrap_or_default().to_owned();
                let (status, body) = {
                    let answer = answer.lock().expect("no panic");
                    (answer.0, (answer.1)(&path))
                };
                assert!(path.starts_with("/v1/models"), "{path}");
                assert_eq!(asked.header("authorization"), Some("Bearer hush-hush"));
                let head = format!(
                    "HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                connection.send(head + &body).await;
            }
        }
    })
    .await
}

fn page(names: &[&str], more: bool) -> String {
    let data: Vec<Value> = names.iter().map(|name| json!({"id": name})).collect();
    json!({"data": data, "has_more": more, "last_id": names.last()}).to_string()
}

#[tokio::test]
async fn a_list_is_read_again_and_the_last_good_one_is_kept() {
    let answer: ListAnswer = Arc::new(Mutex::new((200, Box::new(|_: &str| page(&["one"], false)))));
    let set = |status: u16, body: Box<dyn Fn(&str) -> String + Send>| {
        *answer.lock().expect("no panic") = (status, body);
    };
    let upstream = list_upstream(&answer).await;
    let text = |interval: &str| {
        format!(
            "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
             upstreams: [{{name: up, format: chat, auth: {{bearer: hush-hush}}, {}, discover: {{interval: {interval}}}}}]\n\
             models: []\n",
            upstream.base_url()
        )
    };
    let stderr = Stderr::new();
    let mut gateway = Gateway::start_with(&text("1s"), |command| stderr.attach(command));
    until_listed(&gateway, &["one"]).await;
    // All pages, in the upstream's order.
    set(
        200,
        Box::new(|path: &str| match path {
            "/v1/models" => page(&["two", "one"], true),
            "/v1/models?after=one" => page(&["three"], false),
            other => panic!("{other}"),
        }),
    );
    until_listed(&gateway, &["two", "one", "three"]).await;
    let failing = async |value: &str| {
        wait_until("the metric changes", async || {
            let lines = gateway.metric("omniglot_upstream_discovery_failing").await;
            lines
                == [format!(
                    "omniglot_upstream_discovery_failing{{upstream=\"up\"}} {value}"
                )]
        })
        .await;
    };
    failing("0").await;
    for (status, body) in [
        (503, "{}".to_owned()),
        (200, "no list".to_owned()),
        (200, " ".repeat(5 << 20)),
    ] {
        set(status, Box::new(move |_: &str| body.clone()));
        failing("1").await;
        assert_eq!(ids(&gateway, KEY).await, ["two", "one", "three"]);
        set(
            200,
            Box::new(|_: &str| page(&["two", "one", "three"], false)),
        );
        failing("0").await;
    }
    let line = stderr.line_with("its list of models cannot be read", &mut gateway.process);
    assert!(line.expect("a line").contains("upstream up: "));
    // A reload that leaves the list's settings alone keeps it, though the upstream fails.
    set(503, Box::new(|_: &str| String::new()));
    gateway.rewrite(&text("10m"));
    gateway.process.signal("HUP");
    let metric = "omniglot_config_reloads_total{outcome=\"taken\"}";
    wait_until("the reload is over", async || {
        let lines = gateway.metric(metric).await;
        lines.iter().any(|line| line.ends_with(" 1"))
    })
    .await;
    assert_eq!(ids(&gateway, KEY).await, ["two", "one", "three"]);
    assert!(!stderr.text().contains("hush-hush"));
}

#[tokio::test]
async fn a_gateway_starts_without_the_lists() {
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: up, format: chat, base_url: \"http://127.0.0.1:9/v1\", discover: on}}]\nmodels: []\n"
    );
    let gateway = Gateway::start(&config);
    assert_eq!(ids(&gateway, KEY).await, [] as [String; 0]);
    let response = ask(&gateway, "anything").await;
    assert_eq!(response.status, 404, "{}", response.text());
}
