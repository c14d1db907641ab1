//! Settings of runs. [`SETTINGS`] is the one list from which the flags of `loranpac run`, the keys of recipes, the keywords
//! of Python's `bench.run` and the commands in reports are made. A new setting is one entry in `table.rs`.
//!
//! Messages below the faces name a setting between backquotes (`` `max-rank` ``); [`spell`] puts in what the command line or
//! Python calls it.

mod read;
mod table;

pub use table::SETTINGS;

use loranpac::lift;
use loranpac::registry::{self, Method};

use crate::error::Error;
use crate::spec::Spec;
use crate::value::{Many, Value};

/// One setting of a run.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Name on the command line and in recipes.
    pub name: &'static str,
    /// Name in Python, where it is not the same with underscores.
    pub python: Option<&'static str>,
    /// Heading under which help lists it.
    pub section: &'static str,
    /// Placeholder of the value in help.
    pub placeholder: &'static str,
    /// What it is, in one line.
    pub help: &'static str,
    /// Which values it takes.
    pub kind: Kind,
    /// Settings of the same group exclude each other.
    pub group: Option<&'static str>,
    /// Whether a command shows it even at its default.
    pub always: bool,
    /// Reads a value into a spec. Settings are read in the order of the list.
    pub read: fn(&mut Spec, &Value) -> Result<(), String>,
    /// The value in a spec; none where the spec leaves it open.
    pub show: fn(&Spec) -> Option<Value>,
    /// Takes it out of a spec where it makes no difference to the method.
    pub settle: fn(&mut Spec, &Method),
}

/// Which values a setting takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number or a word that [`Setting::read`] checks.
    One,
    /// The same, and several of them are several runs on the command line, too.
    Several,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Yes if it is given without a value; `true` or `false`.
    Switch,
    /// The name of a feature map.
    Lift,
    /// All labels in some order, or a word.
    Labels,
    /// A word, or a number for each label.
    Prior,
}

impl Setting {
    /// What every entry of the list starts from.
    const PLAIN: Setting = Setting {
        name: "",
        python: None,
        section: "",
        placeholder: "",
        help: "",
        kind: Kind::One,
        group: None,
        always: false,
        read: |_, _| Ok(()),
        show: |_| None,
        settle: |_, _| {},
    };

    /// Name of the keyword in Python.
    pub fn keyword(&self) -> String {
        self.python.map_or_else(|| self.name.replace('-', "_"), str::to_owned)
    }

    /// The value where nothing is chosen.
    pub fn default(&self) -> Option<Value> {
        (self.show)(&Spec::new(registry::METHODS[0].name))
    }

    /// One line of help, with the names that it takes.
    pub fn summary(&self) -> String {
        match self.kind {
            Kind::Lift => {
                let known = lift::LIFTS.iter().map(|lift| format!("{} ({})", lift.name, lift.summary));
                format!("{}: {}", self.help, known.collect::<Vec<_>>().join("; "))
            }
            _ => self.help.to_owned(),
        }
    }

    /// Reads a value into a spec.
    pub fn read(&self, spec: &mut Spec, value: &Value) -> Result<(), Error> {
        (self.read)(spec, value).map_err(|reason| loranpac::Error::setting(self.name, value, reason).into())
    }

    /// Checks a value by itself.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        (self.read)(&mut Spec::new(registry::METHODS[0].name), value)
    }

    /// Whether it and another setting exclude each other.
    pub fn excludes(&self, other: &str) -> bool {
        self.name != other && self.group.is_some() && find(other).is_some_and(|other| other.group == self.group)
    }

    /// The values of one run each: a list is a list of alternatives, unless the value is a list by itself.
    pub fn alternatives(&self, given: &Many<Value>) -> Vec<Value> {
        match (self.kind, given) {
            (Kind::Labels, Many::List(labels)) => vec![Value::List(labels.clone())],
            _ => given.values().to_vec(),
        }
    }
}

/// The entry of a setting, by its name.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Every spec with every value of a setting.
pub fn cross(specs: Vec<Spec>, setting: &Setting, values: &[Value]) -> Result<Vec<Spec>, Error> {
    let mut all = Vec::with_capacity(specs.len() * values.len());
    for spec in &specs {
        for value in values {
            let mut spec = spec.clone();
            setting.read(&mut spec, value)?;
            all.push(spec);
        }
    }
    Ok(all)
}

/// Replaces names between backquotes by what `face` calls them; names that it does not know stay as they are.
pub fn spell(message: &str, face: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    let mut parts = message.split('`').peekable();
    let mut inside = false;
    while let Some(part) = parts.next() {
        let closed = inside && parts.peek().is_some();
        match closed.then(|| face(part)).flatten() {
            Some(name) => text.push_str(&name),
            None if inside => text.extend(["`", part, if closed { "`" } else { "" }]),
            None => text.push_str(part),
        }
        inside = !inside;
    }
    text
}

