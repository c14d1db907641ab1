//! The `loranpac` command line: one file per sub-command, no logic of its own. It is a library, so that the Python
//! package provides the same command.

mod adapt;
mod bench;
mod command;
mod demo;
mod embed;
mod encoding;
mod faults;
mod file;
mod how;
mod json;
mod model;
mod prior;
mod progress;
mod raw;
mod run;
mod say;
mod sweep;
mod table;
mod threads;
mod words;

use std::ffi::{OsStr, OsString};
use std::io::Write;

use clap::{CommandFactory, Parser, Subcommand};

use say::{Unwritten, note};

/// Images or texts in, labels out: a classifier that keeps learning new classes, on a CPU, without retraining.
///
/// loranpac takes images, texts or embeddings (any n x d matrix), lifts their features with random ReLU features, and keeps
/// a least-squares classifier up to date task after task: no gradient steps, and no stored samples at finite width.
#[derive(Parser)]
#[command(
    name = "loranpac",
    version,
    max_term_width = 110,
    after_help = "Start with:  loranpac demo\n\
        or:          loranpac init tickets.lrp --encoder text-ngrams     (image-basic, or the folder of an encoder)\n\
        \x20            loranpac learn tickets.lrp monday.csv               (columns text and label; or images, CLASS/*.jpg)\n\
        \x20            loranpac predict tickets.lrp new.csv\n\n\
        Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 a damaged model,\n\
        4 output or disk full, 5 a model or file of a newer format, 130 interrupted"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Learn handwritten digits one class at a time and compare methods (a second or two)
    Demo(demo::Args),

    /// Create a model
    Init(model::init::Args),
    /// Learn the samples of files
    Learn(model::learn::Args),
    /// Predict the classes of samples
    Predict(model::predict::Args),
    /// Measure a model on labelled samples
    Eval(model::eval::Args),
    /// Fit the temperature that turns scores into probabilities, on held-out samples
    Calibrate(model::eval::CalibrateArgs),
    /// Show a model: its settings, classes, spectrum and guarantees
    Inspect(model::inspect::Args),
    /// Merge models, as if one had learned everything
    Merge(model::merge::Args),
    /// Remove a class from prediction
    Forget(model::edit::ForgetArgs),
    /// Give a class another name
    Rename(model::edit::RenameArgs),
    /// Move samples from one class to another
    Relabel(model::edit::RelabelArgs),
    /// Remove samples, as if they had never been learned
    Unlearn(model::edit::UnlearnArgs),
    /// Write the classifier as ONNX, or as a small file for predict
    Export(model::export::Args),
    /// Read every byte of a model and list what is damaged
    Verify(model::keep::VerifyArgs),
    /// Roll a model back to an earlier version
    Rollback(model::keep::RollbackArgs),

    /// Run a continual-learning experiment on features, images or texts
    Run(Box<run::Args>),
    /// Run a recipe: the paper's tables and figures on a folder of feature files or images
    Bench(Box<bench::Args>),

    /// Encode images or texts, and write a feature file
    Embed(embed::Args),
    /// Train small modules inside an encoder for the classes of a first session
    Adapt(Box<adapt::Args>),

    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for every command into a folder
    Man {
        /// The folder
        folder: Option<std::path::PathBuf>,
    },
}

/// Runs a command line, the program's name first; returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    command::record(&arguments);
    let name = arguments.get(1).map(|name| name.to_string_lossy().into_owned());
    if let Err(error) = json::check(&arguments, name.as_deref().is_some_and(takes_spaced_json)) {
        return report(Err(error), None);
    }
    let odd = arguments.iter().find(|argument| argument.to_str().is_none()).cloned();
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(usage) => return explain(&usage, odd.as_deref()),
    };
    let result = match cli.command {
        Command::Demo(args) => demo::main(args),
        Command::Run(args) => run::main(*args),
        Command::Bench(args) => bench::main(*args),
        Command::Embed(args) => embed::main(args),
        Command::Adapt(args) => adapt::main(*args),
        Command::Init(args) => model::init::main(args),
        Command::Learn(args) => model::learn::main(args),
        Command::Predict(args) => model::predict::main(args),
        Command::Eval(args) => model::eval::main(args),
        Command::Calibrate(args) => model::eval::calibrate(args),
        Command::Inspect(args) => model::inspect::main(args),
        Command::Merge(args) => model::merge::main(args),
        Command::Forget(args) => model::edit::forget(args),
        Command::Rename(args) => model::edit::rename(args),
        Command::Relabel(args) => model::edit::relabel(args),
        Command::Unlearn(args) => model::edit::unlearn(args),
        Command::Export(args) => model::export::main(args),
        Command::Verify(args) => model::keep::verify(args),
        Command::Rollback(args) => model::keep::rollback(args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "loranpac", &mut text);
            say::bytes(&text).map_err(anyhow::Error::from)
        }
        Command::Man { folder } => man(folder),
    };
    report(result, name.as_deref())
}

