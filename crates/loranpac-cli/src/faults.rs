//! Errors as the command line words them: settings are named by their flags.

use loranpac_bench::settings::spell;

/// An error with its causes, each once. `command` is the sub-command that failed.
pub fn words(error: &anyhow::Error, command: Option<&clap::Command>) -> String {
    let flag = |name: &str| command.and_then(|command| flag(command, name));
    let mut text = String::new();
    for cause in error.chain() {
        let words = match engine(cause) {
            Some(loranpac::Error::Setting { name, value, reason }) => match flag(name) {
                Some(flag) if flag.ends_with('=') => format!("{flag}{value} is not possible: {reason}"),
                Some(flag) => format!("{flag} {value} is not possible: {reason}"),
                None => cause.to_string(),
            },
            _ => cause.to_string(),
        };
        let words = spell(&words, flag);
        if text.is_empty() {
            text = words;
        } else if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
    }
    text
}

/// The engine's error, which the errors of other crates may hold.
fn engine<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a loranpac::Error> {
    if let Some(loranpac_bench::Error::Engine(error)) = cause.downcast_ref() {
        return Some(error);
    }
    if let Some(loranpac_store::Error::Engine(error)) = cause.downcast_ref() {
        return Some(error);
    }
    cause.downcast_ref()
}

/// What a command calls a setting: a flag of its own, or one of `--set`.
fn flag(command: &clap::Command, name: &str) -> Option<String> {
    let has = |long: &str| command.get_arguments().any(|argument| argument.get_long() == Some(long));
    let knows = |method: &loranpac::registry::Method| method.knows(name);
    if has(name) {
        return Some(format!("--{name}"));
    }
    (has("set") && loranpac::registry::METHODS.iter().any(knows)).then(|| format!("--set {name}="))
}
