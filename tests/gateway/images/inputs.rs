//! Images in a request, as files of a form or as data in JSON, recognized by their first bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omniglot_test_support::{KEY, new_client};
use reqwest::Response;
use serde_json::{Value, json};

use super::{ImageGateway, PIXEL, echoed, header, refusal};

const EDITS: &str = "/v1/images/edits";

/// A form as the official clients write it.
pub struct Form(Vec<u8>);

impl Form {
    pub fn new(fields: &[(&str, &str)]) -> Form {
        let mut form = Form(Vec::new());
        for (name, value) in fields {
            form.part(name, "", value.as_bytes());
        }
        form
    }

    pub fn file(mut self, name: &str, bytes: &[u8]) -> Form {
        let more = "; filename=\"a.txt\"\r\nContent-Type: text/plain";
        self.part(name, more, bytes);
        self
    }

    fn part(&mut self, name: &str, more: &str, value: &[u8]) {
        let head =
            format!("--b0undary\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
        self.0.extend(head.as_bytes());
        self.0.extend(value);
        self.0.extend(b"\r\n");
    }

    pub async fn send(mut self, setup: &ImageGateway) -> Response {
        self.0.extend(b"--b0undary--\r\n");
        let request = new_client().post(setup.gateway.url(EDITS)).bearer_auth(KEY);
        let request = request.header("content-type", "multipart/form-data; boundary=b0undary");
        request.body(self.0).send().await.expect("an answer")
    }
}

pub fn pixel() -> Vec<u8> {
    STANDARD.decode(PIXEL).expect("base64")
}

/// The head of a PNG with other sides.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = pixel();
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    bytes
}

#[tokio::test]
async fn forms_pass_with_the_model_renamed_for_the_upstream() {
    let setup = ImageGateway::start();
    let form = Form::new(&[("model", "art"), ("prompt", "a hat mock:echo"), ("n", "1")]);
    let form = form
        .file("image[]", &pixel())
        .file("image[]", &pixel())
        .file("mask", &pixel());
    let response = form.send(&setup).await;
    assert_eq!(response.status(), 200);
    let message: Value = response.json().await.expect("JSON");
    let echo = echoed(&message);
    assert_eq!(echo["path"], "/v1/images/edits");
    let kind = echo["headers"]["content-type"].as_str().expect("a type");
    assert!(
        kind.starts_with("multipart/form-data; boundary=\"omniglot-"),
        "{kind}"
    );
    // Images are no text, so the body is only measured: as long as it was, with the other name.
    assert!(echo["body_bytes"].as_u64() > Some(600), "{echo}");
    let form = Form::new(&[
        ("model", "art"),
        ("prompt", "mock:echo"),
        ("image", &format!("data:image/png;base64,{PIXEL}")),
    ]);
    let message: Value = form.send(&setup).await.json().await.expect("JSON");
    let echo = echoed(&message);
    let body = echo["body"].as_str().expect("text");
    assert!(
        body.contains("name=\"model\"\r\n\r\ntheirs-art\r\n"),
        "{body}"
    );
}

#[tokio::test]
async fn an_upstream_gets_no_field_that_was_not_judged() {
    let setup = ImageGateway::start();
    for (name, more, told) in [
        ("model", "", "`model` stands in the form twice"),
        ("Model", "", "`Model` must be spelled `model`"),
        ("model[]", "", "`model[]` must be spelled `model`"),
        ("n", "; name=\"model\"", "a part has two names"),
        (
            "n",
            "\r\nContent-Disposition: form-data; name=\"model\"",
            "a part has two dispositions",
        ),
    ] {
        let mut form = Form::new(&[("model", "art"), ("prompt", "a hat mock:echo")]);
        form.part(name, more, b"theirs-dear");
        let form = form.file("image", &pixel());
        let response = form.send(&setup).await;
        assert_eq!(response.status(), 400, "{name}{more}");
        let text = response.text().await.expect("text");
        assert!(text.contains(told), "{text}");
    }
    // Another form within a value is nothing but a value, whatever the upstream takes for the end of a line.
    let inner =
        "a\n--b0undary\nContent-Disposition: form-data; name=\"model\"\n\ndear\n--b0undary--\n";
    let form = Form::new(&[
        ("model", "art"),
        ("prompt", "mock:echo"),
        ("image", &format!("data:image/png;base64,{PIXEL}")),
        ("user", inner),
    ]);
    let message: Value = form.send(&setup).await.json().await.expect("JSON");
    let echo = echoed(&message);
    let (kind, body) = (&echo["headers"]["content-type"], &echo["body"]);
    let kind = kind.as_str().expect("a type");
    assert!(!kind.contains("b0undary"), "{kind}");
    let own = kind.split('"').nth(1).expect("a boundary");
    let body = body.as_str().expect("text");
    assert_eq!(body.matches(own).count(), 5, "{body}");
    assert!(body.contains(inner), "{body}");
}

