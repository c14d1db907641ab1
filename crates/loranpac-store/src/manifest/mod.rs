//! The manifest: the one file that says what a model consists of. It is replaced in one step, after everything that it
//! names is safe on the disk.

mod check;
mod file;

use std::collections::{BTreeMap, BTreeSet};

use loranpac::filter::Facts;
use loranpac::internals::{Cut, Losses};
use loranpac::{Config, Label, LabelTable};
use serde::{Deserialize, Serialize};

pub(crate) use file::MAGIC;

use crate::encoder::Encoder;
use crate::error::Error;
use crate::lift::LiftRecord;
use crate::segment::FileEntry;

/// Version of the format that this program writes. It reads version 1, too, which has no edits.
pub const FORMAT: u32 = 2;

/// Settings of a new model.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The lift.
    pub lift: LiftRecord,
    /// The settings of the learner.
    pub config: Config,
    /// How many earlier versions are kept.
    pub keep: usize,
    /// The name of the encoder.
    pub encoder: Option<String>,
}

/// Everything about a model but its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the program that wrote it.
    pub software: String,
    /// How many times the model has been changed.
    pub version: u64,
    /// The feature map.
    pub lift: LiftRecord,
    /// Its digest.
    pub lift_digest: String,
    /// The learner's settings.
    pub config: Config,
    /// How many earlier versions are kept.
    pub keep: usize,
    /// Where the features come from, as far as it is known.
    pub encoder: Encoder,
    /// Samples learned, M.
    pub samples: usize,
    /// What past cuts have cost.
    pub losses: Losses,
    /// The cut after the latest task.
    pub latest_cut: Cut,
    /// Whether J may have components outside the basis.
    pub outside: bool,
    /// The classes, by index.
    pub classes: Vec<ClassEntry>,
    /// Q: its columns, from the first on.
    pub basis: Vec<BasisPart>,
    /// How S comes about, in order.
    pub gram: Vec<GramStep>,
    /// The samples of a model of infinite width, from the first on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptPart>,
    /// Contribution of its evicted samples.
    #[serde(rename = "gone", default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<EvictedPart>,
    /// The classifier, if it has been formed since the model last changed.
    pub weights: Option<WeightsEntry>,
    /// What turns scores into probabilities.
    pub calibration: Option<Calibration>,
    /// What was learned, in order.
    pub tasks: Vec<TaskEntry>,
    /// What was changed besides, in order, so that doing it again changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<EditEntry>,
    /// The version that this one repeats, if the model was rolled back and has not changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<u64>,
    /// The version whose contents that one had, if it was a repetition itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<u64>,
    /// All files that are named above.
    pub files: BTreeMap<String, FileEntry>,
}

/// A class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassEntry {
    /// What the user calls it.
    pub label: Label,
    /// Its samples.
    pub count: usize,
    /// Where its numbers are; None at infinite width, where samples have them.
    #[serde(flatten)]
    pub places: Option<Places>,
}

/// Where the numbers of a class are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Places {
    /// Its column of J.
    pub sums: Place,
    /// Its row of N; it may be shorter than the basis, and is zero then.
    pub cross: Place,
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

/// Some columns of Q: tensor `basis`, a column of Q in each row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasisPart {
    /// The file.
    pub file: String,
    /// How many columns.
    pub columns: usize,
}

/// Some samples: tensors `samples` (f32, or f16 if the settings say so), a sample in each row, and `classes`, their classes
/// by index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptPart {
    /// The file.
    pub file: String,
    /// How many samples.
    pub samples: usize,
}

/// Contribution of evicted samples: tensors `mass`, the upper triangle of `M - I` column after column, and `sums`,
/// `B - Y` with a class in each row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvictedPart {
    /// The file.
    pub file: String,
    /// Classes and samples that `sums` has.
    pub shape: [usize; 2],
    /// Number of evicted samples.
    pub samples: usize,
    /// How many of them belong to a class that was removed.
    #[serde(rename = "orphans")]
    pub unlabelled: usize,
    /// How often samples were evicted.
    #[serde(rename = "times")]
    pub evictions: usize,
    /// A bound on the length of what their projections lost, without the latest eviction.
    pub error: f64,
    /// The same for the latest eviction, until another sample is learned.
    pub latest: f64,
}

