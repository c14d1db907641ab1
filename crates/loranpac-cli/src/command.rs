//! The command line as typed, for reports and messages.

use std::ffi::OsString;
use std::sync::OnceLock;

use loranpac_bench::settings::quote;

static TYPED: OnceLock<String> = OnceLock::new();

/// Records the arguments, the program's name first.
pub fn record(arguments: &[OsString]) {
    let words: Vec<String> = arguments.iter().skip(1).map(|word| quote(&word.to_string_lossy())).collect();
    TYPED.get_or_init(|| words.join(" "));
}

/// Returns the arguments after the program's name, quoted for a shell.
pub fn line() -> &'static str {
    TYPED.get().map_or("", String::as_str)
}
