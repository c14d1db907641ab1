//! Validation of a manifest, before any file is opened.

use std::collections::BTreeSet;

use loranpac::Label;
use loranpac::internals::{Losses, count};

use super::{Calibration, GramStep, Manifest, Place, Places};
use crate::encoder::Encoder;

/// The maximum of all counts, so that sums do not overflow and are exact as f64.
const MOST: u64 = 1 << 53;

impl Manifest {
    /// Checks all invariants that need no other file.
    pub(crate) fn check(&self) -> Result<(), String> {
        // Only names of segments are valid: no path outside the folder can be named.
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
        self.lift.check_size().map_err(|e| e.to_string())?;
        self.lift.build(false).map_err(|e| e.to_string())?;
        if self.width_choice.is_some_and(|choice| choice.width != self.lift.width) {
            return Err("its width is not the one that was chosen".to_owned());
        }
        if self.lift_digest != self.lift.digest() {
            return Err("its lift differs from the one that this program generates from the same seed".to_owned());
        }
        if let Some(Calibration { temperature, .. }) = &self.calibration
            && !(temperature.is_finite() && *temperature > 0.0)
        {
            return Err(format!("its temperature is {temperature}, which should be above 0"));
        }
        self.prior.clone().validate().map_err(|e| e.to_string())?;
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
        let places = |place: fn(&Places) -> Option<&Place>| {
            let all = self.classes.iter().filter_map(|class| class.places.as_ref()).filter_map(place);
            all.map(|place| (&place.file, place.row)).collect::<BTreeSet<_>>().len()
        };
        let sums = places(|places| places.sums.as_ref());
        if places(|places| Some(&places.cross)) != expected || (sums != expected && !self.whole) {
            return Err("two classes share their numbers".to_owned());
        }
        if !self.whole && self.gram.iter().any(|step| matches!(step, GramStep::Grid { .. })) {
            return Err("its Gram matrix is in fixed point, but its basis is not that of all unit vectors".to_owned());
        }
        let explicit = !self.basis.is_empty() || !self.gram.is_empty();
        let infinite = !self.kept.is_empty() || self.evicted.is_some();
        if (explicit && self.keeps_samples()) || (infinite && !self.keeps_samples()) {
            return Err("its parts are not those of a model with its lift".to_owned());
        }
        self.encoder.identity().check()?;
        let Encoder { samples, mean, squares, .. } = &self.encoder;
        let described =
            mean.len() == squares.len() && (mean.len() == self.lift.dim || (mean.is_empty() && *samples == 0));
        if !described || *samples as u64 > MOST || self.version > MOST || !self.lift.gamma.is_finite() {
            return Err("its feature statistics are not valid".to_owned());
        }
        let labels: BTreeSet<&Label> = self.classes.iter().map(|class| &class.label).collect();
        if labels.len() != self.classes.len() {
            return Err("two classes have the same label".to_owned());
        }
        if self.whole && (self.keeps_samples() || !self.basis.is_empty()) {
            return Err("a basis of all unit vectors has no parts".to_owned());
        }
        let parts = self.basis.iter().try_fold(0usize, |rank, part| rank.checked_add(part.columns));
        let labelled = self.classes.iter().try_fold(0usize, |sum, class| sum.checked_add(class.count));
        if parts.is_none_or(|rank| rank > self.lift.computed() && !self.keeps_samples()) {
            return Err("the basis has more directions than the lifted features".to_owned());
        }
        if labelled.is_none_or(|labelled| labelled > self.samples) {
            return Err("there are more labels than samples".to_owned());
        }
        let masses = self.classes.iter().filter_map(|class| class.mass);
        if masses.clone().chain(self.mass).any(|mass| !(mass.is_finite() && mass >= 0.0)) {
            return Err("its weights are not numbers from 0 on".to_owned());
        }
        let weighted = masses.count();
        if weighted != if self.mass.is_some() { self.classes.len() } else { 0 }
            || (self.mass.is_none() && self.kept.iter().any(|part| part.weighted))
        {
            return Err("some of its weights are missing".to_owned());
        }
        self.check_sizes()
    }

    /// Checks that the sizes of all parts fit together.
    fn check_sizes(&self) -> Result<(), String> {
        let (width, rank) = (self.lift.computed(), self.rank());
        let mut known = 0;
        for step in &self.gram {
            known = match *step {
                GramStep::Whole { rank, .. } | GramStep::Grid { rank, .. } => rank,
                GramStep::Grow { rows, .. } if rows >= known => rows,
                GramStep::Grow { .. } => return Err("its Gram matrix shrinks".to_owned()),
            };
        }
        if !self.keeps_samples() && known != rank {
            return Err(format!("its basis has {}, its Gram matrix {known}", count(rank, "direction")));
        }
        for Places { sums, cross } in self.classes.iter().filter_map(|class| class.places.as_ref()) {
            let inside = |place: &Place| place.row < place.shape[0];
            let fits = |sums: &Place| inside(sums) && sums.shape[1] == width;
            if !sums.iter().all(fits) || !inside(cross) || cross.shape[1] > rank {
                return Err("the numbers of a class are not of the size of the model".to_owned());
            }
        }
        self.check_files()?;
        match &self.evicted {
            Some(part) if part.shape[0] > self.classes.len() || part.shape[1] > rank => {
                Err("the contribution of evicted samples is larger than the model".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Checks that each file has room for its parts. Wrong sizes are damage, and must not enter memory estimates.
    fn check_files(&self) -> Result<(), String> {
        let (width, rank, dim, classes) = (self.lift.computed(), self.rank(), self.lift.dim, self.classes.len());
        let basis = self.basis.iter().map(|part| (&part.file, part.columns, width, 4));
        let gram = self.gram.iter().map(|step| match step {
            GramStep::Whole { file, rank } => (file, *rank, rank.saturating_add(1), 4),
            GramStep::Grid { file, rank } => (file, *rank, rank.saturating_sub(1), 2),
            GramStep::Grow { file, rows, columns, single, .. } => (file, *rows, *columns, if *single { 4 } else { 8 }),
        });
        let places = self.classes.iter().filter_map(|class| class.places.as_ref());
        let places = places.flat_map(|Places { sums, cross }| {
            let sums = sums.iter().map(|place| (place, 4));
            sums.chain([(cross, 8)]).map(|(place, size)| (&place.file, place.shape[0], place.shape[1], size))
        });
        let size = if self.config.half { 2 } else { 4 };
        let kept = self.kept.iter().map(|part| (&part.file, part.samples, dim, size));
        let evicted = self.evicted.iter().map(|part| (&part.file, part.shape[1], part.shape[1].saturating_add(1), 4));
        let own = self.kept.iter().filter(|part| part.weighted).map(|part| (&part.file, part.samples, 1, 8));
        let weights = self.weights.iter().map(|weights| match self.keeps_samples() {
            true => (&weights.file, classes, rank, 8),
            false => (&weights.file, classes, width, 4),
        });
        let lower = self.lower_parts().map(|(part, numbers)| (&part.file, 1, numbers, 8));
        let mut parts =
            basis.chain(lower).chain(gram).chain(places).chain(kept).chain(own).chain(evicted).chain(weights);
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
}