#[tokio::test]
async fn json_with_image_data_passes() {
    let setup = ImageGateway::start();
    let url = format!("data:image/png;base64,{PIXEL}");
    for image in [
        json!({"image": url}),
        json!({"image": [url, url]}),
        json!({"images": [{"image_url": url}, {"file_id": "file-1"}], "mask": {"image_url": url}}),
    ] {
        let mut body = json!({"model": "art", "prompt": "mock:echo"});
        body.as_object_mut()
            .expect("an object")
            .extend(image.as_object().cloned().expect("an object"));
        let response = setup.post(EDITS, &body).await;
        assert_eq!(response.status(), 200, "{body}");
        let message: Value = response.json().await.expect("JSON");
        assert_eq!(echoed(&message)["path"], "/v1/images/edits");
    }
}

#[tokio::test]
async fn native_models_get_the_images_of_forms_and_of_json() {
    let setup = ImageGateway::start();
    let form = Form::new(&[("model", "native-art"), ("prompt", "a hat mock:image")]);
    let response = form.file("image", &pixel()).send(&setup).await;
    assert_eq!(response.status(), 200);
    let told: Value = response.json().await.expect("JSON");
    assert_eq!(told["data"][0]["b64_json"], PIXEL);
    // Its words are no image, so they are told: the count of what it was given.
    let form = Form::new(&[
        ("model", "native-art"),
        ("prompt", "mock:text=seen mock:usage=7,0,9,0"),
    ]);
    let response = form.file("image", &pixel()).send(&setup).await;
    let (status, code, message) = refusal(response).await;
    assert_eq!((status, &*code), (400, "no_image"), "{message}");
    let form = Form::new(&[("model", "native-art"), ("prompt", "a hat"), ("steps", "3")]);
    let response = form.file("image", &pixel()).send(&setup).await;
    assert_eq!(header(&response, "x-omniglot-dropped"), "steps");
    let form = Form::new(&[("model", "native-art"), ("prompt", "a hat")]);
    let form = form.file("image", &pixel()).file("mask", &pixel());
    let (status, _, message) = refusal(form.send(&setup).await).await;
    assert_eq!((status, message.contains("mask")), (400, true), "{message}");
}

#[tokio::test]
async fn a_file_that_is_no_image_is_refused_by_its_first_bytes() {
    let setup = ImageGateway::start();
    for model in ["art", "native-art"] {
        for (file, words) in [
            (b"%PDF-1.7 ...".to_vec(), "expected a PNG"),
            (Vec::new(), "expected a PNG"),
            (png(20_000, 10), "sides of 1 to 16384"),
            (png(0, 10), "sides of 1 to 16384"),
        ] {
            let form = Form::new(&[("model", model), ("prompt", "a hat")]).file("image", &file);
            let (status, code, message) = refusal(form.send(&setup).await).await;
            assert_eq!((status, &*code), (400, "invalid_image"), "{message}");
            assert!(message.contains(words), "{message}");
            let url = format!("data:image/png;base64,{}", STANDARD.encode(&file));
            let body = json!({"model": model, "prompt": "a hat", "image": url});
            let (status, code, message) = setup.refused(EDITS, &body).await;
            assert_eq!((status, &*code), (400, "invalid_image"), "{message}");
        }
    }
    let form = Form::new(&[("model", "art"), ("prompt", "a hat")]);
    let form = form.file("image", &png(10, 10)).file("mask", &png(10, 11));
    let (status, _, message) = refusal(form.send(&setup).await).await;
    assert_eq!(
        (status, &*message),
        (400, "mask: expected the size of the first image")
    );
    let none = Form::new(&[("model", "art"), ("prompt", "a hat")])
        .send(&setup)
        .await;
    assert_eq!(refusal(none).await.2, "missing required field image");
    let mut heavy = pixel();
    heavy.resize((50 << 20) + 1, 0);
    let form = Form::new(&[("model", "art"), ("prompt", "a hat")]).file("image", &heavy);
    assert_eq!(refusal(form.send(&setup).await).await.0, 413);
    heavy.resize((64 << 20) + 1, 0);
    let form = Form::new(&[("model", "art"), ("prompt", "a hat")]).file("image", &heavy);
    assert_eq!(refusal(form.send(&setup).await).await.0, 413);
    let broken = Form(b"--b0undary\r\nContent-Disposition: form-data\r\n\r\nx\r\n".to_vec());
    assert_eq!(refusal(broken.send(&setup).await).await.0, 400);
}
