//! The native API: which requests it refuses, which it passes through, and what its responses contain.

mod request_rules;
mod responses;

use std::net::SocketAddr;

use omniglot_test_support::{
    Gateway, KEY, Mock, Response, client, echo_upstream, echoed_request, fixed_response_upstream,
    post, response_head, send,
};
use serde_json::{Value, json};

use request_rules::{BROKEN, SOUND};

/// Models on upstreams of two formats: `native`, `chat`, each also with images among its answers
/// (`native-images` …), and `acme`, a native upstream of another brand.
fn config(server: &str, native: SocketAddr, chat: SocketAddr) -> String {
    format!(
        "server: {{listen: LISTEN, admin: ADMIN{server}}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n  - {{name: native, format: native, base_url: \"http://{native}\"}}\n  \
         - {{name: acme, format: native, base_url: \"http://{native}\", brand: acme}}\n  \
         - {{name: chat, format: chat, base_url: \"http://{chat}/v1\"}}\n\
         models:\n  - {{id: native, upstreams: [{{name: native}}]}}\n  \
         - {{id: native-pictures, features: [image_output], upstreams: [{{name: native}}]}}\n  \
         - {{id: acme, upstreams: [{{name: acme}}]}}\n  \
         - {{id: chat, upstreams: [{{name: chat}}]}}\n  \
         - {{id: chat-pictures, model_type: image, upstreams: [{{name: chat}}]}}\n  \
         - {{id: either, upstreams: [{{name: native}}], fallbacks: [chat]}}\n"
    )
}

async fn send_request(gateway: &Gateway, model: &str, verb: &str, body: &str) -> Response {
    let path = format!("/v1beta/models/{model}:{verb}");
    post(gateway.url(&path), body.to_owned()).await
}

/// The gateway itself refused it, in the shape of the format.
fn refused(response: &Response, status: u16) -> String {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.header("x-omniglot-upstream"), "");
    response.error("native")
}

#[tokio::test]
async fn requests_that_break_a_rule_are_refused_for_every_upstream() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config("", echo_upstream(), mock.address));
    for (body, field) in BROKEN {
        for model in ["native", "chat", "either"] {
            let response = send_request(&gateway, model, "generateContent", body).await;
            let message = refused(&response, 400);
            let named = message.contains(&format!("{field}:"))
                || message.contains(&format!("`{field}` must be"))
                || message.ends_with(&format!("missing required field {field}"));
            assert!(named, "{model} {body}: {message}");
            let error = &response.json()["error"];
            assert_eq!(error["status"], "INVALID_ARGUMENT");
            let violations = &error["details"][0]["fieldViolations"];
            assert_eq!(violations[0]["field"], *field, "{error}");
        }
    }
}

#[tokio::test]
async fn a_request_without_content_names_contents() {
    let mock = Mock::start();
    let server = ", validate_native: off";
    let gateway = Gateway::start(&config(server, echo_upstream(), mock.address));
    for body in ["{}", r#"{"contents": []}"#] {
        let response = send_request(&gateway, "chat", "generateContent", body).await;
        let message = refused(&response, 400);
        assert!(message.contains("contents"), "{body}: {message}");
        assert!(!message.contains("systemInstruction"), "{body}: {message}");
    }
}

#[tokio::test]
async fn valid_requests_pass_byte_by_byte() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config("", echo_upstream(), mock.address));
    for body in SOUND {
        let response = send_request(&gateway, "native", "generateContent", body).await;
        assert_eq!(response.status, 200, "{body}: {}", response.text());
        assert_eq!(native_text(&response), **body);
        let response = send_request(&gateway, "chat", "generateContent", body).await;
        assert_eq!(response.status, 200, "{body}: {}", response.text());
    }
}

/// What the parrot was sent.
fn native_text(response: &Response) -> String {
    omniglot_test_support::response_text("native", &response.json())
}

#[tokio::test]
async fn every_method_checks_the_rules() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config("", echo_upstream(), mock.address));
    let hot = r#"{"contents":[],"generationConfig":{"temperature":3}}"#;
    for verb in [
        "streamGenerateContent?alt=sse",
        "streamGenerateContent",
        "countTokens",
    ] {
        let message = refused(&send_request(&gateway, "native", verb, hot).await, 400);
        assert!(
            message.contains("generationConfig.temperature"),
            "{message}"
        );
    }
    let wrapped = format!(r#"{{"generateContentRequest":{hot}}}"#);
    let message = refused(
        &send_request(&gateway, "native", "countTokens", &wrapped).await,
        400,
    );
    let field = "generateContentRequest.generationConfig.temperature";
    assert!(message.contains(field), "{message}");
}

