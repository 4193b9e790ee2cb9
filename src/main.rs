//! The program: hands over to the command line and exits with its code.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Here and not in the library: whoever embeds that has an allocator of their own.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    turnstile::cli::main()
}
