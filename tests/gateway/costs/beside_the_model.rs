//! What an upstream bills beside the tokens of the model: images of its own tool, and rankings that are several searches.

use omniglot_test_support::{
    Gateway, KEY, Mock, Response, client, echoed_request, fixed_response_upstream, response_head,
    send,
};
use serde_json::{Value, json};

use crate::model_patterns::sent_body;

fn start(format: &str, body: &Value, model: &str) -> Gateway {
    let mut wire = response_head("200 OK", "application/json");
    wire.extend(body.to_string().into_bytes());
    let upstream = fixed_response_upstream(vec![wire]);
    Gateway::start(&format!(
        "server: {{listen: LISTEN, access_log: json, conversations: off}}\nupstreams:\n  \
         - {{name: up, format: {format}, base_url: \"http://{upstream}/v1\"}}\nmodels:\n  \
         - {{id: m, {model}, upstreams: [{{name: up}}]}}\nkeys:\n  - {{name: all, secret: {KEY}}}\n  \
         - {{name: capped, secret: key-capped, spending_cap: 3}}\n"
    ))
}

async fn ask(gateway: &Gateway, key: &str, path: &str, body: &Value) -> Response {
    let asked = client().post(gateway.url(path)).bearer_auth(key);
    send(asked.json(body)).await
}

/// A response whose model has used 20 tokens and 5, and its tool for images 100 and 6000.
fn with_image() -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
           "output": [{"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw0KGgo="}],
           "usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
           "tool_usage": {"image_gen": {"input_tokens": 100, "output_tokens": 6000, "total_tokens": 6100,
                                        "input_tokens_details": {"image_tokens": 60, "text_tokens": 40}}}})
}

#[tokio::test]
async fn images_of_the_upstreams_tool_cost_their_tokens() {
    let prices = "pricing: {input: 10, output: 20, image_output: 40}";
    for (path, body) in [
        ("/v1/responses", json!({"model": "m", "input": "Draw."})),
        (
            "/v1/chat/completions",
            json!({"model": "m", "messages": [{"role": "user", "content": "Draw."}]}),
        ),
    ] {
        let gateway = start("responses", &with_image(), prices);
        let response = ask(&gateway, KEY, path, &body).await;
        // 120 at 10, 5 at 20 and 6000 at 40 for a million.
        let cost = response.header("x-omniglot-cost");
        assert_eq!(cost, "0.2413", "{path}: {}", response.text());
    }
}

#[tokio::test]
async fn images_that_a_tool_may_make_are_reserved() {
    let prices = "pricing: {input: 0, output: 40}, max_output_tokens: 100";
    let tool = json!({"type": "image_generation"});
    let search = json!({"type": "web_search"});
    for (tool, calls, is_refused) in [
        (&tool, Some(3), false),
        (&tool, Some(4), true),
        (&tool, None, true),
        (&json!({"type": "image_generation", "n": 4}), Some(1), true),
        (&search, None, false),
    ] {
        let gateway = start("responses", &with_image(), prices);
        let mut body = json!({"model": "m", "input": "Draw.", "tools": [tool]});
        if let Some(calls) = calls {
            body["max_tool_calls"] = calls.into();
        }
        let response = ask(&gateway, "key-capped", "/v1/responses", &body).await;
        let (status, text) = (response.status, response.text());
        assert_eq!(status == 429, is_refused, "{tool} {calls:?}: {text}");
    }
}

/// What is reserved for a translated request is one image for each choice, and the upstream is told so.
#[tokio::test]
async fn an_upstream_makes_no_more_images_than_are_reserved() {
    let mock = Mock::start();
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, conversations: off}}\nupstreams:\n  - {{name: up, format: responses, base_url: \"http://{}/v1\"}}\nmodels:\n  \
         - {{id: m, pricing: {{input: 1, output: 10}}, max_input_tokens: 1000, upstreams: [{{name: up}}]}}\nkeys:\n  \
         - {{name: all, secret: {KEY}}}\n  - {{name: capped, secret: key-capped, spending_cap: 3}}\n",
        mock.address
    ));
    let body = json!({"model": "m", "modalities": ["image", "text"],
                      "messages": [{"role": "user", "content": "mock:echo"}]});
    for (key, limit) in [("key-capped", json!(1)), (KEY, Value::Null)] {
        let response = ask(&gateway, key, "/v1/chat/completions", &body).await;
        let sent = sent_body(&echoed_request("chat", &response));
        assert_eq!(sent["tools"], json!([{"type": "image_generation"}]));
        assert_eq!(sent["max_tool_calls"], limit, "{key}");
    }
}

