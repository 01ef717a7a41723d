//! The whole process over real sockets, with the mock behind it.

mod admin;
mod bodies;
mod command;
mod counting;
mod demo;
mod descriptors;
mod drain;
mod hooks;
mod images;
mod keys;
mod lists;
mod logging;
mod loops;
mod money;
mod native;
mod passing;
mod patience;
mod protocols;
mod quiet;
mod recordings;
mod refusals;
mod reload;
mod streaming;
mod threads;
mod translated;
mod upstreams;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, every_format_config, new_client, request,
};

#[tokio::test]
async fn a_request_in_each_format_is_answered() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for stream in [false, true] {
            let (path, body) = request(format, &format!("same-{format}"), "hello", stream);
            let reply = new_client()
                .post(gateway.url(&path))
                .bearer_auth(KEY)
                .json(&body)
                .send()
                .await
                .expect("an answer");
            assert_eq!(reply.status(), 200, "{format}");
            let text = reply.text().await.expect("a body");
            assert!(text.contains("hello"), "{format}: {text}");
        }
    }
}
