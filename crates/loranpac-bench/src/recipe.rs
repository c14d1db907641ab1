//! Recipes: which runs make a table or a figure, and how they are shown. A recipe is one TOML file.
//!
//! Everything in a block of runs may be one value or a list; lists are crossed. `[defaults]` holds what all blocks
//! share, `[on.NAME]` what is different for one data set.

use std::collections::BTreeMap;
use std::path::Path;

use loranpac::{Schedule, Truncation, lift};
use serde::Deserialize;

use crate::error::Error;
use crate::spec::{Order, Spec, When, Width};
use crate::stream::Scenario;
use crate::sweep::Source;
use crate::view::{Figure, Table};

pub use crate::value::{Many, Setting};

/// One recipe.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Recipe {
    /// What to call it: the name of its file.
    #[serde(skip)]
    pub name: String,
    /// One line.
    pub title: String,
    /// The table or figure of the paper that it repeats.
    #[serde(default)]
    pub paper: Option<String>,
    /// What to look for, in a sentence or two.
    #[serde(default)]
    pub about: String,
    /// Names of data sets; their feature files are `NAME.npz` or `NAME-BACKBONE.npz`, or another format.
    #[serde(default)]
    pub data: Vec<String>,
    /// The paper's encoder: its files are preferred, and only they are compared with the paper's numbers.
    #[serde(default)]
    pub backbone: Option<String>,
    /// What all blocks share.
    #[serde(default)]
    pub defaults: Choices,
    /// What is different for one data set.
    #[serde(default)]
    pub on: BTreeMap<String, Choices>,
    /// Blocks of runs.
    pub runs: Vec<Choices>,
    /// Tables to show.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Figures to show.
    #[serde(default)]
    pub figures: Vec<Figure>,
}

/// What may be chosen for runs; see [`Spec`] for the meaning of each.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Choices {
    pub method: Option<Many<String>>,
    #[serde(default)]
    pub set: BTreeMap<String, Many<Setting>>,
    pub truncate: Option<Many<f64>>,
    pub threshold: Option<Many<f64>>,
    pub rank: Option<Many<usize>>,
    pub schedule: Option<Many<Schedule>>,
    pub max_rank: Option<Many<usize>>,
    pub lift: Option<Many<String>>,
    pub width: Option<Many<Width>>,
    pub lift_seed: Option<Many<u64>>,
    pub gamma: Option<Many<f64>>,
    pub scenario: Option<ScenarioName>,
    pub base: Option<usize>,
    pub inc: Option<Many<usize>>,
    pub seed: Option<Many<u32>>,
    pub order: Option<Many<Setting>>,
    pub per_class: Option<Many<usize>>,
    pub eval: Option<When>,
    pub train_loss: Option<When>,
    pub spectrum: Option<When>,
}

impl Choices {
    fn truncation(&self) -> Option<Many<Truncation>> {
        let all = |rules: Vec<Truncation>| Some(Many::List(rules));
        match (&self.truncate, &self.threshold, &self.rank) {
            (Some(shares), ..) => all(shares.values().iter().map(|zeta| Truncation::Fraction(*zeta)).collect()),
            (_, Some(limits), _) => all(limits.values().iter().map(|delta| Truncation::Threshold(*delta)).collect()),
            (.., Some(ranks)) => all(ranks.values().iter().map(|k| Truncation::Rank(*k)).collect()),
            _ => None,
        }
    }
}

/// How samples become tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScenarioName {
    /// New classes in every task.
    Class,
    /// New domains.
    Domain,
    /// One task.
    Joint,
}

/// Scales a recipe down, for a smoke test or a small machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scale {
    /// Widths are divided by this.
    pub divide_width: Option<usize>,
    /// No width is larger than this.
    pub max_width: Option<usize>,
    /// At most so many training samples per class.
    pub per_class: Option<usize>,
    /// One seed instead of several.
    pub one_seed: bool,
    /// Increments above this many classes are divided by it.
    pub divide_inc: Option<usize>,
}

impl Scale {
    /// Seconds instead of hours.
    pub const QUICK: Scale =
        Scale { divide_width: Some(200), max_width: None, per_class: Some(40), one_seed: true, divide_inc: Some(5) };

