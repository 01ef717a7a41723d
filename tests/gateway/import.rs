//! Configs of other gateways, imported and validated.

use std::path::Path;
use std::process::{Command, Output};

use omniglot_test_support::omniglot;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/import");

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

fn import(file: &str) -> Command {
    let gateway = file
        .split_once('-')
        .map_or("litellm", |(gateway, _)| gateway);
    let mut command = omniglot();
    command.current_dir(FOLDER);
    command.args(["import", gateway, file]);
    command
}

/// The config that an import writes is the one beside the file, and the gateway accepts it.
fn assert_imported(file: &str) {
    let (code, config, notes) = run(&mut import(file));
    assert_eq!(code, Some(0), "{notes}");
    let expected = Path::new(FOLDER).join(file).with_extension("expected");
    let expected = std::fs::read_to_string(expected).expect("the expected config");
    assert_eq!(config, expected, "{config}");
    for note in notes.lines() {
        let note = note.split_once(": ").expect("the file and the note").1;
        assert!(config.contains(&format!("#   {note}\n")), "{note}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("omniglot.yaml");
    std::fs::write(&file, config).expect("the config is written");
    let mut check = omniglot();
    check.arg("check").arg("-c").arg(file);
    for name in [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "AZURE_API_KEY_EAST",
        "AZURE_API_KEY_WEST",
        "GROQ_TEAM_KEY",
        "GROQ_API_KEY",
        "REDIS_PASSWORD",
        "AZURE_TENANT",
        "AZURE_SECRET",
        "AZURE_TOKEN",
        "AZURE_AI_API_KEY",
        "AWS_KEY",
        "AWS_SECRET",
        "BEDROCK_KEY",
        "AZURE_API_KEY",
        "AZURE_TENANT_ID",
        "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ROLE_ARN",
        "AWS_EXTERNAL_ID",
        "VERTEX_PROJECT_ID",
        "GOOGLE_API_KEY",
        "VK_PLATFORM",
    ] {
        check.env(name, "a-key-of-the-test");
    }
    check.env("AZURE_ENDPOINT", "https://other.openai.azure.com");
    check.env("VLLM_URL", "http://10.0.0.9:8000");
    let (code, _, problems) = run(check.env("REDIS_HOST", "127.0.0.1"));
    assert_eq!(code, Some(0), "{problems}");
}

#[test]
fn a_model_list_becomes_upstreams_and_models() {
    assert_imported("litellm-basic.yaml");
}

#[test]
fn deployments_of_one_name_become_one_model_and_the_rest_is_reported() {
    assert_imported("litellm-router.yaml");
}

#[test]
fn entries_for_clouds_become_presets_with_their_credentials() {
    assert_imported("litellm-clouds.yaml");
}

#[test]
fn the_keys_of_a_provider_become_its_upstreams() {
    assert_imported("bifrost-providers.json");
}

#[test]
fn keys_of_clouds_become_presets_with_their_credentials() {
    assert_imported("bifrost-clouds.json");
}

#[test]
fn virtual_keys_become_keys_with_their_limits() {
    assert_imported("bifrost-governance.json");
}

#[test]
fn settings_of_the_router_become_those_of_models_and_upstreams() {
    assert_imported("litellm-settings.yaml");
}

#[test]
fn strict_fails_where_something_has_no_counterpart() {
    let (code, config, _) = run(import("litellm-router.yaml").arg("--strict"));
    assert_eq!(code, Some(1));
    assert!(
        config.contains("models:"),
        "the config is written all the same"
    );
    let (code, _, _) = run(import("litellm-basic.yaml").arg("--strict"));
    assert_eq!(code, Some(0));
}

#[test]
fn files_that_are_no_config_are_refused() {
    for (file, reason) in [
        ("missing.yaml", "cannot read"),
        ("litellm-basic.expected", ""),
    ] {
        let (code, config, notes) = run(&mut import(file));
        if reason.is_empty() {
            // Valid YAML without a model list: everything in it is reported.
            assert_eq!(code, Some(0));
            assert!(
                notes.contains("upstreams: the gateway has nothing like it"),
                "{notes}"
            );
        } else {
            assert_eq!((code, config.as_str()), (Some(1), ""));
            assert!(notes.contains(reason), "{notes}");
        }
    }
}
