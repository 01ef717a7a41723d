//! What no single key can know: names that must exist, things said twice, fallbacks in a circle.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::Hash;
use std::net::SocketAddr;

use super::problem::Problems;
use super::settings::TargetConfig;
use super::table::{Placed, nearest};

/// The names in a file, each with its place, gathered while the file is read.
#[derive(Default)]
pub struct Names {
    pub listen: Vec<Placed<SocketAddr>>,
    pub admin: Option<Placed<SocketAddr>>,
    pub files: Vec<Placed<String>>,
    pub keys: Vec<Placed<String>>,
    pub secrets: Vec<Placed<[u8; 32]>>,
    pub upstreams: Vec<Placed<String>>,
    pub models: Vec<ModelNames>,
}

pub struct ModelNames {
    pub id: Option<Placed<String>>,
    pub targets: Vec<Placed<TargetConfig>>,
    pub fallbacks: Vec<Placed<String>>,
}

pub fn check(names: &Names, problems: &mut Problems) {
    addresses(names, problems);
    files(&names.files, problems);
    let models: Vec<_> = names.models.iter().filter_map(|m| m.id.clone()).collect();
    unique("key name", &names.keys, problems);
    unique("upstream name", &names.upstreams, problems);
    unique("model id", &models, problems);
    for (again, first) in repeated(&names.secrets, |secret| secret.value) {
        let line = first.place.line;
        let message = format!("the key on line {line} has the same secret; give each its own");
        problems.add(again.place, message);
    }
    let known_upstreams = Known::new("upstream", &names.upstreams);
    let known_models = Known::new("model", &models);
    for model in &names.models {
        for target in &model.targets {
            known_upstreams.check(target, &target.value.name, problems);
        }
        for fallback in &model.fallbacks {
            known_models.check(fallback, &fallback.value, problems);
        }
        targets(&model.targets, problems);
        fallbacks(&model.fallbacks, problems);
    }
    circles(&names.models, problems);
}

fn addresses(names: &Names, problems: &mut Problems) {
    let taken = |address: &Placed<SocketAddr>, earlier: &[Placed<SocketAddr>]| {
        let mut earlier = earlier.iter();
        earlier.any(|earlier| collide(earlier.value, address.value))
    };
    for (at, listen) in names.listen.iter().enumerate() {
        if taken(listen, &names.listen[..at]) {
            let message = format!("listen {:?} is already taken; remove one", listen.written);
            problems.add(listen.place, message);
        }
    }
    if let Some(admin) = &names.admin
        && taken(admin, &names.listen)
    {
        let message = format!(
            "admin {:?} is also a public address; give it a port of its own",
            admin.written
        );
        problems.add(admin.place, message);
    }
}

/// Whether the second of the two could not be bound. Port 0 is a different port every time.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = one.ip().is_unspecified() || other.ip().is_unspecified();
    let overlap = one.ip() == other.ip() || covers && one.is_ipv4() == other.is_ipv4();
    one.port() != 0 && one.port() == other.port() && overlap
}

fn files(files: &[Placed<String>], problems: &mut Problems) {
    for file in files {
        let opened = File::open(&file.value).and_then(|opened| opened.metadata());
        let reason = match opened {
            Ok(metadata) if metadata.is_file() => continue,
            Ok(_) => "it is not a file".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("cannot read {:?}: {reason}; name a PEM file", file.written);
        problems.add(file.place, message);
    }
}

fn unique(what: &str, names: &[Placed<String>], problems: &mut Problems) {
    for (again, first) in repeated(names, |name| name.value.as_str()) {
        let message = format!(
            "duplicate {what} {:?}, first on line {}; rename one",
            again.written, first.place.line
        );
        problems.add(again.place, message);
    }
}

fn targets(targets: &[Placed<TargetConfig>], problems: &mut Problems) {
    let same =
        |target: &Placed<TargetConfig>| (target.value.name.clone(), target.value.model.clone());
    for (again, _) in repeated(targets, same) {
        let message = format!(
            "upstream {:?} is listed twice; keep one and add up the weights",
            again.written
        );
        problems.add(again.place, message);
    }
}

fn fallbacks(fallbacks: &[Placed<String>], problems: &mut Problems) {
    for (again, _) in repeated(fallbacks, |fallback| fallback.value.as_str()) {
        let message = format!("fallback {:?} is listed twice; keep one", again.written);
        problems.add(again.place, message);
    }
}

/// Each value that an earlier one equals, with the first such.
fn repeated<'n, T, K: Eq + Hash>(
    values: &'n [Placed<T>],
    key: impl Fn(&'n Placed<T>) -> K,
) -> Vec<(&'n Placed<T>, &'n Placed<T>)> {
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

/// Names that may be mentioned.
struct Known<'n> {
    what: &'static str,
    defined: &'n [Placed<String>],
    names: HashSet<&'n str>,
}

impl<'n> Known<'n> {
    fn new(what: &'static str, defined: &'n [Placed<String>]) -> Known<'n> {
        Known {
            what,
            defined,
            names: defined.iter().map(|name| name.value.as_str()).collect(),
        }
    }

    fn check<T>(&self, mention: &Placed<T>, name: &str, problems: &mut Problems) {
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
        problems.add(mention.place, message);
    }
}

/// Reports, at its last step, every way that leads from a model back to itself.
fn circles(models: &[ModelNames], problems: &mut Problems) {
    let mut places = HashMap::new();
    for (place, model) in models.iter().enumerate() {
        if let Some(id) = &model.id {
            places.entry(id.value.as_str()).or_insert(place);
        }
    }
    let mut walk = Walk {
        models,
        places,
        path: Vec::new(),
        done: vec![false; models.len()],
    };
    for model in 0..models.len() {
        walk.visit(model, problems);
    }
}

struct Walk<'n> {
    models: &'n [ModelNames],
    /// By id.
    places: HashMap<&'n str, usize>,
    /// From where the walk began to the model it stands on.
    path: Vec<usize>,
    done: Vec<bool>,
}

impl Walk<'_> {
    fn visit(&mut self, at: usize, problems: &mut Problems) {
        if self.done[at] {
            return;
        }
        self.done[at] = true;
        self.path.push(at);
        let models = self.models;
        for fallback in &models[at].fallbacks {
            let Some(&next) = self.places.get(fallback.value.as_str()) else {
                continue;
            };
            match self.path.iter().position(|step| *step == next) {
                Some(start) => {
                    let circle = self.circle(start);
                    let message = format!("fallbacks go in a circle: {circle}; remove one step");
                    problems.add(fallback.place, message);
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
