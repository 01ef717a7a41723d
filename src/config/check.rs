//! Checks across the config: names that must exist, duplicates, circular fallbacks.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::Hash;
use std::net::SocketAddr;

use super::model_names::ModelNames;
use super::problem::{Position, Problems};
use super::settings::TargetConfig;
use super::table::{Located, nearest};

/// The names that a config declares or mentions, with their positions.
#[derive(Default)]
pub struct DeclaredNames {
    pub listen: Vec<Located<SocketAddr>>,
    pub admin: Option<Located<SocketAddr>>,
    pub console: Option<Located<SocketAddr>>,
    pub files: Vec<Located<String>>,
    pub keys: Vec<Located<String>>,
    pub secrets: Vec<Located<[u8; 32]>>,
    /// The globs of all keys.
    pub globs: Vec<Located<String>>,
    pub upstreams: Vec<Located<String>>,
    pub models: Vec<DeclaredModel>,
    /// The upstream for names that nothing matches.
    pub default_upstream: Option<Located<String>>,
    /// The lists of the file that are there, empty or not.
    pub lists: Vec<(&'static str, Position)>,
    /// Where `server.conversations.max_bytes_per_key` is set.
    pub stored_bytes: Option<Position>,
}

pub struct DeclaredModel {
    pub id: Option<Located<String>>,
    pub aliases: Vec<Located<String>>,
    pub targets: Vec<Located<TargetConfig>>,
    pub fallbacks: Vec<Located<String>>,
}

impl DeclaredNames {
    /// The entries of `models` by name.
    fn model_names(&self) -> ModelNames {
        let mut names = ModelNames::default();
        for (number, model) in self.models.iter().enumerate() {
            for name in model.id.iter().chain(&model.aliases) {
                names.insert(&name.value, number);
            }
        }
        names
    }
}

pub fn check(names: &DeclaredNames, problems: &mut Problems) {
    addresses(names, problems);
    files(&names.files, problems);
    let mut models: Vec<_> = names.models.iter().filter_map(|m| m.id.clone()).collect();
    unique("key name", &names.keys, problems);
    unique("upstream name", &names.upstreams, problems);
    unique("model id", &models, problems);
    aliases(names, problems);
    let aliases = names.models.iter().flat_map(|model| &model.aliases);
    models.extend(aliases.cloned());
    for (again, first) in repeated(&names.secrets, |secret| secret.value) {
        let line = first.position.line;
        let message = format!("the key on line {line} has the same secret; give each its own");
        problems.add(again.position, message);
    }
    let known_upstreams = KnownNames::new("upstream", &names.upstreams);
    let known_models = KnownNames::new("model", &models);
    let model_names = names.model_names();
    if let Some(upstream) = &names.default_upstream {
        known_upstreams.check(upstream, &upstream.value, problems);
    }
    for model in &names.models {
        for target in &model.targets {
            known_upstreams.check(target, &target.value.name, problems);
        }
        for fallback in &model.fallbacks {
            if model_names.find(&fallback.value).is_none() {
                known_models.check(fallback, &fallback.value, problems);
            }
        }
        targets(&model.targets, problems);
        fallbacks(&model.fallbacks, problems);
    }
    circles(&names.models, model_names, problems);
}

fn addresses(names: &DeclaredNames, problems: &mut Problems) {
    let taken = |address: &Located<SocketAddr>, earlier: &[Located<SocketAddr>]| {
        let mut earlier = earlier.iter();
        earlier.any(|earlier| collide(earlier.value, address.value))
    };
    for (at, listen) in names.listen.iter().enumerate() {
        if taken(listen, &names.listen[..at]) {
            let message = format!("listen {:?} is already taken; remove one", listen.written);
            problems.add(listen.position, message);
        }
    }
    if let Some(admin) = &names.admin
        && taken(admin, &names.listen)
    {
        let message = format!(
            "admin {:?} is also a public address; give it a port of its own",
            admin.written
        );
        problems.add(admin.position, message);
    }
    if let Some(console) = &names.console {
        let mut others = names.listen.clone();
        others.extend(names.admin.clone());
        if taken(console, &others) {
            let message = format!(
                "console.listen {:?} is taken by the gateway or the admin port; give it a port of its own",
                console.written
            );
            problems.add(console.position, message);
        }
    }
}

/// Tells whether two addresses cannot both be bound. Port 0 is a different port every time.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = one.ip().is_unspecified() || other.ip().is_unspecified();
    let overlap = one.ip() == other.ip() || covers && one.is_ipv4() == other.is_ipv4();
    one.port() != 0 && one.port() == other.port() && overlap
}

