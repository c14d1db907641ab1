//! Sweeps with a progress bar, notes, and Ctrl-C.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use loranpac_bench::Error;
use loranpac_bench::record::Record;
use loranpac_bench::sweep::{Event, Sweep};

use crate::progress::SweepBar;
use crate::say::note;

/// The exit code of a program that was interrupted by Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Runs a sweep. Its notes are printed and added to `notes`; `place` is the folder of finished runs, if they are kept.
pub fn run(sweep: &Sweep<'_>, quiet: bool, notes: &mut Vec<String>, place: Option<&Path>) -> Result<Vec<Record>> {
    let stop = on_interrupt()?;
    let bar = SweepBar::new(sweep.count(), quiet);
    notes.iter().for_each(|note| bar.note(note));
    let mut watch = |event: Event<'_>| {
        if let Event::Note(text) = &event {
            notes.push(text.clone());
        }
        bar.update(event);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match sweep.run(&mut watch) {
        Err(Error::Interrupted) => {
            drop(bar);
            match place.map(Path::display) {
                Some(place) => {
                    note!("interrupted; finished runs are in {place}, rerun the command to resume");
                }
                None => note!("interrupted; with --report DIR finished runs are kept, and the next call resumes"),
            }
            std::process::exit(INTERRUPTED);
        }
        other => Ok(other?),
    }
}

/// Returns a flag that Ctrl-C sets; a second Ctrl-C ends the program at once.
fn on_interrupt() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
        // Below the bar.
        note!("");
        note!("stopping after this task; Ctrl-C again stops at once");
    })
    .context("cannot watch for Ctrl-C")?;
    Ok(stop)
}
