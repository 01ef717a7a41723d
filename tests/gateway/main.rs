//! The whole process over real sockets, with the mock behind it.

mod admin;
mod asking;
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
mod secure;
mod stage;
mod streaming;
mod threads;
mod told;
mod translated;
mod upstreams;
mod wire;

use stage::{FORMATS, Gateway, KEY, Mock, client, every_format, request};

#[tokio::test]
async fn a_request_in_each_format_is_answered() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format(mock.address));
    for (format, _) in FORMATS {
        for stream in [false, true] {
            let (path, body) = request(format, &format!("same-{format}"), "hello", stream);
            let reply = client()
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
