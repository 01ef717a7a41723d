//! `completions` and `man`: what shells and `man` need to know of the command line, made from the command line itself.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Command};
use clap_complete::Shell;

use super::output;

#[derive(Debug, Args)]
pub(super) struct CompletionOptions {
    /// The shell that reads them
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManualOptions {
    /// Write a page for every command into this folder, instead of the first page to stdout
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(super) fn complete(options: &CompletionOptions, mut command: Command) -> Result<ExitCode> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, name, &mut script);
    output::write(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page of the program, or writes those of all commands.
pub(super) fn manual(options: &ManualOptions, command: Command) -> Result<ExitCode> {
    if let Some(directory) = &options.directory {
        std::fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(command, directory))
            .with_context(|| format!("cannot write the pages into {}", directory.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    // As in the pages of the folder, there is no page for `help`.
    clap_mangen::Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
    output::write(&page)?;
    Ok(ExitCode::SUCCESS)
}
