//! Errors of models on disk.

use std::io;
use std::path::{Path, PathBuf};

use loranpac::Width;
use loranpac::internals::count;
use loranpac::lift::Operation;
use loranpac_data::ReadError;

/// An error of a model, or of a file derived from one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened or read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The model was replaced, but the change may not survive a power cut.
    #[error("{path} has changed, but it may not survive a power cut: {source}", path = path.display())]
    NotDurable {
        /// The model.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The contents of a file are invalid.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// A file of the model is missing.
    #[error("{path} is missing, but the model needs it", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The path of a new model or file is taken.
    #[error("{path} exists already; choose another name, or remove it", path = path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// A file seems intact, but is of another kind.
    #[error("{path} is not a {expected} file: {found}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The kind that was expected.
        expected: &'static str,
        /// The kind that was found.
        found: String,
    },
    /// The version of a file is not supported.
    #[error("{path} is of version {found}, but this program reads version {known}; a newer program may read it", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The supported version.
        known: u32,
    },
    /// The digest of a file does not match its contents.
    #[error("{path} is damaged: the sha256 digest of its weights is {found}, but should be {expected}", path = path.display())]
    Digest {
        /// The file.
        path: PathBuf,
        /// The digest in the header.
        expected: String,
        /// The digest of the bytes.
        found: String,
    },
    /// A weight is beyond the range of half precision.
    #[error("class {class} has the weight {value}, beyond half precision's largest number 65504; use single precision")]
    HalfRange {
        /// The label of the class.
        class: String,
        /// The weight.
        value: f32,
    },
    /// A folder holds no model.
    #[error("{path} is not a model; create one with: loranpac init", path = path.display())]
    NoModel {
        /// The folder.
        path: PathBuf,
    },
    /// Another process has the model open for writing.
    #[error("{path} is being changed by another process; try again later", path = path.display())]
    Locked {
        /// The model.
        path: PathBuf,
    },
    /// The session cannot write: it was opened for reading, or an earlier write has failed.
    #[error(
        "{path} cannot be changed by this session, which was opened to be read only or has failed to write; open the model \
         again for writing",
        path = path.display()
    )]
    ReadOnly {
        /// The model.
        path: PathBuf,
    },
    /// The session is in memory.
    #[error("the model has no folder; save it to one first")]
    NoFolder,
    /// The session belongs to a folder, and cannot be saved to another.
    #[error("this session belongs to {path}: commit it, or copy the model with save_copy", path = path.display())]
    HasFolder {
        /// The folder of the session.
        path: PathBuf,
    },
    /// The folder holds another version or another model than the session.
    #[error(
        "{path} was changed by another process, or is another model; `overwrite` replaces it by this one, as its next version",
        path = path.display()
    )]
    OtherModel {
        /// The folder.
        path: PathBuf,
    },
    /// The path of a new model has no last component.
    #[error("{path} does not name a folder; give a name such as model.lrp", path = path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// The hidden folder in which a new model is built is something else.
    #[error("{path} is not a folder, but a new model is built there; remove it", path = path.display())]
    InTheWay {
        /// The path.
        path: PathBuf,
    },
    /// An output file would be written into the folder of a model.
    #[error("{path} is inside a model's folder, where only loranpac itself writes; give another place", path = path.display())]
    InsideModel {
        /// The path.
        path: PathBuf,
    },
    /// The same edit was applied before, and samples have been learned since.
    #[error(
        "the same {command} was applied before (version {version}), and samples have been learned since. If these are among \
         them, apply it once more with `again`"
    )]
    AppliedBefore {
        /// The edit.
        command: &'static str,
        /// The version that applied it.
        version: u64,
    },
    /// The version to roll back to is not kept.
    #[error("{}; {}", wanted(*version), listed(kept))]
    NotKept {
        /// The version; `None` stands for any earlier one.
        version: Option<u64>,
        /// The versions that are kept, the latest first.
        kept: Vec<u64>,
    },
    /// A merge of no models.
    #[error("there are no models to merge; name at least one")]
    NothingToMerge,
    /// Models with different lifts cannot be merged.
    #[error(
        "{first} and {second} have different lifts ({first_lift} and {second_lift}), and cannot be merged; seed, width and kind \
         must be the same"
    )]
    DifferentLifts {
        /// The first model.
        first: String,
        /// The model that differs from it.
        second: String,
        /// The lift of the first model.
        first_lift: String,
        /// The lift of the other one.
        second_lift: String,
    },
    /// Models with different settings cannot be merged.
    #[error("{first} and {second} have different settings, and cannot be merged; create both with the same options")]
    DifferentSettings {
        /// The first model.
        first: String,
        /// The model that differs from it.
        second: String,
    },
    /// Two models of a merge have learned the same task.
    #[error("{model}: {task} was also learned by another of the models; `again` counts it twice")]
    LearnedTwice {
        /// The second model that has learned it.
        model: String,
        /// The name of the task.
        task: String,
    },
    /// Features come from another encoder than the model's.
    #[error("another encoder: {difference}")]
    OtherEncoder {
        /// Both encoders.
        difference: String,
    },
    /// A lift has too many features.
    #[error(
        "a lift from {} to width {width} is too large: at most {most_features} features and a width of {most_width} are possible",
        count(*dim, "feature")
    )]
    LiftSize {
        /// Number of input features, d.
        dim: usize,
        /// Number of lifted features, E.
        width: Width,
        /// The largest number of input features.
        most_features: usize,
        /// The largest width.
        most_width: usize,
    },
    /// The manifest would be too large.
    #[error("the model cannot be written: its manifest would have {bytes} bytes; it has too many tasks or classes")]
    ManifestSize {
        /// Its size.
        bytes: usize,
    },
    /// The model violates a condition that its reader checks.
    #[error("the model cannot be written: {reason}")]
    Unwritable {
        /// The condition.
        reason: String,
    },
    /// A model of infinite width has no weights to export.
    #[error("a model of infinite width cannot be exported: its scores need its samples; predict with the model itself")]
    InfiniteWidth,
    /// A tensor is too large for an ONNX file.
    #[error("{rows} x {columns} numbers are too many for an ONNX file; use a model of a smaller width")]
    TensorSize {
        /// Rows of the tensor.
        rows: usize,
        /// Columns of the tensor.
        columns: usize,
    },
    /// The file name of an ONNX model cannot be written into the model.
    #[error("{path} has no name that ONNX could refer to; give a name in plain text", path = path.display())]
    OnnxName {
        /// The path.
        path: PathBuf,
    },
    /// ONNX export does not support an operation of the lift.
    #[error("ONNX export does not support {operation:?} of {lift}; export an inference file instead")]
    OnnxOperation {
        /// The operation.
        operation: Operation,
        /// The lift.
        lift: String,
    },
    /// Probabilities were requested of a model without a temperature.
    #[error("probabilities need a temperature, fitted on held-out data; this model has none")]
    NoTemperature,
    /// The temperature is zero or infinite in single precision.
    #[error("the temperature {temperature} is beyond single precision; calibrate the model again")]
    TemperatureRange {
        /// The temperature.
        temperature: f64,
    },
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] loranpac::Error),
}

impl Error {
    /// Returns whether the contents of a file are damaged. Unreadable and newer files are not.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Damaged { .. } | Error::Missing { .. } | Error::Digest { .. })
    }

    /// Creates the error of a file that cannot be read.
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| ReadError::new(path, source).into()
    }

    /// Creates the error of a file that cannot be written.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| Error::Write { path: path.to_owned(), source }
    }

    /// Creates the error of a damaged file.
    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Error {
        Error::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Names the missing version of a rollback.
fn wanted(version: Option<u64>) -> String {
    match version {
        Some(version) => format!("version {version} is not kept"),
        None => "there is no version to go back to".to_owned(),
    }
}

/// Lists the versions that are kept.
fn listed(kept: &[u64]) -> String {
    if kept.is_empty() {
        return "no earlier version is kept".to_owned();
    }
    format!("kept: {}", kept.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
}