impl Spec {
    /// The same run without what makes no difference to it, so that equal runs have equal specs. Settings that the
    /// method does not know are dropped.
    pub fn normalised(mut self) -> Result<Self, Error> {
        let method = self.method()?;
        self.settings.retain(|name, _| method.knows(name));
        lift::find(method.input.lift(&self.lift))?;
        SETTINGS.iter().for_each(|setting| (setting.settle)(&mut self, method));
        Ok(self)
    }

    /// The command that repeats the run. Settings at their defaults are left out.
    pub fn command(&self, data: &str) -> String {
        let mut text = format!("loranpac run --data {} --method {}", quote(data), self.method);
        for (name, value) in &self.settings {
            text += &format!(" --set {}", quote(&format!("{name}={value}")));
        }
        for setting in SETTINGS {
            let value =
                (setting.show)(self).filter(|value| setting.always || Some(value) != setting.default().as_ref());
            if let Some(value) = value {
                text += &format!(" --{}", setting.name);
                if setting.kind != Kind::Switch {
                    text += &format!(" {}", quote(&value.to_string()));
                }
            }
        }
        text
    }
}

/// A word that a shell takes as it is, or between quotes.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use loranpac::Truncation;

    use super::*;
    use loranpac::Width;

    use crate::spec::{OPEN, Scenario, When};

    #[test]
    fn what_makes_no_difference_is_left_out() {
        let wide = Spec {
            width: Width::Finite(500),
            lift_seed: 3,
            truncation: Some(Truncation::Rank(3)),
            ..Spec::new("simplecil")
        };
        assert_eq!(wide.normalised().unwrap(), Spec::new("simplecil").normalised().unwrap());
        let wide = Spec { width: Width::Finite(500), ..Spec::new("loranpac") };
        assert_ne!(wide.normalised().unwrap(), Spec::new("loranpac").normalised().unwrap());
        let fourier = Spec { gamma: 2.0, ..Spec::new("randumb") }.normalised().unwrap();
        assert_eq!((fourier.lift.as_str(), fourier.gamma, fourier.width), ("fourier", 2.0, OPEN));
        assert!(Spec::new("magic").normalised().is_err());
        let mut infinite = Spec { lift_seed: 3, ..Spec::new("loranpac") };
        infinite.widen(Width::Infinite).unwrap();
        let infinite = infinite.normalised().unwrap();
        assert_eq!((infinite.width, infinite.lift_seed), (Width::Infinite, 0));
        assert_eq!(infinite.command("f.npz"), "loranpac run --data f.npz --method loranpac --width infinite --inc 10");
        let means = Spec::new("simplecil").normalised().unwrap();
        assert_eq!(means.command("f.npz"), "loranpac run --data f.npz --method simplecil --inc 10");
    }

    #[test]
    fn the_command_names_what_is_not_default() {
        let mut spec = Spec::new("loranpac").normalised().unwrap();
        assert_eq!(spec.command("f.npz"), "loranpac run --data f.npz --method loranpac --width auto --inc 10");
        spec.keep_samples = true;
        let shown = spec.command("f.npz");
        assert_eq!(shown, "loranpac run --data f.npz --method loranpac --width auto --keep-samples --inc 10");
        (spec.width, spec.keep_samples) = (Width::Finite(10_000), false);
        spec.settings.insert("ridge".to_owned(), "1e3".to_owned());
        spec.truncation = Some(Truncation::Fraction(0.5));
        spec.scenario = Scenario::Class { base: 16, increment: 5 };
        (spec.seed, spec.per_class, spec.eval, spec.spectrum) = (7, Some(30), When::Final, When::Every);
        assert_eq!(
            spec.command("my file.npz"),
            "loranpac run --data 'my file.npz' --method loranpac --set ridge=1e3 --width 10000 --truncate 0.5 --base 16 \
             --inc 5 --per-class 30 --eval final --spectrum every --seed 7"
        );
    }

    #[test]
    fn an_automatic_width_is_open_until_it_is_chosen() {
        let read = |text: &str| {
            let mut spec = Spec { width: Width::Finite(300), ..Spec::new("loranpac") };
            find("width").unwrap().read(&mut spec, &Value::from(text)).unwrap();
            spec
        };
        assert!(read("auto").is_open() && !read("infinite").is_open() && !read("200").is_open());
        assert!(Spec::new("loranpac").is_open() && !Spec::new("simplecil").normalised().unwrap().is_open());
        let identity = Spec { lift: "identity".to_owned(), ..Spec::new("loranpac") };
        assert!(!identity.normalised().unwrap().is_open());
        // Kept samples matter to the choice of a width only.
        let kept = |spec| Spec { keep_samples: true, ..spec }.normalised().unwrap().keep_samples;
        assert!(kept(read("auto")) && !kept(read("200")) && !kept(Spec::new("simplecil")));
        let message = find("width").unwrap().check(&Value::from("wide")).unwrap_err();
        assert!(message.ends_with("or auto"), "{message}");
        let recipe = |width: &str| format!("title = \"t\"\n[[runs]]\nwidth = \"{width}\"");
        let refused = crate::recipe::Recipe::parse("mine", &recipe("auto")).unwrap_err().to_string();
        assert!(refused.contains("states its widths"), "{refused}");
        let recipe = crate::recipe::Recipe::parse("mine", "title = \"t\"\n[[runs]]").unwrap();
        assert_eq!(recipe.specs("", &Default::default()).unwrap()[0].width, Width::Finite(10_000));
    }

    /// Reading what a spec shows gives the spec back, whatever the setting.
    #[test]
    fn what_is_shown_can_be_read() {
        let base = Spec::new("loranpac");
        for (name, text) in [
            ("lift", "fourier"),
            ("width", "300"),
            ("width", "infinite"),
            ("lift-seed", "7"),
            ("gamma", "0.5"),
            ("max-rank", "12"),
            ("schedule", "paper"),
            ("truncate", "0.5"),
            ("threshold", "0.25"),
            ("rank", "9"),
            ("scenario", "domain"),
            ("base", "3"),
            ("inc", "4"),
            ("per-class", "5"),
            ("long-tail", "50"),
            ("prior", "uniform"),
            ("order", "sorted"),
            ("order", "b,a"),
            ("eval", "final"),
            ("train-loss", "every"),
            ("spectrum", "final"),
            ("seed", "8"),
        ] {
            let setting = find(name).unwrap();
            let mut spec = base.clone();
            setting.read(&mut spec, &Value::from(text)).unwrap();
            assert_ne!(spec, base, "{name}");
            let shown = (setting.show)(&spec).unwrap();
            assert_eq!(shown.to_string(), text, "{name}");
            let mut again = base.clone();
            setting.read(&mut again, &shown).unwrap();
            assert_eq!(again, spec, "{name}");
            assert!(spec.command("d").contains(&format!("--{name} {text}")), "{}", spec.command("d"));
        }
    }

    /// `table.rs` has an entry more in these tests. Everything that is made from the list has it, too.
    #[test]
    fn an_entry_in_the_list_is_all_that_a_new_setting_needs() {
        let text = "title = \"t\"\n[defaults]\ndummy = 8\n[[runs]]\n[[runs]]\ndummy = [16, 32]\ninc = 5";
        let recipe = crate::recipe::Recipe::parse("mine", text).unwrap();
        let specs = recipe.specs("", &Default::default()).unwrap();
        let commands: Vec<String> = specs.iter().map(|spec| spec.command("d")).collect();
        assert_eq!(commands.len(), 3);
        assert!(commands[2].ends_with("--inc 5 --dummy 32"), "{commands:?}");
        let wrong = crate::recipe::Recipe::parse("mine", &text.replace("16", "0")).unwrap_err().to_string();
        assert!(wrong.contains("dummy = 0 is not possible: a whole number of at least 1"), "{wrong}");
        let record = serde_json::to_string(&specs[2]).unwrap();
        assert_eq!(serde_json::from_str::<Spec>(&record).unwrap(), specs[2]);
        let dummy = find("dummy").unwrap();
        assert_eq!((dummy.keyword().as_str(), dummy.default()), ("dummy", None));
    }

    #[test]
    fn a_record_without_a_field_has_its_default() {
        let mut record = serde_json::to_value(Spec::new("ranpac")).unwrap();
        record.as_object_mut().unwrap().remove("spectrum");
        assert_eq!(serde_json::from_value::<Spec>(record).unwrap(), Spec::new("ranpac"));
    }

    #[test]
    fn every_setting_is_in_the_documentation_of_recipes() {
        let text = include_str!("../../../../docs/recipes.md");
        for setting in SETTINGS.iter().filter(|setting| setting.name != "dummy") {
            assert!(text.contains(&format!("`{}`", setting.name)), "docs/recipes.md does not name {}", setting.name);
        }
    }

    #[test]
    fn each_face_spells_names_in_its_own_way() {
        let face = |name: &str| find(name).map(|setting| format!("{}=", setting.keyword()));
        assert_eq!(
            spell("a smaller `width` or `max-rank`, no `only`", face),
            "a smaller width= or max_rank=, no `only`"
        );
        assert_eq!(spell("`lift-seed` and an `odd quote", face), "random_state= and an `odd quote");
    }
}
