//! The presets of `provider`: what the gateway knows of a provider's endpoints, read from a data file.

use std::sync::LazyLock;

use comfy_table::{Table, presets};

use super::capabilities;
use super::problem::{Position, Problems};
use super::settings::BaseUrl;
use super::shown::HiddenValues;
use super::table::{ConfigField, ConfigReader, ConfigTable, nearest};
use super::tree::{YamlKey, YamlNode};
use super::values;
use crate::model::Format;

const FILE: &str = include_str!("providers.yaml");

/// What stands for the key of a provider of Google Cloud.
const GOOGLE: &str = "Google credentials";

/// Only a config that names a provider pays for reading the file.
static PROVIDERS: LazyLock<Vec<Provider>> = LazyLock::new(|| parse(FILE).0);

/// The keys of an upstream that a preset sets in the same words.
const SHAPE_KEYS: [&str; 9] = [
    "paths",
    "query",
    "model_in",
    "stream_in",
    "version_in",
    "version",
    "betas_in",
    "framing",
    "embeddings",
];

/// What a config may leave out for upstreams of this provider.
#[derive(Debug)]
pub struct Provider {
    pub name: String,
    pub title: String,
    /// The environment variables of its key; the first that is set counts.
    pub keys: Vec<String>,
    /// Absent where it also answers without a key.
    pub needs_key: bool,
    /// The header that carries the key; absent: `authorization: Bearer`.
    pub key_header: Option<String>,
    pub headers: Vec<(String, String)>,
    /// The first is for clients of all other formats.
    pub formats: Vec<(Format, BaseUrl)>,
    pub capabilities: Vec<(String, String)>,
    /// The environment variables of the values of placeholders.
    variables: Vec<(String, Vec<String>)>,
    /// The hosts for some values of the placeholder in the base URLs.
    hosts: Vec<(String, String)>,
    /// The service of AWS that requests are signed for where no key is set.
    pub(super) aws_service: Option<String>,
    /// Its credentials are access tokens of Google Cloud.
    pub uses_google: bool,
    /// Keys of an upstream and their values, as written.
    shape: Vec<(YamlKey, YamlNode)>,
}

impl Provider {
    /// The environment variables of the value of a placeholder.
    pub(super) fn variables_of(&self, placeholder: &str) -> &[String] {
        let mut variables = self.variables.iter();
        let found = variables.find(|(name, _)| name == placeholder);
        found.map_or(&[], |(_, names)| names)
    }

    /// Tells whether its base URLs want more than a key, such as the name of a resource.
    pub(super) fn has_placeholders(&self) -> bool {
        let mut base_urls = self.formats.iter().map(|(_, base_url)| base_url);
        base_urls.any(|base_url| base_url.host.contains('{') || base_url.prefix.contains('{'))
    }

    /// The host for this value of the placeholder in the base URLs, where it is not simply put in.
    pub(super) fn host_for(&self, value: &str) -> Option<&str> {
        let mut hosts = self.hosts.iter();
        hosts.find(|(of, _)| of == value).map(|(_, host)| &**host)
    }

    /// Where its requests differ from those of its formats, for an upstream at this position.
    pub(super) fn shape_table(&self, position: Position) -> ConfigTable<'_> {
        ConfigTable::of("a preset", position, &self.shape)
    }
}

/// All presets, in the order of the file.
pub fn providers() -> &'static [Provider] {
    &PROVIDERS
}

/// The preset of this name. `Err`: what is allowed, for a message that says "must be".
pub(super) fn provider(name: &str) -> values::Parsed<&'static Provider> {
    let found = PROVIDERS.iter().find(|provider| provider.name == name);
    found.ok_or_else(|| {
        let names = PROVIDERS.iter().map(|provider| provider.name.as_str());
        let near = nearest(name, names).map(|near| format!(" (did you mean {near:?}?)"));
        let near = near.unwrap_or_default();
        format!("one of the presets that `omniglot providers` lists{near}")
    })
}

