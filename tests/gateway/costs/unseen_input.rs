//! Input that a request only refers to, and output without a limit, for a key with a spending cap.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, echoed_request, request, send,
};
use serde_json::{Value, json};

use super::config;

const CAPPED: &str = ", {name: capped, secret: key-capped, spending_cap: 10}";

/// A thousandth for every token of the input. Each model takes 20000 tokens, which is twice the cap.
fn models() -> String {
    let models = FORMATS.map(|(format, _)| {
        format!(
            "  - {{id: dear-{format}, pricing: {{input: 1000}}, max_input_tokens: 20000, \
             upstreams: [{{name: {format}}}]}}\n  \
             - {{id: sharp-{format}, pricing: {{input: 1000}}, max_image_tokens: 12000, \
             upstreams: [{{name: {format}}}]}}\n"
        )
    });
    models.concat()
}

/// A gateway that does not ask whose ids are.
fn start_without_owners(mock: &Mock) -> Gateway {
    let config = config(mock.address, CAPPED, &models());
    Gateway::start(&config.replace("access_log: json", "access_log: json, conversations: off"))
}

async fn send_to(gateway: &Gateway, format: &str, key: &str, model: &str, more: Value) -> Response {
    let (path, mut body) = request(format, model, "mock:usage=36000,0,1,0 mock:text=hi", false);
    for (field, value) in more.as_object().expect("an object") {
        body[field] = value.clone();
    }
    let asked = client().post(gateway.url(&path)).bearer_auth(key);
    send(asked.json(&body)).await
}

fn user(content: Value) -> Value {
    json!([{"role": "user", "content": content}])
}

