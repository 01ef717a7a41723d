//! The `omniglot` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Buffers come and go with connections, in a few sizes: blocks of one size in places of their own do not fragment.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    omniglot::cli::main()
}
