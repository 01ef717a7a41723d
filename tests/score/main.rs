//! The scorecard is right: it finds nothing in its own upstream, and something in every gateway that was broken on purpose.

mod broken_proxy;
mod mutations;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use broken_proxy::Mutation;
use mutations::{HARMLESS, MUTATIONS};
use omniglot::score::{Driver, Scenario, ScoredGateway, ScoredRun, StrictUpstream, WireFormat};
use omniglot_test_support::omniglot;
use tokio::net::TcpListener;

async fn start_upstream() -> (Arc<StrictUpstream>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let upstream = Arc::new(StrictUpstream::default());
    tokio::spawn(upstream.clone().serve(listener));
    (upstream, address)
}

fn gateway(address: SocketAddr, is_direct: bool) -> ScoredGateway {
    let models = WireFormat::ALL.map(|format| (format, format!("score-{}", format.name())));
    ScoredGateway {
        url: format!("http://{address}").parse().expect("a URL"),
        key: "none".to_owned(),
        headers: Vec::new(),
        models: BTreeMap::from(models),
        only_diagonal: true,
        is_direct,
    }
}

fn losses(runs: &[ScoredRun]) -> Vec<String> {
    let lost = runs.iter().flat_map(|run| {
        let form = if run.is_stream { "stream" } else { "JSON" };
        let place = format!("{} {} {form}", run.scenario, run.client.name());
        run.verdict
            .losses
            .iter()
            .map(move |loss| format!("{place}: {loss}"))
    });
    lost.collect()
}

/// The scenarios in which a gateway without a defect of its own is as good as none.
fn without_duties() -> Vec<Scenario> {
    let mut scenarios = Scenario::all();
    scenarios.retain(|scenario| !scenario.name.starts_with("upstream-"));
    scenarios
}

