//! All output of the program. Text from files is escaped, a closed pipe is not a failure, and output that cannot be
//! written is an error instead of a panic.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use loranpac_data::text::{escape, escape_json, escape_lines};

/// Writes a line to standard output; returns an error if that fails.
macro_rules! say {
    ($($words:tt)*) => { $crate::say::lines(&format!("{}\n", format_args!($($words)*))) };
}

/// Writes a line to standard error. A failure is ignored.
macro_rules! note {
    ($($words:tt)*) => { $crate::say::aside(&format!($($words)*)) };
}

pub(crate) use {note, say};

/// The error of output that cannot be written.
#[derive(Debug)]
pub struct Unwritten {
    source: io::Error,
    /// The file, unless it is standard output.
    file: Option<PathBuf>,
    /// Whether the command had already changed the model.
    changed: bool,
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = if self.changed { "the model has been changed, but " } else { "" };
        // Without the error number that Rust appends to the system's message.
        let reason = self.source.to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default();
        match &self.file {
            None => write!(f, "{before}cannot write the output: {reason}"),
            Some(file) => write!(f, "{before}cannot write {}: {reason}", file.display()),
        }
    }
}

impl std::error::Error for Unwritten {}

impl Unwritten {
    pub fn new(source: io::Error) -> Unwritten {
        Unwritten { source, file: None, changed: false }
    }

    /// Creates the error of a file that cannot be written.
    pub fn file(path: &Path, source: io::Error) -> Unwritten {
        Unwritten { file: Some(path.to_owned()), ..Unwritten::new(source) }
    }

    /// Returns whether the reader of standard output has closed it.
    pub fn is_closed(&self) -> bool {
        self.file.is_none() && self.source.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Marks output that follows a change of the model on disk.
pub fn changed(printed: Result<(), Unwritten>) -> Result<(), Unwritten> {
    printed.map_err(|error| Unwritten { changed: true, ..error })
}

/// Writes text to standard output; control characters other than line ends are escaped.
pub fn lines(text: &str) -> Result<(), Unwritten> {
    bytes(escape_lines(text).as_bytes())
}

/// Writes JSON to standard output: still valid, and without raw control characters.
pub fn json(text: &str) -> Result<(), Unwritten> {
    bytes(escape_json(text).as_bytes())
}

/// Writes bytes to standard output unchanged.
pub fn bytes(bytes: &[u8]) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    // Without a flush, errors of the remaining buffer would be lost at the end of the process.
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Unwritten::new)
}

/// Writes one line to standard error.
pub fn aside(text: &str) {
    let _ = writeln!(io::stderr(), "{}", escape(text));
}