/// What a request may refer to, by the format of the client.
fn references() -> Vec<(&'static str, Value)> {
    let part = |part: Value| json!([{"role": "user", "parts": [part]}]);
    let long = "https://files.example/long.pdf";
    vec![
        ("responses", json!({"prompt": {"id": "pmpt_1"}})),
        (
            "responses",
            json!({"input": user(json!([{"type": "input_file", "file_id": "file-1"}]))}),
        ),
        (
            "responses",
            json!({"input": user(json!([{"type": "input_file", "file_url": long}]))}),
        ),
        (
            "responses",
            json!({"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}),
        ),
        ("responses", json!({"tools": [{"type": "web_search"}]})),
        ("native", json!({"cachedContent": "cachedContents/1"})),
        ("native", json!({"cached_content": "cachedContents/1"})),
        (
            "native",
            json!({"contents": part(json!({"fileData": {"mimeType": "application/pdf", "fileUri": long}}))}),
        ),
        (
            "native",
            json!({"contents": part(json!({"file_data": {"file_uri": "https://files.example/1"}}))}),
        ),
        ("native", json!({"tools": [{"urlContext": {}}]})),
        (
            "messages",
            json!({"messages": user(json!([{"type": "document", "source": {"type": "url", "url": long}}]))}),
        ),
        (
            "messages",
            json!({"messages": user(json!([{"type": "document", "source": {"type": "file", "file_id": "file_1"}}]))}),
        ),
        ("messages", json!({"container": "container_1"})),
        (
            "chat",
            json!({"messages": user(json!([{"type": "file", "file": {"file_id": "file-1"}}]))}),
        ),
        ("chat", json!({"web_search_options": {}})),
        // Few bytes of these may be many tokens.
        (
            "chat",
            json!({"messages": user(json!([{"type": "file", "file":
                {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}}]))}),
        ),
        (
            "messages",
            json!({"messages": user(json!([{"type": "document", "source":
                {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}}]))}),
        ),
        (
            "native",
            json!({"contents": part(json!({"inlineData": {"mimeType": "audio/ogg", "data": "T2dnUw=="}}))}),
        ),
    ]
    .into_iter()
    .chain(false_claims())
    .collect()
}

/// What claims to be an image or text, and is something else by its name, its type or its place.
fn false_claims() -> Vec<(&'static str, Value)> {
    let part = |part: Value| json!([{"role": "user", "parts": [part]}]);
    let chat = |part: Value| ("chat", json!({"messages": user(json!([part]))}));
    let clip = "https://files.example/clip.mp4";
    vec![
        chat(json!({"type": "image_url", "image_url": {"url": clip}})),
        chat(json!({"type": "image_url", "image_url": {"url": "https://youtu.be/1"}})),
        chat(json!({"type": "image_url", "image_url": {"url": "data:text/plain;base64,JVBERg=="}})),
        chat(json!({"type": "image_url", "image_url": {"url": "data:video/mp4;base64,AAAA"}})),
        // Such a file may have hundreds of pages.
        chat(json!({"type": "image_url", "image_url": {"url": "data:image/tiff;base64,SUkqAA=="}})),
        chat(
            json!({"type": "input_audio", "input_audio": {"data": "https://files.example/long.mp3", "format": "mp3"}}),
        ),
        chat(
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:text/plain;base64,JVBERg=="}}),
        ),
        (
            "responses",
            json!({"input": user(json!([{"type": "input_file", "filename": "a.xls", "file_data": "data:text/plain;base64,0M8R4A=="}]))}),
        ),
        (
            "responses",
            json!({"input": user(json!([{"type": "input_image", "image_url": "https://files.example/long.pdf"}]))}),
        ),
        (
            "messages",
            json!({"messages": user(json!([{"type": "image", "source": {"type": "url", "url": clip}}]))}),
        ),
        (
            "native",
            json!({"contents": part(json!({"fileData": {"mimeType": "image/png", "fileUri": "https://files.example/1"}}))}),
        ),
    ]
}

/// Media in a place that the gateway does not count.
fn misplaced_media() -> Vec<(&'static str, Value, &'static str)> {
    let url = "https://images.example/1";
    let image = json!({"type": "image_url", "image_url": {"url": url}});
    vec![
        (
            "chat",
            json!({"messages": user(json!([{"type": "text", "text": "x", "image_url": {"url": url}}]))}),
            "messages[0].content[0].image_url",
        ),
        (
            "chat",
            json!({"messages": user(json!([{"type": "image_url", "image_url": {"url": url, "format": "video/mp4"}}]))}),
            "messages[0].content[0].image_url.format",
        ),
        (
            "chat",
            json!({"tools": [{"type": "function", "function": {"name": "f", "content": [image]}}]}),
            "tools[0].function.content[0].image_url",
        ),
        (
            "responses",
            json!({"input": user(json!([{"type": "input_image", "image_url": url, "file_id": "file-1"}]))}),
            "input[0].content[0].file_id",
        ),
        (
            "responses",
            json!({"input": user(json!([{"type": "input_text", "text": "x", "file_id": "file-1"}]))}),
            "input[0].content[0].file_id",
        ),
        (
            "messages",
            json!({"system": [{"type": "text", "text": "x", "source": {"type": "url", "url": url}}]}),
            "system[0].source",
        ),
        (
            "messages",
            json!({"messages": user(json!([{"type": "image", "source": {"type": "url", "url": url, "media_type": "video/mp4"}}]))}),
            "messages[0].content[0].source.media_type",
        ),
    ]
}

/// What an upstream may know and the gateway does not, and where in the body it stands.
fn unknown_fields() -> Vec<(&'static str, Value, &'static str)> {
    let reasoning = json!([{"type": "reasoning", "id": "rs_1", "summary": []}]);
    let call = json!([{"type": "image_generation_call", "id": "ig_1"}]);
    vec![
        ("chat", json!({"plugins": [{"id": "web"}]}), "plugins"),
        (
            "chat",
            json!({"chat_template_kwargs": {"thinking_budget": 1, "chat_template": "{% for i in range(99999) %}a{% endfor %}"}}),
            "chat_template_kwargs.chat_template",
        ),
        (
            "chat",
            json!({"data_sources": [{"type": "azure_search"}]}),
            "data_sources",
        ),
        (
            "chat",
            json!({"search_parameters": {"mode": "on"}}),
            "search_parameters",
        ),
        ("chat", json!({"zzz": 1}), "zzz"),
        ("chat", json!({"Plugins": []}), "Plugins"),
        ("chat", json!({"parameters": {"plugins": []}}), "parameters"),
        (
            "chat",
            json!({"messages": [{"role": "user", "content": "hi", "zzz": 1}]}),
            "messages[0].zzz",
        ),
        (
            "chat",
            json!({"tools": [{"type": "openrouter:web_search"}]}),
            "tools[0].type",
        ),
        (
            "responses",
            json!({"tools": [{"type": "image_generation"}]}),
            "tools[0].type",
        ),
        (
            "responses",
            json!({"tools": [{"type": "computer_use_preview"}]}),
            "tools[0].type",
        ),
        (
            "responses",
            json!({"context_management": [{"type": "compaction"}]}),
            "context_management",
        ),
        (
            "responses",
            json!({"reasoning": {"mode": "pro"}}),
            "reasoning.mode",
        ),
        ("responses", json!({"input": reasoning}), "input[0].id"),
        (
            "responses",
            json!({"input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "",
                "content": [{"type": "reasoning_text", "text": ""}]}]}),
            "input[0].id",
        ),
        ("responses", json!({"input": call}), "input[0].type"),
        ("messages", json!({"zzz": 1}), "zzz"),
        (
            "messages",
            json!({"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}),
            "tools[0].type",
        ),
        (
            "messages",
            json!({"context_management": {"edits": [{"type": "compact_20260112"}]}}),
            "context_management.edits[0].type",
        ),
        (
            "messages",
            json!({"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]}),
            "messages[0].content[0].file_id",
        ),
        ("native", json!({"zzz": 1}), "zzz"),
        (
            "native",
            json!({"tools": [{"fileSearch": {"fileSearchStoreNames": ["s"]}}]}),
            "tools[0].fileSearch",
        ),
        (
            "native",
            json!({"generationConfig": {"zzz": 1}}),
            "generationConfig.zzz",
        ),
    ]
}

fn is_only_referring(field: &str) -> bool {
    field.starts_with("input[") || field == "context_management"
}

/// An upstream may do paid work for a field that the gateway does not know.
#[tokio::test]
async fn a_field_that_is_not_known_reserves_the_most_that_the_model_takes() {
    let mock = Mock::start();
    let gateway = start_without_owners(&mock);
    for (format, more, field) in unknown_fields().into_iter().chain(misplaced_media()) {
        let model = format!("dear-{format}");
        let refused = send_to(&gateway, format, "key-capped", &model, more.clone()).await;
        assert_eq!(refused.status, 429, "{more}: {}", refused.text());
        let message = refused.error(format);
        // For a field of the body itself, and for tools, an upstream may read the prompt again and again.
        let depth = field.matches('.').count();
        let is_nested = depth > usize::from(field.starts_with("tools"));
        let is_own_tool = more["tools"][0]["type"] == "computer_use_preview";
        let tokens = match is_nested || is_own_tool || is_only_referring(field) {
            true => "20000 tokens",
            false => "220000 tokens, read 11 times",
        };
        assert!(
            message.contains(&format!("cannot count, by `{field}`"))
                && message.contains(tokens)
                && message.contains("has 10 left"),
            "{more}: {message}"
        );
    }
    // What is translated leaves the unknown field behind.
    let more = json!({"plugins": [{"id": "web"}], "messages": user(json!("mock:usage=1,0,1,0"))});
    let sent = send_to(&gateway, "chat", "key-capped", "dear-messages", more).await;
    assert_eq!(sent.status, 200, "{}", sent.text());
}

/// Fields of settings, and of what clients send back, have an upstream do nothing more.
#[tokio::test]
async fn fields_that_are_known_reserve_their_length() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, CAPPED, &models()));
    let words = "mock:usage=1,0,1,0 mock:text=hi";
    for (format, more) in [
        (
            "chat",
            json!({"store": true, "logit_bias": {"50256": -100}, "metadata": {"a": "b"}, "user": "u",
                "safety_identifier": "s", "prompt_cache_key": "k", "prompt_cache_retention": "24h",
                "reasoning": {"effort": "low"}, "usage": {"include": true}, "top_k": 4,
                "chat_template_kwargs": {"enable_thinking": false}, "messages": [
                {"role": "assistant", "content": "x", "reasoning_content": "y", "reasoning_details": [
                    {"type": "reasoning.text", "text": "y", "signature": "s"}], "annotations": []},
                {"role": "user", "content": [{"type": "text", "text": words, "cache_control": {"type": "ephemeral"}}]}]}),
        ),
        (
            "messages",
            json!({"metadata": {"user_id": "u"}, "thinking": {"type": "adaptive", "display": "omitted"},
                "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
                "tools": [{"name": "f", "input_schema": {"type": "object"}, "defer_loading": true, "strict": true}]}),
        ),
        (
            "responses",
            json!({"client_metadata": {"session_id": "s"}, "prompt_cache_key": "k", "include": ["reasoning.encrypted_content"],
                "tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f", "strict": false,
                    "parameters": {"type": "object"}}]}, {"type": "custom", "name": "g", "format": {"type": "text"}}],
                "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
                "input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc", "content": null},
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "final_answer",
                    "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}]},
                {"role": "user", "content": words}]}),
        ),
        (
            "native",
            json!({"labels": {"a": "b"}, "generationConfig": {"responseModalities": ["TEXT"], "speechConfig": {"languageCode": "en"},
                "mediaResolution": "MEDIA_RESOLUTION_LOW"}}),
        ),
    ] {
        let (path, mut body) = request(format, &format!("dear-{format}"), words, false);
        for (field, value) in more.as_object().expect("an object") {
            body[field] = value.clone();
        }
        let asked = client().post(gateway.url(&path)).bearer_auth("key-capped");
        let sent = send(asked.json(&body)).await;
        assert_eq!(sent.status, 200, "{format}: {}", sent.text());
    }
}

