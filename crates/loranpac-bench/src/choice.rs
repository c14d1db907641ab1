//! Whether adaptation helps, measured on classes that it has not seen.
//!
//! Most classes of a stream come after adaptation. What it does for them is rehearsed with the samples of the first task alone: its classes are
//! divided into two halves, the encoder is adapted to each, and the samples of the other half are classified among all classes of the task.
//!
//! A first task has few classes, and class means tell them apart almost without errors, whatever the features. They are therefore classified with
//! one sample per class, in rounds: in round r, sample r of each class stands for it. `s(x)` is the share of rounds in which x is classified
//! correctly (by cosine; x itself does not stand for its class).
//!
//! ```text
//! d_c = mean over samples x of class c of s_adapted(x) - s_frozen(x)
//! gain = mean over classes of d_c,    error = standard deviation of d_c / sqrt(classes)
//! ```
//!
//! Samples of a class change together, so that classes, not samples, are what the error counts. Adapted features, alone or beside frozen ones,
//! are chosen if `gain > MARGIN error`, and if class means (of all samples but the one in question) classify no fewer samples correctly.

use serde::{Deserialize, Serialize};

/// Standard errors by which features must be better than those of the encoder as it is.
pub const MARGIN: f64 = 3.0;

/// Rounds at most.
const ROUNDS: usize = 32;

/// Features of an encoder before and after adaptation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Those of the encoder as it is.
    Frozen,
    /// Those after adaptation.
    Adapted,
    /// Both side by side.
    Both,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Frozen => "frozen",
            Kind::Adapted => "adapted",
            Kind::Both => "both",
        }
    }
}

/// What was measured of some features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Accuracy with one sample per class, in percent.
    pub one_shot: f64,
    /// Accuracy of class means, in percent.
    pub means: f64,
    /// How far the former is above that of frozen features, in points.
    pub gain: f64,
    /// The standard error of the gain.
    pub error: f64,
}

impl Measured {
    /// How far the gain is above the margin; negative if it is not.
    fn beyond(&self) -> f64 {
        self.gain - MARGIN * self.error
    }
}

/// Which features a run learns from, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The features.
    pub chosen: Kind,
    /// Samples that were classified; 0 if the first task has fewer than four classes, or one sample per class.
    pub samples: usize,
    /// Frozen, adapted and both features.
    pub measured: Option<[Measured; 3]>,
}

impl Choice {
    /// Frozen features, because a task has too few classes to rehearse.
    pub fn too_few() -> Choice {
        Choice { chosen: Kind::Frozen, samples: 0, measured: None }
    }

    /// In one line.
    pub fn words(&self) -> String {
        let Some([frozen, adapted, both]) = self.measured else {
            return "frozen features are used: a first task of four classes or more is needed to choose".to_owned();
        };
        let gain = |name: &str, of: Measured| format!("{name} {:+.2} ± {:.2}", of.gain, of.error);
        format!(
            "{} features are used: one sample per class classifies {} samples of classes that adaptation did not see, frozen {:.2}%, {}, {}",
            self.chosen.name(),
            self.samples,
            frozen.one_shot,
            gain("adapted", adapted),
            gain("both", both),
        )
    }
}

/// How samples of new classes are classified by frozen features, by adapted ones, and by both side by side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rehearsal {
    samples: Vec<Sample>,
}

/// A sample: its class, and for each kind of features the share of rounds in which it is classified correctly, and whether class means do.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    class: usize,
    shares: [f64; 3],
    hits: [bool; 3],
}

impl Rehearsal {
    /// Classifies the samples of new classes among all. Features have `dim` numbers each; `classes` are those of the samples.
    pub fn add(&mut self, dim: usize, [frozen, adapted]: [&[f32]; 2], classes: &[usize], new: impl Fn(usize) -> bool) {
        let both: Vec<f32> = frozen.chunks(dim).zip(adapted.chunks(dim)).flat_map(|(a, b)| [a, b].concat()).collect();
        let [frozen, adapted, both] =
            [(dim, frozen), (dim, adapted), (2 * dim, &both[..])].map(|(dim, x)| classify(dim, x, classes, &new));
        for ((frozen, adapted), both) in frozen.into_iter().zip(adapted).zip(both) {
            let all = [frozen, adapted, both];
            self.samples.push(Sample { class: frozen.0, shares: all.map(|x| x.1), hits: all.map(|x| x.2) });
        }
    }

