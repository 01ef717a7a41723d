//! Images that an upstream returns as URLs: fetched where allowed, served to their key, deleted in time.

use omniglot_test_support::{Gateway, KEY, Mock, fixed_response_upstream, wait_for};
use reqwest::Method;
use serde_json::{Value, json};

use super::inputs::pixel;
use super::tasks::{OTHER, hand_in, send, until};
use super::{ImageGateway, header, refusal};

fn stage(files: &str) -> ImageGateway {
    let mock = Mock::start();
    let files = files.replace("MOCK", &mock.address.to_string());
    let config = super::config(&mock) + &format!("images: {{persist: true, files: {{{files}}}}}\n");
    ImageGateway {
        gateway: Gateway::start(&config),
        mock,
    }
}

async fn address(setup: &ImageGateway, prompt: &str) -> String {
    let body = json!({"model": "art", "prompt": prompt, "response_format": "url", "n": 2});
    let response = setup.generate(&body).await;
    assert_eq!(response.status(), 200);
    let message: Value = response.json().await.expect("JSON");
    assert_eq!(message["data"].as_array().map(Vec::len), Some(2));
    message["data"][1]["url"]
        .as_str()
        .expect("an address")
        .to_owned()
}

#[tokio::test]
async fn an_image_url_is_served_by_the_gateway_until_it_expires() {
    let stage = stage("hosts: [\"MOCK\"], ttl: 2s");
    let url = address(&stage, "a cat").await;
    let own = stage.gateway.url("/v1/images/files/");
    let id = url.strip_prefix(&own).expect("an address of ours");
    let path = format!("/v1/images/files/{id}");
    let response = send(&stage.gateway, Method::GET, &path, KEY).await;
    assert_eq!(
        (
            response.status().as_u16(),
            header(&response, "content-type")
        ),
        (200, "image/png")
    );
    assert_eq!(response.bytes().await.expect("a file"), pixel());
    let response = send(&stage.gateway, Method::GET, &path, OTHER).await;
    assert_eq!(refusal(response).await.0, 404);
    let response = send(&stage.gateway, Method::GET, &path, "no-key").await;
    assert_eq!(refusal(response).await.0, 401);
    let response = send(&stage.gateway, Method::DELETE, &path, KEY).await;
    assert_eq!(
        (response.status().as_u16(), header(&response, "allow")),
        (405, "GET")
    );
    let response = send(&stage.gateway, Method::GET, "/v1/images/files/x", KEY).await;
    assert_eq!(refusal(response).await.1, "file_not_found");
    wait_for("it expires", async || {
        let response = send(&stage.gateway, Method::GET, &path, KEY).await;
        (response.status() == 410).then_some(())
    })
    .await;
    let response = send(&stage.gateway, Method::GET, &path, KEY).await;
    assert_eq!(refusal(response).await.1, "expired");
}

#[tokio::test]
async fn an_image_that_cannot_be_fetched_keeps_its_url() {
    for (files, prompt) in [
        ("ttl: 1h", "a cat"),
        ("hosts: [\"other.example\"]", "a cat"),
        ("hosts: [\"MOCK\"], limit: 20B", "a cat"),
        ("hosts: [\"MOCK\"]", "mock:text=gone"),
    ] {
        let stage = stage(files);
        let url = address(&stage, prompt).await;
        let theirs = stage.mock.url("/mock/files/");
        assert!(url.starts_with(&theirs), "{files}: {url}");
    }
}

/// An upstream that returns more than was asked for does not make the gateway fetch it.
#[tokio::test]
async fn no_more_images_are_fetched_than_were_asked_for() {
    let mock = Mock::start();
    let urls: Vec<Value> = (0..5)
        .map(|_| json!({"url": mock.url("/mock/files/cat.png")}))
        .collect();
    let body = json!({"created": 1, "data": urls}).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let upstream = fixed_response_upstream(vec![head.into_bytes(), body.into_bytes()]);
    let config = super::config(&mock).replace(&mock.address.to_string(), &upstream.to_string())
        + &format!(
            "images: {{persist: true, files: {{hosts: [\"{}\"]}}}}\n",
            mock.address
        );
    let gateway = Gateway::start(&config);
    let stage = ImageGateway { gateway, mock };
    for n in [1, 3] {
        let body = json!({"model": "art", "prompt": "a cat", "response_format": "url", "n": n});
        let message: Value = stage.generate(&body).await.json().await.expect("JSON");
        let own = stage.gateway.url("/v1/images/files/");
        let images = message["data"].as_array().expect("images").iter();
        let stored = images.filter(|image| {
            image["url"]
                .as_str()
                .is_some_and(|url| url.starts_with(&own))
        });
        assert_eq!(stored.count(), n, "{message}");
    }
}

#[tokio::test]
async fn images_of_tasks_are_stored_too() {
    let mock = Mock::start();
    let config = super::config(&mock)
        + &format!(
            "images: {{persist: true, public_url: \"https://art.example/\", files: {{hosts: [\"{}\"]}}}}\n",
            mock.address
        );
    let setup = ImageGateway {
        gateway: Gateway::start(&config),
        mock,
    };
    let body = json!({"model": "art", "prompt": "a cat", "response_format": "url", "async": true});
    let response = setup.generate(&body).await;
    let path = header(&response, "location").to_owned();
    let task = until(&setup.gateway, &path, "succeeded").await;
    let url = task["result"]["data"][0]["url"]
        .as_str()
        .expect("an address");
    let path = url
        .strip_prefix("https://art.example")
        .expect("the public address");
    let response = send(&setup.gateway, Method::GET, path, KEY).await;
    assert_eq!(response.bytes().await.expect("a file"), pixel());
    // Data needs no address.
    let path = hand_in(&setup, "a cat").await;
    let task = until(&setup.gateway, &path, "succeeded").await;
    assert_eq!(task["result"]["data"][0]["b64_json"], super::PIXEL);
}
