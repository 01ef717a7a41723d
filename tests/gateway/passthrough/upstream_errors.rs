//! Errors of an upstream: those about the request reach the client unchanged, those about the gateway's credentials do
//! not.

use omniglot_test_support::{
    FORMATS, Gateway, Mock, Response, every_format_config, free_address,
    gateway_with_fixed_responses, post, request, response_head,
};

async fn send_request(gateway: &Gateway, format: &str, prompt: &str, stream: bool) -> Response {
    let (path, body) = request(format, &format!("same-{format}"), prompt, stream);
    post(gateway.url(&path), body.to_string()).await
}

fn assert_provenance(response: &Response, format: &str) {
    assert_eq!(
        response.header("x-omniglot-upstream"),
        format!("mock-{format}")
    );
    assert_eq!(response.header("x-omniglot-attempts"), "1");
    assert!(response.header("x-request-id").starts_with("req_"));
}

#[tokio::test]
async fn an_upstreams_errors_keep_status_and_body() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for stream in [false, true] {
            for status in [400, 404, 413, 422, 429, 500, 503, 529] {
                let prompt = format!("mock:error={status},The-words-of-the-upstream");
                let (path, body) = request(format, &format!("same-{format}"), &prompt, stream);
                let mut body = body;
                if format == "chat" && stream {
                    body["stream_options"] = serde_json::json!({"include_usage": true});
                }
                let direct = post(mock.url(&path), body.to_string()).await;
                let through = post(gateway.url(&path), body.to_string()).await;
                assert_eq!(through.status, status, "{format}");
                assert_eq!(through.text(), direct.text(), "{format} {status}");
                assert!(through.text().contains("The-words-of-the-upstream"));
                assert_eq!(through.header("content-type"), "application/json");
                let retry = if status == 429 { "7" } else { "" };
                assert_eq!(through.header("retry-after"), retry, "{format} {status}");
                assert_provenance(&through, format);
            }
        }
    }
}

#[tokio::test]
async fn an_error_about_the_gateways_credentials_is_not_passed_to_the_client() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for status in [401, 403] {
            for stream in [false, true] {
                let prompt = format!("mock:error={status},secret-of-the-upstream-is-bad");
                let response = send_request(&gateway, format, &prompt, stream).await;
                assert_eq!(response.status, 502, "{format} {status}");
                let message = response.error(format);
                assert!(!message.contains("secret"), "{message}");
                assert!(message.contains("credentials"), "{message}");
                assert_provenance(&response, format);
            }
        }
    }
}

#[tokio::test]
async fn an_unreadable_response_is_a_bad_gateway() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for word in ["redirect", "html", "empty", "garbage", "cut"] {
            for stream in [false, true] {
                let response =
                    send_request(&gateway, format, &format!("mock:{word}"), stream).await;
                let what = format!("{format} {word} {stream}: {}", response.text());
                assert_eq!(response.status, 502, "{what}");
                response.error(format);
                assert_eq!(response.header("location"), "", "{what}");
                assert_provenance(&response, format);
            }
        }
    }
}

#[tokio::test]
async fn an_error_under_a_status_of_success_is_an_error() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for stream in [false, true] {
            let response = send_request(&gateway, format, "mock:status_200_error", stream).await;
            assert!(
                [500, 502].contains(&response.status),
                "{format}: {}",
                response.status
            );
            let message = response.error(format);
            assert_eq!(message, "The mock broke off, as it was told.", "{format}");
            assert_provenance(&response, format);
        }
    }
    let path = "/v1beta/models/same-native:streamGenerateContent";
    let (_, body) = request("native", "", "mock:status_200_error", true);
    let response = post(gateway.url(path), body.to_string()).await;
    assert_eq!(response.status, 500, "{}", response.text());
    response.error("native");
}

/// The answers to one request to each puppet.
async fn answers(cases: &[(&str, Vec<u8>, &str)], stream: bool) -> Vec<Response> {
    let gateway = gateway_with_fixed_responses(cases);
    let mut answers = Vec::new();
    for (number, (format, ..)) in cases.iter().enumerate() {
        let (path, body) = request(format, &format!("case-{number}"), "hi", stream);
        answers.push(post(gateway.url(&path), body.to_string()).await);
    }
    answers
}

const KEY_INVALID: &str = r#"{"error":{"code":400,"message":"API key not valid: AIza","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#;
const INCORRECT: &str = r#"{"error":{"message":"Incorrect API key provided: AIza","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#;
const AUTHENTICATION: &str = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key AIza"}}"#;
const PERMISSION: &str =
    r#"{"type":"error","error":{"type":"permission_error","message":"not for AIza"}}"#;
