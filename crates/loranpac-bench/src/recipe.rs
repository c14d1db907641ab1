//! Recipes: which runs make a table or a figure, and how they are shown. A recipe is one TOML file.
//!
//! `[defaults]` holds what all blocks of runs share, `[on.NAME]` what is different for one data set, and `[runs.on.NAME]` what is different for
//! one data set in one block.

use std::collections::BTreeMap;
use std::path::Path;

use loranpac::Width;
use loranpac::internals::count;
use loranpac_data::ReadError;
use serde::Deserialize;

use crate::choices::Choices;
use crate::error::Error;
use crate::source::Source;
use crate::spec::{Scenario, Spec, When};
use crate::view::{Figure, Table};

/// One recipe.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Recipe {
    /// Its name: that of its file.
    #[serde(skip)]
    pub name: String,
    /// Title, one line.
    pub title: String,
    /// The table or figure of the paper that it repeats.
    #[serde(default)]
    pub paper: Option<String>,
    /// What to look for, in a sentence or two.
    #[serde(default)]
    pub about: String,
    /// Names of data sets; their feature files are `NAME.npz` or `NAME-BACKBONE.npz`, or another format, and their images
    /// are in a folder or archive of that name.
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

/// Scales a recipe down, for a smoke test or a small machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scale {
    /// Widths are divided by this.
    pub divide_width: Option<usize>,
    /// No width is larger than this.
    pub max_width: Option<usize>,
    /// At most this many training samples per class.
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

    /// What it changes, in words for the report.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(by) = self.divide_width {
            words.push(format!("a smoke test: widths are divided by {by}, and there is one seed"));
        } else if self.one_seed {
            words.push("the first of the recipe's seeds only".to_owned());
        }
        if let Some(by) = self.divide_inc {
            words.push(format!("increments above {} are divided by {by}", count(by, "class")));
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
        if let Width::Finite(width) = &mut spec.width {
            let narrow = (*width / self.divide_width.unwrap_or(1)).max((*width).min(20));
            *width = narrow.min(self.max_width.unwrap_or(usize::MAX));
        }
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
        let misplaced = check_on("on", &recipe.on, &recipe.data)
            .and(recipe.runs.iter().try_for_each(|block| check_on("runs.on", &block.on, &recipe.data)))
            .and(if recipe.defaults.on.is_empty() { Ok(()) } else { Err(NESTED.to_owned()) });
        misplaced.map_err(refuse)?;
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
        let text = std::fs::read_to_string(path).map_err(|source| ReadError::new(path, source))?;
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Recipe::parse(&name, &text)
    }

    /// The runs on one data set, each once.
    pub fn specs(&self, data: &str, scale: &Scale) -> Result<Vec<Spec>, Error> {
        let mut all: Vec<Spec> = Vec::new();
        let refuse = |message: String| Error::Recipe { name: self.name.clone(), message };
        for block in &self.runs {
            let mut choices = self.defaults.clone().overlaid(block);
            for other in [self.on.get(data), block.on.get(data)].into_iter().flatten() {
                choices = choices.overlaid(other);
            }
            if scale.one_seed {
                choices = choices.first_of("seed");
            }
            for mut spec in choices.cross().map_err(|e| refuse(e.to_string()))? {
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

/// What is said about data sets in the wrong place.
const NESTED: &str = "`on` is a table of its own, or a key of [[runs]]";

/// Checks what is different for some data sets, which the recipe must name.
fn check_on(place: &str, on: &BTreeMap<String, Choices>, data: &[String]) -> Result<(), String> {
    if let Some(unknown) = on.keys().find(|name| !data.contains(name)) {
        return Err(format!("[{place}.{unknown}]: data does not name {unknown}"));
    }
    match on.values().all(|choices| choices.on.is_empty()) {
        true => Ok(()),
        false => Err(NESTED.to_owned()),
    }
}

/// Checks what does not depend on data.
fn check(spec: &Spec) -> Result<(), String> {
    let method = spec.method().map_err(|e| e.to_string())?;
    if let Some(unknown) = spec.settings.keys().find(|name| !method.knows(name)) {
        return Err(format!("{} has no setting {unknown} ({})", method.name, method.known_settings()));
    }
    if spec.is_open() || spec.keep_samples {
        return Err("a recipe states its widths: \"auto\" depends on the machine".to_owned());
    }
    if spec.eval == When::Never {
        return Err("eval = \"never\" leaves nothing to show; use \"final\"".to_owned());
    }
    Ok(())
}

macro_rules! recipes {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!("../recipes/", $name, ".toml")))),*] };
}

/// The recipes inside the program, one for every table and figure of the paper and two of ours: name and text.
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
    "ease-cars",
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
    "pacs",
];

/// A recipe inside the program.
pub fn built_in(name: &str) -> Option<Result<Recipe, Error>> {
    RECIPES.iter().find(|(known, _)| *known == name).map(|(name, text)| Recipe::parse(name, text))
}
