//! Tells whether a field of a request names a model beside the one that the request is for.

/// Fields of a body that stand for a model: those of routers, of clouds, and of servers with adapters. Some clients send fields of the
/// body inside of the last one, and some servers take them out.
const ROUTED: [&str; 15] = [
    "route",
    "router",
    "preset",
    "engine",
    "engineid",
    "deployment",
    "deploymentid",
    "adapter",
    "adapterid",
    "lora",
    "loraadapter",
    "lorapath",
    "agent",
    "agentid",
    "extrabody",
];

/// Tells whether a field that is not known may name a model: vendors have `models`, `model_name`, `context_window_fallbacks`
/// and more. `is_top`: it is one of the body itself.
pub(super) fn names_model(key: &str, is_top: bool) -> bool {
    // Some parsers take these for a `k` and an `s`.
    let key = key.replace('\u{212a}', "k").replace('\u{17f}', "s");
    let key = key.to_ascii_lowercase();
    let is_switch = key == "allow_fallbacks" || key == "disable_fallbacks";
    key.contains("model")
        || (key.contains("fallback") && !is_switch)
        || (is_top && ROUTED.contains(&key.replace(['_', '-'], "").as_str()))
}

#[cfg(test)]
mod tests {
    use super::names_model;

    #[test]
    fn names_are_folded_as_lenient_parsers_do() {
        for name in ["fallbac\u{212a}s", "Models", "base_MODEL", "pre\u{17f}et"] {
            assert!(names_model(name, true), "{name}");
        }
        for name in ["allow_fallbac\u{212a}s", "moda\u{17f}"] {
            assert!(!names_model(name, true), "{name}");
        }
    }
}
