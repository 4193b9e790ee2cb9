//! The program: hands over to the command line and exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    turnstile::cli::main()
}