/// The presets as a table for people: a row for every format of every provider.
pub fn provider_table() -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["provider", "key", "format", "base_url"]);
    for provider in providers() {
        for (place, (format, base_url)) in provider.formats.iter().enumerate() {
            // One line per provider is easier to find than the same name three times.
            let (name, key) = match place {
                0 if provider.uses_google => (provider.name.clone(), GOOGLE.to_owned()),
                0 => (provider.name.clone(), provider.keys.join(" or ")),
                _ => (String::new(), String::new()),
            };
            let key = match key.is_empty() || provider.needs_key || provider.uses_google {
                true => key,
                false => format!("{key} (optional)"),
            };
            table.add_row([name, key, format.name().to_owned(), base_url.to_string()]);
        }
    }
    table.trim_fmt()
}

/// The presets of a file, and what is wrong with it.
fn parse(text: &str) -> (Vec<Provider>, Problems) {
    // The file is read as it is written, whatever the environment.
    let mut reader = ConfigReader {
        env: &|_| None,
        problems: Problems::default(),
        warnings: Problems::default(),
        hidden: HiddenValues::default(),
    };
    let root = super::tree::parse(text, &mut reader.problems);
    let mut all = Vec::new();
    if let Some(root) = &root {
        let field = ConfigField {
            name: "the file",
            node: root,
        };
        let table = reader.table("the file", field);
        for (key, node) in table.map(|mut table| table.take_rest()).unwrap_or_default() {
            let field = ConfigField {
                name: &key.name,
                node,
            };
            if let Some(table) = reader.table("a provider", field) {
                all.extend(parse_provider(&mut reader, key.name.clone(), table));
            }
        }
    }
    (all, reader.problems)
}

fn parse_provider(
    reader: &mut ConfigReader,
    name: String,
    mut table: ConfigTable,
) -> Option<Provider> {
    let title = reader.required(&mut table, "title", values::label);
    let keys = reader.items(&mut table, "key", values::name);
    let needs_key = reader.optional(&mut table, "key_required", values::switch);
    let key_header = reader.optional(&mut table, "auth", values::header_name);
    let headers = table.take("headers");
    let headers = headers.and_then(|field| reader.table("headers", field));
    let headers = headers.map(|mut table| table.take_rest());
    let mut sent = Vec::new();
    for (key, node) in headers.unwrap_or_default() {
        let field = ConfigField {
            name: &key.name,
            node,
        };
        let value = reader.value(field, values::header_value);
        sent.extend(value.map(|value| (key.name.clone(), value.value)));
    }
    let formats = reader.required_field(&mut table, "formats");
    let formats = formats.map(|field| parse_formats(reader, field));
    let flags = table.take("capabilities");
    let flags = flags.and_then(|field| reader.table("capabilities", field));
    let flags = flags.map(|table| capabilities::parse(reader, table));
    let aws_service = reader.optional(&mut table, "aws_service", values::name);
    let uses_google = reader.optional(&mut table, "google", values::switch);
    let variables = parse_variables(reader, &mut table);
    let hosts = parse_hosts(reader, &mut table);
    let shape = SHAPE_KEYS.into_iter().filter_map(|name| {
        let node = table.take(name)?.node.clone();
        let (position, name) = (node.position, name.to_owned());
        Some((YamlKey { position, name }, node))
    });
    let shape = shape.collect();
    reader.finish(table);
    Some(Provider {
        name,
        title: title?.value,
        keys: keys.into_iter().map(|key| key.value).collect(),
        needs_key: needs_key.unwrap_or(true),
        key_header: key_header.filter(|name| name != "bearer"),
        headers: sent,
        formats: formats.filter(|formats| !formats.is_empty())?,
        capabilities: flags.unwrap_or_default(),
        aws_service,
        variables,
        hosts,
        uses_google: uses_google.unwrap_or(false),
        shape,
    })
}

