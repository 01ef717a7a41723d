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
    let key = key.to_ascii_lowercase();
    let is_switch = key == "allow_fallbacks" || key == "disable_fallbacks";
    key.contains("model")
        || (key.contains("fallback") && !is_switch)
        || (is_top && ROUTED.contains(&key.replace(['_', '-'], "").as_str()))
}