/// The most that a model takes is reserved for it, and that is more than there is.
#[tokio::test]
async fn input_that_is_only_referred_to_is_reserved_as_the_most_that_the_model_takes() {
    let mock = Mock::start();
    let gateway = start_without_owners(&mock);
    for (format, more) in references() {
        let model = format!("dear-{format}");
        let refused = send_to(&gateway, format, "key-capped", &model, more.clone()).await;
        assert_eq!(refused.status, 429, "{more}: {}", refused.text());
        let message = refused.error(format);
        assert!(
            message.contains("refers to input that the gateway cannot count")
                && message.contains("20000 tokens")
                && message.contains("max_input_tokens"),
            "{more}: {message}"
        );
        assert!(message.contains("has 10 left"), "{more}: {message}");
    }
}

/// An upstream that reads the last of two fields would be billed for a file that the gateway has not seen.
#[tokio::test]
async fn a_reference_in_the_second_of_two_fields_is_reserved_too() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, CAPPED, &models()));
    let file = r#"[{"type":"file","file":{"file_id":"file-1"}}]"#;
    let words = r#""mock:usage=36000,0,1,0""#;
    for body in [
        format!(r#""messages":[{{"role":"user","content":{words},"content":{file}}}]"#),
        format!(r#""messages":[{{"role":"user","content":{words},"Content":{file}}}]"#),
        format!(
            r#""messages":[{{"role":"user","content":{words}}}],"messages":[{{"role":"user","content":{file}}}]"#
        ),
    ] {
        let body = format!(r#"{{"model":"dear-chat","max_tokens":1,{body}}}"#);
        let asked = client().post(gateway.url("/v1/chat/completions"));
        let asked = asked.header("content-type", "application/json");
        let refused = send(asked.bearer_auth("key-capped").body(body.clone())).await;
        assert_eq!(refused.status, 429, "{body}: {}", refused.text());
    }
}

/// The upstream does not know references in schemas: they are resolved, and the request becomes a longer one.
#[tokio::test]
async fn a_request_that_becomes_longer_is_reserved_as_it_is_sent() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, CAPPED, &models()));
    let long = json!({"type": "string", "description": "x".repeat(2000)});
    let refer = |count: usize| {
        let names = (0..count).map(|number| format!("p{number}"));
        let properties = names.map(|name| (name, json!({"$ref": "#/$defs/long"})));
        let properties: serde_json::Map<String, Value> = properties.collect();
        json!({"tools": [{"type": "function", "function": {"name": "look", "parameters": {
            "type": "object", "properties": properties, "$defs": {"long": long}}}}]})
    };
    // 200 times 2000 characters cost far more than the cap of 10, and 2 times far less.
    for (count, status) in [(200, 429), (2, 200)] {
        for (model, expected) in [("dear-native", status), ("dear-messages", 200)] {
            let mut more = refer(count);
            more["messages"] = user(json!("mock:usage=1,0,1,0 mock:text=hi"));
            let sent = send_to(&gateway, "chat", "key-capped", model, more).await;
            assert_eq!(sent.status, expected, "{count} to {model}: {}", sent.text());
        }
    }
}

