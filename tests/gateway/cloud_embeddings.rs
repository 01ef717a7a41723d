//! Embeddings by clouds: each has paths and bodies of its own, for clients of either shape.

use std::net::SocketAddr;

use omniglot_test_support::{Gateway, KEY, Mock, Response, client, send};
use serde_json::{Value, json};

const MODELS: [(&str, &str, &str); 4] = [
    ("azure", "azure-classic", "my-deployment"),
    ("vertex", "vertex", "text-embedding-005"),
    ("titan", "bedrock", "amazon.titan-embed-text-v2:0"),
    ("cohere", "bedrock", "cohere.embed-english-v3"),
];

fn config(mock: SocketAddr) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n  \
         - {{provider: azure-classic, base_url: \"http://{mock}\", auth: {{header: {{name: api-key, value: key-of-azure}}}}}}\n  \
         - {{provider: vertex, base_url: \"http://{mock}\", project: p, location: global, auth: {{bearer: token-of-google}}}}\n  \
         - {{provider: bedrock, base_url: \"http://{mock}\", region: us-east-1, auth: {{bearer: key-of-aws}}}}\nmodels:\n"
    );
    for (id, upstream, model) in MODELS {
        text += &format!(
            "  - {{id: {id}, model_type: embedding, pricing: {{input: 1000}}, upstreams: [{{name: {upstream}, model: \"{model}\"}}]}}\n"
        );
    }
    text
}

async fn ask(url: String, body: &Value) -> Response {
    send(client().post(url).bearer_auth(KEY).json(body)).await
}

async fn openai(gateway: &Gateway, model: &str, input: Value) -> Response {
    let body = json!({"model": model, "input": input, "dimensions": 4, "encoding_format": "float"});
    ask(gateway.url("/v1/embeddings"), &body).await
}

/// The vectors that the mock makes of these texts.
async fn expected(mock: &Mock, texts: &[&str]) -> Vec<Value> {
    let body = json!({"model": "m", "input": texts, "dimensions": 4});
    let url = format!("http://{}/v1/embeddings", mock.address);
    let response = ask(url, &body).await.json();
    let data = response["data"].as_array().expect("a list").iter();
    data.map(|item| item["embedding"].clone()).collect()
}

/// Tells whether two vectors have the same numbers, up to the digits that are written.
fn is_close(one: &Value, other: &Value) -> bool {
    let numbers = |vector: &Value| -> Vec<f64> {
        let vector = vector.as_array().expect("a vector").iter();
        vector
            .map(|number| number.as_f64().expect("a number"))
            .collect()
    };
    let (one, other) = (numbers(one), numbers(other));
    let mut pairs = one.iter().zip(&other);
    one.len() == other.len() && pairs.all(|(one, other)| (one - other).abs() < 1e-6)
}

#[tokio::test]
async fn both_shapes_of_clients_are_answered_by_every_cloud() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address));
    let wanted = expected(&mock, &["a cat", "dogs"]).await;
    for (model, upstream, _) in MODELS {
        let texts: &[&str] = if model == "titan" {
            &["a cat"]
        } else {
            &["a cat", "dogs"]
        };
        let response = openai(&gateway, model, json!(texts)).await;
        assert_eq!(response.status, 200, "{model}: {}", response.text());
        assert_eq!(response.header("x-omniglot-upstream"), upstream);
        let found = response.json();
        assert_eq!(found["model"], *model);
        let vectors = found["data"].as_array().expect("a list").iter();
        let vectors: Vec<Value> = vectors.map(|item| item["embedding"].clone()).collect();
        assert_eq!(vectors.len(), texts.len(), "{model}");
        let mut pairs = vectors.iter().zip(&wanted);
        assert!(pairs.all(|(one, other)| is_close(one, other)), "{model}");
        // Cohere's responses count nothing.
        let is_counted = model != "cohere";
        assert_eq!(
            response.header("x-omniglot-estimated") == "true",
            !is_counted,
            "{model}"
        );
        if is_counted {
            let words: usize = texts.iter().map(|text| text.split(' ').count()).sum();
            assert_eq!(found["usage"]["prompt_tokens"], words, "{model}");
        }
        let single = json!({"content": {"parts": [{"text": "dogs"}]}, "outputDimensionality": 4});
        let url = gateway.url(&format!("/v1beta/models/{model}:embedContent"));
        let response = ask(url, &single).await;
        assert_eq!(response.status, 200, "{model}: {}", response.text());
        let values = response.json()["embedding"]["values"].clone();
        assert!(is_close(&values, &wanted[1]), "{model}: {values}");
    }
}

#[tokio::test]
async fn what_vectors_are_for_is_lost_only_where_the_cloud_has_no_word_for_it() {
    let mock = Mock::start();
    let open =
        "  - {id: open, model_type: embedding, upstreams: [{name: vertex-openai, model: m}]}\n";
    let config = config(mock.address) + open;
    let config = config.replace(
        "models:\n",
        &format!(
            "  - {{provider: vertex-openai, base_url: \"http://{}\", project: p, location: global, auth: {{bearer: token}}}}\nmodels:\n",
            mock.address
        ),
    );
    let gateway = Gateway::start(&config);
    let body = json!({
        "content": {"parts": [{"text": "a cat"}]}, "taskType": "RETRIEVAL_QUERY", "title": "Cats", "autoTruncate": true,
    });
    for (model, dropped) in [
        ("vertex", ""),
        ("cohere", "autoTruncate, title"),
        ("titan", "autoTruncate, taskType, title"),
        ("azure", "autoTruncate, taskType, title"),
    ] {
        let url = gateway.url(&format!("/v1beta/models/{model}:embedContent"));
        let response = ask(url, &body).await;
        assert_eq!(response.status, 200, "{model}: {}", response.text());
        let mut lost: Vec<&str> = response.header("x-omniglot-dropped").split(", ").collect();
        lost.sort_unstable();
        assert_eq!(lost.join(", "), dropped, "{model}");
    }
    let refused = openai(&gateway, "open", json!("a")).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.error("chat").contains("no embeddings"));
}

#[tokio::test]
async fn what_a_cloud_cannot_do_is_refused_and_its_errors_are_told() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address));
    let response = openai(&gateway, "titan", json!(["a", "b"])).await;
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(
        response.error("chat").contains("at most 1"),
        "{}",
        response.text()
    );
    let many: Vec<&str> = vec!["a"; 97];
    assert_eq!(openai(&gateway, "cohere", json!(many)).await.status, 400);
    for (model, ..) in MODELS {
        let response = openai(&gateway, model, json!("mock:error=429")).await;
        assert_eq!(response.status, 429, "{model}: {}", response.text());
        response.error("chat");
        for bad in ["mock:garbage", "mock:empty", "mock:html"] {
            let response = openai(&gateway, model, json!(bad)).await;
            assert_eq!(response.status, 502, "{model} {bad}: {}", response.text());
        }
    }
}
