//! The `-c FILE` option, and loading of the config with its problems on stderr.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::output::note;
use crate::config::{self, Config, Problem};
use crate::server;

/// The exit code for an invalid config; distinct from a run that failed.
const BAD_CONFIG: u8 = 2;

pub(super) const DEFAULT_FILE: &str = "conf/omniglot.yaml";

#[derive(Debug, Clone, Args)]
pub(super) struct ConfigFile {
    /// The config [default: conf/omniglot.yaml if it is there, else the providers whose keys are in the environment, else an embedded demo]
    #[arg(short = 'c', long = "config", value_name = "FILE", global = true)]
    file: Option<PathBuf>,
}

impl ConfigFile {
    pub(super) const fn is_given(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn path(self) -> Option<PathBuf> {
        self.file
            .or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()))
    }
}

/// Loads a config that a gateway can run with, and prints its warnings, or prints every problem.
pub(super) fn load(path: &Path) -> Result<Config, ExitCode> {
    match config::load(path, &config::process_env) {
        Ok(config) => {
            let problems = server::certificate_problems(&config, path);
            if !problems.is_empty() {
                return Err(print_problems(&problems));
            }
            for warning in &config.warnings {
                note(&warning.to_string());
            }
            Ok(config)
        }
        Err(problems) => Err(print_problems(&problems)),
    }
}

pub(super) fn print_problems(problems: &[Problem]) -> ExitCode {
    for problem in problems {
        note(&problem.to_string());
    }
    ExitCode::from(BAD_CONFIG)
}