fn files(files: &[Located<String>], problems: &mut Problems) {
    for file in files {
        let opened = File::open(&file.value).and_then(|opened| opened.metadata());
        let reason = match opened {
            Ok(metadata) if metadata.is_file() => continue,
            Ok(_) => "it is not a file".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("cannot read {:?}: {reason}; name a PEM file", file.written);
        problems.add(file.position, message);
    }
}

fn unique(what: &str, names: &[Located<String>], problems: &mut Problems) {
    for (again, first) in repeated(names, |name| name.value.as_str()) {
        let message = format!(
            "duplicate {what} {:?}, first on line {}; rename one",
            again.written, first.position.line
        );
        problems.add(again.position, message);
    }
}

/// Reports aliases that are the id or an alias of another model, or are there twice.
fn aliases(names: &DeclaredNames, problems: &mut Problems) {
    let ids = names.models.iter().filter_map(|model| model.id.as_ref());
    let mut taken: HashMap<&str, u64> = ids
        .map(|id| (id.value.as_str(), id.position.line))
        .collect();
    for alias in names.models.iter().flat_map(|model| &model.aliases) {
        if let Some(line) = taken.get(alias.value.as_str()) {
            let message = format!(
                "the name {:?} is taken on line {line}; rename one or remove this alias",
                alias.written
            );
            problems.add(alias.position, message);
        }
        taken.entry(&alias.value).or_insert(alias.position.line);
    }
}

fn targets(targets: &[Located<TargetConfig>], problems: &mut Problems) {
    let same = |target: &Located<TargetConfig>| {
        let TargetConfig {
            name, model, when, ..
        } = target.value.clone();
        (name, model, when)
    };
    for (again, _) in repeated(targets, same) {
        let message = format!(
            "upstream {:?} is listed twice; keep one and add up the weights",
            again.written
        );
        problems.add(again.position, message);
    }
}

fn fallbacks(fallbacks: &[Located<String>], problems: &mut Problems) {
    for (again, _) in repeated(fallbacks, |fallback| fallback.value.as_str()) {
        let message = format!("fallback {:?} is listed twice; keep one", again.written);
        problems.add(again.position, message);
    }
}

/// Every value that repeats an earlier one, with that first one.
fn repeated<'n, T, K: Eq + Hash>(
    values: &'n [Located<T>],
    key: impl Fn(&'n Located<T>) -> K,
) -> Vec<(&'n Located<T>, &'n Located<T>)> {
    let mut seen = HashMap::new();
    let mut repeated = Vec::new();
    for value in values {
        let first = *seen.entry(key(value)).or_insert(value);
        if !std::ptr::eq(first, value) {
            repeated.push((value, first));
        }
    }
    repeated
}

/// DeclaredNames that may be mentioned.
struct KnownNames<'n> {
    what: &'static str,
    defined: &'n [Located<String>],
    names: HashSet<&'n str>,
}

impl<'n> KnownNames<'n> {
    fn new(what: &'static str, defined: &'n [Located<String>]) -> KnownNames<'n> {
        KnownNames {
            what,
            defined,
            names: defined.iter().map(|name| name.value.as_str()).collect(),
        }
    }

    fn check<T>(&self, mention: &Located<T>, name: &str, problems: &mut Problems) {
        if self.names.contains(name) {
            return;
        }
        let what = self.what;
        let near = nearest(
            name,
            self.defined.iter().map(|defined| defined.value.as_str()),
        );
        let mut defined = self.defined.iter();
        let near = defined.find(|defined| Some(defined.value.as_str()) == near);
        let advice = match near {
            Some(near) => format!(", did you mean {:?}?", near.written),
            None => format!("; add it under \"{what}s\" or remove it here"),
        };
        let message = format!("unknown {what} {:?}{advice}", mention.written);
        problems.add(mention.position, message);
    }
}

/// Reports every circle of fallbacks at its last step.
fn circles(models: &[DeclaredModel], names: ModelNames, problems: &mut Problems) {
    let mut walk = FallbackWalk {
        models,
        names,
        path: Vec::new(),
        done: vec![false; models.len()],
    };
    for model in 0..models.len() {
        walk.visit(model, problems);
    }
}

struct FallbackWalk<'n> {
    models: &'n [DeclaredModel],
    names: ModelNames,
    /// The models from the start of the walk to the current one.
    path: Vec<usize>,
    done: Vec<bool>,
}

impl FallbackWalk<'_> {
    fn visit(&mut self, at: usize, problems: &mut Problems) {
        if self.done[at] {
            return;
        }
        self.done[at] = true;
        self.path.push(at);
        let models = self.models;
        for fallback in &models[at].fallbacks {
            let Some(found) = self.names.find(&fallback.value) else {
                continue;
            };
            let next = found.number;
            match self.path.iter().position(|step| *step == next) {
                Some(start) => {
                    let circle = self.circle(start);
                    let message = format!("fallbacks go in a circle: {circle}; remove one step");
                    problems.add(fallback.position, message);
                }
                None => self.visit(next, problems),
            }
        }
        self.path.pop();
    }

    /// `a -> b -> a`, from a step of the path to where it stands now and back.
    fn circle(&self, start: usize) -> String {
        let steps = self.path[start..].iter().chain(&self.path[start..=start]);
        let ids = steps.filter_map(|step| self.models[*step].id.as_ref());
        let ids: Vec<_> = ids.map(|id| id.written.as_str()).collect();
        ids.join(" -> ")
    }
}