#[tokio::test]
async fn rules_for_native_upstreams_can_be_turned_off() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(
        ", validate_native: off",
        echo_upstream(),
        mock.address,
    ));
    let hot = r#"{"contents":[],"generationConfig":{"temperature":3}}"#;
    let response = send_request(&gateway, "native", "generateContent", hot).await;
    assert_eq!(native_text(&response), hot);
    // Where there are two, the one that needs no translation still answers.
    let response = send_request(&gateway, "either", "generateContent", hot).await;
    assert_eq!(native_text(&response), hot);
    refused(
        &send_request(&gateway, "chat", "generateContent", hot).await,
        400,
    );
    for broken in ["", "{", "[]", "{\"contents\":[}"] {
        refused(
            &send_request(&gateway, "native", "generateContent", broken).await,
            400,
        );
    }
    // What the names of tools mean has nothing to do with rules.
    let search = r#"{"tools":[{"vendorSearch":{}}],"generationConfig":{"topP":2}}"#;
    let response = send_request(&gateway, "native", "generateContent", search).await;
    assert_eq!(native_text(&response), search.replace("vendor", "google"));
}

#[tokio::test]
async fn image_settings_are_accepted_only_for_image_models() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config("", echo_upstream(), mock.address));
    for field in ["imageConfig", "image_config"] {
        let body = format!(
            r#"{{"contents":[{{"parts":[{{"text":"hi"}}]}}],"generationConfig":{{"{field}":{{"aspectRatio":"16:9","imageSize":"2K"}}}}}}"#
        );
        for model in ["native", "chat"] {
            let message = refused(
                &send_request(&gateway, model, "generateContent", &body).await,
                400,
            );
            let expected = format!("generationConfig.{field}: the model has no image output");
            assert_eq!(message, expected, "{model}");
            let images = format!("{model}-pictures");
            let response = send_request(&gateway, &images, "generateContent", &body).await;
            assert_eq!(response.status, 200, "{}", response.text());
        }
    }
}

#[tokio::test]
async fn vendor_tools_have_the_upstreams_name() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config("", echo_upstream(), mock.address));
    for (written, google, acme) in [
        ("vendorSearch", "googleSearch", "acmeSearch"),
        ("googleSearch", "googleSearch", "acmeSearch"),
        ("vendor_search", "google_search", "acme_search"),
        ("vendorMaps", "googleMaps", "acmeMaps"),
        ("google_maps", "google_maps", "acme_maps"),
        ("acmeSearch", "acmeSearch", "acmeSearch"),
    ] {
        let body = |name: &str| {
            format!(
                r#"{{ "tools" : [ {{"functionDeclarations":[{{"name":"vendorSearch"}}]}} , {{ "{name}" : {{}} }} ], "contents":[{{"parts":[{{"text":"vendorSearch"}}]}}] }}"#
            )
        };
        for (model, expected) in [("native", google), ("acme", acme)] {
            let response = send_request(&gateway, model, "generateContent", &body(written)).await;
            assert_eq!(native_text(&response), body(expected), "{model}");
        }
    }
    let search = |name: &str| {
        json!({"contents": [{"parts": [{"text": "mock:echo"}]}], "tools": [{name: {}}]}).to_string()
    };
    for name in ["vendorSearch", "google_search"] {
        let response = send_request(&gateway, "chat", "generateContent", &search(name)).await;
        let sent = echoed_request("native", &response)["body"]
            .as_str()
            .map(str::to_owned);
        assert!(sent.expect("a body").contains("web_search_options"));
    }
    let maps = send_request(&gateway, "chat", "generateContent", &search("vendorMaps")).await;
    assert!(refused(&maps, 400).contains("tools[0].vendorMaps"));
}

