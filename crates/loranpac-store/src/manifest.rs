//! The manifest: the one file that says what a model consists of. It is replaced in one step, after everything that it
//! names is safe on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use loranpac::filter::Facts;
use loranpac::internals::{Cut, Losses};
use loranpac::{Config, Label, LabelTable};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::disk::open_regular;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::lift::{LiftRecord, hex};
use crate::segment::FileEntry;

/// Version of the format that this program writes. It reads version 1, too, which has no edits.
pub const FORMAT: u32 = 2;
/// What the first line begins with.
pub(crate) const MAGIC: &str = "loranpac-model";
/// Manifests beyond this are not read: a model of 100,000 classes stays below.
const LARGEST: u64 = 256 << 20;
/// What stands for `losses.dropped` where it is not known: version 0.1.0 wrote `null` after samples without a residual.
const UNKNOWN_LOSS: f64 = 1e300;
/// Nothing is counted beyond this, so that counts can be added, and are exact as f64.
const MOST: u64 = 1 << 53;

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

    /// As it is written: a line with the format and the digest of the rest, then JSON. What is returned has been read back:
    /// a manifest that its own reader refuses, or reads as another one, is never written.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let refused = |reason: String| Error::Refused(format!("the model cannot be written: {reason}"));
        let json = serde_json::to_vec_pretty(self).map_err(|e| refused(e.to_string()))?;
        let mut bytes = format!("{MAGIC} {FORMAT} {}\n", hex(&Sha256::digest(&json))).into_bytes();
        bytes.extend(json);
        if bytes.len() as u64 > LARGEST {
            return Err(refused(format!("its manifest would have {} bytes: too many tasks or classes", bytes.len())));
        }
        match Manifest::from_bytes(&bytes, Path::new("its manifest")) {
            Ok(read) if read == *self => Ok(bytes),
            Ok(_) => Err(refused("its manifest would be read as another one".to_owned())),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// Reads what [`Manifest::to_bytes`] has written, and checks it. `path` is for messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Manifest, Error> {
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
        let end = bytes.iter().take(128).position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| damaged("its first line is missing".to_owned()))?;
        let line = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged("its first line is not text".to_owned()))?;
        let words: Vec<&str> = line.split(' ').collect();
        let [MAGIC, format, digest] = words[..] else {
            return Err(damaged(format!("it does not begin with {MAGIC}")));
        };
        let number = format.parse::<u32>().ok().filter(|number| number.to_string() == format && *number > 0);
        match number {
            None => return Err(damaged("the number of its format is not a number".to_owned())),
            Some(number) if number > FORMAT => {
                return Err(Error::Version { path: path.to_owned(), found: format.to_owned(), known: FORMAT });
            }
            Some(_) => {}
        }
        let json = &bytes[end + 1..];
        if hex(&Sha256::digest(json)) != digest {
            return Err(damaged("it does not agree with its own checksum".to_owned()));
        }
        let manifest: Manifest = match serde_json::from_slice(json) {
            Err(_) if number == Some(1) => without_null(json),
            outcome => outcome,
        }
        .map_err(|e| damaged(e.to_string()))?;
        manifest.check().map_err(damaged)?;
        Ok(manifest)
    }

    /// Reads a manifest from a file.
    pub fn read(path: &Path) -> Result<Manifest, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let file = open_regular(path)?;
        let length = file.metadata().map_err(failed)?.len();
        if length > LARGEST {
            let reason = format!("{length} bytes are too many for a manifest");
            return Err(Error::Damaged { path: path.to_owned(), reason });
        }
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).map_err(failed)?;
        Manifest::from_bytes(&bytes, path)
    }

    /// What must hold before any file is looked at.
    pub(crate) fn check(&self) -> Result<(), String> {
        // A name is one of ours: nothing outside the folder can be meant.
        let plain = |name: &str| {
            let stem = name.strip_suffix(".safetensors").unwrap_or("");
            !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if let Some(name) = self.files.keys().find(|name| !plain(name)) {
            return Err(format!("{name:?} is not a name that a file of a model can have"));
        }
        if let Some(name) = self.needs().into_iter().find(|name| !self.files.contains_key(*name)) {
            return Err(format!("the file {name} is used but not listed"));
        }
        self.config.validate().map_err(|e| e.to_string())?;
        self.lift.check_size()?;
        self.lift.build(false).map_err(|e| e.to_string())?;
        if self.lift_digest != self.lift.digest() {
            return Err("its lift is not the one that this program makes from the same seed".to_owned());
        }
        if let Some(Calibration { temperature, .. }) = &self.calibration
            && !(temperature.is_finite() && *temperature > 0.0)
        {
            return Err(format!("its temperature is {temperature}, which should be above 0"));
        }
        let Losses { lost, largest, dropped, cuts, removed, capped, assumed } = self.losses;
        let bounds = self.evicted.iter().flat_map(|evicted| [evicted.error, evicted.latest]);
        if [lost, largest, dropped].into_iter().chain(bounds).any(|loss| !(loss.is_finite() && loss >= 0.0)) {
            return Err("its losses are not numbers from 0 on".to_owned());
        }
        let evicted = self.evicted.iter().flat_map(|evicted| [evicted.samples, evicted.unlabelled, evicted.evictions]);
        let counts =
            [self.samples, cuts, removed, capped, assumed, self.latest_cut.directions].into_iter().chain(evicted);
        if let Some(count) = counts.map(|count| count as u64).find(|count| *count > MOST) {
            return Err(format!("{count} samples or directions are more than it can have"));
        }
        let expected = if self.keeps_samples() { 0 } else { self.classes.len() };
        let places = |place: fn(&Places) -> &Place| {
            let all = self.classes.iter().filter_map(|class| class.places.as_ref()).map(place);
            all.map(|place| (&place.file, place.row)).collect::<BTreeSet<_>>().len()
        };
        if places(|places| &places.sums) != expected || places(|places| &places.cross) != expected {
            return Err("two classes share their numbers".to_owned());
        }
        let explicit = !self.basis.is_empty() || !self.gram.is_empty();
        let infinite = !self.kept.is_empty() || self.evicted.is_some();
        if (explicit && self.keeps_samples()) || (infinite && !self.keeps_samples()) {
            return Err("its parts are not those of a model with its lift".to_owned());
        }
        let Encoder { samples, mean, squares, .. } = &self.encoder;
        let described =
            mean.len() == squares.len() && (mean.len() == self.lift.dim || (mean.is_empty() && *samples == 0));
        if !described || *samples as u64 > MOST || self.version > MOST || !self.lift.gamma.is_finite() {
            return Err("what it says about its features is not possible".to_owned());
        }
        let labels: BTreeSet<&Label> = self.classes.iter().map(|class| &class.label).collect();
        if labels.len() != self.classes.len() {
            return Err("two classes have the same label".to_owned());
        }
        let parts = self.basis.iter().try_fold(0usize, |rank, part| rank.checked_add(part.columns));
        let labelled = self.classes.iter().try_fold(0usize, |sum, class| sum.checked_add(class.count));
        if parts.is_none_or(|rank| rank > self.lift.computed() && !self.keeps_samples()) {
            return Err("the basis has more directions than the lifted features".to_owned());
        }
        if labelled.is_none_or(|labelled| labelled > self.samples) {
            return Err("there are more labels than samples".to_owned());
        }
        self.check_sizes()
    }

    /// Whether the sizes of all parts fit together.
    fn check_sizes(&self) -> Result<(), String> {
        let (width, rank) = (self.lift.computed(), self.rank());
        let mut known = 0;
        for step in &self.gram {
            known = match *step {
                GramStep::Whole { rank, .. } => rank,
                GramStep::Grow { rows, .. } if rows >= known => rows,
                GramStep::Grow { .. } => return Err("its Gram matrix shrinks".to_owned()),
            };
        }
        if !self.keeps_samples() && known != rank {
            return Err(format!("its basis has {rank} directions, its Gram matrix {known}"));
        }
        for Places { sums, cross } in self.classes.iter().filter_map(|class| class.places.as_ref()) {
            let inside = |place: &Place| place.row < place.shape[0];
            if !inside(sums) || !inside(cross) || sums.shape[1] != width || cross.shape[1] > rank {
                return Err("the numbers of a class are not of the size of the model".to_owned());
            }
        }
        self.check_files()?;
        match &self.evicted {
            Some(part) if part.shape[0] > self.classes.len() || part.shape[1] > rank => {
                Err("what removed samples have left is larger than the model".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Manifest {
    /// Whether each file has room for its parts. Sizes that lie are damage; nobody should estimate memory by them.
    fn check_files(&self) -> Result<(), String> {
        let (width, rank, dim, classes) = (self.lift.computed(), self.rank(), self.lift.dim, self.classes.len());
        let basis = self.basis.iter().map(|part| (&part.file, part.columns, width, 4));
        let gram = self.gram.iter().map(|step| match step {
            GramStep::Whole { file, rank } => (file, *rank, rank.saturating_add(1), 4),
            GramStep::Grow { file, rows, columns, .. } => (file, *rows, *columns, 8),
        });
        let places = self.classes.iter().filter_map(|class| class.places.as_ref());
        let places = places.flat_map(|Places { sums, cross }| {
            [(&sums.file, sums.shape[0], sums.shape[1], 4), (&cross.file, cross.shape[0], cross.shape[1], 8)]
        });
        let size = if self.config.half { 2 } else { 4 };
        let kept = self.kept.iter().map(|part| (&part.file, part.samples, dim, size));
        let evicted = self.evicted.iter().map(|part| (&part.file, part.shape[1], part.shape[1].saturating_add(1), 4));
        let weights = self.weights.iter().map(|weights| match self.keeps_samples() {
            true => (&weights.file, classes, rank, 8),
            false => (&weights.file, classes, width, 4),
        });
        let mut parts = basis.chain(gram).chain(places).chain(kept).chain(evicted).chain(weights);
        let fits = |file: &str, rows: usize, columns: usize, size: u64| {
            let bytes = (rows as u64).saturating_mul(columns as u64).saturating_mul(size);
            self.files.get(file).is_some_and(|entry| bytes <= entry.bytes)
        };
        match parts.find(|&(file, rows, columns, size)| !fits(file, rows, columns, size)) {
            Some((file, rows, columns, _)) => {
                Err(format!("the file {file} has no room for {rows} x {columns} numbers"))
            }
            None => Ok(()),
        }
    }

    /// Reads the manifest of an earlier version, which must be the one that its name tells.
    pub(crate) fn read_kept(path: &Path, version: u64) -> Result<Manifest, Error> {
        let manifest = Manifest::read(path)?;
        match manifest.version == version {
            true => Ok(manifest),
            false => Err(Error::damaged(path, format!("it is the manifest of version {}", manifest.version))),
        }
    }
}

/// A manifest of version 0.1.0 in which the bound on dropped residuals is missing.
fn without_null(json: &[u8]) -> serde_json::Result<Manifest> {
    let mut value: serde_json::Value = serde_json::from_slice(json)?;
    if let Some(dropped) = value.pointer_mut("/losses/dropped").filter(|dropped| dropped.is_null()) {
        *dropped = UNKNOWN_LOSS.into();
    }
    serde_json::from_value(value)
}
