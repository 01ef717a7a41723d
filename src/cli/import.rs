//! Writes a config from that of another gateway, with a comment for everything that has no counterpart.

mod backend;
mod bifrost;
mod bifrost_governance;
mod bifrost_key;
mod bifrost_network;
mod cloud;
mod config_text;
mod litellm;
mod litellm_settings;
mod value;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

use super::output;

#[derive(Debug, Args)]
pub(super) struct ImportOptions {
    /// The gateway that the file is of
    #[arg(value_enum)]
    gateway: OtherGateway,
    /// Its config
    #[arg(value_name = "FILE")]
    other_config: PathBuf,
    /// Exit with 1 if something has no counterpart
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OtherGateway {
    /// config.yaml of the LiteLLM proxy
    Litellm,
    /// config.json of Bifrost
    Bifrost,
}

/// The config goes to stdout; what was left out goes to stderr too, where it is not overlooked.
pub(super) fn run(options: &ImportOptions) -> Result<ExitCode> {
    let file = options.other_config.display().to_string();
    let text = std::fs::read_to_string(&options.other_config)
        .with_context(|| format!("cannot read {file}"))?;
    let imported = match options.gateway {
        OtherGateway::Litellm => litellm::import(&text),
        OtherGateway::Bifrost => bifrost::import(&text),
    };
    let imported = imported.with_context(|| file.clone())?;
    output::write(imported.to_yaml(&file).as_bytes())?;
    for left_out in imported.left_out() {
        output::note(&format!("{file}: {left_out}"));
    }
    Ok(match options.strict && !imported.left_out().is_empty() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}
