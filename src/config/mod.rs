//! The YAML config: parsed with line and column, checked as a whole, every problem reported at once.

mod base_url;
mod capabilities;
mod check;
mod demo;
mod expand;
mod key_globs;
mod model_names;
mod opened_models;
mod parse;
mod problem;
mod providers;
mod proxy;
mod quick_start;
mod resolution;
mod routes;
mod schema;
mod settings;
mod shown;
mod table;
mod tree;
mod upstream_models;
mod values;
mod warnings;

use std::fs;
use std::path::Path;

pub use demo::{DEMO_KEY, demo};
pub use expand::Env;
pub use model_names::{ModelMatch, ModelNames};
pub use problem::{Position, Problem, Severity};
pub use providers::{Provider, provider_table, providers};
pub use proxy::of_environment as proxy_of_environment;
pub use quick_start::{ProviderWithKey, providers_with_keys, starter_config};
pub use resolution::resolution;
pub use routes::route_table;
pub use schema::schema;
pub use settings::*;
pub use shown::ShownLine;
pub use tree::parse_foreign as parse_foreign_yaml;
pub use values::{glob as model_glob, key_name, mail_address};

use problem::Problems;
use shown::HiddenValues;
use table::ConfigReader;

/// Loads the config from a file, or returns all of its problems.
pub fn load(path: &Path, env: &Env) -> Result<Config, Vec<Problem>> {
    let text = read(path)?;
    parse(&path.display().to_string(), &text, env)
}

/// Loads the part of a config that commands on the store need. The rest may have problems, such as variables that are
/// set for the gateway alone.
pub fn load_store_part(path: &Path, env: &Env) -> Result<StorePart, Vec<Problem>> {
    let text = read(path)?;
    let mut reader = ConfigReader {
        env,
        problems: Problems::default(),
        warnings: Problems::default(),
        hidden: HiddenValues::default(),
    };
    let root = tree::parse(&text, &mut reader.problems);
    let part = root.map(|root| parse::store_part(&mut reader, &root));
    let file = path.display().to_string();
    let problems = reader.problems.finish(&file, Severity::Problem);
    match part {
        Some(part) if problems.is_empty() => Ok(part),
        _ => Err(problems),
    }
}

fn read(path: &Path) -> Result<String, Vec<Problem>> {
    let file = path.display().to_string();
    let problem = |position: Position, message: String| {
        let mut problems = Problems::default();
        problems.add(position, message);
        problems.finish(&file, Severity::Problem)
    };
    let bytes = fs::read(path).map_err(|error| {
        let message = format!("cannot read this file: {error}; name another with -c FILE");
        problem(Position::START, message)
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let valid = String::from_utf8_lossy(valid);
        let message = "not UTF-8; save the file as UTF-8";
        problem(Position::end_of(&valid), message.to_owned())
    })
}

/// Parses a config; problems and warnings name it `file_name`.
pub fn parse(file_name: &str, text: &str, env: &Env) -> Result<Config, Vec<Problem>> {
    let mut reader = ConfigReader {
        env,
        problems: Problems::default(),
        warnings: Problems::default(),
        hidden: HiddenValues::default(),
    };
    let root = tree::parse(text, &mut reader.problems);
    let parsed = root.map(|root| {
        let (mut config, names) = parse::config(&mut reader, &root);
        check::check(&names, &mut reader.problems);
        config.shown = shown::show(&root, &reader.hidden).into();
        (config, names)
    });
    let problems = reader.problems.finish(file_name, Severity::Problem);
    match parsed {
        Some((mut config, names)) if problems.is_empty() => {
            upstream_models::add_upstream_models(&mut config, &names, &mut reader.warnings);
            warnings::add_warnings(&config, &names, &mut reader.warnings);
            config.warnings = reader.warnings.finish(file_name, Severity::Warning);
            Ok(config)
        }
        _ => Err(problems),
    }
}

/// The environment of this process, for [`load`]. What it lacks may be a file of systemd's `LoadCredential=`: secrets there
/// are not seen by who may list the environments of processes.
pub fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok().or_else(|| {
        let folder = std::env::var_os("CREDENTIALS_DIRECTORY")?;
        let text = std::fs::read_to_string(Path::new(&folder).join(name)).ok()?;
        Some(text.trim_end_matches(['\r', '\n']).to_owned())
    })
}
