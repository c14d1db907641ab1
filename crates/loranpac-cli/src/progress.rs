//! A progress bar with an ETA, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use loranpac_eval::run::Progress;

/// Ticks of the bar: fine enough for a smooth ETA.
const TICKS: u64 = 10_000;

/// Shows how far a run is; draws nothing when standard error is not a terminal, or when told to be quiet.
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
        bar.set_prefix(name.to_owned());
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
