//! Thinking, effort and `max_tokens` of a request.

use serde_json::{Value, json};

use super::{
    approximated, assistant_call, chat_request, decode, decode_lossless, dropped, encode_chat,
    encode_from, with,
};
use crate::model::{Action, Depth, Effort, Format, Thinking};

#[test]
fn thinking_and_effort_make_one_depth() {
    let show = |depth, show| Thinking {
        depth: Some(depth),
        show,
    };
    for (fields, expected) in [
        (
            r#""thinking":{"type":"adaptive"}"#,
            show(Depth::Dynamic, Some(true)),
        ),
        (
            r#""thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"xhigh"}"#,
            show(Depth::Effort(Effort::ExtraHigh), Some(false)),
        ),
        (
            r#""thinking":{"type":"enabled","budget_tokens":4096,"display":"summarized"}"#,
            show(Depth::Budget(4096), Some(true)),
        ),
        (r#""thinking":{"type":"disabled"}"#, show(Depth::Off, None)),
        (
            r#""output_config":{"effort":"low","format":null}"#,
            show(Depth::Effort(Effort::Low), None),
        ),
    ] {
        assert_eq!(
            decode_lossless(&with(fields)).thinking,
            expected,
            "{fields}"
        );
    }
}

#[test]
fn unsupported_thinking_is_reported() {
    let body = with(r#""thinking":{"type":"between_tools"},"output_config":{"effort":"max"}"#);
    let (request, losses) = decode(&body);
    let depth = request.expect("a good request").thinking.depth;
    assert_eq!(depth, Some(Depth::Effort(Effort::Max)));
    assert_eq!(losses, [approximated("thinking")]);

    let body = with(r#""thinking":{"type":"disabled"},"output_config":{"effort":"max"}"#);
    let (request, losses) = decode(&body);
    assert_eq!(
        request.expect("a good request").thinking.depth,
        Some(Depth::Off)
    );
    assert_eq!(losses, [dropped("output_config.effort")]);
}

const BUDGET: (&str, &str) = ("messages_thinking", "budget");

#[test]
fn efforts_are_encoded_as_effort_or_budget() {
    for (effort, word, budget) in [
        ("minimal", "low", 1024),
        ("low", "low", 1024),
        ("medium", "medium", 8192),
        ("high", "high", 24_576),
        ("xhigh", "xhigh", 32_768),
        ("max", "max", 32_768),
    ] {
        let fields = json!({"reasoning_effort": effort, "max_tokens": 50_000});
        let (body, losses) = encode_chat(fields.clone(), &[]);
        assert_eq!(body["thinking"], json!({"type": "adaptive"}));
        assert_eq!(body["output_config"], json!({"effort": word}));
        assert_eq!(losses, []);
        let (body, losses) = encode_chat(fields, &[BUDGET]);
        let enabled = json!({"type": "enabled", "budget_tokens": budget});
        assert_eq!(body["thinking"], enabled);
        assert_eq!(body.get("output_config"), None);
        assert_eq!(losses, []);
    }
}

#[test]
fn an_unsupported_effort_becomes_the_nearest() {
    let flags = [("efforts", "low,medium,high")];
    let (body, losses) = encode_chat(json!({"reasoning_effort": "max"}), &flags);
    assert_eq!(body["output_config"]["effort"], "high");
    assert_eq!(losses, [Action::Approximated]);
    // These models cannot stop thinking either.
    let (body, losses) = encode_chat(json!({"reasoning_effort": "none"}), &flags);
    assert_eq!(body["output_config"]["effort"], "low");
    assert_eq!(losses, [Action::Approximated]);
}

#[test]
fn a_budget_leaves_room_for_the_answer() {
    let think = |max: Value| {
        let mut body = chat_request(json!({"reasoning_effort": "medium"}));
        body["max_tokens"] = max;
        let (body, losses) =
            encode_from(Format::Chat, &body, &[BUDGET], None).expect("a good request");
        let actions: Vec<Action> = losses.into_iter().map(|(action, _)| action).collect();
        (
            body["max_tokens"].clone(),
            body["thinking"].clone(),
            actions,
        )
    };
    let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    assert_eq!(
        think(Value::Null),
        (json!(12_288), enabled(8192), vec![Action::Added])
    );
    assert_eq!(
        think(json!(4096)),
        (json!(4096), enabled(3072), vec![Action::Approximated])
    );
    let disabled = json!({"type": "disabled"});
    assert_eq!(
        think(json!(2000)),
        (json!(2000), disabled, vec![Action::Dropped])
    );
}

#[test]
fn budgets_are_encoded_as_effort_for_models_that_take_effort() {
    for (budget, word) in [(512, "low"), (4096, "medium"), (9000, "high")] {
        let body = json!({
            "contents": [{"parts": [{"text": "Hi"}]}],
            "generationConfig": {"maxOutputTokens": 10_000,
                "thinkingConfig": {"thinkingBudget": budget, "includeThoughts": true}},
        });
        let (sent, losses) = encode_from(Format::Native, &body, &[], None).expect("a good request");
        assert_eq!(
            sent["thinking"],
            json!({"type": "adaptive", "display": "summarized"})
        );
        assert_eq!(sent["output_config"]["effort"], word);
        assert_eq!(losses.len(), 1);
        let (sent, _) =
            encode_from(Format::Native, &body, &[BUDGET], None).expect("a good request");
        let tokens = budget.clamp(1024, 8976);
        assert_eq!(sent["thinking"]["budget_tokens"], tokens);
    }
}

#[test]
fn a_tool_loop_without_signed_reasoning_disables_thinking() {
    let fields = json!({
        "reasoning_effort": "low",
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "messages": [
            {"role": "user", "content": "Hi"},
            assistant_call("c1", "{}"),
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ],
    });
    let (body, losses) = encode_chat(fields.clone(), &[BUDGET]);
    assert_eq!(body["thinking"], json!({"type": "disabled"}));
    assert_eq!(losses, [Action::Dropped]);
    let (body, losses) = encode_chat(fields, &[]);
    assert_eq!(body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(losses, []);
}

#[test]
fn a_missing_max_tokens_is_the_limit_of_the_model() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let (sent, losses) =
        encode_from(Format::Chat, &body, &[], Some(64_000)).expect("a good request");
    assert_eq!(sent["max_tokens"], 64_000);
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].0, Action::Added);
}
