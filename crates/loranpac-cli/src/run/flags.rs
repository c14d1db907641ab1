//! The flags of `run` for settings of runs, generated from the list of settings.

use std::path::Path;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use loranpac_bench::Error;
use loranpac_bench::settings::{self, Kind, SETTINGS, Setting};
use loranpac_bench::spec::Spec;
use loranpac_bench::value::Value;

use crate::prior;

/// The settings that the user chose, in the order of the list.
#[derive(Clone)]
pub struct Chosen(Vec<(&'static Setting, Vec<Value>)>);

impl Chosen {
    /// Returns the specs of the choices: one, or one for each of several values.
    pub fn specs(&self, base: Spec) -> Result<Vec<Spec>> {
        let mut specs = vec![base];
        for (setting, values) in &self.0 {
            let values = match (setting.kind, &values[..]) {
                (Kind::Labels, [text]) => &[labels(&text.to_string())?],
                (_, values) => values,
            };
            specs = settings::cross(specs, setting, values)?;
        }
        Ok(specs)
    }

    /// Returns a setting as it was typed.
    pub fn text(&self, name: &str) -> Option<String> {
        let (_, values) = self.0.iter().find(|(setting, _)| setting.name == name)?;
        values.first().map(Value::to_string)
    }

    /// Returns a setting of methods or of adaptation that has no effect on any of the methods.
    pub fn without_effect(&self, base: &Spec, methods: &[&str]) -> Result<Option<&'static Setting>> {
        for (at, (setting, values)) in self.0.iter().enumerate() {
            let is_given = |shown: Option<Value>| {
                shown.is_some_and(|shown| values.iter().all(|value| value.to_string() == shown.to_string()))
            };
            if !["Method", "Adaptation"].contains(&setting.section) || is_given(setting.default()) {
                continue;
            }
            let mut others = self.clone();
            others.0.remove(at);
            let of = |chosen: &Chosen, method: &str| -> Result<Vec<Spec>> {
                let specs = chosen.specs(Spec { method: method.to_owned(), ..base.clone() })?;
                Ok(specs.into_iter().map(Spec::normalised).collect::<Result<_, Error>>()?)
            };
            let mut matters = false;
            for method in methods {
                let specs = of(self, method)?;
                // A method may choose the same value by itself. The usual cap is not shown, because it depends on the width.
                let cap = |spec: &Spec| spec.max_rank.filter(|_| setting.name == "max-rank").map(Value::from);
                let same = |spec: &Spec| is_given((setting.show)(spec)) || is_given(cap(spec));
                matters |= specs != of(&others, method)? || specs.iter().any(same);
            }
            if !matters {
                return Ok(Some(setting));
            }
        }
        Ok(None)
    }
}

/// Parses a class order: the word `sorted`, a list, or a file with one label per line.
fn labels(text: &str) -> Result<Value> {
    let path = Path::new(text);
    if text == "sorted" || (text.contains(',') && !path.exists()) {
        return Ok(Value::from(text));
    }
    let lines = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Value::List(lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(Value::from).collect()))
}

fn flag(setting: &'static Setting) -> Arg {
    let default = setting.default().map_or(String::new(), |value| format!(" [default: {value}]"));
    let arg = Arg::new(setting.name)
        .long(setting.name)
        .help(format!("{}{default}", setting.summary()))
        .help_heading(setting.section)
        .conflicts_with_all(SETTINGS.iter().map(|other| other.name).filter(|other| setting.excludes(other)));
    // A switch stands alone.
    let arg = match setting.kind {
        Kind::Switch => arg.num_args(0).default_missing_value("true"),
        _ => arg.value_name(setting.placeholder).allow_negative_numbers(true),
    };
    let check = |text: &str| setting.check(&Value::from(text)).map(|()| text.to_owned());
    match setting.kind {
        Kind::Words(words) => arg.value_parser(PossibleValuesParser::new(words)),
        Kind::Several => arg.value_delimiter(',').value_parser(check),
        // A file becomes the table that it contains.
        Kind::Prior => arg.value_parser(|text: &str| prior::read(text).map(|prior| prior.to_string())),
        Kind::One | Kind::Switch | Kind::Lift | Kind::Labels => arg.value_parser(check),
    }
}

impl clap::Args for Chosen {
    fn augment_args(command: Command) -> Command {
        command.args(SETTINGS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Chosen {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let values = |setting: &'static Setting| {
            let values = matches.get_many::<String>(setting.name)?;
            Some((setting, values.map(|text| Value::from(text.as_str())).collect()))
        };
        Ok(Chosen(SETTINGS.iter().filter_map(values).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
