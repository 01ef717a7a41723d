//! Output beside the limit of a request, and names of models that have other prices, for a key with a spending cap.

use omniglot_test_support::{
    Gateway, KEY, Mock, Response, client, fixed_response_upstream, request, response_head, send,
    wait_until,
};
use serde_json::{Value, json};

use super::{config, lines};

const CAPPED: &str = ", {name: capped, secret: key-capped, spending_cap: 10}";

async fn ask(gateway: &Gateway, key: &str, model: &str, more: &Value) -> Response {
    let (path, mut body) = request("chat", model, "mock:usage=1,0,1,0 mock:text=hi", false);
    for (field, value) in more.as_object().expect("an object") {
        body[field] = value.clone();
    }
    let asked = client().post(gateway.url(&path)).bearer_auth(key);
    send(asked.json(&body)).await
}

/// Some upstreams bill thinking that their limit of the output does not count.
#[tokio::test]
async fn thinking_is_reserved_beside_the_limit_of_the_output() {
    let mock = Mock::start();
    // A thousandth for every token: the cap has 10000 of them.
    let models = "  - {id: small, pricing: {output: 1000}, max_output_tokens: 6000, upstreams: [{name: chat}]}\n  \
                  - {id: open, pricing: {output: 1000}, upstreams: [{name: chat}]}\n  \
                  - {id: other, pricing: {output: 1000}, upstreams: [{name: messages}]}\n";
    let gateway = Gateway::start(&config(mock.address, CAPPED, models));
    for (thinking, tokens) in [
        (json!({"enable_thinking": true}), None),
        (
            json!({"enable_thinking": true, "thinking_budget": 7000}),
            Some(7000),
        ),
        (json!({"thinking_budget": 7000}), Some(7000)),
        (
            json!({"chat_template_kwargs": {"enable_thinking": true}}),
            None,
        ),
        (json!({"reasoning": {"max_tokens": 7000}}), Some(7000)),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 7000}}),
            Some(7000),
        ),
        (json!({"thinking": {"type": "enabled"}}), None),
    ] {
        let mut more = thinking.clone();
        more["max_tokens"] = json!(5000);
        for (model, usual) in [("small", 6000), ("open", 65536)] {
            let refused = ask(&gateway, "key-capped", model, &more).await;
            assert_eq!(refused.status, 429, "{more}: {}", refused.text());
            let message = refused.error("chat");
            let tokens = tokens.unwrap_or(usual);
            assert!(
                message.contains(&format!("may bill {tokens} tokens beside the limit")),
                "{more}: {message}"
            );
            let served = ask(&gateway, KEY, model, &more).await;
            assert_eq!(served.status, 200, "{more}: {}", served.text());
        }
        // An upstream of another format is not asked for it.
        let served = ask(&gateway, "key-capped", "other", &more).await;
        assert_ne!(served.status, 429, "{more}: {}", served.text());
        more["max_tokens"] = json!(2000);
        let served = ask(&gateway, "key-capped", "small", &more).await;
        assert_eq!(served.status, 200, "{more}: {}", served.text());
    }
    for off in [
        json!({"enable_thinking": false}),
        json!({"chat_template_kwargs": {"enable_thinking": false}}),
        json!({"thinking": {"type": "disabled"}}),
        json!({"reasoning": {"effort": "high"}}),
        json!({"reasoning_effort": "high"}),
    ] {
        let mut more = off.clone();
        more["max_tokens"] = json!(5000);
        let served = ask(&gateway, "key-capped", "open", &more).await;
        assert_eq!(served.status, 200, "{off}: {}", served.text());
    }
    // Some upstreams do not mind the case of a name.
    for odd in [
        json!({"thinking": {"type": "disabled", "Type": "enabled", "Budget_Tokens": 3}}),
        json!({"reasoning": {"max_tokens": 1, "Max_Tokens": 3}}),
    ] {
        let mut more = odd.clone();
        more["max_tokens"] = json!(5000);
        for (model, cost) in [("small", "11"), ("open", "70.536")] {
            let refused = ask(&gateway, "key-capped", model, &more).await;
            assert_eq!(refused.status, 429, "{more}: {}", refused.text());
            let message = refused.error("chat");
            let cost = format!("this request may cost {cost}:");
            assert!(message.contains(&cost), "{more}: {message}");
        }
    }
    let twice = json!({"Thinking_Budget": 1});
    let refused = ask(&gateway, "key-capped", "open", &twice).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
}

