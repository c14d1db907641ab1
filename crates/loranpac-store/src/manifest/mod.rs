//! The manifest: the list of everything that a model consists of. It is replaced atomically, after all files that it
//! names are synced.

mod check;
mod file;

use std::collections::{BTreeMap, BTreeSet};

use loranpac::auto::{self, Choice};
use loranpac::filter::Facts;
use loranpac::internals::{Cut, Losses, Masses};
use loranpac::{Config, Label, LabelTable, Prior, lift};
use serde::{Deserialize, Serialize};

pub(crate) use file::MAGIC;

use crate::encoder::{Encoder, Identity};
use crate::error::Error;
use crate::lift::LiftRecord;
use crate::segment::FileEntry;

/// The latest version of the format. Version 1, which has no edits, version 2, in which L is the identity, version 3, in which S has
/// no fixed point, and version 4, without weights, are read as well.
pub const FORMAT: u32 = 5;

/// Settings of a new model.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The lift.
    pub lift: LiftRecord,
    /// Why it has its width, if that was chosen automatically.
    pub width_choice: Option<Choice>,
    /// The settings of the learner.
    pub config: Config,
    /// Number of earlier versions to keep.
    pub keep: usize,
    /// The encoder, if it is known.
    pub encoder: Option<Identity>,
    /// How often classes are expected in queries.
    pub prior: Prior,
}

/// Everything about a model except its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the program that wrote it.
    pub software: String,
    /// Number of changes of the model so far.
    pub version: u64,
    /// The feature map.
    pub lift: LiftRecord,
    /// Its digest.
    pub lift_digest: String,
    /// Why it has its width, if that was chosen automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_choice: Option<Choice>,
    /// The learner's settings.
    pub config: Config,
    /// Number of earlier versions to keep.
    pub keep: usize,
    /// The source of the features, if known.
    pub encoder: Encoder,
    /// Samples learned, M.
    pub samples: usize,
    /// The sum of their weights, if any weight was not 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// The losses of past cuts.
    pub losses: Losses,
    /// The cut after the latest task.
    pub latest_cut: Cut,
    /// Whether J may have components outside the basis.
    pub outside: bool,
    /// The classes, by index.
    pub classes: Vec<ClassEntry>,
    /// The columns of B and the rows of L, in order.
    pub basis: Vec<BasisPart>,
    /// Whether Q is the identity, which has no parts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// The construction of S, in order.
    pub gram: Vec<GramStep>,
    /// The samples of a model of infinite width, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptPart>,
    /// Contribution of its evicted samples.
    #[serde(rename = "gone", default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<EvictedPart>,
    /// The classifier, if it has been formed since the model last changed.
    pub weights: Option<WeightsEntry>,
    /// How often classes are expected in queries. The weights do not depend on it.
    #[serde(default, skip_serializing_if = "Prior::is_none")]
    pub prior: Prior,
    /// The temperature of probabilities.
    pub calibration: Option<Calibration>,
    /// The learned tasks, in order.
    pub tasks: Vec<TaskEntry>,
    /// The edits, in order, so that repeating one changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<EditEntry>,
    /// The version that this one repeats, if the model was rolled back and has not changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<u64>,
    /// The version whose contents that one had, if it was a repetition itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<u64>,
    /// All files that the manifest refers to.
    pub files: BTreeMap<String, FileEntry>,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassEntry {
    /// Its label.
    pub label: Label,
    /// Its number of samples.
    pub count: usize,
    /// The sum of their weights, if the model has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// The location of its numbers; None at infinite width, where they follow from the samples.
    #[serde(flatten)]
    pub places: Option<Places>,
}

/// The location of the numbers of a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Places {
    /// Its column of J; None where Q is the identity, and the row of N is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sums: Option<Place>,
    /// Its row of N; missing values at the end are zero.
    pub cross: Place,
}

impl Places {
    /// Returns both.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Place> {
        self.sums.iter().chain([&self.cross])
    }
}

/// A row of the tensor `sums` or `cross` of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The row.
    pub row: usize,
    /// Rows and columns of the tensor.
    pub shape: [usize; 2],
}

/// Columns of B: tensor `basis`, a column of B in each row; and rows of L: tensor `lower`, each up to its diagonal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasisPart {
    /// The file.
    pub file: String,
    /// Number of columns.
    pub columns: usize,
    /// Whether the file has the rows of L; otherwise they are those of the identity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lower: bool,
}

