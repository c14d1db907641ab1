//! The `loranpac` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(loranpac_cli::main(std::env::args_os()))
}
