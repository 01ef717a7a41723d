//! The `omniglot` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Translating is full of small allocations: with this one it takes a tenth less (docs/benchmark.md).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    omniglot::cli::main()
}
