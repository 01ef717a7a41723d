//! The `omniglot` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    omniglot::cli::main()
}
