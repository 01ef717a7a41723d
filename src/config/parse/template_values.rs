//! The values of placeholders in paths and in the base URLs of presets: `project`, `location`, `region`, `resource`.

use std::cell::Cell;

use crate::config::problem::Position;
use crate::config::providers::Provider;
use crate::config::settings::BaseUrl;
use crate::config::table::{ConfigReader, ConfigTable};
use crate::config::values;

const NAMES: [&str; 4] = ["project", "location", "region", "resource"];

/// The values of one upstream.
pub struct TemplateValues {
    values: Vec<TemplateValue>,
    /// A value that a base URL needs is missing, which has been reported.
    lacks_value: Cell<bool>,
    provider: Option<&'static Provider>,
}

struct TemplateValue {
    name: &'static str,
    /// Absent: a wrong value, which has been reported.
    value: Option<String>,
    /// Absent: it comes from a variable.
    position: Option<Position>,
    is_used: Cell<bool>,
}

impl TemplateValues {
    /// Takes the values out of an upstream; what is left out may stand in a variable that the preset names.
    pub fn parse(
        reader: &mut ConfigReader,
        table: &mut ConfigTable,
        provider: Option<&'static Provider>,
    ) -> TemplateValues {
        let mut found = Vec::new();
        for name in NAMES {
            if let Some(field) = table.take(name) {
                let position = Some(field.node.position);
                let value = reader.value(field, values::template_value);
                found.push(TemplateValue {
                    name,
                    value: value.map(|value| value.value),
                    position,
                    is_used: Cell::new(false),
                });
                continue;
            }
            let variables = provider.map_or(&[][..], |provider| provider.variables_of(name));
            let mut set = variables.iter().filter_map(|name| (reader.env)(name));
            let value = set.find(|value| values::template_value(value).is_ok());
            found.extend(value.map(|value| TemplateValue {
                name,
                value: Some(value),
                position: None,
                is_used: Cell::new(false),
            }));
        }
        TemplateValues {
            values: found,
            lacks_value: Cell::new(false),
            provider,
        }
    }

    /// The value of a placeholder, or what is wrong with it.
    pub fn get(&self, name: &str) -> Result<String, String> {
        if !NAMES.contains(&name) {
            let known = NAMES.map(|name| format!("{{{name}}}")).join(", ");
            return Err(format!(
                "has the unknown placeholder {{{name}}}; there are {{model}}, {{deployment}}, {known}"
            ));
        }
        let Some(found) = self.values.iter().find(|value| value.name == name) else {
            return Err(format!("has {{{name}}}; {}", self.advice(name)));
        };
        found.is_used.set(true);
        // A wrong value is reported where it stands.
        Ok(found.value.clone().unwrap_or_default())
    }

    /// How a value is set.
    fn advice(&self, name: &str) -> String {
        let provider = self.provider;
        let variables = provider.map_or(&[][..], |provider| provider.variables_of(name));
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        match variables.is_empty() {
            true => format!("write {name}"),
            false => format!("write {name}, or set {}", values::either(&variables)),
        }
    }

    /// The base URL of a preset with its placeholders filled in.
    pub fn fill_host(
        &self,
        reader: &mut ConfigReader,
        base_url: &BaseUrl,
        position: Position,
    ) -> Option<BaseUrl> {
        let Some((before, rest)) = base_url.host.split_once('{') else {
            return Some(base_url.clone());
        };
        let (name, after) = rest.split_once('}').unwrap_or((rest, ""));
        let value = match self.get(name) {
            Ok(value) => value,
            Err(_) => {
                let preset = self.provider.map_or("", |provider| &*provider.name);
                let message = format!(
                    "the provider {preset} needs {name}: {}, or write base_url",
                    self.advice(name)
                );
                reader.problems.add(position, message);
                self.lacks_value.set(true);
                return None;
            }
        };
        let special = self.provider.and_then(|provider| provider.host_for(&value));
        let host = special.map_or_else(|| format!("{before}{value}{after}"), str::to_owned);
        Some(BaseUrl {
            authority: base_url.authority.replace(&base_url.host, &host),
            host,
            ..base_url.clone()
        })
    }

    /// Whether a value that a base URL needs is missing, which has been reported.
    pub fn lacks_value(&self) -> bool {
        self.lacks_value.get()
    }

    /// Warns of values that nothing has a placeholder for.
    pub fn warn_of_unused(&self, reader: &mut ConfigReader) {
        for value in self.values.iter().filter(|value| !value.is_used.get()) {
            if let Some(position) = value.position {
                let name = value.name;
                let message = format!("{name} does nothing; no path has {{{name}}}");
                reader.warnings.add(position, message);
            }
        }
    }
}
