//! Bytes that pass through the gateway unchanged, and the few that do not.

mod broken_streams;
mod failover;
mod headers;
mod upstream_errors;
mod usage;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, TIMEOUT, client, echoed_request, every_format_config,
    post, request, send,
};

/// Every path on which a format generates: one JSON reply, and its streams.
fn requests(format: &str, model: &str, prompt: &str) -> Vec<(String, String)> {
    let mut requests = Vec::new();
    for stream in [false, true] {
        let (path, mut body) = request(format, model, prompt, stream);
        if format == "chat" && stream {
            // Asked for already, so that nothing has to be added.
            body["stream_options"] = serde_json::json!({"include_usage": true});
        }
        requests.push((path, body.to_string()));
    }
    if format == "native" {
        let (path, body) = requests[1].clone();
        let array = path.replace("?alt=sse", "");
        requests.push((array.clone(), body.clone()));
        requests.push((format!("{array}?alt=json"), body));
    }
    requests
}

fn assert_same(through: &Response, direct: &Response, what: &str) {
    assert_eq!(through.status, direct.status, "{what}");
    assert_eq!(
        String::from_utf8_lossy(&through.body),
        String::from_utf8_lossy(&direct.body),
        "{what}"
    );
    let kind = direct.header("content-type");
    assert_eq!(through.header("content-type"), kind, "{what}");
}

#[tokio::test]
async fn responses_and_streams_pass_byte_by_byte() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for prompt in [
            "hello",
            "Grüße, 世界 \u{2028} \"quoted\" \\ \u{1F600}",
            "mock:thinking mock:parallel=3",
            "mock:long=300",
            "mock:refusal",
            "mock:length mock:usage=10,3,7,2",
            "mock:image",
            "mock:gzip hello",
        ] {
            for (path, body) in requests(format, &format!("same-{format}"), prompt) {
                let through = post(gateway.url(&path), body.clone()).await;
                let what = format!("{path}: {prompt}");
                let direct = body.replace("mock:gzip ", "");
                if direct == body {
                    let direct = post(mock.url(&path), body).await;
                    assert_same(&through, &direct, &what);
                } else {
                    // Decoded on the way, and said to be so.
                    assert_eq!(
                        (through.status, through.header("content-encoding")),
                        (200, "")
                    );
                    assert!(through.text().contains("hello"), "{what}");
                }
            }
        }
    }
}

/// A body that no serialiser would write: odd spaces, escapes, names of models everywhere.
fn odd_body(format: &str, model: &str, stream: bool) -> String {
    let words = r#"mock:echo \u00e9\u0041 \ud83d\ude00 ü \/ \"model\" : \"other-chat\""#;
    let content = match format {
        "responses" => format!(r#""input" :  "{words}""#),
        "native" => format!(
            r#""contents":[ {{"role":"user","parts":[{{"text" : "{words}"}}]}}  ], "model":"other-native""#
        ),
        _ => format!(r#""messages" :[ {{"content": "{words}" ,"role":"user"}}]"#),
    };
    let limit = match format {
        "messages" => "\"max_tokens\" :64 ,",
        _ => "",
    };
    let model = match format {
        "native" => String::new(),
        _ => format!("\"model\"\n:  \"{model}\"\t,"),
    };
    let stream = match (format, stream) {
        ("native", _) => String::new(),
        ("chat", true) => r#""stream_options" : {"include_usage" : true } ,"stream":true,"#.into(),
        (_, stream) => format!("\"stream\" : {stream},"),
    };
    format!(
        "\r\n {{ {content},{limit} {stream}\n{model} \"metadata\":{{\"model\":\"other-{format}\",\
         \"x\":\"1\"}},\"temperature\" : 1.00, \"unknown\":[ {{\"model\" : \
         \"theirs-{format}\"}} , 1e0, 0.10000000000000000001]\t}}\n"
    )
}

#[tokio::test]
async fn only_the_renamed_model_changes_in_the_request() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        let (path, _) = request(format, &format!("other-{format}"), "", false);
        let body = odd_body(format, &format!("other-{format}"), false);
        let echo = echoed_request(format, &post(gateway.url(&path), body).await);
        let expected = odd_body(format, &format!("theirs-{format}"), false);
        assert_eq!(echo["body"], expected, "{format}");
        assert_eq!(echo["body_bytes"], expected.len(), "{format}");
        let path = path.replace("other-", "theirs-");
        assert_eq!(echo["path"], path, "{format}");
    }
}

