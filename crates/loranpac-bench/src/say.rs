//! What runs tell while they train inside an encoder.

use std::ops::ControlFlow;

use crate::error::Error;

/// Something to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// What is going on.
    Progress(&'a str),
    /// What the user should know, although the run goes on.
    Warning(&'a str),
}

/// Called with what there is to show; breaks to stop.
pub type Say<'a> = &'a mut dyn FnMut(Notice<'_>) -> ControlFlow<()>;

/// Shows progress.
pub(crate) fn progress(say: Say<'_>, words: &str) -> Result<(), Error> {
    if say(Notice::Progress(words)).is_break() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Shows a warning.
pub(crate) fn warn(say: Say<'_>, words: &str) -> Result<(), Error> {
    if say(Notice::Warning(words)).is_break() { Err(Error::Interrupted) } else { Ok(()) }
}