/// Kept samples: tensors `samples` (f32, or f16 with the setting `half`), a sample in each row, and `classes`, their
/// classes by index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptPart {
    /// The file.
    pub file: String,
    /// Number of samples.
    pub samples: usize,
    /// Whether the file has their weights: tensor `weights`, f64. Otherwise all are 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weighted: bool,
}

/// Contribution of evicted samples: tensors `mass`, the upper triangle of `M - I` column after column, and `sums`,
/// `B - Y` with a class in each row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvictedPart {
    /// The file.
    pub file: String,
    /// Number of classes and samples of `sums`.
    pub shape: [usize; 2],
    /// Number of evicted samples.
    pub samples: usize,
    /// Evicted samples whose class was removed.
    #[serde(rename = "orphans")]
    pub unlabelled: usize,
    /// How often samples were evicted.
    #[serde(rename = "times")]
    pub evictions: usize,
    /// A bound on the length of the residuals of their projections, without the latest eviction.
    pub error: f64,
    /// The same for the latest eviction, until another sample is learned.
    pub latest: f64,
}

/// A step of the construction of S.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum GramStep {
    /// S is given: tensor `gram`, the upper triangle column after column.
    Whole {
        /// The file.
        file: String,
        /// Its size.
        rank: usize,
    },
    /// S is given in fixed point, and the increments after it are rounded to its grid: tensors `diagonal`, and `gram`, what is
    /// above the diagonal, column after column.
    Grid {
        /// The file.
        file: String,
        /// Its size.
        rank: usize,
    },
    /// `S <- [S 0; 0 0] + F F'`: tensor `factor.INDEX`, a column of F in each row.
    Grow {
        /// The file.
        file: String,
        /// The index of the factor in the file.
        index: usize,
        /// Rows of F: the rank of the basis afterwards.
        rows: usize,
        /// Columns of F.
        columns: usize,
        /// Whether its numbers are in single precision.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        single: bool,
    },
}

/// The classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsEntry {
    /// The file: tensor `weights`, a class in each row, over the lifted features or (in f64) over the samples.
    pub file: String,
    /// Facts about the classifier.
    pub facts: Facts,
    /// At infinite width: a bound on the change of `H H'` by evicted samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<f64>,
}

/// The temperature that turns scores into probabilities: softmax(scores / temperature).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The temperature.
    pub temperature: f64,
    /// Held-out samples that it was fitted on.
    pub samples: usize,
    /// Number of classes of the model at that time.
    pub classes: usize,
    /// The version of the model at that time.
    pub version: u64,
    /// The prior of the scores that it was fitted to.
    #[serde(default, skip_serializing_if = "Prior::is_none")]
    pub prior: Prior,
}

/// A learned task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    /// Its name, usually that of a file.
    pub name: String,
    /// SHA-256 of its features and labels.
    pub digest: String,
    /// Its number of samples.
    pub samples: usize,
    /// The version of the model that learned it.
    pub version: u64,
    /// Whether an edit may have changed some of its samples since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}

/// An edit: a change by another command than `learn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditEntry {
    /// The command.
    pub command: String,
    /// The subject of the change: a digest of the samples' features, of the class, or the name of a setting. Only the
    /// latest edit of each subject is listed.
    pub subject: String,
    /// SHA-256 of all input of the command.
    pub digest: String,
    /// Whether nothing has been learned or merged since. Once something has, the same samples may be in the model again.
    pub current: bool,
    /// The version of the model that applied it.
    pub version: u64,
}

impl Manifest {
    /// Creates the manifest of an empty model.
    pub fn new(settings: &Settings) -> Result<Manifest, Error> {
        settings.lift.check_size()?;
        settings.lift.build(false)?;
        Ok(Manifest {
            software: env!("CARGO_PKG_VERSION").to_owned(),
            version: 0,
            lift_digest: settings.lift.digest(),
            lift: settings.lift.clone(),
            width_choice: settings.width_choice,
            config: settings.config.validate()?,
            keep: settings.keep,
            encoder: Encoder::new(settings.encoder.clone().unwrap_or_default()),
            samples: 0,
            mass: None,
            losses: Default::default(),
            latest_cut: Default::default(),
            outside: false,
            classes: Vec::new(),
            basis: Vec::new(),
            whole: false,
            gram: Vec::new(),
            kept: Vec::new(),
            evicted: None,
            weights: None,
            prior: settings.prior.clone().validate()?,
            calibration: None,
            tasks: Vec::new(),
            edits: Vec::new(),
            restored: None,
            contents: None,
            files: Default::default(),
        })
    }

