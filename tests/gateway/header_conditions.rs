//! Upstreams of a model that are for requests with a header: order, failover, refusals, image tasks, what is sent.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, echoed_request, omniglot, request, send,
    wait_for,
};
use serde_json::{Value, json};

fn config(mock: &Mock) -> String {
    let tier = |value: &str| format!("when: {{header: {{name: X-Tier, value: \"{value}\"}}}}");
    let (batch, broken) = (tier("batch-*"), tier("broken"));
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n  \
         - {{name: nobody, format: chat, base_url: \"http://127.0.0.1:9\"}}\n  \
         - {{name: painter, format: images, base_url: \"http://{address}/v1\"}}\n",
        address = mock.address
    );
    for (format, prefix) in FORMATS {
        let base_url = format!("http://{}{prefix}", mock.address);
        text += &format!("  - {{name: {format}, format: {format}, base_url: \"{base_url}\"}}\n");
    }
    text + &format!(
        "models:\n  - id: m\n    upstreams:\n      - {{name: chat}}\n      \
         - {{name: messages, priority: 3, {batch}}}\n      - {{name: nobody, {broken}}}\n  \
         - {{id: only, upstreams: [{{name: native, {batch}}}]}}\n  \
         - {{id: art, model_type: image, upstreams: [{{name: painter, {batch}}}]}}\n"
    )
}

async fn ask(gateway: &Gateway, format: &str, model: &str, tier: &[&str]) -> Response {
    let (path, body) = request(format, model, "mock:echo", false);
    let mut call = client().post(gateway.url(&path)).bearer_auth(KEY);
    for value in tier {
        call = call.header("x-tier", *value);
    }
    send(call.json(&body)).await
}

#[tokio::test]
async fn a_header_decides_which_upstream_serves_and_stays_here() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (format, _) in FORMATS {
        for (tier, upstream, attempts) in [
            (&[][..], "chat", "1"),
            (&["gold"], "chat", "1"),
            (&["batch-7"], "messages", "1"),
            (&["gold", "batch-7"], "messages", "1"),
            (&["broken"], "chat", "2"),
        ] {
            let response = ask(&gateway, format, "m", tier).await;
            let echo = echoed_request(format, &response);
            assert_eq!(response.header("x-omniglot-upstream"), upstream, "{tier:?}");
            assert_eq!(response.header("x-omniglot-attempts"), attempts, "{tier:?}");
            let headers = echo["headers"].to_string();
            assert!(!headers.contains("x-tier"), "{headers}");
        }
    }
}

#[tokio::test]
async fn a_request_that_meets_no_condition_is_a_404_where_all_have_one() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (format, _) in FORMATS {
        let response = ask(&gateway, format, "only", &["batch-1"]).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let response = ask(&gateway, format, "only", &["gold"]).await;
        assert_eq!(response.status, 404, "{}", response.text());
        let message = response.error(format);
        assert!(message.contains("`only`"), "{message}");
        assert!(message.contains("header"), "{message}");
        assert!(!message.contains("x-tier"), "{message}");
    }
}

#[tokio::test]
async fn an_image_task_keeps_the_header_until_it_runs() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let body = json!({"model": "art", "prompt": "a cat", "async": true});
    let call = || {
        client()
            .post(gateway.url("/v1/images/generations"))
            .bearer_auth(KEY)
    };
    let refused = send(call().json(&body)).await;
    assert_eq!(refused.status, 404, "{}", refused.text());
    let accepted = send(call().header("x-tier", "batch-1").json(&body)).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    let url = gateway.url(accepted.header("location"));
    let task: Value = wait_for("the end of the task", async || {
        let task = send(client().get(&url).bearer_auth(KEY)).await.json();
        let is_over = task["status"] != "queued" && task["status"] != "running";
        is_over.then_some(task)
    })
    .await;
    assert_eq!(task["status"], "succeeded", "{task}");
}

#[tokio::test]
async fn the_check_shows_the_conditions() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let check = |arguments: &[&str]| {
        let mut command = omniglot();
        command.args(["check", "-c"]).arg(gateway.file());
        let output = command.args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).expect("text")
    };
    let table = check(&["--model", "m"]);
    let rows: Vec<&str> = table.lines().skip(3).collect();
    assert!(
        rows[0].starts_with("| nobody when x-tier: broken "),
        "{table}"
    );
    assert!(
        rows[1].starts_with("| messages when x-tier: batch-* "),
        "{table}"
    );
    assert!(rows[2].starts_with("| chat "), "{table}");
    assert!(check(&[]).contains("| messages when x-tier: batch-* "));
}
