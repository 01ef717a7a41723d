//! The models that an upstream lists, which are read in the background and looked up by requests.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use ahash::RandomState;
use arc_swap::ArcSwap;
use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::config::{self, UpstreamConfig};
use crate::model::is_plain_name;

/// The most models that one upstream may add.
const MAX_MODELS: usize = 10_000;

/// The last good list of an upstream. It outlives a reload that does not change its settings.
#[derive(Default)]
pub struct DiscoveredModels {
    list: ArcSwap<ModelList>,
    outcome: AtomicU8,
}

/// The upstream's own names, in its order.
#[derive(Default)]
pub struct ModelList {
    pub names: Vec<Arc<str>>,
    index: HashSet<Arc<str>, RandomState>,
}

/// How the list was read last.
const NEVER_READ: u8 = 0;
const READ: u8 = 1;
const FAILED: u8 = 2;

/// What an upstream with `discover` needs to be asked, and to be found.
pub struct UpstreamDiscovery {
    pub settings: config::Discovery,
    /// Differs for everything that the list depends on.
    pub key: String,
    pub models: Arc<DiscoveredModels>,
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl DiscoveredModels {
    pub fn list(&self) -> Arc<ModelList> {
        self.list.load_full()
    }

    /// Tells whether the upstream lists a model.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.list.load().index.contains(name)
    }

    /// How many models there are.
    pub fn count(&self) -> usize {
        self.list.load().names.len()
    }

    /// Tells whether the list could not be read the last time.
    pub fn is_failing(&self) -> bool {
        self.outcome.load(Ordering::Acquire) == FAILED
    }

    /// Keeps the last good list, and tells whether the failure is news.
    pub fn set_failed(&self) -> bool {
        self.outcome.swap(FAILED, Ordering::AcqRel) != FAILED
    }

    /// Replaces the list, and tells whether it has changed, or could not be read before.
    pub fn set(&self, names: Vec<Arc<str>>) -> bool {
        let before = self.outcome.swap(READ, Ordering::AcqRel);
        if before != NEVER_READ && self.list.load().names == names {
            return before == FAILED;
        }
        let index = names.iter().cloned().collect();
        self.list.store(Arc::new(ModelList { names, index }));
        true
    }
}

impl UpstreamDiscovery {
    /// `None`: the upstream has no `discover`.
    pub(super) fn new(
        upstream: &UpstreamConfig,
        state: impl FnOnce(&str) -> Arc<DiscoveredModels>,
    ) -> Option<UpstreamDiscovery> {
        let settings = upstream.discover.clone()?;
        let key = format!(
            "{} {} {} {:?} {:?} {}",
            upstream.name,
            upstream.format.name(),
            upstream.base_url,
            settings.include,
            settings.exclude,
            settings.prefix
        );
        let has_include = !settings.include.is_empty();
        Some(UpstreamDiscovery {
            models: state(&key),
            include: has_include.then(|| globs(&settings.include)),
            exclude: globs(&settings.exclude),
            key,
            settings,
        })
    }

    /// The names that are served of those that the upstream lists. `Err` says why the list cannot be used.
    pub fn selected(&self, names: Vec<String>) -> Result<Vec<Arc<str>>, String> {
        let mut seen: HashSet<&str, RandomState> = HashSet::default();
        let prefix = &self.settings.prefix;
        let is_selected = |name: &&String| {
            let included = self.include.as_ref();
            !name.is_empty()
                && !name.contains('*')
                && included.is_none_or(|globs| globs.is_match(name.as_str()))
                && !self.exclude.is_match(name.as_str())
                && is_plain_name(&format!("{prefix}{name}"))
        };
        let selected = names.iter().filter(is_selected);
        let selected = selected.filter(|name| seen.insert(name));
        let selected: Vec<Arc<str>> = selected.map(|name| name.as_str().into()).collect();
        match selected.len() > MAX_MODELS {
            true => Err(format!(
                "it lists {} models, more than {MAX_MODELS}; choose some with discover.include",
                selected.len()
            )),
            false => Ok(selected),
        }
    }
}