    /// Returns a copy without anything that is in files.
    pub(crate) fn emptied(&self) -> Manifest {
        let mut empty = self.clone();
        empty.classes.clear();
        empty.basis.clear();
        empty.whole = false;
        empty.gram.clear();
        empty.kept.clear();
        (empty.evicted, empty.weights, empty.mass) = (None, None, None);
        empty.files.clear();
        empty
    }

    /// Returns the version of the format that it needs: models without weights are read by earlier versions of the program.
    pub(crate) fn format(&self) -> u32 {
        if self.mass.is_some() { FORMAT } else { 4 }
    }

    /// Returns the version whose contents this version has: its own number, unless it is the result of a rollback.
    pub(crate) fn state(&self) -> u64 {
        self.contents.or(self.restored).unwrap_or(self.version)
    }

    /// Returns r: the number of directions of the basis, or of kept samples.
    pub fn rank(&self) -> usize {
        if self.whole {
            return self.lift.computed();
        }
        let kept = self.kept.iter().map(|part| part.samples);
        self.basis.iter().map(|part| part.columns).chain(kept).fold(0, usize::saturating_add)
    }

    /// Returns the parts of the basis that have rows of L, and how many numbers they have.
    pub(crate) fn lower_parts(&self) -> impl Iterator<Item = (&BasisPart, usize)> {
        let triangle = |rows: usize| rows.saturating_mul(rows.saturating_add(1)) / 2;
        let mut first = 0usize;
        let sized = self.basis.iter().map(move |part| {
            let end = first.saturating_add(part.columns);
            (part, triangle(end) - triangle(std::mem::replace(&mut first, end)))
        });
        sized.filter(|(part, _)| part.lower)
    }

    /// Returns a warning if the width is close to the number of samples learned.
    pub fn width_warning(&self) -> Option<String> {
        auto::warning(self.lift.width, self.samples).filter(|_| lift::has_width(&self.lift.name))
    }

    /// Returns whether the model keeps samples.
    pub fn keeps_samples(&self) -> bool {
        self.lift.width.is_infinite()
    }

    /// Returns the sums of the weights of samples, if any was not 1.
    pub(crate) fn masses(&self) -> Option<Masses> {
        let all = self.mass?;
        let classes = self.classes.iter().map(|class| class.mass.unwrap_or(class.count as f64)).collect();
        Some(Masses { classes, all })
    }

    /// Returns the labels of the classes as a table.
    pub(crate) fn table(&self) -> LabelTable {
        let mut table = LabelTable::default();
        self.classes.iter().for_each(|class| {
            table.get_or_insert(&class.label);
        });
        table
    }

    /// Refuses an encoder that is not the model's.
    pub fn check_encoder(&self, identity: &Identity) -> Result<(), Error> {
        match self.encoder.identity().differs(identity) {
            Some(difference) => Err(Error::OtherEncoder { difference }),
            None => Ok(()),
        }
    }

    /// Returns the temperature of probabilities, if one was fitted.
    pub fn temperature(&self) -> Option<f64> {
        self.calibration.as_ref().map(|calibration| calibration.temperature)
    }

    /// Returns all files that it refers to.
    pub fn needs(&self) -> BTreeSet<&str> {
        let places = self.classes.iter().filter_map(|class| class.places.as_ref());
        let classes = places.flat_map(Places::all).map(|place| &place.file);
        let gram = self.gram.iter().map(|step| match step {
            GramStep::Whole { file, .. } | GramStep::Grid { file, .. } | GramStep::Grow { file, .. } => file,
        });
        let files = self.basis.iter().map(|part| &part.file).chain(classes).chain(gram);
        let files =
            files.chain(self.kept.iter().map(|part| &part.file)).chain(self.evicted.iter().map(|part| &part.file));
        files.chain(self.weights.iter().map(|weights| &weights.file)).map(String::as_str).collect()
    }
}
