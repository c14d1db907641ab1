//! A progress bar with an ETA, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use loranpac_bench::run::Progress;
use loranpac_bench::sweep::Event;
use loranpac_data::text::escape;

use crate::say::note;

/// Ticks of the bar: fine enough for a smooth ETA.
const TICKS: u64 = 10_000;

/// The progress of a run; draws nothing if standard error is not a terminal, or if `quiet`.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(name: &str, quiet: bool) -> Bar {
        let bar = ProgressBar::with_draw_target(
            Some(TICKS),
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() },
        );
        let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3}%  {msg}  {elapsed}, ETA {eta}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_prefix(escape(name).into_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        Bar(bar)
    }

    pub fn update(&self, progress: Progress<'_>) {
        let accuracy = progress.record.accuracy_samples.map_or(String::new(), |a| format!(", {a:.1}%"));
        self.0.set_message(format!("task {}/{}{accuracy}", progress.done, progress.tasks));
        self.0.set_position((progress.share * TICKS as f64) as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The number of processed samples of a file.
pub struct Count(ProgressBar);

impl Count {
    pub fn new(name: &str, total: Option<u64>, quiet: bool) -> Count {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(total, target);
        let template = match total {
            Some(_) => "{prefix} {bar:30} {percent:>3}%  {human_pos} samples  {elapsed}, ETA {eta}",
            None => "{prefix} {spinner} {human_pos} samples  {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(escape(name).into_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        Count(bar)
    }

    pub fn add(&self, samples: u64) {
        self.0.inc(samples);
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The progress of a sweep: finished runs, the current run, and an ETA for all of it. Notes and finished runs are
/// printed on standard error, a line each, whether it is a terminal or not.
pub struct SweepBar {
    bar: ProgressBar,
    runs: usize,
    quiet: bool,
}

impl SweepBar {
    pub fn new(runs: usize, quiet: bool) -> SweepBar {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(TICKS), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}  {elapsed}, ETA {eta}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        SweepBar { bar, runs, quiet }
    }

    /// Prints a line above the bar.
    pub fn note(&self, text: &str) {
        self.say(&format!("note: {text}"));
    }

    fn say(&self, line: &str) {
        if self.quiet {
            return;
        }
        if self.bar.is_hidden() {
            note!("{line}");
        } else {
            self.bar.println(escape(line));
        }
    }

    pub fn update(&self, event: Event<'_>) {
        match event {
            Event::Start { number, data, spec } => {
                let runs = self.runs;
                let title = escape(data.title());
                self.bar.set_message(format!("run {number}/{runs}: {} on {title}", spec.method));
            }
            Event::Task { share, .. } => self.bar.set_position((share * TICKS as f64) as u64),
            Event::Done { cached: true, .. } => {}
            Event::Done { record, .. } => {
                let accuracy = record.run.final_accuracy_samples.map_or(String::new(), |a| format!("  {a:.2}%"));
                self.say(&format!("{}{accuracy}", record.command()));
            }
            Event::Adapt(words) => self.bar.set_message(words.to_owned()),
            Event::Note(text) => self.note(&text),
        }
    }
}

impl Drop for SweepBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
