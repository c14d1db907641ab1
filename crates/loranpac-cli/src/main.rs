//! The `loranpac` command line: one file per sub-command, no logic of its own.

mod demo;
mod plan;
mod progress;
mod run;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Teach a frozen encoder new classes for ever, on a CPU, in closed form.
///
/// loranpac takes embeddings (any n x d matrix), lifts them with random ReLU features, and keeps a least-squares
/// classifier up to date task after task: no gradient steps, no stored samples, nothing to tune.
#[derive(Parser)]
#[command(version, max_term_width = 110, after_help = "Start with:  loranpac demo")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Learn handwritten digits one class at a time and compare methods (a second or two)
    Demo(demo::Args),
    /// Run a continual-learning experiment on a feature file
    Run(Box<run::Args>),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::main(args),
        Command::Run(args) => run::main(*args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
