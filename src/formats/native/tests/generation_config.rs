//! Tests of encoding settings for an upstream.

use serde_json::{Value, json};

use super::translated::{ReportedLosses, chat, encode};
use crate::model::{Action, Format};

fn config(mut body: Value, capabilities: &[(&str, &str)]) -> (Value, ReportedLosses) {
    body["model"] = "m".into();
    body["messages"] = json!([{"role": "user", "content": "Hi"}]);
    let (sent, losses) = encode(Format::Chat, &body, capabilities).unwrap();
    (sent["generationConfig"].clone(), losses)
}

#[test]
fn detail_counts_where_all_images_agree() {
    let images = |details: [&str; 2]| {
        let image = |detail| {
            json!({"type": "image_url",
            "image_url": {"url": "data:image/png;base64,aGkh", "detail": detail}})
        };
        let parts: Vec<_> = details.into_iter().map(image).collect();
        let (sent, losses) =
            chat(json!({"model": "m", "messages": [{"role": "user", "content": parts}]}));
        let actions: Vec<_> = losses.into_iter().map(|(action, _)| action).collect();
        (sent["generationConfig"]["mediaResolution"].clone(), actions)
    };
    use Action::{Approximated, Dropped};
    assert_eq!(
        images(["low", "low"]),
        (json!("MEDIA_RESOLUTION_LOW"), vec![Approximated; 2])
    );
    assert_eq!(
        images(["high", "high"]),
        (json!("MEDIA_RESOLUTION_HIGH"), vec![Approximated; 2])
    );
    assert_eq!(images(["low", "high"]), (Value::Null, vec![Dropped; 2]));
    assert_eq!(images(["low", "auto"]), (Value::Null, vec![Dropped]));
    assert_eq!(
        images(["original", "original"]),
        (Value::Null, vec![Dropped; 2])
    );
    assert_eq!(images(["auto", "auto"]), (Value::Null, vec![]));
}

#[test]
fn effort_is_encoded_as_level_or_budget() {
    let thinking = |effort: &str, capabilities: &[(&str, &str)]| {
        let (config, losses) = config(json!({"reasoning_effort": effort}), capabilities);
        (config["thinkingConfig"].clone(), losses.len())
    };
    let budget = [("native_thinking", "budget")];
    for (effort, level, exact, tokens) in [
        ("minimal", "MINIMAL", true, 512),
        ("low", "LOW", true, 1024),
        ("medium", "MEDIUM", true, 8192),
        ("high", "HIGH", true, 24576),
        ("xhigh", "HIGH", false, 32768),
        ("max", "HIGH", false, 32768),
    ] {
        let losses = usize::from(!exact);
        assert_eq!(
            thinking(effort, &[]),
            (json!({"thinkingLevel": level}), losses)
        );
        assert_eq!(
            thinking(effort, &budget),
            (json!({"thinkingBudget": tokens}), 0)
        );
    }
    let off = (json!({"thinkingBudget": 0}), 0);
    assert_eq!(thinking("none", &[]), off);
    assert_eq!(thinking("none", &budget), off);
    let some = [("efforts", "low,high")];
    assert_eq!(
        thinking("medium", &some),
        (json!({"thinkingLevel": "LOW"}), 1)
    );
    assert_eq!(
        thinking("none", &some),
        (json!({"thinkingLevel": "LOW"}), 1)
    );
}

#[test]
fn a_budget_is_encoded_as_level() {
    let thinking = |thinking: Value, capabilities: &[(&str, &str)]| {
        let body = json!({"model": "m", "max_tokens": 9, "thinking": thinking,
            "messages": [{"role": "user", "content": "Hi"}]});
        let (sent, losses) = encode(Format::Messages, &body, capabilities).unwrap();
        let config = sent["generationConfig"]["thinkingConfig"].clone();
        (config, losses.len())
    };
    let enabled = |tokens| json!({"type": "enabled", "budget_tokens": tokens});
    let level = [("native_thinking", "level")];
    for (tokens, level_name) in [(1024, "LOW"), (8192, "MEDIUM"), (8193, "HIGH")] {
        assert_eq!(
            thinking(enabled(tokens), &level),
            (
                json!({"thinkingLevel": level_name, "includeThoughts": true}),
                1
            )
        );
    }
    assert_eq!(
        thinking(json!({"type": "adaptive"}), &[]),
        (json!({"includeThoughts": true}), 0)
    );
    assert_eq!(
        thinking(json!({"type": "adaptive", "display": "omitted"}), &[]),
        (Value::Null, 0)
    );
    assert_eq!(
        thinking(json!({"type": "disabled"}), &[]),
        (json!({"thinkingBudget": 0}), 0)
    );
}

#[test]
fn settings_without_a_field_are_reported() {
    let (config, losses) = config(
        json!({"verbosity": "low", "user": "u", "prompt_cache_key": "k", "metadata": {"a": "b"},
            "service_tier": "scale", "parallel_tool_calls": true, "seed": 4_000_000_000_u64,
            "web_search_options": {"search_context_size": "low"}}),
        &[],
    );
    assert_eq!(config, json!({"seed": i32::MAX}));
    let mut names: Vec<_> = losses
        .iter()
        .map(|(_, location)| location.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "CacheKey",
            "Metadata",
            "Search",
            "Seed",
            "ServiceTier",
            "User",
            "Verbosity"
        ]
    );
}

#[test]
fn service_tiers_are_encoded() {
    for (tier, encoded) in [
        ("auto", Value::Null),
        ("default", json!("standard")),
        ("flex", json!("flex")),
        ("priority", json!("priority")),
    ] {
        let (sent, losses) = chat(json!({"model": "m", "service_tier": tier,
            "messages": [{"role": "user", "content": "Hi"}]}));
        assert_eq!((&sent["serviceTier"], losses), (&encoded, vec![]));
    }
}

#[test]
fn output_formats_are_encoded() {
    assert_eq!(
        config(json!({"response_format": {"type": "json_object"}}), &[]),
        (json!({"responseMimeType": "application/json"}), vec![])
    );
    let (config, losses) = config(
        json!({"modalities": ["text", "image"], "response_format": {"type": "json_schema",
            "json_schema": {"name": "n", "schema": {"enum": [1, 2]}}}}),
        &[],
    );
    assert_eq!(
        config,
        json!({"responseMimeType": "application/json", "responseJsonSchema": {"enum": [1, 2]},
            "responseModalities": ["TEXT", "IMAGE"]})
    );
    assert_eq!(losses, [(Action::Dropped, "OutputName".to_owned())]);
}

#[test]
fn an_output_limit_of_zero_becomes_one() {
    let body =
        json!({"model": "m", "max_tokens": 0, "messages": [{"role": "user", "content": "A"}]});
    let (sent, losses) = encode(Format::Messages, &body, &[]).unwrap();
    assert_eq!(sent["generationConfig"], json!({"maxOutputTokens": 1}));
    assert_eq!(losses, [(Action::Approximated, "MaxTokens".to_owned())]);
}