/// A step on the way to S.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum GramStep {
    /// It is given: tensor `gram`, the upper triangle column after column.
    Whole {
        /// The file.
        file: String,
        /// Its size.
        rank: usize,
    },
    /// `S <- [S 0; 0 0] + B B'`: tensor `factor.INDEX`, a column of B in each row.
    Grow {
        /// The file.
        file: String,
        /// Which of its factors.
        index: usize,
        /// Rows of B: the rank of the basis afterwards.
        rows: usize,
        /// Columns of B.
        columns: usize,
    },
}

/// The classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsEntry {
    /// The file: tensor `weights`, a class in each row, over the lifted features or (in f64) over the samples.
    pub file: String,
    /// What forming it showed.
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
    /// Classes that the model had then.
    pub classes: usize,
    /// The version of the model then.
    pub version: u64,
}

/// Something that was learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    /// What the user called it: usually the name of a file.
    pub name: String,
    /// SHA-256 of its features and labels.
    pub digest: String,
    /// Its samples.
    pub samples: usize,
    /// The version of the model that first knew it.
    pub version: u64,
    /// Whether an edit may have changed some of its samples since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}

/// A change that was made by another command than `learn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditEntry {
    /// The command.
    pub command: String,
    /// What it changed: a digest of the samples' features, of the class, or the name of a setting. Only the latest edit of
    /// each subject is listed.
    pub subject: String,
    /// SHA-256 of everything that the command was given.
    pub digest: String,
    /// Whether nothing has been learned or merged since. Once something has, the same samples may be in the model again.
    pub current: bool,
    /// The version of the model that was first changed by it.
    pub version: u64,
}

impl Manifest {
    /// What a model consists of that has learned nothing.
    pub fn new(settings: &Settings) -> Result<Manifest, Error> {
        settings.lift.check_size().map_err(Error::Refused)?;
        settings.lift.build(false)?;
        Ok(Manifest {
            software: env!("CARGO_PKG_VERSION").to_owned(),
            version: 0,
            lift_digest: settings.lift.digest(),
            lift: settings.lift.clone(),
            config: settings.config.validate()?,
            keep: settings.keep,
            encoder: Encoder::named(settings.encoder.clone()),
            samples: 0,
            losses: Default::default(),
            latest_cut: Default::default(),
            outside: false,
            classes: Vec::new(),
            basis: Vec::new(),
            gram: Vec::new(),
            kept: Vec::new(),
            evicted: None,
            weights: None,
            calibration: None,
            tasks: Vec::new(),
            edits: Vec::new(),
            restored: None,
            contents: None,
            files: Default::default(),
        })
    }

    /// The same without anything that is in files.
    pub(crate) fn emptied(&self) -> Manifest {
        Manifest {
            classes: Vec::new(),
            basis: Vec::new(),
            gram: Vec::new(),
            kept: Vec::new(),
            evicted: None,
            weights: None,
            files: Default::default(),
            ..self.clone()
        }
    }

    /// r: directions of the basis, or samples that are kept.
    pub fn rank(&self) -> usize {
        let kept = self.kept.iter().map(|part| part.samples);
        self.basis.iter().map(|part| part.columns).chain(kept).fold(0, usize::saturating_add)
    }

    /// Whether the model keeps samples.
    pub fn keeps_samples(&self) -> bool {
        self.lift.width.is_infinite()
    }

    /// The labels of the classes as a table.
    pub(crate) fn table(&self) -> LabelTable {
        let mut table = LabelTable::default();
        self.classes.iter().for_each(|class| {
            table.get_or_insert(&class.label);
        });
        table
    }

    /// The temperature of probabilities, if one was fitted.
    pub fn temperature(&self) -> Option<f64> {
        self.calibration.as_ref().map(|calibration| calibration.temperature)
    }

    /// All files that it needs.
    pub fn needs(&self) -> BTreeSet<&str> {
        let places = self.classes.iter().filter_map(|class| class.places.as_ref());
        let classes = places.flat_map(|places| [&places.sums.file, &places.cross.file]);
        let gram = self.gram.iter().map(|step| match step {
            GramStep::Whole { file, .. } | GramStep::Grow { file, .. } => file,
        });
        let files = self.basis.iter().map(|part| &part.file).chain(classes).chain(gram);
        let files =
            files.chain(self.kept.iter().map(|part| &part.file)).chain(self.evicted.iter().map(|part| &part.file));
        files.chain(self.weights.iter().map(|weights| &weights.file)).map(String::as_str).collect()
    }
}
