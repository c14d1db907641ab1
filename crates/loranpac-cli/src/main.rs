//! The `loranpac` command line: one file per sub-command, no logic of its own.

mod bench;
mod demo;
mod progress;
mod run;
mod stability;
mod sweep;
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
    /// Run a recipe: the paper's tables and figures on a folder of feature files
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::main(args),
        Command::Run(args) => run::main(*args),
        Command::Bench(args) => bench::main(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The number of threads that was asked for, or all cores.
fn threads(asked: Option<usize>) -> anyhow::Result<usize> {
    match asked {
        Some(0) => anyhow::bail!("--threads 0 is not possible: at least one thread is needed"),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}