#[tokio::test]
async fn cached_content_is_passed_to_native_upstreams_only() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config("", echo_upstream(), mock.address));
    for field in ["cachedContent", "cached_content"] {
        let body = format!(r#"{{"contents":[],"{field}":"cachedContents/abc-1"}}"#);
        let response = send_request(&gateway, "native", "generateContent", &body).await;
        assert_eq!(native_text(&response), body);
        let message = refused(
            &send_request(&gateway, "chat", "generateContent", &body).await,
            400,
        );
        assert!(message.contains(field), "{message}");
    }
}

#[tokio::test]
async fn allowed_function_names_count_only_when_a_call_is_required() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config("", echo_upstream(), mock.address));
    for (mode, names, choice) in [
        (
            "ANY",
            json!(["f"]),
            json!({"type": "function", "function": {"name": "f"}}),
        ),
        ("ANY", json!([]), json!("required")),
        ("AUTO", json!(["f"]), json!("auto")),
        ("NONE", json!(["f"]), json!("none")),
    ] {
        let body = json!({
            "contents": [{"parts": [{"text": "mock:echo"}]}],
            "tools": [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": names}},
        });
        let response = send_request(&gateway, "chat", "generateContent", &body.to_string()).await;
        let sent = echoed_request("native", &response)["body"]
            .as_str()
            .map(str::to_owned);
        let sent: Value = serde_json::from_str(&sent.expect("a body")).expect("JSON");
        assert_eq!(sent["tool_choice"], choice, "{mode}");
        let lost = mode != "ANY" && names != json!([]);
        let path = "toolConfig.functionCallingConfig.allowedFunctionNames";
        assert_eq!(
            response.header("x-omniglot-dropped") == path,
            lost,
            "{mode}"
        );
    }
}

#[tokio::test]
async fn unknown_methods_and_values_of_alt_are_refused() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config("", echo_upstream(), mock.address));
    let body = r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#;
    for (verb, status) in [
        ("generateContent?alt=sse", 400),
        ("generateContent?alt=media", 400),
        ("streamGenerateContent?alt=media", 400),
        ("countTokens?alt=sse", 400),
        ("embedContent", 400),
        ("batchGenerateContent", 404),
        ("predict", 404),
        ("generatecontent", 404),
    ] {
        for model in ["native", "chat"] {
            refused(&send_request(&gateway, model, verb, body).await, status);
        }
    }
    for model in ["native", "chat"] {
        for verb in ["generateContent", "generateContent?alt=json"] {
            let response = send_request(&gateway, model, verb, body).await;
            assert_eq!(response.status, 200, "{model} {verb}");
        }
    }
}

#[tokio::test]
async fn file_uploads_are_refused() {
    let gateway = Gateway::start(&config("", echo_upstream(), echo_upstream()));
    for path in [
        "/upload/v1beta/files",
        "/upload/v1beta/files?uploadType=resumable",
        "/upload/v1/files",
        "/v1beta/files",
        "/v1beta/files/abc",
    ] {
        let upload = client().post(gateway.url(path)).bearer_auth(KEY);
        let upload = upload
            .header("content-type", "video/mp4")
            .body(vec![0; 100_000]);
        let response = send(upload).await;
        assert_eq!(response.status, 501, "{path}");
        assert_eq!(response.json()["error"]["status"], "UNIMPLEMENTED");
        let message = response.error("native");
        assert!(
            message.starts_with("files cannot be stored here"),
            "{message}"
        );
    }
}

/// Twenty megabytes of image, checked and passed as they are.
#[tokio::test]
async fn a_large_image_passes() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config("", mock.address, mock.address));
    let image = "iVBORw0KGgo/".repeat((20 << 20) / 12);
    let body = format!(
        r#"{{"contents":[{{"parts":[{{"inlineData":{{"mimeType":"image/png","data":"{image}"}}}},{{"text":"mock:sha256"}}]}}]}}"#
    );
    let response = send_request(&gateway, "native", "generateContent", &body).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(native_text(&response).ends_with(&format!("bytes {}", body.len())));
    let wrong = body.replacen("iVBOR", "data:", 1);
    let message = refused(
        &send_request(&gateway, "native", "generateContent", &wrong).await,
        400,
    );
    assert!(
        message.contains("contents[0].parts[0].inlineData.data"),
        "{message}"
    );
}

/// An upstream that says the same whatever it is asked.
fn upstream_with_body(body: &Value) -> SocketAddr {
    fixed_response_upstream(vec![
        response_head("200 OK", "application/json"),
        body.to_string().into_bytes(),
    ])
}