const FLAT: &str = r#"{"type":"error","code":"invalid_api_key","message":"AIza","param":null,"sequence_number":0}"#;

#[tokio::test]
async fn no_wording_of_a_credential_error_reaches_the_client() {
    let json = |status| response_head(status, "application/json");
    let whole = [
        ("native", json("400 Bad Request"), KEY_INVALID),
        ("native", json("200 OK"), KEY_INVALID),
        ("chat", json("200 OK"), INCORRECT),
        ("chat", json("401 Unauthorized"), "<html>AIza</html>"),
        ("responses", json("200 OK"), INCORRECT),
        ("messages", json("200 OK"), AUTHENTICATION),
        ("messages", json("200 OK"), PERMISSION),
    ];
    let events: Vec<_> = [
        ("native", KEY_INVALID),
        ("chat", INCORRECT),
        ("messages", AUTHENTICATION),
        ("responses", FLAT),
    ]
    .map(|(format, data)| (format, format!("event: error\ndata: {data}\n\n")))
    .into();
    let streams = events.iter();
    let streams = streams.map(|(format, event)| {
        let head = response_head("200 OK", "text/event-stream");
        (*format, head, event.as_str())
    });
    let streams: Vec<_> = streams.collect();
    for (cases, stream) in [(&whole[..], false), (&streams, true)] {
        for (case, answer) in cases.iter().zip(answers(cases, stream).await) {
            assert_eq!(answer.status, 502, "{case:?} {}", answer.text());
            let message = answer.error(case.0);
            assert!(!message.contains("AIza"), "{message}");
        }
    }
}

#[tokio::test]
async fn an_html_error_page_becomes_an_error_of_the_format() {
    let statuses = [
        "400 Bad Request",
        "404 Not Found",
        "413 Big",
        "500 Broken",
        "504 Slow",
    ];
    let page = "<html>nginx at 10.9.8.7</html>";
    let mut cases = Vec::new();
    for (format, _) in FORMATS {
        for status in statuses {
            cases.push((format, response_head(status, "text/html"), page));
        }
    }
    let answers = answers(&cases, false).await;
    for ((case, status), answer) in cases.iter().zip(statuses.iter().cycle()).zip(answers) {
        // A page for an unknown path says nothing of the model.
        let expected = status.replace("404", "502");
        assert!(expected.starts_with(&answer.status.to_string()), "{case:?}");
        let message = answer.error(case.0);
        assert!(!message.contains("nginx"), "{message}");
    }
}

#[tokio::test]
async fn an_unreachable_upstream_is_a_bad_gateway() {
    let gateway = Gateway::start(&every_format_config(free_address()));
    for (format, _) in FORMATS {
        for stream in [false, true] {
            let response = send_request(&gateway, format, "hi", stream).await;
            assert_eq!(response.status, 502, "{format}");
            let message = response.error(format);
            assert!(!message.contains("127.0.0.1"), "{message}");
            assert_provenance(&response, format);
        }
    }
}

/// An error beside content is an error, and so is a response without any content.
#[tokio::test]
async fn a_response_of_success_with_an_error_in_it_is_a_failure() {
    let message = r#"{"role":"assistant","content":"Hi"}"#;
    let choice = format!(r#"{{"index":0,"message":{message},"finish_reason":"stop"}}"#);
    let item = r#"{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[]}]}"#;
    let error = r#""error":{"message":"boom","type":"server_error"}"#;
    let cases = [
        (
            "chat",
            "messages",
            format!(r#"{{"id":"c","choices":[{choice}],{error}}}"#),
        ),
        ("chat", "chat", r#"{"id":"c","choices":[]}"#.to_owned()),
        ("chat", "native", r#"{"id":"c","choices":[]}"#.to_owned()),
        ("native", "native", r#"{"candidates":[]}"#.to_owned()),
        (
            "responses",
            "chat",
            format!(
                r#"{{"id":"r","object":"response","status":"completed","output":[{item}],{error}}}"#
            ),
        ),
    ];
    let json = || response_head("200 OK", "application/json");
    let responses = cases
        .each_ref()
        .map(|(upstream, _, body)| (*upstream, json(), body.as_str()));
    let gateway = gateway_with_fixed_responses(&responses);
    for (number, (_, client, body)) in cases.iter().enumerate() {
        let (path, question) = request(client, &format!("case-{number}"), "hi", false);
        let response = post(gateway.url(&path), question.to_string()).await;
        assert_eq!(
            response.status,
            502,
            "{client}: {body}: {}",
            response.text()
        );
        response.error(client);
    }
}
