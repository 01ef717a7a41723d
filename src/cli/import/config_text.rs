//! The config that an import makes: entries as they will be written, and what was left out.

use std::fmt::Write as _;

/// A config in the making.
#[derive(Default)]
pub(super) struct ImportedConfig {
    /// Settings of `server`.
    pub server: Vec<(&'static str, String)>,
    pub limits_store: Option<String>,
    pub keys: Vec<Entry>,
    upstreams: Vec<Entry>,
    pub models: Vec<Entry>,
    left_out: Vec<String>,
}

/// An entry of a list: its settings in order, as YAML.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The value of `name` or `id`.
    pub name: String,
    pub settings: Vec<(&'static str, String)>,
    /// What it lacks of the entry that it was made from.
    pub comments: Vec<String>,
}

impl Entry {
    pub(super) fn set(&mut self, key: &'static str, value: Option<String>) {
        self.settings.extend(value.map(|value| (key, value)));
    }

    /// Adds an item to a setting that is a list.
    pub(super) fn add_to_list(&mut self, key: &'static str, item: &str) {
        let mut settings = self.settings.iter_mut();
        match settings.find(|(setting, _)| *setting == key) {
            Some((_, items)) => {
                let before = items.strip_suffix(']').unwrap_or(items);
                *items = format!("{before}, {item}]");
            }
            None => self.set(key, Some(list(&[item.to_owned()]))),
        }
    }
}

impl ImportedConfig {
    /// Reports something without a counterpart.
    pub(super) fn leave_out(&mut self, path: &str, reason: &str) {
        self.left_out.push(format!("{path}: {reason}"));
    }

    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Adds an upstream under this name or, where another one has it, under one with a number. Returns the name; equal
    /// upstreams are one.
    pub(super) fn add_upstream(
        &mut self,
        base: &str,
        settings: Vec<(&'static str, String)>,
    ) -> String {
        let is_same = |entry: &&Entry| entry.settings == settings;
        if let Some(same) = self.upstreams.iter().find(is_same) {
            return same.name.clone();
        }
        let is_taken = |name: &str| self.upstreams.iter().any(|entry| entry.name == name);
        let mut name = base.to_owned();
        let mut number = 2;
        while is_taken(&name) {
            name = format!("{base}-{number}");
            number += 1;
        }
        self.upstreams.push(Entry {
            name: name.clone(),
            settings,
            comments: Vec::new(),
        });
        name
    }

    /// Sets something for all upstreams.
    pub(super) fn set_upstreams(&mut self, key: &'static str, value: &str) {
        for upstream in &mut self.upstreams {
            upstream.set(key, Some(value.to_owned()));
        }
    }

    /// Encodes the config.
    pub(super) fn to_yaml(&self, source: &str) -> String {
        let mut text =
            format!("# Imported from {source}. `omniglot check -c FILE` validates it.\n");
        if !self.left_out.is_empty() {
            text += "#\n# Without a counterpart, and left out:\n";
            for line in &self.left_out {
                let _ = writeln!(text, "#   {line}");
            }
        }
        if !self.server.is_empty() {
            text += "\nserver:\n";
            for (key, value) in &self.server {
                let _ = writeln!(text, "  {key}: {value}");
            }
        }
        if let Some(store) = &self.limits_store {
            let _ = write!(text, "\nlimits_store: {store}\n");
        }
        let lists = [
            ("keys", "name", &self.keys),
            ("upstreams", "name", &self.upstreams),
            ("models", "id", &self.models),
        ];
        for (list, key, entries) in lists {
            if entries.is_empty() {
                continue;
            }
            let _ = write!(text, "\n{list}:\n");
            for entry in entries {
                for comment in &entry.comments {
                    let _ = writeln!(text, "  # {comment}");
                }
                let _ = writeln!(text, "  - {key}: {}", scalar(&entry.name));
                for (setting, value) in &entry.settings {
                    let _ = writeln!(text, "    {setting}: {value}");
                }
            }
        }
        text
    }
}

/// A string as YAML: bare where nobody could read it as anything else.
pub(super) fn scalar(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    let starts_plain = text.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match is_number || starts_plain && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    }
}

/// A mapping on one line.
pub(super) fn mapping(entries: &[(&str, String)]) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    format!("{{{}}}", entries.join(", "))
}

/// A list on one line.
pub(super) fn list(items: &[String]) -> String {
    format!("[{}]", items.join(", "))
}