/// Links to images are bounded: models scale large ones down.
#[tokio::test]
async fn a_linked_image_is_reserved_as_a_large_one() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, CAPPED, &models()));
    let url = "https://images.example/1";
    for (format, part) in [
        (
            "chat",
            json!({"type": "image_url", "image_url": {"url": url}}),
        ),
        (
            "responses",
            json!({"type": "input_image", "image_url": url}),
        ),
        (
            "messages",
            json!({"type": "image", "source": {"type": "url", "url": url}}),
        ),
    ] {
        let field = if format == "responses" {
            "input"
        } else {
            "messages"
        };
        // 5000 tokens for each, of 10000 that there are; the other model counts an image as 12000.
        for (model, count, status) in [("dear", 1, 200), ("dear", 2, 429), ("sharp", 1, 429)] {
            let mut parts = vec![part.clone(); count];
            let text = match format {
                "responses" => "input_text",
                _ => "text",
            };
            parts.push(json!({"type": text, "text": "mock:usage=10,0,1,0"}));
            let more = json!({field: user(parts.into())});
            let model = format!("{model}-{format}");
            let response = send_to(&gateway, format, "key-capped", &model, more).await;
            assert_eq!(response.status, status, "{format}: {}", response.text());
        }
    }
}

/// What the gateway expands itself is in the body that is counted, and so is text.
#[tokio::test]
async fn input_that_is_sent_is_counted_as_it_is() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, CAPPED, &models()));
    let words = json!({"input": "mock:usage=1,0,1,0"});
    let first = send_to(&gateway, "responses", "key-capped", "dear-chat", words).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let next = json!({"input": "mock:usage=1,0,1,0", "previous_response_id": first.json()["id"]});
    let second = send_to(&gateway, "responses", "key-capped", "dear-chat", next).await;
    assert_eq!(second.status, 200, "{}", second.text());
    // As long as it takes the rest of the cap.
    let long = json!({"input": "x".repeat(30_000), "previous_response_id": first.json()["id"]});
    let third = send_to(&gateway, "responses", "key-capped", "dear-chat", long).await;
    assert_eq!(third.status, 429, "{}", third.text());
    assert!(!third.error("responses").contains("refers to input"));
    // A response that its upstream keeps is not seen.
    let kept = json!({"input": "mock:usage=1,0,1,0"});
    let kept = send_to(&gateway, "responses", "key-capped", "dear-responses", kept).await;
    assert_eq!(kept.status, 200, "{}", kept.text());
    let next = json!({"previous_response_id": kept.json()["id"]});
    let next = send_to(&gateway, "responses", "key-capped", "dear-responses", next).await;
    assert_eq!(next.status, 429, "{}", next.text());
    assert!(next.error("responses").contains("refers to input"));
}