    /// What it changes, for people who read the report.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(by) = self.divide_width {
            words.push(format!("a smoke test: widths are divided by {by}, and there is one seed"));
        } else if self.one_seed {
            words.push("the first of the recipe's seeds only".to_owned());
        }
        if let Some(by) = self.divide_inc {
            words.push(format!("increments above {by} classes are divided by {by}"));
        }
        if let Some(most) = self.max_width {
            words.push(format!("widths above {most} were made {most}"));
        }
        if let Some(most) = self.per_class {
            words.push(format!("at most {most} training samples per class were used"));
        }
        words
    }

    fn apply(&self, spec: &mut Spec) {
        let narrow = (spec.width / self.divide_width.unwrap_or(1)).max(spec.width.min(20));
        spec.width = narrow.min(self.max_width.unwrap_or(usize::MAX));
        spec.per_class = match (spec.per_class, self.per_class) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        };
        if let (Scenario::Class { increment, .. }, Some(by)) = (&mut spec.scenario, self.divide_inc)
            && *increment > by
        {
            *increment /= by;
        }
    }
}

impl Recipe {
    /// Reads a recipe.
    pub fn parse(name: &str, text: &str) -> Result<Recipe, Error> {
        let refuse = |message: String| Error::Recipe { name: name.to_owned(), message };
        let mut recipe: Recipe = toml::from_str(text).map_err(|e| refuse(e.to_string()))?;
        recipe.name = name.to_owned();
        let named = |data: &String| recipe.data.contains(data);
        if let Some(stranger) = recipe.on.keys().find(|data| !named(data)) {
            return Err(refuse(format!("[on.{stranger}]: data does not name {stranger}")));
        }
        if recipe.runs.is_empty() {
            return Err(refuse("there are no [[runs]]".to_owned()));
        }
        let specs = recipe.specs("", &Scale::default())?;
        if specs.is_empty() {
            return Err(refuse("an empty list leaves no runs".to_owned()));
        }
        if name == "runs" {
            return Err(refuse(
                "this name is taken by the folder of finished runs; call the file otherwise".to_owned(),
            ));
        }
        for table in &recipe.tables {
            table.check(&specs).map_err(&refuse)?;
        }
        for figure in &recipe.figures {
            figure.check(&specs).map_err(&refuse)?;
        }
        Ok(recipe)
    }

    /// Reads a recipe from a file.
    pub fn open(path: &Path) -> Result<Recipe, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Recipe::parse(&name, &text)
    }

    /// The runs on one data set, each once.
    pub fn specs(&self, data: &str, scale: &Scale) -> Result<Vec<Spec>, Error> {
        let mut all: Vec<Spec> = Vec::new();
        for block in &self.runs {
            let layers = [Some(&self.defaults), Some(block), self.on.get(data)];
            let layers = Layers(layers.into_iter().flatten().collect());
            for mut spec in layers.cross(vec![Spec::new("loranpac")], scale.one_seed) {
                let refuse = |message: String| Error::Recipe { name: self.name.clone(), message };
                check(&spec).map_err(refuse)?;
                scale.apply(&mut spec);
                let spec = spec.normalised().map_err(|e| refuse(e.to_string()))?;
                if !all.contains(&spec) {
                    all.push(spec);
                }
            }
        }
        Ok(all)
    }

    /// The runs on each of some data sets.
    pub fn plans(&self, sources: &[Source], scale: &Scale) -> Result<Vec<(Source, Vec<Spec>)>, Error> {
        sources.iter().map(|source| Ok((source.clone(), self.specs(&source.key, scale)?))).collect()
    }
}

/// What can be refused before there is data.
fn check(spec: &Spec) -> Result<(), String> {
    let method = spec.method().map_err(|e| e.to_string())?;
    if let Some(unknown) = spec.settings.keys().find(|name| !method.knows(name)) {
        return Err(format!("{} has no setting {unknown} ({})", method.name, method.known_settings()));
    }
    let least = |name: &str, value: Option<usize>| match value {
        Some(0) => Err(format!("{name} = 0 is not possible: it must be at least 1")),
        _ => Ok(()),
    };
    if spec.width == 0 && spec.lift != lift::LIFTS[0].name {
        return Err(format!("width = \"infinite\" goes with lift = {:?}, not {:?}", lift::LIFTS[0].name, spec.lift));
    }
    least("width", Some(spec.width))?;
    least("per-class", spec.per_class)?;
    least("max-rank", Some(spec.max_rank))?;
    if let Scenario::Class { increment, .. } = spec.scenario {
        least("inc", Some(increment))?;
    }
    if spec.eval == When::Never {
        return Err("eval = \"never\" leaves nothing to show; say \"final\"".to_owned());
    }
    spec.truncation.map_or(Ok(()), |rule| rule.validate().map(|_| ()).map_err(|e| e.to_string()))
}

/// Choices on top of each other: the last that says something wins.
struct Layers<'a>(Vec<&'a Choices>);

