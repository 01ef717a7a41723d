//! How much memory large images take on their way.

use serde_json::{Value, json};

use super::Stage;
use super::given::{Form, pixel};

const MIB: u64 = 1 << 10;

#[tokio::test]
async fn a_form_of_20_mib_passes_with_few_copies_of_it() {
    let stage = Stage::start();
    let mut heavy = pixel();
    heavy.resize(20 << 20, 7);
    for model in ["art", "native-art"] {
        let send = async || {
            let form = Form::new(&[("model", model), ("prompt", "a hat")]);
            let response = form.file("image", &heavy).send(&stage).await;
            assert_eq!(response.status(), 200, "{model}");
            let told: Value = response.json().await.expect("JSON");
            assert!(told["data"][0]["b64_json"].is_string());
        };
        let before = stage.gateway.resident();
        send().await;
        let most = stage.gateway.memory("VmHWM:");
        // As it came, and once more with another name; base64 is longer by a third, and copied once.
        assert!(
            most < before + 120 * MIB,
            "{model}: {before} KiB became {most} KiB"
        );
    }
}

#[tokio::test]
async fn an_answer_of_16_mib_takes_no_more_than_two_copies() {
    let stage = Stage::start();
    for model in ["art", "native-art"] {
        let before = stage.gateway.resident();
        let body =
            json!({"model": model, "prompt": format!("mock:weight={} mock:image", 16 << 20)});
        let response = stage.generate(&body).await;
        assert_eq!(response.status(), 200, "{model}");
        let told = response.bytes().await.expect("a body");
        assert!(told.len() > 16 << 20);
        let most = stage.gateway.memory("VmHWM:");
        println!("{model}: {before} KiB, at most {most} KiB");
        assert!(
            most < before + 40 * MIB,
            "{model}: {before} KiB became {most} KiB"
        );
    }
}
