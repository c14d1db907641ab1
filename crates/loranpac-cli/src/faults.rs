//! Error messages of the command line, in which settings are named by their flags.

use loranpac_bench::settings::spell;

/// Formats an error with its causes, each once. `command` is the sub-command that failed.
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
        // In a sentence a setting stands without the sign before its value.
        let words = spell(&words, |name| flag(name).map(|flag| flag.trim_end_matches('=').to_owned()));
        if text.is_empty() {
            text = words;
        } else if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
    }
    match flag("skip-bad").filter(|_| error.chain().any(is_of_one_input)) {
        Some(flag) => format!("{text}; {flag} skips such inputs"),
        None => text,
    }
}

/// Whether an error is one of the contents of a single input.
fn is_of_one_input(cause: &(dyn std::error::Error + 'static)) -> bool {
    use loranpac_encode::Error;
    let source = match cause.downcast_ref() {
        Some(loranpac_data::Error::Source(source)) => source.downcast_ref(),
        _ => cause.downcast_ref(),
    };
    matches!(source, Some(Error::Input { .. } | Error::Image { .. }))
}

/// Returns a text in which settings are named by the flags of the command with these arguments.
pub fn with_flags<A: clap::Args>(text: &str) -> String {
    let command = A::augment_args(clap::Command::new("loranpac"));
    spell(text, |name| flag(&command, name))
}

/// Returns the engine's error, which the errors of other crates may hold.
fn engine<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a loranpac::Error> {
    if let Some(loranpac_bench::Error::Engine(error)) = cause.downcast_ref() {
        return Some(error);
    }
    if let Some(loranpac_store::Error::Engine(error)) = cause.downcast_ref() {
        return Some(error);
    }
    cause.downcast_ref()
}

/// Returns the flag of a setting: one of the command's own, or one of `--set`.
fn flag(command: &clap::Command, name: &str) -> Option<String> {
    let has = |long: &str| command.get_arguments().any(|argument| argument.get_long() == Some(long));
    let knows = |method: &loranpac::registry::Method| method.knows(name);
    if has(name) {
        return Some(format!("--{name}"));
    }
    (has("set") && loranpac::registry::METHODS.iter().any(knows)).then(|| format!("--set {name}="))
}
