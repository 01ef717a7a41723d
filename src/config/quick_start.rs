//! A config from the environment alone: the presets whose keys are set there.

use std::fmt::Write as _;

use super::expand::Env;
use super::providers::{Provider, providers};

/// Variables that end otherwise, such as `GITHUB_TOKEN`, are set for many other programs.
const KEY_SUFFIX: &str = "_API_KEY";

/// A preset that needs nothing but its key, and the environment variable that holds it.
#[derive(Debug, Clone, Copy)]
pub struct ProviderWithKey {
    pub provider: &'static Provider,
    pub variable: &'static str,
}

/// The presets that can be used as they are, because their key is in the environment. Where two share a variable, it is
/// for the one that looks for it first.
pub fn providers_with_keys(env: &Env) -> Vec<ProviderWithKey> {
    let mut found: Vec<(usize, ProviderWithKey)> = Vec::new();
    for provider in providers() {
        let is_set = |name: &String| {
            name.ends_with(KEY_SUFFIX) && env(name).is_some_and(|key| !key.is_empty())
        };
        let Some(rank) = provider.keys.iter().position(is_set) else {
            continue;
        };
        if provider.has_placeholders() {
            continue;
        }
        let variable = provider.keys[rank].as_str();
        let same = found.iter().position(|(_, one)| one.variable == variable);
        let entry = (rank, ProviderWithKey { provider, variable });
        match same {
            Some(place) if found[place].0 > rank => found[place] = entry,
            Some(_) => {}
            None => found.push(entry),
        }
    }
    found.into_iter().map(|(_, one)| one).collect()
}

/// A commented config that serves the models of these presets to one key.
pub fn starter_config(found: &[ProviderWithKey], listen: &str, secret: &str) -> String {
    let mut text = format!(
        "server:
  # Where clients connect. For TLS: {{addr: \"0.0.0.0:8443\", tls: {{cert: FILE, key: FILE}}}}
  listen: {listen}
  # Health and metrics.
  # admin: 127.0.0.1:8081

# What clients send as their API key. Give every program its own, with a limit of what it may spend:
#   - {{name: ci, secret: \"${{CI_KEY}}\", spending_cap: 25, reset: monthly, models: [\"gpt-*\"]}}
keys:
  - {{name: first, secret: {secret}, limits: {{concurrency: 64}}}}

# `omniglot providers` lists the presets. `discover` serves the models that a provider lists.
upstreams:
"
    );
    for ProviderWithKey { provider, variable } in found {
        let _ = writeln!(text, "  # {}: its key is in {variable}", provider.title);
        let _ = writeln!(text, "  - {{provider: {}, discover: on}}", provider.name);
    }
    if found.is_empty() {
        text.push_str(
            "  # OpenAI: its key is in OPENAI_API_KEY\n  - {provider: openai, discover: on}\n",
        );
    }
    text.push_str(
        "
# Models of your own names, with failover and prices. Those that providers list are served without an entry.
# models:
#   - id: fast
#     pricing: {input: 0.25, output: 2}
#     upstreams: [{name: openai, model: gpt-5-mini}]
",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn names(variables: &[&str]) -> Vec<(&'static str, &'static str)> {
        let env = |name: &str| variables.contains(&name).then(|| "a key".to_owned());
        let found = providers_with_keys(&env);
        found
            .iter()
            .map(|found| (found.provider.name.as_str(), found.variable))
            .collect()
    }

    #[test]
    fn a_key_selects_the_preset_that_looks_for_it_first() {
        assert_eq!(names(&[]), []);
        assert_eq!(names(&["OPENAI_API_KEY"]), [("openai", "OPENAI_API_KEY")]);
        assert_eq!(names(&["ZAI_API_KEY"]), [("zai", "ZAI_API_KEY")]);
        let both = names(&["ZAI_API_KEY", "ZHIPUAI_API_KEY"]);
        assert_eq!(both, [("zhipu", "ZHIPUAI_API_KEY"), ("zai", "ZAI_API_KEY")]);
        assert_eq!(names(&["GOOGLE_API_KEY"]), [("gemini", "GOOGLE_API_KEY")]);
        assert_eq!(names(&["GEMINI_API_KEY"]), [("gemini", "GEMINI_API_KEY")]);
        assert_eq!(names(&["OLLAMA_API_KEY"]), [("ollama", "OLLAMA_API_KEY")]);
    }

    #[test]
    fn keys_of_other_programs_and_of_presets_that_need_more_select_nothing() {
        assert_eq!(names(&["GITHUB_TOKEN", "HF_TOKEN"]), []);
        assert_eq!(names(&["AZURE_OPENAI_API_KEY"]), []);
        assert_eq!(providers_with_keys(&|_| Some(String::new())).len(), 0);
    }

    #[test]
    fn the_config_of_every_set_of_keys_is_valid_and_warns_of_nothing() {
        let every = |name: &str| {
            let is_key = name.ends_with(KEY_SUFFIX);
            is_key.then(|| "a key of some length".to_owned())
        };
        let found = providers_with_keys(&every);
        assert!(found.len() > 15, "{found:?}");
        for found in [&found[..], &found[..1], &[]] {
            let text = starter_config(found, "127.0.0.1:8080", "sk-omniglot-0123456789");
            let config = parse("starter", &text, &every).expect("a config");
            assert_eq!(config.upstreams.len(), found.len().max(1));
            assert_eq!(config.warnings, [], "{text}");
        }
    }
}