    /// Chooses features.
    pub fn choose(&self) -> Choice {
        let measured = [0, 1, 2].map(|kind| self.measure(kind));
        let [frozen, adapted, both] = measured;
        let fits = |of: &Measured| of.beyond() > 0.0 && of.means >= frozen.means;
        let chosen = match (fits(&adapted), fits(&both)) {
            (true, true) if both.beyond() > adapted.beyond() => Kind::Both,
            (true, _) => Kind::Adapted,
            (_, true) => Kind::Both,
            _ => Kind::Frozen,
        };
        Choice { chosen, samples: self.samples.len(), measured: Some(measured) }
    }

    fn measure(&self, kind: usize) -> Measured {
        let last = self.samples.iter().map(|sample| sample.class).max().map_or(0, |last| last + 1);
        let differences: Vec<f64> = (0..last)
            .filter_map(|class| {
                let own = self.samples.iter().filter(|sample| sample.class == class);
                mean(own.map(|sample| 100.0 * (sample.shares[kind] - sample.shares[0])))
            })
            .collect();
        let count = differences.len() as f64;
        let gain = mean(differences.iter().copied()).unwrap_or(0.0);
        let squares: f64 = differences.iter().map(|d| (d - gain).powi(2)).sum();
        Measured {
            one_shot: mean(self.samples.iter().map(|sample| 100.0 * sample.shares[kind])).unwrap_or(0.0),
            means: mean(self.samples.iter().map(|sample| if sample.hits[kind] { 100.0 } else { 0.0 })).unwrap_or(0.0),
            gain,
            error: (squares / (count - 1.0).max(1.0) / count.max(1.0)).sqrt(),
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), x| (sum + x, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The samples of new classes: class, share of rounds with a correct answer, and whether class means answer correctly. Samples that are alone in
/// their class are left out.
fn classify(dim: usize, x: &[f32], classes: &[usize], new: impl Fn(usize) -> bool) -> Vec<(usize, f64, bool)> {
    let rows: Vec<Vec<f64>> = x.chunks(dim).map(unit).collect();
    let count = classes.iter().max().map_or(0, |last| last + 1);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut sums = vec![vec![0.0f64; dim]; count];
    for (at, class) in classes.iter().enumerate() {
        members[*class].push(at);
        sums[*class].iter_mut().zip(&x[at * dim..][..dim]).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let rounds = members.iter().map(Vec::len).max().unwrap_or(0).min(ROUNDS);
    let stands_for = |class: usize, round: usize| members[class].get(round % members[class].len().max(1)).copied();
    let known: Vec<usize> = (0..count).filter(|class| !members[*class].is_empty()).collect();
    let mut found = Vec::new();
    for (at, class) in classes.iter().enumerate().filter(|(_, class)| new(**class) && members[**class].len() > 1) {
        let row = &rows[at];
        let others = || known.iter().copied().filter(|other| other != class);
        let (mut right, mut asked) = (0, 0);
        for round in 0..rounds {
            let Some(own) = stands_for(*class, round).filter(|own| *own != at) else { continue };
            let score = dot(row, &rows[own]);
            asked += 1;
            let beaten = |other: usize| stands_for(other, round).is_none_or(|place| dot(row, &rows[place]) < score);
            right += u32::from(others().all(beaten));
        }
        let rest: Vec<f64> = sums[*class].iter().zip(&x[at * dim..][..dim]).map(|(s, x)| s - f64::from(*x)).collect();
        let cosine = |sum: &[f64]| dot(sum, row) / dot(sum, sum).sqrt().max(f64::MIN_POSITIVE);
        let own = cosine(&rest);
        let hit = others().all(|other| cosine(&sums[other]) < own);
        found.push((*class, f64::from(right) / f64::from(asked.max(1)), hit));
    }
    found
}

fn unit(row: &[f32]) -> Vec<f64> {
    let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
    let length = dot(&row, &row).sqrt().max(f64::MIN_POSITIVE);
    row.into_iter().map(|x| x / length).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of the plane in three classes that overlap.
    fn points() -> (Vec<[f32; 2]>, Vec<usize>) {
        let mut state = 7u32;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        let x = (0..30).map(|i| [draw() + (i % 3) as f32 * 0.3, draw() + 0.2]).collect();
        (x, (0..30).map(|i| i % 3).collect())
    }

    fn cosine(a: [f64; 2], b: [f64; 2]) -> f64 {
        (a[0] * b[0] + a[1] * b[1]) / ((a[0] * a[0] + a[1] * a[1]) * (b[0] * b[0] + b[1] * b[1])).sqrt()
    }

    /// The definition, sample by sample: class c has the samples c, c + 3, c + 6 and so on.
    #[test]
    fn samples_are_classified_by_the_definition_and_never_by_themselves() {
        let (x, classes) = points();
        let flat: Vec<f32> = x.iter().flatten().copied().collect();
        let wide = |at: usize| x[at].map(f64::from);
        let found = classify(2, &flat, &classes, |class| class != 1);
        let expected: Vec<(usize, f64, bool)> = (0..30)
            .filter(|at| at % 3 != 1)
            .map(|at| {
                let own = at % 3;
                let rounds: Vec<usize> = (0..10).filter(|round| 3 * round + own != at).collect();
                let is_right = |round: &&usize| {
                    let score = |class: usize| cosine(wide(at), wide(3 * **round + class));
                    (0..3).all(|class| class == own || score(class) < score(own))
                };
                let mean = |class: usize| {
                    let others = (0..30).filter(|other| other % 3 == class && *other != at);
                    others.fold([0.0, 0.0], |sum, other| [sum[0] + wide(other)[0], sum[1] + wide(other)[1]])
                };
                let score = |class: usize| cosine(wide(at), mean(class));
                let hit = (0..3).all(|class| class == own || score(class) < score(own));
                (own, rounds.iter().filter(is_right).count() as f64 / rounds.len() as f64, hit)
            })
            .collect();
        assert_eq!(found, expected);
        assert!(found.iter().any(|x| x.2) && found.iter().any(|x| !x.2));
    }

    /// Samples of five classes whose shares rise by these points.
    fn rehearsal(adapted: [f64; 5], both: [f64; 5], hits: [bool; 3]) -> Rehearsal {
        let sample = |class: usize| Sample {
            class,
            shares: [0.5, 0.5 + adapted[class] / 100.0, 0.5 + both[class] / 100.0],
            hits,
        };
        Rehearsal { samples: (0..20).map(|at| sample(at % 5)).collect() }
    }

    #[test]
    fn adaptation_must_be_ahead_by_a_margin_over_classes() {
        let none = [0.0; 5];
        let chosen = |adapted, both, hits| rehearsal(adapted, both, hits).choose().chosen;
        assert_eq!(chosen(none, none, [true; 3]), Kind::Frozen);
        // Mean 2, standard deviation sqrt(10), standard error sqrt(2): 1.4 errors.
        assert_eq!(chosen([-2.0, 0.0, 2.0, 4.0, 6.0], none, [true; 3]), Kind::Frozen);
        // The same around 5: 3.5 errors.
        let ahead = [1.0, 3.0, 5.0, 7.0, 9.0];
        assert_eq!(chosen(ahead, none, [true; 3]), Kind::Adapted);
        assert_eq!(chosen(ahead, [3.0, 3.0, 3.0, 3.0, 3.5], [true; 3]), Kind::Both, "a smaller gain, but a surer one");
        assert_eq!(chosen(ahead, none, [true, false, true]), Kind::Frozen, "class means are worse");
        assert_eq!(chosen(ahead.map(|x| -x), none, [true; 3]), Kind::Frozen);
        let [frozen, adapted, _] = rehearsal(ahead, none, [true; 3]).choose().measured.unwrap();
        assert!((frozen.one_shot - 50.0).abs() < 1e-9 && (adapted.one_shot - 55.0).abs() < 1e-9);
        assert!((adapted.gain - 5.0).abs() < 1e-9 && (adapted.error - 2f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn features_that_separate_new_classes_are_chosen() {
        // Four classes in the plane: frozen features mix pairs of classes, adapted ones do not.
        let classes: Vec<usize> = (0..40).map(|i| i % 4).collect();
        let angle = |degrees: f32| [degrees.to_radians().cos(), degrees.to_radians().sin()];
        let frozen: Vec<f32> = (0..40).flat_map(|i| angle((i % 2) as f32 * 60.0 + (i * 7 % 11) as f32)).collect();
        let adapted: Vec<f32> = (0..40).flat_map(|i| angle((i % 4) as f32 * 60.0 + (i * 7 % 11) as f32)).collect();
        let mut rehearsal = Rehearsal::default();
        rehearsal.add(2, [&frozen, &adapted], &classes, |class| class < 2);
        rehearsal.add(2, [&frozen, &adapted], &classes, |class| class >= 2);
        let choice = rehearsal.choose();
        assert_eq!((choice.chosen, choice.samples), (Kind::Adapted, 40));
        assert!(choice.words().starts_with("adapted features are used: one sample per class"), "{}", choice.words());
        let none = Choice::too_few();
        assert!(none.words().contains("four classes"), "{}", none.words());
    }
}