impl Layers<'_> {
    fn last<T>(&self, f: impl Fn(&Choices) -> Option<T>) -> Option<T> {
        self.0.iter().rev().find_map(|layer| f(layer))
    }

    /// Every spec with every value of a list.
    fn over<T: Clone>(
        &self,
        specs: Vec<Spec>,
        pick: impl Fn(&Choices) -> Option<Many<T>>,
        set: impl Fn(&mut Spec, T),
    ) -> Vec<Spec> {
        let Some(many) = self.last(pick) else { return specs };
        let with = |spec: Spec| {
            let one = |value: &T| {
                let mut spec = spec.clone();
                set(&mut spec, value.clone());
                spec
            };
            many.values().iter().map(one).collect::<Vec<_>>()
        };
        specs.into_iter().flat_map(with).collect()
    }

    fn cross(&self, mut specs: Vec<Spec>, one_seed: bool) -> Vec<Spec> {
        let scenario = self.last(|c| c.scenario).unwrap_or(ScenarioName::Class);
        let base = self.last(|c| c.base).unwrap_or(0);
        for spec in &mut specs {
            spec.scenario = match scenario {
                ScenarioName::Class => Scenario::Class { base, increment: 10 },
                ScenarioName::Domain => Scenario::Domain,
                ScenarioName::Joint => Scenario::Joint,
            };
            spec.order = self.last(|c| c.order.clone()).map(|order| match order {
                Many::One(Setting::Text(word)) if word == "sorted" => Order::Sorted,
                labels => Order::Labels(labels.values().iter().map(Setting::to_string).collect()),
            });
            spec.eval = self.last(|c| c.eval).unwrap_or(spec.eval);
            spec.train_loss = self.last(|c| c.train_loss).unwrap_or(spec.train_loss);
            spec.spectrum = self.last(|c| c.spectrum).unwrap_or(spec.spectrum);
        }
        specs = self.over(
            specs,
            |c| c.inc.clone(),
            |spec, inc| {
                if let Scenario::Class { increment, .. } = &mut spec.scenario {
                    *increment = inc;
                }
            },
        );
        specs = self.over(specs, |c| c.method.clone(), |spec, name| spec.method = name);
        specs = self.over(specs, |c| c.lift.clone(), |spec, lift| spec.lift = lift);
        specs = self.over(specs, |c| c.width.clone(), |spec, width| spec.widen(width));
        specs = self.over(specs, |c| c.lift_seed.clone(), |spec, seed| spec.lift_seed = seed);
        specs = self.over(specs, |c| c.gamma.clone(), |spec, gamma| spec.gamma = gamma);
        specs = self.over(specs, |c| c.max_rank.clone(), |spec, rank| spec.max_rank = rank);
        specs = self.over(specs, |c| c.schedule.clone(), |spec, schedule| spec.schedule = schedule);
        specs = self.over(specs, Choices::truncation, |spec, rule| spec.truncation = Some(rule));
        specs = self.over(specs, |c| c.per_class.clone(), |spec, count| spec.per_class = Some(count));
        let names: std::collections::BTreeSet<&String> = self.0.iter().flat_map(|layer| layer.set.keys()).collect();
        for name in names {
            let set = |spec: &mut Spec, value: Setting| drop(spec.settings.insert(name.clone(), value.to_string()));
            specs = self.over(specs, |c| c.set.get(name).cloned(), set);
        }
        let first = |seeds: Many<u32>| match seeds.values() {
            [seed, ..] if one_seed => Many::One(*seed),
            _ => seeds,
        };
        self.over(specs, |c| c.seed.clone().map(first), |spec, seed| spec.seed = seed)
    }
}

macro_rules! recipes {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!("../recipes/", $name, ".toml")))),*] };
}

/// The recipes inside the program, one for every table and figure of the paper and one of ours: name and text.
pub const RECIPES: &[(&str, &str)] = recipes![
    "cil-vit",
    "cil-vit-inc1",
    "cil-vit-in21k",
    "cil-vit-multiple",
    "cil-vit-widths",
    "hyperparameters",
    "running-times",
    "dil-vit",
    "lc-rates",
    "ablation-rfm",
    "stability",
    "truncation-effect",
    "training-time",
    "training-loss",
    "accuracy-over-width",
    "effective-rank",
    "eigenvalues-continual",
    "normalized-ev-diff",
    "eigenvalues-varying-width",
    "spectra-of-features",
    "ranpac-unstable",
    "training-loss-ranpac",
    "accuracy-matrices",
    "stability-inc",
    "certificates",
    "infinite-width",
];

/// A recipe inside the program.
pub fn built_in(name: &str) -> Option<Result<Recipe, Error>> {
    RECIPES.iter().find(|(known, _)| *known == name).map(|(name, text)| Recipe::parse(name, text))
}
