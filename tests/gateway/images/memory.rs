//! The memory that large images need on their way through the gateway.

use serde_json::{Value, json};

use super::ImageGateway;
use super::inputs::{Form, pixel};

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
