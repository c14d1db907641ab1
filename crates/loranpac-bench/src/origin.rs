//! Where a report comes from: when, on which machine, by which version and command.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use loranpac::internals::count;
use loranpac::memory::human_bytes;
use loranpac_data::text::{escape, escape_markdown};

use crate::run::{EncoderFacts, Run};

/// Facts for the foot of a report, each with a name.
pub struct Origin<'a> {
    /// The command.
    pub command: &'a str,
    /// Everything else.
    pub facts: Vec<(&'static str, String)>,
}

impl<'a> Origin<'a> {
    /// Now, on this machine, of these runs.
    pub fn here<'r>(command: &'a str, runs: impl Iterator<Item = &'r Run> + Clone) -> Origin<'a> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let threads: BTreeSet<usize> = runs.clone().map(|run| run.config.threads).collect();
        let threads: Vec<String> = threads.iter().map(usize::to_string).collect();
        let encoders: BTreeSet<&EncoderFacts> = runs.filter_map(|run| run.dataset.encoder.as_ref()).collect();
        let encoder = |by: &&EncoderFacts| ("Encoder", format!("{}, digest {}", by.name, by.digest));
        let mut facts = vec![
            ("Written", date(seconds)),
            ("Machine", machine()),
            ("Threads of the runs", threads.join(", ")),
            ("Version", format!("loranpac {}", env!("CARGO_PKG_VERSION"))),
        ];
        facts.extend(encoders.iter().map(encoder));
        Origin { command, facts }
    }

    /// As the last section of a Markdown file.
    pub fn markdown(&self) -> String {
        let facts: String =
            self.facts.iter().map(|(name, fact)| format!("- {name}: {}\n", escape_markdown(fact))).collect();
        format!("\n## Origin\n\n{facts}- Command:\n\n      {}\n", escape(self.command))
    }
}

/// The processor's name, the number of cores and the memory, as far as the system tells.
fn machine() -> String {
    let field = |file: &str, key: &str| {
        let text = std::fs::read_to_string(file).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    let name = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("/proc/meminfo", "MemTotal:").and_then(|text| text.split(' ').next()?.parse::<usize>().ok());
    let memory = memory.map_or(String::new(), |kilobytes| format!(", {} of memory", human_bytes(kilobytes << 10)));
    format!("{name}, {}{memory}, {}", count(cores, "core"), std::env::consts::OS)
}

/// Seconds since 1970 as a date and a time, UTC.
fn date(seconds: u64) -> String {
    // Years that begin in March: a leap day is the last day of its year.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{:04}-{month:02}-{day:02} {hours:02}:{minutes:02} UTC", era * 400 + year + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_by_hand() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(951_868_800), "2000-03-01 00:00 UTC");
        assert_eq!(date(4_102_444_800), "2100-01-01 00:00 UTC");
    }
}
