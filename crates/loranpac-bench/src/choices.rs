//! What a recipe chooses for a block of runs. Every choice may be one value or a list, and lists are crossed.

use std::collections::BTreeMap;
use std::fmt;

use loranpac::Width;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};

use crate::error::Error;
use crate::settings::{self, SETTINGS, Setting};
use crate::spec::Spec;
use crate::value::{Many, Value};

/// The width of runs where a recipe has none.
const WIDTH: usize = 10_000;

/// Methods, their own settings, and any of [`SETTINGS`], by name.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// Methods.
    pub method: Option<Many<String>>,
    /// Settings of the methods.
    pub set: BTreeMap<String, Many<Value>>,
    /// What is different for one data set, in a block of runs.
    pub on: BTreeMap<String, Choices>,
    /// Alternatives of each setting.
    given: BTreeMap<&'static str, Vec<Value>>,
}

impl Choices {
    /// Chooses the values of a setting, after checking each.
    pub fn choose(&mut self, name: &str, values: &Many<Value>) -> Result<(), String> {
        let setting = find(name)?;
        self.insert(setting, checked(setting, values)?)
    }

    fn insert(&mut self, setting: &Setting, values: Vec<Value>) -> Result<(), String> {
        if let Some(other) = self.given.keys().find(|other| setting.excludes(other)) {
            return Err(format!("{} and {other} exclude each other", setting.name));
        }
        self.given.insert(setting.name, values);
        Ok(())
    }

    /// These choices with others on top, which win. A choice replaces all that it excludes.
    pub fn overlaid(mut self, top: &Choices) -> Choices {
        self.method = top.method.clone().or(self.method);
        self.set.extend(top.set.clone());
        for (name, values) in &top.given {
            let excluded = |other: &str| settings::find(name).is_some_and(|setting| setting.excludes(other));
            self.given.retain(|other, _| !excluded(other));
            self.given.insert(name, values.clone());
        }
        self
    }

    /// The first value of a setting alone.
    pub fn first_of(mut self, name: &str) -> Choices {
        if let Some(values) = self.given.get_mut(name) {
            values.truncate(1);
        }
        self
    }

    /// One spec for every combination of the choices. The method varies slowest, then the settings in the order of the list,
    /// and those of the methods fastest.
    pub fn cross(&self) -> Result<Vec<Spec>, Error> {
        let names = self.method.as_ref().map_or(&[][..], Many::values);
        // A recipe is a fixed experiment: its widths do not depend on the machine.
        let fixed = |spec| Spec { width: Width::Finite(WIDTH), ..spec };
        let mut specs: Vec<Spec> = names.iter().map(|name| fixed(Spec::new(name))).collect();
        if self.method.is_none() {
            specs.push(fixed(Spec::default()));
        }
        for setting in SETTINGS {
            if let Some(values) = self.given.get(setting.name) {
                specs = settings::cross(specs, setting, values)?;
            }
        }
        for (name, values) in &self.set {
            let with = |spec: &Spec, value: &Value| {
                let mut spec = spec.clone();
                spec.settings.insert(name.clone(), value.to_string());
                spec
            };
            specs = specs.iter().flat_map(|spec| values.values().iter().map(move |value| with(spec, value))).collect();
        }
        Ok(specs)
    }
}

fn find(name: &str) -> Result<&'static Setting, String> {
    settings::find(name).ok_or_else(|| {
        let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        format!("there is no setting {name}; runs have method, set, on, {}", known.join(", "))
    })
}

/// The alternatives of a setting, after checking each.
fn checked(setting: &Setting, values: &Many<Value>) -> Result<Vec<Value>, String> {
    let values = setting.alternatives(values);
    let refuse = |value: &Value, reason| format!("{} = {value} is not possible: {reason}", setting.name);
    values.iter().try_for_each(|value| setting.check(value).map_err(|reason| refuse(value, reason)))?;
    Ok(values)
}

impl<'de> Deserialize<'de> for Choices {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Choices;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings of runs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Choices, A::Error> {
        let mut choices = Choices::default();
        while let Some(key) = map.next_key()? {
            match key {
                Key::Method => choices.method = Some(map.next_value()?),
                Key::Set => choices.set = map.next_value()?,
                Key::On => choices.on = map.next_value()?,
                Key::Setting(setting) => {
                    let values = map.next_value_seed(Checked(setting))?;
                    choices.insert(setting, values).map_err(A::Error::custom)?;
                }
            }
        }
        Ok(choices)
    }
}

/// A key of a block. An unknown one is refused here, where the parser knows its line.
enum Key {
    Method,
    Set,
    On,
    Setting(&'static Setting),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match String::deserialize(from)?.as_str() {
            "method" => Ok(Key::Method),
            "set" => Ok(Key::Set),
            "on" => Ok(Key::On),
            name => find(name).map(Key::Setting).map_err(D::Error::custom),
        }
    }
}

/// Values of a setting, checked where the parser knows their line.
struct Checked(&'static Setting);

impl<'de> DeserializeSeed<'de> for Checked {
    type Value = Vec<Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<Value>, D::Error> {
        checked(self.0, &Many::deserialize(from)?).map_err(D::Error::custom)
    }
}