#[tokio::test(flavor = "multi_thread")]
async fn its_own_upstream_loses_nothing() {
    let (upstream, address) = start_upstream().await;
    let driver = Driver::new(gateway(address, true), upstream);
    let runs = driver.run_all(&Scenario::all()).await;
    assert!(runs.len() > 400, "{} runs", runs.len());
    let lost = losses(&runs);
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    let opinions: Vec<_> = runs
        .iter()
        .filter(|run| !run.verdict.opinions.is_empty())
        .collect();
    assert!(
        opinions.iter().all(|run| run.scenario == "upstream-dies"),
        "{opinions:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_without_a_defect_loses_nothing() {
    let (upstream, address) = start_upstream().await;
    let proxy = broken_proxy::start(address, Mutation::default()).await;
    let driver = Driver::new(gateway(proxy, false), upstream);
    let lost = losses(&driver.run_all(&without_duties()).await);
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mutation_is_caught_by_its_scenario() {
    let all = Scenario::all();
    let mut missed = Vec::new();
    for mutation in MUTATIONS {
        let scenario = all
            .iter()
            .find(|scenario| scenario.name == mutation.scenario);
        let scenario = scenario.unwrap_or_else(|| panic!("no scenario {}", mutation.scenario));
        let (upstream, address) = start_upstream().await;
        let proxy = broken_proxy::start(address, *mutation).await;
        let driver = Driver::new(gateway(proxy, false), upstream);
        let runs = driver.run_all(std::slice::from_ref(scenario)).await;
        let lost = losses(&runs);
        match lost.iter().any(|loss| loss.contains(mutation.loss)) {
            true => println!("{}: {}", mutation.name, lost[0]),
            false => missed.push(format!(
                "{} ({}): {lost:?}",
                mutation.name, mutation.scenario
            )),
        }
    }
    assert!(missed.is_empty(), "not caught:\n{}", missed.join("\n"));
    assert!(MUTATIONS.len() >= 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_loses_nothing_is_no_loss() {
    let all = Scenario::all();
    for mutation in HARMLESS {
        let scenario = all
            .iter()
            .find(|scenario| scenario.name == mutation.scenario);
        let scenario = scenario.unwrap_or_else(|| panic!("no scenario {}", mutation.scenario));
        let (upstream, address) = start_upstream().await;
        let proxy = broken_proxy::start(address, *mutation).await;
        let mut gateway = gateway(proxy, false);
        let beta = ("anthropic-beta", "structured-outputs-2025-11-13");
        gateway.headers = vec![(beta.0.to_owned(), beta.1.to_owned())];
        let driver = Driver::new(gateway, upstream);
        let runs = driver.run_all(std::slice::from_ref(scenario)).await;
        assert_eq!(losses(&runs), [] as [String; 0], "{}", mutation.name);
    }
}

/// A client without `alt=sse` gets one JSON array, and each event of others ends as the vendor's do.
#[tokio::test(flavor = "multi_thread")]
async fn a_native_stream_has_the_form_that_its_client_asks_for() {
    let (upstream, address) = start_upstream().await;
    let client = omniglot_test_support::new_client();
    for (run, query) in [(1, ""), (2, "?alt=sse")] {
        upstream.plan_answer(run, "One two three.");
        let mark = StrictUpstream::mark(run);
        let body = serde_json::json!({"contents": [{"role": "user", "parts": [{"text": mark}]}]});
        let path = "v1beta/models/score-native:streamGenerateContent";
        let reply = client
            .post(format!("http://{address}/{path}{query}"))
            .json(&body)
            .send()
            .await
            .expect("an answer");
        let text = reply.text().await.expect("text");
        if run == 1 {
            let chunks: Vec<serde_json::Value> = serde_json::from_str(&text).expect(&text);
            assert!(chunks.len() > 1 && text.contains(",\r\n"), "{text}");
        } else {
            assert!(
                text.starts_with("data: {") && text.ends_with("\r\n\r\n"),
                "{text}"
            );
        }
    }
}

#[test]
fn every_scenario_file_is_in_the_binary() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/score/scenarios");
    let files = std::fs::read_dir(folder).expect("the folder");
    let mut files: Vec<String> = files
        .map(|file| {
            file.expect("a file")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    files.sort_unstable();
    let mut names: Vec<String> = Scenario::all()
        .iter()
        .filter(|scenario| !scenario.name.starts_with("golden-"))
        .map(|scenario| format!("{}.json", scenario.name))
        .collect();
    names.sort_unstable();
    assert_eq!(names, files);
}

#[test]
fn a_scenario_with_an_unknown_word_is_refused() {
    let parse = |text: &str| Scenario::parse(text).map(|scenario| scenario.name);
    let good = r#"{"name": "x", "about": "y", "says": {"turns": []}}"#;
    assert_eq!(parse(good), Ok("x".to_owned()));
    let bad = good.replace("turns", "turnips");
    assert!(parse(&bad).is_err_and(|reason| reason.contains("turnips")));
}

#[test]
fn the_gateway_of_this_binary_is_scored_without_set_up() {
    let output = omniglot()
        .args([
            "score",
            "--json",
            "--only",
            "text",
            "--only",
            "tool-call",
            "--min",
            "100",
        ])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let card: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(card["pairs"].as_array().map(Vec::len), Some(16));
    assert_eq!(card["percent"], 100.0, "{card:#}");
    assert_eq!(card["latency"].as_array().map(Vec::len), Some(16));
    assert!(card["cpu_us_per_request"].is_u64());
}

#[test]
fn a_config_is_printed_for_every_gateway() {
    for peer in [
        "omniglot",
        "litellm",
        "portkey",
        "bifrost",
        "new-api",
        "agentgateway",
    ] {
        let output = omniglot()
            .args([
                "score",
                "--upstream",
                "127.0.0.1:7777",
                "--url",
                "http://127.0.0.1:4321",
                "--print-config",
                peer,
            ])
            .output();
        let text = String::from_utf8(output.expect("it runs").stdout).expect("text");
        assert!(text.contains("127.0.0.1:7777"), "{peer}: {text}");
        assert!(text.contains("4321"), "{peer} has no port: {text}");
        assert!(
            !text.contains("UPSTREAM") && !text.contains("LISTEN"),
            "{peer}: {text}"
        );
    }
}

const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/fidelity");

/// The published file of this gateway has what a run of it finds now.
#[test]
fn the_published_results_of_this_gateway_are_current() {
    let published = std::fs::read_to_string(format!("{PUBLISHED}/omniglot.json"));
    let published = published.expect("the file");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("omniglot.json");
    std::fs::write(&file, &published).expect("a copy");
    let output = omniglot()
        .args(["score", "--min", "100", "--publish"])
        .arg(&file)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let scored = std::fs::read_to_string(&file).expect("the file");
    assert_eq!(
        published, scored,
        "publish it: omniglot score --publish docs/fidelity/omniglot.json"
    );
}

#[test]
fn the_page_is_that_of_the_published_results() {
    let output = omniglot().args(["score", "--page", PUBLISHED]).output();
    let made = String::from_utf8(output.expect("it runs").stdout).expect("text");
    let page = std::fs::read_to_string(format!("{PUBLISHED}.md")).expect("the page");
    assert_eq!(
        page.trim(),
        made.trim(),
        "make it: omniglot score --page docs/fidelity > docs/fidelity.md"
    );
}

/// A group of a published file stands for losses of its result, and has numbers on the page.
#[test]
fn every_group_of_losses_stands_for_some() {
    let page = std::fs::read_to_string(format!("{PUBLISHED}.md")).expect("the page");
    for file in std::fs::read_dir(PUBLISHED).expect("the folder") {
        let file = file.expect("a file").path();
        let text = std::fs::read_to_string(&file).expect("text");
        let published: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for group in published["groups"].as_array().expect("groups") {
            let what = group["what"].as_str().expect("words");
            let row = format!("| {what} |");
            assert!(page.contains(&row), "{}: {what}", file.display());
        }
    }
}
