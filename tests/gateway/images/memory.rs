//! The memory that large images need on their way through the gateway.

use omniglot_test_support::{
    Gateway, Http1Connection, Mock, client, http1_post_head, send, wait_for,
};
use serde_json::{Value, json};

use super::inputs::{Form, pixel};
use super::{ImageGateway, config};

const MIB: u64 = 1 << 10;

#[tokio::test]
async fn a_form_of_20_mib_needs_the_memory_of_few_copies() {
    let setup = ImageGateway::start();
    let mut heavy = pixel();
    heavy.resize(20 << 20, 7);
    for model in ["art", "native-art"] {
        let send = async || {
            let form = Form::new(&[("model", model), ("prompt", "a hat")]);
            let response = form.file("image", &heavy).send(&setup).await;
            assert_eq!(response.status(), 200, "{model}");
            let message: Value = response.json().await.expect("JSON");
            assert!(message["data"][0]["b64_json"].is_string());
        };
        let before = setup.gateway.resident();
        send().await;
        let most = setup.gateway.memory("VmHWM:");
        // As it came, and once more with another name; base64 is longer by a third, and copied once.
        assert!(
            most < before + 120 * MIB,
            "{model}: {before} KiB became {most} KiB"
        );
    }
}

/// It would be generated, and paid for, and then there is no memory for it.
#[tokio::test]
async fn an_image_is_not_asked_for_while_there_is_no_memory_for_it() {
    let mock = Mock::start();
    let config = config(&mock).replace("admin: ADMIN", "admin: ADMIN, body_memory: 8MiB");
    let gateway = Gateway::start(&config);
    let body = json!({"model": "art", "prompt": "mock:name=kept a hat"});
    let ask = async || {
        let asked = client().post(gateway.url("/v1/images/generations"));
        send(asked.bearer_auth("key-of-other").json(&body)).await
    };
    let mut other = Http1Connection::connect(gateway.address).await;
    let announced = "content-length: 7900000\r\nexpect: 100-continue\r\n";
    let head = http1_post_head("/v1/chat/completions", announced);
    other.send(head).await;
    assert_eq!(other.read_head().await.expect("a head").status(), 100);
    let refused = ask().await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(mock.seen("kept", "started").await, 0);
    drop(other);
    // The other request is over when the gateway has noticed it.
    let served = async || (ask().await.status == 200).then_some(());
    wait_for("memory for an image", served).await;
    assert_eq!(mock.seen("kept", "started").await, 1);
}

#[tokio::test]
async fn a_response_of_16_mib_needs_the_memory_of_two_copies() {
    let setup = ImageGateway::start();
    for model in ["art", "native-art"] {
        let before = setup.gateway.resident();
        let body =
            json!({"model": model, "prompt": format!("mock:weight={} mock:image", 16 << 20)});
        let response = setup.generate(&body).await;
        assert_eq!(response.status(), 200, "{model}");
        let message = response.bytes().await.expect("a body");
        assert!(message.len() > 16 << 20);
        let most = setup.gateway.memory("VmHWM:");
        println!("{model}: {before} KiB, at most {most} KiB");
        assert!(
            most < before + 40 * MIB,
            "{model}: {before} KiB became {most} KiB"
        );
    }
}
