//! A request that becomes longer in translation is reserved as it is sent: the upstream does not know references in schemas,
//! so that each of them is replaced by what it stands for.

use omniglot_test_support::{Gateway, Mock, Response, client, request, send};
use serde_json::{Value, json};

use super::config;

/// A thousandth for every token of the input.
const KEYS: &str = ", {name: capped, secret: key-capped, spending_cap: 30}, \
                    {name: rich, secret: key-rich, spending_cap: 2000}";
const MODELS: &str = "
  - {id: dear, pricing: {input: 1000}, upstreams: [{name: native}]}
  - {id: cheap, pricing: {input: 1}, upstreams: [{name: away}], fallbacks: [dear]}
";

fn start(mock: &Mock) -> Gateway {
    let away = "  - {name: away, format: native, base_url: \"http://127.0.0.1:1\"}\nmodels:\n";
    Gateway::start(&config(mock.address, KEYS, MODELS).replacen("models:\n", away, 1))
}

/// A tool whose schema names something of 2000 characters so many times.
fn tools(count: usize) -> Value {
    let names = (0..count).map(|number| format!("p{number}"));
    let properties = names.map(|name| (name, json!({"$ref": "#/$defs/long"})));
    let properties: serde_json::Map<String, Value> = properties.collect();
    let long = json!({"type": "string", "description": "x".repeat(2000)});
    json!([{"type": "function", "function": {"name": "look", "parameters": {
        "type": "object", "properties": properties, "$defs": {"long": long}}}}])
}

async fn ask(gateway: &Gateway, key: &str, model: &str, more: &Value) -> Response {
    let words = "mock:usage=1,0,1,0 mock:text=hi";
    let (path, mut body) = request("chat", model, words, false);
    for (field, value) in more.as_object().expect("an object") {
        body[field] = value.clone();
    }
    if let Some(image) = more.get("image") {
        body["messages"] = json!([{"role": "user", "content": [{"type": "text", "text": words},
            {"type": "image_url", "image_url": {"url": image}}]}]);
    }
    body.as_object_mut().expect("an object").remove("image");
    let asked = client().post(gateway.url(&path)).bearer_auth(key);
    send(asked.json(&body)).await
}

#[tokio::test]
async fn what_is_left_out_makes_no_room_for_what_is_added() {
    let mock = Mock::start();
    let gateway = start(&mock);
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = |data: &str| format!("data:image/png;base64,{data}");
    let padded = image(&(png.to_owned() + &" ".repeat(150_000)));
    let long = image(&"iVBORw0K".repeat(20_000));
    for (image, references, status) in [
        (&padded, 1, 200),
        (&padded, 50, 429),
        (&long, 1, 200),
        (&long, 50, 429),
    ] {
        let more = json!({"image": image, "tools": tools(references)});
        let answered = ask(&gateway, "key-capped", "dear", &more).await;
        let length = image.len();
        let text = answered.text();
        assert_eq!(answered.status, status, "{references}, {length}: {text}");
    }
}

#[tokio::test]
async fn each_attempt_is_reserved_at_its_own_price() {
    let mock = Mock::start();
    let gateway = start(&mock);
    for (references, status) in [(2, 200), (50, 429)] {
        let more = json!({"tools": tools(references)});
        let answered = ask(&gateway, "key-capped", "cheap", &more).await;
        assert_eq!(answered.status, status, "{references}: {}", answered.text());
    }
}

#[tokio::test]
async fn each_time_that_it_is_read_is_reserved() {
    let mock = Mock::start();
    let gateway = start(&mock);
    // 200 times 2000 characters, once or eleven times, beside the million tokens of a model that does not say what it takes.
    for (search, references, status) in [(false, 200, 200), (true, 1, 200), (true, 200, 429)] {
        let mut more = json!({"tools": tools(references)});
        if search {
            more["web_search_options"] = json!({});
        }
        let answered = ask(&gateway, "key-rich", "dear", &more).await;
        let text = answered.text();
        assert_eq!(answered.status, status, "{search}, {references}: {text}");
    }
}
