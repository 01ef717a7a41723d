//! The cost of requests is the same in the header, the access log and the metrics, and as computed by hand.

mod beside_the_model;
mod concurrency;
mod extra_output;
mod grown_bodies;
mod interrupted;
mod left_clients;
mod spending_caps;
mod tool_rounds;
mod unreadable_streams;
mod unseen_input;
mod unusable_responses;

use std::collections::HashMap;
use std::net::SocketAddr;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, fixed_response_upstream, post, request, send,
};
use serde_json::Value;
use serde_json::value::RawValue;

/// The prices of every model named `priced-…`.
const PRICES: &str = "{currency: USD per 1M tokens, input: 1.25, output: 10, cached_input: 0.125, \
                      thinking: 12.5, per_request: 0.000001}";

/// One model per format with prices, and more models as given. The keys go in braces.
fn config(mock: SocketAddr, keys: &str, models: &str) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN, access_log: json}}\n\
         keys: [{{name: all, secret: {KEY}}}{keys}]\nupstreams:\n"
    );
    for (format, prefix) in FORMATS {
        text += &format!(
            "  - {{name: {format}, format: {format}, base_url: \"http://{mock}{prefix}\"}}\n"
        );
    }
    text += "models:\n";
    for (format, _) in FORMATS {
        text += &format!(
            "  - {{id: priced-{format}, pricing: {PRICES}, upstreams: [{{name: {format}}}]}}\n"
        );
    }
    text + models
}

/// A line of the access log, with its numbers as they are written.
struct LogLine(HashMap<String, Box<RawValue>>);

impl LogLine {
    fn field(&self, name: &str) -> &str {
        let field = self.0.get(name);
        field.unwrap_or_else(|| panic!("no {name}")).get()
    }

    fn count(&self, name: &str) -> u64 {
        self.field(name).parse().expect("a count")
    }

    /// What its tokens come to by the prices above, worked out in units of 10^-9.
    fn worth(&self) -> String {
        let (input, cached) = (self.count("input_tokens"), self.count("cached_tokens"));
        let (output, thinking) = (self.count("output_tokens"), self.count("thinking_tokens"));
        let nanos = (input - cached) * 1250 + cached * 125;
        let nanos = nanos + (output - thinking) * 10_000 + thinking * 12_500 + 1000;
        let written = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
        let trimmed = written.trim_end_matches('0').trim_end_matches('.');
        trimmed.to_owned()
    }
}

/// Ends the gateway and reads its log.
fn lines(mut gateway: Gateway) -> Vec<LogLine> {
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
    let lines = gateway.process.lines_to_the_end();
    lines
        .iter()
        .map(|line| LogLine(serde_json::from_str(line).expect("each line is JSON")))
        .collect()
}

fn line_of<'a>(lines: &'a [LogLine], id: &str) -> &'a LogLine {
    let quoted = format!("{id:?}");
    let mut found = lines
        .iter()
        .filter(|line| line.field("request_id") == quoted);
    let line = found.next().expect("a line for the request");
    assert!(found.next().is_none(), "only one line for {id}");
    line
}

async fn send_request(
    gateway: &Gateway,
    format: &str,
    model: &str,
    words: &str,
    stream: bool,
) -> Response {
    let (path, body) = request(format, model, words, stream);
    post(gateway.url(&path), body.to_string()).await
}

#[tokio::test]
async fn every_pair_of_formats_costs_the_same_as_json_and_as_a_stream() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    // 600 × 1.25 + 400 × 0.125 + 30 × 10 + 20 × 12.5 = 1350 for a million, and 0.000001.
    let (words, cost) = ("mock:usage=1000,400,50,20 mock:text=hello", "0.001351");
    let mut request = Vec::new();
    for (client, _) in FORMATS {
        for (upstream, _) in FORMATS {
            for stream in [false, true] {
                let model = format!("priced-{upstream}");
                let response = send_request(&gateway, client, &model, words, stream).await;
                assert_eq!(response.status, 200, "{}", response.text());
                let pair = format!("{client} → {upstream}, stream: {stream}");
                let shown = if stream { "" } else { cost };
                assert_eq!(response.header("x-omniglot-cost"), shown, "{pair}");
                assert_eq!(response.header("x-omniglot-estimated"), "", "{pair}");
                request.push((pair, response.header("x-request-id").to_owned()));
            }
        }
    }
    gateway.until_idle().await;
    // Eight requests of each model.
    for (upstream, _) in FORMATS {
        let name = format!("omniglot_cost_total{{key=\"all\",model=\"priced-{upstream}\"}}");
        let lines = gateway.metric(&name).await;
        assert_eq!(lines, [format!("{name} 0.010808")]);
    }
    assert!(
        gateway
            .metric("omniglot_estimated_tokens_total")
            .await
            .is_empty()
    );
    let lines = lines(gateway);
    assert_eq!(lines.len(), 32);
    for (pair, id) in request {
        let line = line_of(&lines, &id);
        assert_eq!(line.field("cost"), cost, "{pair}");
        assert_eq!(line.field("estimated"), "false", "{pair}");
        assert_eq!(line.worth(), cost, "{pair}");
    }
}

