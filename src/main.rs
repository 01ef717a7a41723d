//! The `omniglot` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A request is read on one thread and its receipt let go on another: this one is quick at that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    omniglot::cli::main()
}
