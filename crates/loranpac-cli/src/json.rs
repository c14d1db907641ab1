//! The option `--json [FILE]`, the same in every command.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, FromArgMatches, value_parser};
use loranpac_store::output;

use crate::file;
use crate::say::{self, Unwritten};

/// The destination of JSON results. With `EQUALS`, a file is written `--json=FILE`, for commands whose other arguments
/// could be mistaken for the file.
#[derive(Clone)]
pub struct Json<const EQUALS: bool>(Option<PathBuf>);

impl<const EQUALS: bool> Json<EQUALS> {
    /// Returns whether results are wanted as JSON.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether they are written to standard output, instead of text.
    pub fn to_stdout(&self) -> bool {
        self.0.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Returns the file that they are written to.
    pub fn file(&self) -> Option<&Path> {
        self.0.as_deref().filter(|_| !self.to_stdout())
    }

    /// Writes the file, if there is one.
    pub fn save(&self, text: &str) -> Result<(), Unwritten> {
        let write = |path: &Path| file::write(path, text).map_err(|error| Unwritten::file(path, io_error(error)));
        self.file().map_or(Ok(()), write)
    }

    /// Writes JSON to its destination, and text to standard output if it is free.
    pub fn print(&self, json: &str, text: &str) -> Result<(), Unwritten> {
        self.save(json)?;
        if self.to_stdout() { say::json(json) } else { say::lines(text) }
    }
}

/// Returns the system error behind an error, or the error as text.
fn io_error(error: anyhow::Error) -> io::Error {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    match cause.and_then(io::Error::raw_os_error) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::other(format!("{error:#}")),
    }
}

impl<const EQUALS: bool> clap::Args for Json<EQUALS> {
    fn augment_args(command: Command) -> Command {
        let how = match EQUALS {
            true => "FILE follows an equals sign here, and may follow a space in run and bench",
            false => "commands on models take --json=FILE only",
        };
        let help = format!(
            "Write the results as JSON to FILE; without FILE, or with -, to standard output instead of text ({how})"
        );
        command.arg(
            Arg::new("json")
                .long("json")
                .value_name("FILE")
                .num_args(0..=1)
                .require_equals(EQUALS)
                .default_missing_value("-")
                .value_parser(value_parser!(PathBuf))
                .help_heading("Output")
                .help(help),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const EQUALS: bool> FromArgMatches for Json<EQUALS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Json(matches.get_one::<PathBuf>("json").cloned()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Refuses a file of `--json` that is another argument of the command, or inside a model, before anything is done.
/// `spaced` is whether the command takes `--json FILE` as well as `--json=FILE`.
pub fn check(arguments: &[OsString], spaced: bool) -> Result<()> {
    let place = |argument: &OsString| std::fs::canonicalize(argument).ok();
    let (mut files, mut others, mut is_value) = (Vec::new(), Vec::new(), false);
    for argument in arguments.iter().skip(1) {
        let text = argument.to_string_lossy();
        match text.strip_prefix("--json=") {
            Some(file) => files.push(OsString::from(file)),
            None if is_value => files.push(argument.clone()),
            None => others.push(argument.clone()),
        }
        is_value = spaced && text == "--json";
    }
    let others: Vec<PathBuf> = others.iter().filter_map(place).collect();
    for file in files {
        let path = Path::new(&file);
        if place(&file).is_some_and(|path| others.contains(&path)) {
            let path = path.display();
            bail!("--json {path}: the file is another argument of the command, and would be overwritten");
        }
        output::refuse_inside_model(path)?;
    }
    Ok(())
}
