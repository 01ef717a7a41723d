//! When the first upstream fails, the next one serves the request, and only a header shows it.

use std::net::SocketAddr;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, free_address, post, request, sse_events,
};

/// For each format and each name a model `mN-FORMAT` whose own upstream knows it by that name,
/// and whose fallback is answered by a good one. Fallbacks have an order, weights only a tendency.
fn with_fallback(mock: &Mock, names: &[String], first_at: SocketAddr) -> String {
    let mut upstreams = String::new();
    let mut models = String::new();
    for (format, prefix) in FORMATS {
        for (name, address) in [("first", first_at), ("good", mock.address)] {
            upstreams += &format!(
                "  - {{name: {name}-{format}, format: {format}, base_url: \"http://{address}{prefix}\", breaker: off}}\n"
            );
        }
        for (number, name) in names.iter().enumerate() {
            models += &format!(
                "  - {{id: m{number}-{format}, upstreams: [{{name: first-{format}, model: \"{name}\"}}], \
                 fallbacks: [spare-{format}]}}\n"
            );
        }
        models += &format!(
            "  - {{id: spare-{format}, upstreams: [{{name: good-{format}, model: spare}}]}}\n"
        );
    }
    format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys:\n  - {{name: all, secret: {KEY}}}\n\
         upstreams:\n{upstreams}models:\n{models}"
    )
}

async fn send_request(gateway: &Gateway, format: &str, number: usize, stream: bool) -> Response {
    let model = format!("m{number}-{format}");
    let (path, body) = request(format, &model, "hello there", stream);
    post(gateway.url(&path), body.to_string()).await
}

async fn assert_spare_answers(mock: &Mock, names: &[String], first_at: SocketAddr) {
    let gateway = Gateway::start(&with_fallback(mock, names, first_at));
    for (format, _) in FORMATS {
        for (number, name) in names.iter().enumerate() {
            for stream in [false, true] {
                let response = send_request(&gateway, format, number, stream).await;
                let text = response.text();
                assert_eq!(response.status, 200, "{format} {name}: {text}");
                assert!(text.contains("hello"), "{format} {name}: {text}");
                let error = text.contains("\"error\":{") || text.contains("event: error");
                assert!(!error, "{format} {name}: {text}");
                assert_eq!(
                    response.header("x-omniglot-attempts"),
                    "2",
                    "{format} {name}"
                );
                let upstream = response.header("x-omniglot-upstream");
                assert_eq!(upstream, format!("good-{format}"));
                let ours = format!("\"model\":\"m{number}-{format}\"");
                assert_eq!(text.contains(&ours), format != "native", "{text}");
                assert!(!text.contains("first"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn an_unreachable_upstream_is_skipped() {
    let mock = Mock::start();
    assert_spare_answers(&mock, &["first".to_owned()], free_address()).await;
}

#[tokio::test]
async fn retryable_statuses_fail_over() {
    let mock = Mock::start();
    let statuses = [408, 429, 500, 502, 503, 504, 529, 401, 403];
    let names = statuses.map(|status| format!("first+error={status}"));
    assert_spare_answers(&mock, &names, mock.address).await;
}

#[tokio::test]
async fn unreadable_responses_fail_over() {
    let mock = Mock::start();
    let words = [
        "cut",
        "garbage",
        "html",
        "empty",
        "redirect",
        "status_200_error",
    ];
    let names = words.map(|word| format!("first+{word}"));
    assert_spare_answers(&mock, &names, mock.address).await;
}

#[tokio::test]
async fn streams_that_fail_before_their_first_content_fail_over() {
    let mock = Mock::start();
    let names = ["first+stream_error=0", "first+garbage=1"].map(str::to_owned);
    let gateway = Gateway::start(&with_fallback(&mock, &names, mock.address));
    let response = send_request(&gateway, "chat", 0, true).await;
    assert_eq!(response.header("x-omniglot-upstream"), "good-chat");
    let (_, last) = sse_events(response.text()).pop().expect("events");
    assert_eq!(last, "[DONE]");
    for format in ["chat", "messages", "responses"] {
        let response = send_request(&gateway, format, 1, true).await;
        let upstream = response.header("x-omniglot-upstream");
        assert_eq!(upstream, format!("good-{format}"));
        assert!(!response.text().contains("first"), "{}", response.text());
    }
}

#[tokio::test]
async fn errors_about_the_request_do_not_fail_over() {
    let mock = Mock::start();
    let statuses = [400, 404, 413, 422];
    let names = statuses.map(|status| format!("first+error={status}"));
    let gateway = Gateway::start(&with_fallback(&mock, &names, mock.address));
    for (format, _) in FORMATS {
        for (number, status) in statuses.into_iter().enumerate() {
            for stream in [false, true] {
                let response = send_request(&gateway, format, number, stream).await;
                assert_eq!(response.status, status, "{format}");
                assert_eq!(response.header("x-omniglot-attempts"), "1", "{format}");
                let upstream = response.header("x-omniglot-upstream");
                assert_eq!(upstream, format!("first-{format}"));
            }
        }
    }
}

#[tokio::test]
async fn a_stream_with_content_is_not_retried() {
    let mock = Mock::start();
    let gateway = Gateway::start(&with_fallback(
        &mock,
        &["first+stream_error=2".to_owned()],
        mock.address,
    ));
    for (format, _) in FORMATS {
        let response = send_request(&gateway, format, 0, true).await;
        assert_eq!(response.status, 200, "{format}");
        assert_eq!(
            response.header("x-omniglot-upstream"),
            format!("first-{format}")
        );
        assert!(response.text().contains("The mock broke off"), "{format}");
    }
}

#[tokio::test]
async fn when_all_upstreams_fail_the_last_error_is_returned() {
    let mock = Mock::start();
    let config = with_fallback(&mock, &["first".to_owned()], free_address());
    let gateway = Gateway::start(&config.replace("model: spare", "model: spare+error=503"));
    for (format, _) in FORMATS {
        let response = send_request(&gateway, format, 0, false).await;
        assert_eq!(response.status, 503, "{format}");
        assert!(
            response.text().contains("overloaded"),
            "{}",
            response.text()
        );
        assert_eq!(response.header("x-omniglot-attempts"), "2", "{format}");
        assert_eq!(
            response.header("x-omniglot-upstream"),
            format!("good-{format}")
        );
    }
}

#[tokio::test]
async fn of_two_upstreams_of_one_model_the_healthy_one_serves() {
    let mock = Mock::start();
    let dead = free_address();
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n  \
         - {{name: dead, format: chat, base_url: \"http://{dead}/v1\"}}\n  \
         - {{name: good, format: chat, base_url: \"http://{}/v1\"}}\n\
         models: [{{id: m0-chat, upstreams: [{{name: dead, weight: 3}}, {{name: good}}]}}]\n",
        mock.address
    ));
    let mut passed_over = 0;
    // That the dead one is never drawn first in so many draws does not happen.
    for _ in 0..40 {
        let response = send_request(&gateway, "chat", 0, false).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("x-omniglot-upstream"), "good");
        match response.header("x-omniglot-attempts") {
            "1" => {}
            "2" => passed_over += 1,
            other => panic!("{other} attempts at two upstreams"),
        }
    }
    assert!(passed_over > 0);
}