/// What a request without a limit may cost is reserved, so that no more is asked for, in every format.
#[tokio::test]
async fn the_output_that_was_reserved_is_the_limit_that_is_sent() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, CAPPED, ""));
    for (client_format, _) in FORMATS {
        for (upstream, _) in FORMATS {
            let model = format!("priced-{upstream}");
            let sent = async |key: &str, without: Value| {
                let (path, mut body) = request(client_format, &model, "mock:echo", false);
                if client_format == "messages" {
                    body["max_tokens"] = without;
                } else if client_format == "native" {
                    body["generationConfig"] = without;
                }
                let asked = client().post(gateway.url(&path)).bearer_auth(key);
                let response = send(asked.json(&body)).await;
                assert_eq!(response.status, 200, "{}", response.text());
                let echoed = echoed_request(client_format, &response);
                let body = echoed["body"].as_str().expect("the body that was sent");
                let body: Value = serde_json::from_str(body).expect("JSON");
                let limit = match upstream {
                    "chat" => &body["max_completion_tokens"],
                    "messages" => &body["max_tokens"],
                    "responses" => &body["max_output_tokens"],
                    _ => &body["generationConfig"]["maxOutputTokens"],
                };
                let adjusted = response.header("x-omniglot-adjusted").to_owned();
                (limit.clone(), adjusted)
            };
            let none = match client_format {
                "native" => vec![Value::Null, json!({}), json!({"maxOutputTokens": null})],
                _ => vec![Value::Null],
            };
            for none in none {
                let (limit, adjusted) = sent("key-capped", none).await;
                assert_eq!(limit, 4096, "{client_format} to {upstream}");
                assert!(
                    adjusted.to_lowercase().contains("max"),
                    "{client_format} to {upstream}: {adjusted}"
                );
            }
            if upstream != "messages" {
                let (limit, _) = sent(KEY, Value::Null).await;
                assert_eq!(limit, Value::Null, "{client_format} to {upstream}");
            }
        }
    }
}