#[tokio::test]
async fn a_model_name_with_escapes_is_the_same_name() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let rest = r#""messages":[{"role":"user","content":"mock:echo"}]"#;
    let body = format!(r#"{{"mod\u0065l":"\u006fther\u002dchat",{rest}}}"#);
    let response = post(gateway.url("/v1/chat/completions"), body).await;
    let expected = format!(r#"{{"mod\u0065l":"theirs-chat",{rest}}}"#);
    assert_eq!(echoed_request("chat", &response)["body"], expected);
    assert_eq!(response.json()["model"], "other-chat");
    let body = format!(r#"{{"model":"same\u002dchat",{rest}}}"#);
    let response = post(gateway.url("/v1/chat/completions"), body.clone()).await;
    assert_eq!(
        echoed_request("chat", &response)["body"],
        body,
        "nothing to rename"
    );
}

#[tokio::test]
async fn responses_name_the_clients_model_and_are_otherwise_unchanged() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        let (ours, theirs) = (format!("other-{format}"), format!("theirs-{format}"));
        let through = requests(format, &ours, "mock:thinking hello");
        let direct = requests(format, &theirs, "mock:thinking hello");
        let odd = [false, true].map(|stream| {
            let path = |model| request(format, model, "", stream).0;
            let odd = |model| odd_body(format, model, stream).replace("mock:echo", "mock:tool");
            ((path(&ours), odd(&ours)), (path(&theirs), odd(&theirs)))
        });
        for ((our_path, our_body), (their_path, their_body)) in
            through.into_iter().zip(direct).chain(odd)
        {
            let through = post(gateway.url(&our_path), our_body).await;
            let mut direct = post(mock.url(&their_path), their_body).await;
            let named = format!("\"model\":\"{theirs}\"");
            let times = direct.text().matches(&named).count();
            // Native replies say `modelVersion`, which stays as it is.
            assert_eq!(times > 0, format != "native", "{their_path}");
            assert!(direct.text().contains(&theirs), "{their_path}");
            let renamed = format!("\"model\":\"{ours}\"");
            direct.body = direct.text().replace(&named, &renamed).into_bytes();
            assert_same(&through, &direct, &our_path);
        }
    }
}

#[tokio::test]
async fn token_counts_pass() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, path) in [
        ("messages", "/v1/messages/count_tokens"),
        ("responses", "/v1/responses/input_tokens"),
        ("native", "/v1beta/models/MODEL:countTokens"),
        ("native", "/v1/models/MODEL:countTokens"),
    ] {
        for (ours, theirs) in [("same", "same"), ("other", "theirs")] {
            let (ours, theirs) = (format!("{ours}-{format}"), format!("{theirs}-{format}"));
            let body = |model| {
                let (_, mut body) = request(format, model, "one two three", false);
                // Counters take no more than they need.
                let fields = body.as_object_mut().expect("an object");
                fields.retain(|name, _| name != "stream" && name != "max_tokens");
                body.to_string()
            };
            let through = gateway.url(&path.replace("MODEL", &ours));
            let through = post(through, body(&ours)).await;
            let direct = post(mock.url(&path.replace("MODEL", &theirs)), body(&theirs)).await;
            assert_same(&through, &direct, path);
            assert!(through.text().contains('3'), "{}", through.text());
        }
    }
}

#[tokio::test]
async fn native_methods_work_under_both_prefixes_and_spellings() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let (_, body) = request("native", "", "hello", false);
    let direct = mock.url("/v1beta/models/theirs-native:generateContent");
    let direct = post(direct, body.to_string()).await;
    for path in [
        "/v1beta/models/other-native:generateContent",
        "/v1/models/other-native:generateContent",
        "/v1/models/other-native%3AgenerateContent",
        "/v1beta/models/other-native%3agenerateContent",
        "/v1beta/models/%6fther%2Dnative:generateContent",
        "/v1beta/models/models/other-native:generateContent",
        "/v1beta/models/models%2Fother-native:generateContent?alt=json",
    ] {
        let through = post(gateway.url(path), body.to_string()).await;
        assert_same(&through, &direct, path);
    }
}

#[tokio::test]
async fn chunked_bodies_and_bodies_over_http2_pass() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    // The first client brings what every other one needs for TLS.
    client();
    let h2 = reqwest::Client::builder().no_proxy().timeout(TIMEOUT);
    let h2 = h2.http2_prior_knowledge().build().expect("a client");
    for (format, _) in FORMATS {
        for (path, body) in requests(format, &format!("same-{format}"), "hello there") {
            let direct = post(mock.url(&path), body.clone()).await;
            let pieces: Vec<Result<Vec<u8>, std::io::Error>> = body
                .as_bytes()
                .chunks(7)
                .map(|piece| Ok(piece.to_vec()))
                .collect();
            let chunked = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
            let through = post(gateway.url(&path), chunked).await;
            assert_same(&through, &direct, &path);
            let request = h2.post(gateway.url(&path)).bearer_auth(KEY).body(body);
            assert_same(&send(request).await, &direct, &path);
        }
    }
}

#[tokio::test]
async fn a_model_name_is_percent_encoded_in_the_upstreams_path() {
    let mock = Mock::start();
    let config = every_format_config(mock.address)
        + "  - {id: \"odd/id?v1%41\", upstreams: [{name: mock-native, model: \"org/odd näme?v=1#%41\"}]}\n";
    let gateway = Gateway::start(&config);
    let (_, body) = request("native", "", "mock:echo", false);
    let url = gateway.url("/v1beta/models/odd%2Fid%3Fv1%2541:generateContent");
    let response = post(url, body.to_string()).await;
    let echo = echoed_request("native", &response);
    assert_eq!(response.json()["modelVersion"], "org/odd näme?v=1#%41");
    assert_eq!(
        echo["path"],
        "/v1beta/models/org%2Fodd%20n%C3%A4me%3Fv=1%23%2541:generateContent"
    );
    // Ids in bodies need no care.
    let asked = client().get(gateway.url("/v1/models/odd%2Fid%3Fv1%2541"));
    assert_eq!(
        send(asked.bearer_auth(KEY)).await.json()["id"],
        "odd/id?v1%41"
    );
}