/// Between the calls of tools, thinking may go on beyond the limit of the output.
#[tokio::test]
async fn thinking_beyond_the_limit_of_a_message_is_reserved_beside_it() {
    let mock = Mock::start();
    let models = "  - {id: m, pricing: {output: 1000}, max_output_tokens: 6000, upstreams: [{name: messages}]}\n";
    let gateway = Gateway::start(&config(mock.address, CAPPED, models));
    for (budget, max_tokens, reserved) in [
        (1024, 9000, None),
        (5000, 5000, None),
        (6000, 5000, Some(6000)),
        (60000, 2000, Some(60000)),
        (3000, 2000, None),
    ] {
        let (path, mut body) = request("messages", "m", "mock:usage=1,0,1,0 mock:text=hi", false);
        body["max_tokens"] = json!(max_tokens);
        body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        let asked = client().post(gateway.url(&path)).bearer_auth("key-capped");
        let asked = asked.header("anthropic-beta", "interleaved-thinking-2025-05-14");
        let response = send(asked.json(&body)).await;
        let Some(reserved) = reserved else {
            assert_eq!(response.status, 200, "{body}: {}", response.text());
            continue;
        };
        assert_eq!(response.status, 429, "{body}: {}", response.text());
        let message = response.error("messages");
        let reason = format!("may bill {reserved} tokens beside the limit");
        assert!(message.contains(&reason), "{body}: {message}");
    }
    let (path, mut body) = request("messages", "m", "hi", false);
    body["Thinking"] = json!({"type": "enabled", "budget_tokens": 60000});
    let asked = client().post(gateway.url(&path)).bearer_auth("key-capped");
    let refused = send(asked.json(&body)).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    // Where our own encoder sets the budget, it is within the limit.
    let mut body = request("chat", "m", "mock:usage=1,0,1,0 mock:text=hi", false).1;
    body["max_tokens"] = json!(3000);
    body["reasoning_effort"] = json!("high");
    let asked = client().post(gateway.url("/v1/chat/completions"));
    let served = send(asked.bearer_auth("key-capped").json(&body)).await;
    assert_eq!(served.status, 200, "{}", served.text());
}

