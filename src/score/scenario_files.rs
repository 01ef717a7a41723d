//! The scenario files of this binary.

/// Name and text of every file in the folder `scenarios`.
pub const SCENARIOS: &[(&str, &str)] = &[
    ("text", include_str!("scenarios/text.json")),
    ("system", include_str!("scenarios/system.json")),
    ("multi-turn", include_str!("scenarios/multi-turn.json")),
    ("whitespace", include_str!("scenarios/whitespace.json")),
    ("parameters", include_str!("scenarios/parameters.json")),
    (
        "temperature-zero",
        include_str!("scenarios/temperature-zero.json"),
    ),
    ("no-limit", include_str!("scenarios/no-limit.json")),
    ("stop", include_str!("scenarios/stop.json")),
    (
        "tool-declarations",
        include_str!("scenarios/tool-declarations.json"),
    ),
    ("tool-schema", include_str!("scenarios/tool-schema.json")),
    ("tool-call", include_str!("scenarios/tool-call.json")),
    (
        "tool-calls-parallel",
        include_str!("scenarios/tool-calls-parallel.json"),
    ),
    (
        "tool-call-after-text",
        include_str!("scenarios/tool-call-after-text.json"),
    ),
    (
        "tool-arguments",
        include_str!("scenarios/tool-arguments.json"),
    ),
    (
        "tool-call-without-arguments",
        include_str!("scenarios/tool-call-without-arguments.json"),
    ),
    ("tool-result", include_str!("scenarios/tool-result.json")),
    (
        "tool-results-parallel",
        include_str!("scenarios/tool-results-parallel.json"),
    ),
    (
        "tool-result-then-text",
        include_str!("scenarios/tool-result-then-text.json"),
    ),
    (
        "tool-result-json",
        include_str!("scenarios/tool-result-json.json"),
    ),
    (
        "tool-result-error",
        include_str!("scenarios/tool-result-error.json"),
    ),
    (
        "tool-result-image",
        include_str!("scenarios/tool-result-image.json"),
    ),
    (
        "tool-ids-foreign",
        include_str!("scenarios/tool-ids-foreign.json"),
    ),
    (
        "tool-ids-long",
        include_str!("scenarios/tool-ids-long.json"),
    ),
    (
        "tool-choice-required",
        include_str!("scenarios/tool-choice-required.json"),
    ),
    (
        "tool-choice-named",
        include_str!("scenarios/tool-choice-named.json"),
    ),
    (
        "tool-choice-none",
        include_str!("scenarios/tool-choice-none.json"),
    ),
    (
        "tool-calls-one-at-a-time",
        include_str!("scenarios/tool-calls-one-at-a-time.json"),
    ),
    ("tool-loop", include_str!("scenarios/tool-loop.json")),
    (
        "structured-output",
        include_str!("scenarios/structured-output.json"),
    ),
    ("image", include_str!("scenarios/image.json")),
    (
        "images-between-texts",
        include_str!("scenarios/images-between-texts.json"),
    ),
    ("image-url", include_str!("scenarios/image-url.json")),
    ("document", include_str!("scenarios/document.json")),
    ("audio", include_str!("scenarios/audio.json")),
    ("reasoning", include_str!("scenarios/reasoning.json")),
    (
        "reasoning-sent-back",
        include_str!("scenarios/reasoning-sent-back.json"),
    ),
    ("refusal", include_str!("scenarios/refusal.json")),
    ("citation", include_str!("scenarios/citation.json")),
    ("usage", include_str!("scenarios/usage.json")),
    ("usage-cached", include_str!("scenarios/usage-cached.json")),
    (
        "usage-cache-writes",
        include_str!("scenarios/usage-cache-writes.json"),
    ),
    (
        "usage-reasoning",
        include_str!("scenarios/usage-reasoning.json"),
    ),
    (
        "finish-length",
        include_str!("scenarios/finish-length.json"),
    ),
    (
        "finish-filtered",
        include_str!("scenarios/finish-filtered.json"),
    ),
    ("stream-form", include_str!("scenarios/stream-form.json")),
    ("unicode", include_str!("scenarios/unicode.json")),
    (
        "unicode-line-separator",
        include_str!("scenarios/unicode-line-separator.json"),
    ),
    (
        "unicode-arguments",
        include_str!("scenarios/unicode-arguments.json"),
    ),
    (
        "large-request",
        include_str!("scenarios/large-request.json"),
    ),
    (
        "large-response",
        include_str!("scenarios/large-response.json"),
    ),
    (
        "older-spellings",
        include_str!("scenarios/older-spellings.json"),
    ),
    ("error-400", include_str!("scenarios/error-400.json")),
    ("error-401", include_str!("scenarios/error-401.json")),
    ("error-403", include_str!("scenarios/error-403.json")),
    ("error-404", include_str!("scenarios/error-404.json")),
    ("error-429", include_str!("scenarios/error-429.json")),
    ("error-500", include_str!("scenarios/error-500.json")),
    ("error-503", include_str!("scenarios/error-503.json")),
    ("error-529", include_str!("scenarios/error-529.json")),
    (
        "upstream-dies",
        include_str!("scenarios/upstream-dies.json"),
    ),
    (
        "upstream-hangs",
        include_str!("scenarios/upstream-hangs.json"),
    ),
    (
        "upstream-sends-garbage",
        include_str!("scenarios/upstream-sends-garbage.json"),
    ),
    (
        "upstream-fails-after-200",
        include_str!("scenarios/upstream-fails-after-200.json"),
    ),
];