/// An upstream that takes no lower limit than 16 is asked for 16, which may cost more than the limit of the client.
#[tokio::test]
async fn a_limit_that_is_raised_is_reserved_as_it_is_sent() {
    let mock = Mock::start();
    let models = "  - {id: m, pricing: {output: 1000000}, upstreams: [{name: responses}]}\n";
    let gateway = Gateway::start(&config(mock.address, CAPPED, models));
    let asked = async |limit: u64| {
        let more = json!({"max_completion_tokens": limit});
        send_to(&gateway, "chat", "key-capped", "m", more).await
    };
    let refused = asked(9).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.error("chat").contains("may cost 16"));
}

/// A limit of text says nothing of an image: the images API is not told, and bills what the image has.
#[tokio::test]
async fn a_limit_of_text_does_not_lower_what_an_image_reserves() {
    let mock = Mock::start();
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\n\
         keys: [{{name: capped, secret: key-capped, spending_cap: 0.5}}]\n\
         upstreams: [{{name: art, format: images, base_url: \"http://{}/v1\"}}]\n\
         models: [{{id: art, model_type: image, max_output_tokens: 1000, pricing: {{output: 1000}}, \
         upstreams: [{{name: art}}]}}]\n",
        mock.address
    );
    let gateway = Gateway::start(&config);
    for (format, limit) in [
        ("chat", json!({"max_tokens": 1, "modalities": ["image"]})),
        (
            "responses",
            json!({"max_output_tokens": 16, "tools": [{"type": "image_generation"}]}),
        ),
        (
            "native",
            json!({"generationConfig": {"maxOutputTokens": 1, "responseModalities": ["IMAGE"]}}),
        ),
    ] {
        let (path, mut body) = request(format, "art", "a cat", false);
        for (field, value) in limit.as_object().expect("an object") {
            body[field] = value.clone();
        }
        let asked = client().post(gateway.url(&path)).bearer_auth("key-capped");
        let response = send(asked.json(&body)).await;
        assert_eq!(response.status, 429, "{format}: {}", response.text());
    }
}
