//! A gateway without a config: for the providers whose keys are in the environment, or a config of them to keep.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;

use super::config_file::DEFAULT_FILE;
use super::greeting::listening;
use super::output;
use crate::config::{self, ProviderWithKey};
use crate::server::StartOptions;
use crate::store::new_secret;

pub(super) const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

#[derive(Debug, Args)]
pub(super) struct InitOptions {
    /// The file to write
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    written: PathBuf,
}

/// What a gateway starts from that serves the providers of the environment. `None`: it has a key of none.
pub(super) fn start_options(listen: Option<SocketAddr>) -> Result<Option<StartOptions>> {
    let found = config::providers_with_keys(&config::process_env);
    if found.is_empty() {
        return Ok(None);
    }
    let listen = listen.map_or_else(|| DEFAULT_LISTEN.to_owned(), |listen| listen.to_string());
    let secret = new_secret();
    let text = config::starter_config(&found, &format!("{listen:?}"), &secret);
    let config = config::parse("the environment", &text, &config::process_env);
    let config = config.map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow!("{}", problems.join("\n"))
    })?;
    let greeting = format!(
        "{}\n\nThere is no config here. These providers have their key in the environment:\n\n{}\n\
         Clients use their model names, or with the provider before them as in {}/NAME, and this key, which is \
         new at every start:\n\n  {secret}\n\nTry it:\n\n  \
         curl http://{listen}/v1/models -H 'authorization: Bearer {secret}'\n\n\
         `omniglot init` writes a config to keep; `omniglot run --demo` needs no provider.\n",
        listening(&config),
        lines(&found),
        found[0].provider.name,
    );
    Ok(Some(StartOptions {
        config,
        file: None,
        mock: None,
        remove_at_exit: None,
        greeting,
    }))
}

/// Writes a commented config from what the environment has.
pub(super) fn init(options: &InitOptions) -> Result<ExitCode> {
    let file = &options.written;
    let found = config::providers_with_keys(&config::process_env);
    let secret = new_secret();
    let text = config::starter_config(&found, DEFAULT_LISTEN, &secret);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    // It has a secret: nobody else may read it. A file that is there is somebody's work.
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", file.display()))?;
    let providers = match found.is_empty() {
        true => "No provider's key was found in the environment (`omniglot providers` lists the variables): \
                 it has OpenAI as an example.\n"
            .to_owned(),
        false => format!("It has the providers whose key is in the environment:\n\n{}", lines(&found)),
    };
    output::print(&format!(
        "Wrote {file}. {providers}\nThe key for clients:\n\n  {secret}\n\nNext:\n\n  omniglot check -c {file}\n  omniglot run -c {file}",
        file = file.display(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// A line for each provider.
fn lines(found: &[ProviderWithKey]) -> String {
    let width = |text: fn(&ProviderWithKey) -> usize| found.iter().map(text).max().unwrap_or(0);
    let name_width = width(|found| found.provider.name.len());
    let variable_width = width(|found| found.variable.len());
    found
        .iter()
        .map(|ProviderWithKey { provider, variable }| {
            let (name, base_url) = (&provider.name, &provider.formats[0].1);
            format!("  {name:name_width$}  {variable:variable_width$}  {base_url}\n")
        })
        .collect()
}