fn parse_variables(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
) -> Vec<(String, Vec<String>)> {
    let field = table.take("variables");
    let table = field.and_then(|field| reader.table("variables", field));
    let entries = table.map(|mut table| table.take_rest()).unwrap_or_default();
    let mut all = Vec::new();
    for (key, node) in entries {
        let field = ConfigField {
            name: &key.name,
            node,
        };
        let names = reader.list(field).into_iter();
        let names = names.filter_map(|name| reader.value(name, values::name));
        all.push((key.name.clone(), names.map(|name| name.value).collect()));
    }
    all
}

fn parse_hosts(reader: &mut ConfigReader, table: &mut ConfigTable) -> Vec<(String, String)> {
    let field = table.take("hosts");
    let table = field.and_then(|field| reader.table("hosts", field));
    let entries = table.map(|mut table| table.take_rest()).unwrap_or_default();
    let mut all = Vec::new();
    for (key, node) in entries {
        let field = ConfigField {
            name: &key.name,
            node,
        };
        let host = reader.value(field, values::name);
        all.extend(host.map(|host| (key.name.clone(), host.value)));
    }
    all
}

/// Parses a mapping of formats to base URLs, in its order.
pub(super) fn parse_formats(
    reader: &mut ConfigReader,
    field: ConfigField,
) -> Vec<(Format, BaseUrl)> {
    let mut formats = Vec::new();
    let Some(mut table) = reader.table("formats", field) else {
        return formats;
    };
    let names = Format::EVERY.map(Format::name);
    let entries = table.take_rest();
    if entries.is_empty() {
        let message =
            "formats is empty; write FORMAT: BASE_URL, such as chat: https://api.example.com/v1";
        reader.problems.add(field.node.position, message);
    }
    for (key, node) in entries {
        let known = Format::EVERY
            .into_iter()
            .find(|format| format.name() == key.name);
        let Some(format) = known else {
            let message = format!(
                "{:?} must be a format: {}",
                key.name,
                values::either(&names)
            );
            reader.problems.add(key.position, message);
            continue;
        };
        let field = ConfigField {
            name: &key.name,
            node,
        };
        let base_url = reader.hidden_url(field, values::base_url);
        formats.extend(base_url.map(|base_url| (format, base_url.value)));
    }
    formats
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::problem::Severity;
    use super::*;
    use crate::formats::Capabilities;

    #[test]
    fn the_file_has_no_problem_and_no_name_twice() {
        let (all, problems) = parse(FILE);
        assert_eq!(problems.finish("providers.yaml", Severity::Problem), []);
        let names: HashSet<&str> = all.iter().map(|provider| provider.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.len() >= 27, "{} presets", all.len());
    }

    #[test]
    fn every_preset_can_be_used_as_it_is() {
        for provider in providers() {
            let name = &provider.name;
            let has_key = !provider.keys.is_empty() || provider.uses_google;
            assert!(has_key || !provider.needs_key, "{name} names no variable");
            let formats: HashSet<Format> = provider.formats.iter().map(|(of, _)| *of).collect();
            assert_eq!(formats.len(), provider.formats.len(), "{name}");
            for (format, base_url) in &provider.formats {
                let warning = super::super::base_url::doubled_path(*format, base_url);
                assert_eq!(warning, None, "{name}");
                let is_local = base_url.host == "localhost";
                assert!(
                    base_url.tls || is_local,
                    "{name} sends its key in the clear"
                );
                let is_signed = provider.aws_service.is_some();
                let is_optional = is_local || is_signed || provider.uses_google;
                assert_eq!(is_optional, !provider.needs_key, "{name}");
            }
            let mut capabilities = Capabilities::default();
            for (flag, value) in &provider.capabilities {
                assert_eq!(capabilities.set(flag, value), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn a_misspelt_provider_is_guessed() {
        let expected = provider("opnai").expect_err("there is none");
        assert!(expected.contains("did you mean \"openai\"?"), "{expected}");
        let expected = provider("zzzzzzzz").expect_err("there is none");
        assert!(!expected.contains("did you mean"), "{expected}");
    }
}