#[tokio::test]
async fn a_long_ranking_costs_as_many_searches_as_the_upstream_bills() {
    let model = "model_type: rerank, pricing: {per_request: 1}";
    let ranking = |billed: Value| json!({"results": [], "meta": billed});
    let body =
        |documents: usize| json!({"model": "m", "query": "q", "documents": vec!["a"; documents]});
    let two = json!({"billed_units": {"search_units": 2}, "tokens": {"input_tokens": 7}});
    for (meta, cost) in [
        (&two, "2"),
        (&json!({"billed_units": {"search_units": 1}}), "1"),
        (&json!({}), "1"),
    ] {
        let gateway = start("chat", &ranking(meta.clone()), model);
        let response = ask(&gateway, KEY, "/v1/rerank", &body(3)).await;
        assert_eq!(response.header("x-omniglot-cost"), cost, "{meta}");
    }
    // Routers report them in the usage.
    let routed = json!({"results": [], "usage": {"search_units": 3, "total_tokens": 9}});
    let gateway = start("chat", &routed, model);
    let response = ask(&gateway, KEY, "/v1/rerank", &body(3)).await;
    assert_eq!(response.header("x-omniglot-cost"), "3");
    // A price of tokens counts these, also where searches are reported beside them.
    let by_tokens = "model_type: rerank, pricing: {input: 1000}";
    let gateway = start("chat", &ranking(two.clone()), by_tokens);
    let response = ask(&gateway, KEY, "/v1/rerank", &body(3)).await;
    assert_eq!(response.header("x-omniglot-cost"), "0.007");
    // Up to 100 documents are one search, and the cap is 3.
    for (documents, is_refused) in [(250, false), (310, true)] {
        let gateway = start("chat", &ranking(two.clone()), model);
        let response = ask(&gateway, "key-capped", "/v1/rerank", &body(documents)).await;
        let (status, text) = (response.status, response.text());
        assert_eq!(status == 429, is_refused, "{documents}: {text}");
    }
}

/// The model does not say how much it takes, and what it reads of a field that is not known may be as long for each input.
#[tokio::test]
async fn what_is_not_known_is_reserved_for_each_input() {
    let mock = Mock::start();
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN}}\nupstreams:\n  - {{name: up, format: chat, base_url: \"http://{}/v1\"}}\nmodels:\n  \
         - {{id: m, features: [rerank, completion], pricing: {{input: 1, output: 0}}, upstreams: [{{name: up}}]}}\nkeys:\n  \
         - {{name: capped, secret: key-capped, spending_cap: 3}}\n",
        mock.address
    ));
    for (inputs, is_refused) in [(10, false), (30, true)] {
        let ranking =
            json!({"model": "m", "query": "q", "instruct": "x", "documents": vec!["a"; inputs]});
        let response = ask(&gateway, "key-capped", "/v1/rerank", &ranking).await;
        let (status, text) = (response.status, response.text());
        assert_eq!(status == 429, is_refused, "{inputs}: {text}");
    }
    // The suffix is read with every prompt.
    for (prompts, is_refused) in [(10, false), (400, true)] {
        let completion = json!({"model": "m", "prompt": vec!["a"; prompts], "suffix": "7 ".repeat(4000), "max_tokens": 1});
        let response = ask(&gateway, "key-capped", "/v1/completions", &completion).await;
        let (status, text) = (response.status, response.text());
        assert_eq!(status == 429, is_refused, "{prompts}: {text}");
    }
}