/// The size of an image decides its tokens, and each image reads the prompt again.
#[tokio::test]
async fn images_are_reserved_by_their_size_and_their_number() {
    let mock = Mock::start();
    let prices = [("art", "output: 1000"), ("text", "input: 1000")].map(|(id, price)| {
        format!("{{id: {id}, model_type: image, pricing: {{{price}}}, upstreams: [{{name: art}}]}}")
    });
    let caps = [8, 9, 24, 25, 80, 90].map(|cap| {
        format!("{{name: key-{cap}, secret: key-{cap}-of-a-person, spending_cap: {cap}}}")
    });
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{}]\n\
         upstreams: [{{name: art, format: images, base_url: \"http://{}/v1\"}}]\nmodels: [{}]\n",
        caps.join(", "),
        mock.address,
        prices.join(", ")
    );
    let gateway = Gateway::start(&config);
    let long = "1".repeat(3000);
    for (body, too_small, enough) in [
        (
            json!({"model": "art", "prompt": "a cat", "size": "1024x1024"}),
            8,
            9,
        ),
        (
            json!({"model": "art", "prompt": "a cat", "size": "1024x1024", "n": 10}),
            80,
            90,
        ),
        (json!({"model": "art", "prompt": "a cat"}), 24, 25),
        (
            json!({"model": "art", "prompt": "a cat", "size": "2880x2880"}),
            24,
            25,
        ),
        (json!({"model": "text", "prompt": long, "n": 8}), 24, 25),
    ] {
        for (cap, status) in [(too_small, 429), (enough, 200)] {
            let asked = client().post(gateway.url("/v1/images/generations"));
            let asked = asked.bearer_auth(format!("key-{cap}-of-a-person"));
            let response = send(asked.json(&body)).await;
            assert_eq!(response.status, status, "{cap} {body}: {}", response.text());
            assert_eq!(response.text().contains("a smaller `size`"), status == 429);
        }
    }
}

/// Routers charge other prices for `:online`, and a preset may stand for another model.
#[tokio::test]
async fn a_name_with_a_suffix_has_no_prices_of_a_wildcard() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 10}, {name: few, secret: key-few, models: [\"r/*\"]}";
    let models = "  - {id: \"r/*\", pricing: {output: 1}, upstreams: [{name: chat, model: \"*\"}]}\n  \
                  - {id: \"s/*:online\", pricing: {output: 1}, upstreams: [{name: chat, model: \"*\"}]}\n  \
                  - {id: \"free/*\", upstreams: [{name: chat, model: \"*\"}]}\n  \
                  - {id: \"r/large:online\", pricing: {output: 1}, upstreams: [{name: chat}]}\n";
    let gateway = Gateway::start(&config(mock.address, keys, models));
    for (key, model, status) in [
        ("key-capped", "r/large", 200),
        ("key-capped", "r/small:online", 400),
        ("key-capped", "r/small@preset/mine", 400),
        ("key-capped", "r/small#deployment", 400),
        ("key-capped", "r/small:8b", 200),
        ("key-capped", "r/large:online", 200),
        ("key-capped", "s/large:online", 200),
        ("key-capped", "free/large:online", 200),
        ("key-few", "r/small:online", 200),
        ("key-few", "r/small@preset/mine", 400),
        ("key-few", "r/small@Preset/mine", 400),
        (KEY, "r/small:online", 200),
        (KEY, "r/small@preset/mine", 200),
    ] {
        let response = ask(&gateway, key, model, &json!({"max_tokens": 5})).await;
        assert_eq!(
            response.status,
            status,
            "{key} {model}: {}",
            response.text()
        );
        if status == 400 {
            let message = response.error("chat");
            assert!(message.contains("list the model"), "{message}");
        }
    }
}

/// A model that an upstream lists has the prices of the wildcard that matches it.
#[tokio::test]
async fn a_discovered_model_costs_what_its_wildcard_says() {
    let mock = Mock::start();
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\n\
         keys: [{{name: capped, secret: key-capped, spending_cap: 10}}]\n\
         upstreams:\n  - {{name: mock, format: chat, base_url: \"http://{}/v1\", discover: {{prefix: acme/}}}}\n\
         models:\n  - {{id: \"acme/*\", pricing: {{output: 1000}}, upstreams: [{{name: mock, model: \"*\"}}]}}\n",
        mock.address
    );
    let gateway = Gateway::start(&config);
    wait_until("the list is read", async || {
        let list = client().get(gateway.url("/v1/models"));
        let list = send(list.bearer_auth("key-capped")).await;
        list.text().contains("acme/demo-chat")
    })
    .await;
    let served = ask(
        &gateway,
        "key-capped",
        "acme/demo-chat",
        &json!({"max_tokens": 5}),
    )
    .await;
    assert_eq!(
        served.header("x-omniglot-cost"),
        "0.001",
        "{}",
        served.text()
    );
    let more = json!({"max_tokens": 20000});
    let refused = ask(&gateway, "key-capped", "acme/demo-chat", &more).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
}

/// What an upstream uses to compact a conversation stands beside its other counts.
#[tokio::test]
async fn a_compaction_is_paid() {
    let usage = json!({"input_tokens": 23, "output_tokens": 10, "iterations": [
        {"type": "compaction", "input_tokens": 180, "output_tokens": 350},
        {"type": "message", "input_tokens": 23, "output_tokens": 10}]});
    let text = json!({"type": "text", "text": "hi"});
    let answer = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [text],
        "stop_reason": "end_turn", "usage": usage});
    let start = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
        "usage": {"input_tokens": 23, "output_tokens": 1}});
    let events = [
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": text}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let events: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    for (stream, kind, body) in [
        (false, "application/json", answer.to_string()),
        (true, "text/event-stream", events),
    ] {
        let head = response_head("200 OK", kind);
        let address = fixed_response_upstream(vec![head, body.into_bytes()]);
        let gateway = Gateway::start(&config(address, CAPPED, ""));
        for format in ["messages", "chat"] {
            let (path, asked) = request(format, "priced-messages", "hello", stream);
            let asked = client().post(gateway.url(&path)).json(&asked);
            let response = send(asked.bearer_auth("key-capped")).await;
            assert_eq!(response.status, 200, "{}", response.text());
        }
        gateway.until_idle().await;
        for line in lines(gateway) {
            assert_eq!(line.count("input_tokens"), 203, "{kind}");
            assert_eq!(line.count("output_tokens"), 360, "{kind}");
            assert_eq!(line.field("cost"), line.worth(), "{kind}");
        }
    }
}

#[tokio::test]
async fn a_compaction_is_reserved_beside_the_response() {
    let mock = Mock::start();
    // A thousandth for every token: the cap has 10000 of them.
    let models = "  - {id: small, pricing: {input: 1000, output: 1000}, max_input_tokens: 3000, max_output_tokens: 2000, \
                  upstreams: [{name: messages}]}\n";
    let gateway = Gateway::start(&config(mock.address, CAPPED, models));
    for (edit, max_tokens, status) in [
        // Input twice, the summary and the response.
        ("compact_20260112", 2100, 429),
        ("compact_20260112", 1900, 200),
        ("clear_tool_uses_20250919", 2100, 200),
    ] {
        let words = "mock:usage=1,0,1,0 mock:text=hi";
        let (path, mut body) = request("messages", "small", words, false);
        body["max_tokens"] = max_tokens.into();
        body["context_management"] = json!({"edits": [{"type": edit}]});
        let asked = client().post(gateway.url(&path)).json(&body);
        let response = send(asked.bearer_auth("key-capped")).await;
        assert_eq!(response.status, status, "{edit}: {}", response.text());
    }
}