#[tokio::test]
async fn refusals_counts_and_models_without_prices_cost_nothing() {
    let mock = Mock::start();
    let models = "  - {id: free, upstreams: [{name: chat}]}\n";
    let gateway = Gateway::start(&config(mock.address, "", models));
    let mut ids = Vec::new();
    for words in [
        "mock:error=400",
        "mock:error=500",
        "mock:error=429",
        "mock:status_200_error",
        "mock:stream_error=0",
        "mock:garbage",
        "mock:empty",
        "mock:cut",
    ] {
        for stream in [false, true] {
            for (client, _) in FORMATS {
                let response =
                    send_request(&gateway, client, "priced-messages", words, stream).await;
                assert!(response.status >= 400, "{words}: {}", response.text());
                assert_eq!(response.header("x-omniglot-cost"), "", "{words}");
                ids.push((words, response.header("x-request-id").to_owned()));
            }
        }
    }
    let (_, mut count) = request("messages", "priced-chat", "hello", false);
    let fields = count.as_object_mut().expect("an object");
    fields.retain(|name, _| !matches!(name.as_str(), "max_tokens" | "stream"));
    for model in ["priced-chat", "priced-messages"] {
        count["model"] = model.into();
        let url = gateway.url("/v1/messages/count_tokens");
        let response = post(url, count.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-omniglot-cost"), "");
        ids.push((model, response.header("x-request-id").to_owned()));
    }
    for stream in [false, true] {
        let response = send_request(&gateway, "chat", "free", "mock:usage=10,0,10,0", stream).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("x-omniglot-cost"), "");
        ids.push(("free", response.header("x-request-id").to_owned()));
    }
    let lines = lines(gateway);
    for (what, id) in ids {
        let line = line_of(&lines, &id);
        assert_eq!(line.field("cost"), "null", "{what}");
        let tokens = if what == "free" { "10" } else { "null" };
        assert_eq!(line.field("output_tokens"), tokens, "{what}");
    }
}

#[tokio::test]
async fn a_fallback_is_billed_at_its_own_price() {
    let mock = Mock::start();
    let models = "  - {id: dear, pricing: {input: 1000}, upstreams: [{name: chat, model: 'x+error=500'}], \
                  fallbacks: [priced-messages]}\n";
    let gateway = Gateway::start(&config(mock.address, "", models));
    let response = send_request(&gateway, "chat", "dear", "hello", false).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("x-omniglot-upstream"), "messages");
    // One word in, three out: "You said: hello".
    assert_eq!(response.header("x-omniglot-cost"), "0.00003225");
}

#[tokio::test]
async fn time_is_billed_by_the_millisecond() {
    let mock = Mock::start();
    let models = "  - {id: timed, pricing: {per_second: 0.5}, upstreams: [{name: chat}]}\n";
    let gateway = Gateway::start(&config(mock.address, "", models));
    let mut request = Vec::new();
    for stream in [false, true] {
        let response = send_request(&gateway, "messages", "timed", "mock:slow=20ms", stream).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let cost = response.header("x-omniglot-cost").to_owned();
        request.push((response.header("x-request-id").to_owned(), cost));
    }
    let lines = lines(gateway);
    for (id, header) in request {
        let line = line_of(&lines, &id);
        let took = line.count("priced_ms");
        assert!(took >= 20, "{took}");
        let total: f64 = line.field("total_ms").parse().expect("a number");
        assert!(took as f64 <= total, "{took} of {total}");
        let cost = format!("{}.{:04}", took * 5 / 10_000, took * 5 % 10_000);
        let cost = cost.trim_end_matches('0').trim_end_matches('.');
        assert_eq!(line.field("cost"), cost);
        assert!(header.is_empty() || header == cost, "{header} for {cost}");
    }
}

#[tokio::test]
async fn responses_without_usage_are_estimated() {
    let response = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,
        "message":{"role":"assistant","content":"twelve bytes"},"finish_reason":"stop"}]}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        response.len()
    );
    let upstream = fixed_response_upstream(vec![head.into_bytes(), response.as_bytes().to_vec()]);
    let gateway = Gateway::start(&config(upstream, "", ""));
    for format in ["chat", "messages"] {
        let (path, body) = request(format, "priced-chat", "hello", false);
        let body = body.to_string();
        let sent = client().post(gateway.url(&path)).bearer_auth(KEY);
        let answer = send(sent.body(body.clone())).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-omniglot-estimated"), "true");
        // A quarter of the body's bytes, and three tokens of answer.
        let nanos = body.len().div_ceil(4) * 1250 + 3 * 10_000 + 1000;
        let cost = format!("0.{nanos:09}");
        assert_eq!(
            answer.header("x-omniglot-cost"),
            cost.trim_end_matches('0'),
            "{format}"
        );
        let message: Value = answer.json();
        assert!(message["usage"].is_null() || message["usage"]["output_tokens"] == 0);
    }
}