/// The config was checked: all of them are globs.
fn globs(texts: &[String]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in texts.iter().filter_map(|text| Glob::new(text).ok()) {
        builder.add(glob);
    }
    builder.build().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Runtime;

    fn runtime() -> Runtime {
        let text = "
upstreams:
  - {name: a, format: chat, base_url: 'http://a.example/v1', discover: {prefix: a/, include: ['gpt-*', o3], exclude: ['*-old']}}
  - {name: b, format: chat, base_url: 'http://b.example/v1', discover: on}
  - {name: c, format: chat, base_url: 'http://c.example/v1', discover: on}
models:
  - {id: exact, upstreams: [{name: c, model: theirs}]}
  - {id: '*', upstreams: [{name: c}]}
";
        let config = config::parse("test.yaml", text, &|_| None);
        Runtime::new(config.unwrap_or_else(|problems| panic!("{problems:?}")))
    }

    fn set(runtime: &Runtime, upstream: &str, names: &[&str]) -> bool {
        let snapshot = runtime.snapshot();
        let mut upstreams = snapshot.upstreams.iter();
        let upstream = upstreams.find(|known| *known.name == *upstream);
        let discovery = upstream.and_then(|upstream| upstream.discovery.as_ref());
        let discovery = discovery.expect("it discovers");
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        discovery
            .models
            .set(discovery.selected(names).expect("few"))
    }

    /// The upstream of a name, and what that is sent.
    fn found(runtime: &Runtime, name: &str) -> String {
        let snapshot = runtime.snapshot();
        let asked = snapshot.model(name).expect("a * matches everything");
        let target = &asked.model.targets[0];
        format!("{} {}", target.upstream.name, target.model_for(&asked))
    }

    #[test]
    fn listed_names_come_behind_configured_ones_and_before_patterns() {
        let runtime = runtime();
        assert_eq!(found(&runtime, "a/gpt-5"), "c a/gpt-5");
        assert!(set(
            &runtime,
            "a",
            &["gpt-5", "gpt-4-old", "o3", "llama", "gpt 5", "gpt-5"]
        ));
        assert!(set(&runtime, "b", &["exact", "both", "a/o3"]));
        assert!(set(&runtime, "c", &["both", "third"]));
        for (name, expected) in [
            ("a/gpt-5", "a gpt-5"),
            ("a/o3", "a o3"),
            ("a/gpt-4-old", "c a/gpt-4-old"),
            ("a/llama", "c a/llama"),
            ("gpt-5", "c gpt-5"),
            ("exact", "c theirs"),
            ("both", "b both"),
            ("third", "c third"),
            ("none", "c none"),
        ] {
            assert_eq!(found(&runtime, name), expected, "{name}");
        }
        let snapshot = runtime.snapshot();
        let listed: Vec<String> = snapshot.discovered().map(|(name, _)| name).collect();
        assert_eq!(listed, ["a/gpt-5", "a/o3", "both", "third"]);
    }

    /// Without that, a model that an upstream lists would be free for a key with a cap.
    #[test]
    fn a_listed_model_has_the_settings_of_the_entry_that_matches_it() {
        let text = "
upstreams:
  - {name: a, format: chat, base_url: 'http://a.example/v1', discover: {prefix: a/}}
  - {name: b, format: chat, base_url: 'http://b.example/v1', discover: on}
models:
  - {id: 'a/*', max_output_tokens: 10, pricing: {output: 1}, upstreams: [{name: b, model: '*'}], fallbacks: [exact]}
  - {id: 'a/large-*', max_output_tokens: 20, features: [vision], pricing: {output: 2}, upstreams: [{name: b}]}
  - {id: exact, max_output_tokens: 30, upstreams: [{name: b}]}
";
        let config = config::parse("test.yaml", text, &|_| None);
        let config = config.unwrap_or_else(|problems| panic!("{problems:?}"));
        let runtime = Runtime::new(config);
        set(&runtime, "a", &["small", "large-1"]);
        set(&runtime, "b", &["exact", "a/other", "free"]);
        let snapshot = runtime.snapshot();
        for (name, sent, limit, is_priced) in [
            ("a/small", "a small", Some(10), true),
            ("a/large-1", "a large-1", Some(20), true),
            ("a/other", "b a/other", Some(10), true),
            ("exact", "b exact", Some(30), false),
            ("free", "b free", None, false),
        ] {
            assert_eq!(found(&runtime, name), sent, "{name}");
            let model = snapshot.model(name).expect(name).model;
            assert_eq!(model.settings.max_output_tokens, limit, "{name}");
            assert_eq!(model.prices.is_some(), is_priced, "{name}");
            assert_eq!(model.settings.fallbacks, [""; 0], "{name}");
        }
        let listed = snapshot.discovered();
        let listed: Vec<(String, Option<u64>)> = listed
            .map(|(name, model)| (name, model.settings.max_output_tokens))
            .collect();
        let expected = [
            ("a/small", Some(10)),
            ("a/large-1", Some(20)),
            ("a/other", Some(10)),
            ("free", None),
        ];
        let expected = expected.map(|(name, limit)| (name.to_owned(), limit));
        assert_eq!(listed, expected);
    }

    #[test]
    fn news_are_told_once_and_a_failure_keeps_the_list() {
        let models = DiscoveredModels::default();
        assert!(models.set(Vec::new()), "the first list is news");
        assert!(!models.set(Vec::new()));
        assert!(models.set(vec!["a".into()]));
        assert!(models.set_failed());
        assert!(!models.set_failed());
        assert!(models.is_failing() && models.contains("a"));
        assert!(models.set(vec!["a".into()]), "that it works again is news");
        assert!(!models.is_failing());
    }

    #[test]
    fn a_reload_keeps_the_lists_of_unchanged_settings() {
        let runtime = runtime();
        set(&runtime, "b", &["both"]);
        for (prefix, is_kept) in [("", true), ("b/", false)] {
            let text = format!(
                "
upstreams:
  - {{name: b, format: chat, base_url: 'http://b.example/v1', discover: {{prefix: \"{prefix}\", interval: 5s}}}}
"
            );
            let text = text.replace("prefix: \"\", ", "");
            let config = config::parse("test.yaml", &text, &|_| None);
            runtime.reload(config.unwrap_or_else(|problems| panic!("{problems:?}")));
            let snapshot = runtime.snapshot();
            assert_eq!(snapshot.discovered().count(), usize::from(is_kept));
        }
    }

    #[test]
    fn a_list_that_is_too_long_is_refused() {
        let runtime = runtime();
        let snapshot = runtime.snapshot();
        let discovery = snapshot.upstreams.iter().find_map(|upstream| {
            let discovery = upstream.discovery.as_ref()?;
            (*upstream.name == *"b").then_some(discovery)
        });
        let names = |count: usize| (0..count).map(|number| number.to_string()).collect();
        let discovery = discovery.expect("b discovers");
        assert!(discovery.selected(names(MAX_MODELS)).is_ok());
        assert!(discovery.selected(names(MAX_MODELS + 1)).is_err());
    }
}