/// Returns whether a sub-command takes `--json FILE` as well as `--json=FILE`.
fn takes_spaced_json(name: &str) -> bool {
    let cli = Cli::command();
    let mut arguments = cli.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
    arguments.any(|argument| argument.get_long() == Some("json") && !argument.is_require_equals_set())
}

/// Prints help or a usage error; returns the exit code. `odd` is an argument that is not valid UTF-8.
fn explain(usage: &clap::Error, odd: Option<&OsStr>) -> u8 {
    if let (clap::error::ErrorKind::InvalidUtf8, Some(odd)) = (usage.kind(), odd) {
        let odd = loranpac_data::text::escape(&odd.to_string_lossy()).into_owned();
        note!(
            "error: {odd} is not valid UTF-8, which is possible for models, inputs and outputs only; rename it, or give a link to it"
        );
        return 2;
    }
    if usage.use_stderr() {
        usage.render().to_string().trim_end().lines().for_each(|line| note!("{line}"));
        return 2;
    }
    let printed = usage.print().and_then(|()| std::io::stdout().flush());
    report(printed.map_err(|error| Unwritten::new(error).into()), None)
}

/// Prints the error of a sub-command; returns the exit code.
fn report(result: anyhow::Result<()>, name: Option<&str>) -> u8 {
    let Err(error) = result else { return 0 };
    let code = exit_code(&error);
    let cli = Cli::command();
    let text = format!("error: {}", faults::words(&error, name.and_then(|name| cli.find_subcommand(name))));
    let is_recipe = |e: &loranpac_bench::Error| matches!(e, loranpac_bench::Error::Recipe { .. });
    if error.chain().any(|cause| cause.downcast_ref().is_some_and(is_recipe)) {
        // The parser shows the location on lines of its own.
        text.trim_end().lines().for_each(|line| note!("{line}"));
    } else if code != 0 {
        note!("{text}");
    }
    code
}

/// Returns one of the codes that `--help` lists. A closed pipe is not a failure: 0.
fn exit_code(error: &anyhow::Error) -> u8 {
    use loranpac_store::Error;
    use model::keep::Unsound;
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let store = |wanted: fn(&Error) -> bool| error.chain().any(|cause| cause.downcast_ref().is_some_and(wanted));
    let verified = |wanted: fn(&Unsound) -> bool| error.downcast_ref().is_some_and(wanted);
    let full = |e: &std::io::Error| matches!(e.kind(), StorageFull | QuotaExceeded);
    let unwritten = |e: &loranpac_encode::Error| matches!(e, loranpac_encode::Error::Write { .. });
    match error.downcast_ref::<Unwritten>() {
        Some(unwritten) if unwritten.is_closed() => 0,
        Some(_) => 4,
        None if store(Error::is_damage) || verified(|e| matches!(e, Unsound::Damaged(_))) => 3,
        None if store(|e| matches!(e, Error::Version { .. })) || verified(|e| matches!(e, Unsound::Newer)) => 5,
        None if error
            .chain()
            .any(|cause| cause.downcast_ref().is_some_and(full) || cause.downcast_ref().is_some_and(unwritten)) =>
        {
            4
        }
        None => 1,
    }
}

/// Prints or writes the manual, which is generated from the help.
fn man(folder: Option<std::path::PathBuf>) -> anyhow::Result<()> {
    match folder {
        Some(folder) => {
            std::fs::create_dir_all(&folder)?;
            clap_mangen::generate_to(Cli::command(), folder)?;
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut text)?;
            say::bytes(&text)?;
        }
    }
    Ok(())
}
