//! KLDA (Momeni et al., AAAI 2025): discriminant analysis on random Fourier features, as an ensemble.
//!
//! ```text
//! h = [ h_1; ...; h_B ]                            members: parts of the lifted features, of E / B each
//! z_b: the scores of `lda` on h_b alone: class means, and one covariance with shrinkage
//! score(c) = sum over members of softmax(z_b)_c / B       the mean of their posteriors (KLDA-E)
//! ```
//!
//! The kernel is `exp(-gamma |x - z|^2)` of unit vectors. With one member this is `randumb`; the two papers differ in the
//! form of the Fourier features (cosines with random phases here, pairs of cosines and sines there, which approximate the
//! same kernel) and in how the covariance is regularised: the authors' program takes a pseudo-inverse, or adds a small
//! multiple of the identity; the default here is the shrinkage of `slda`, which has no scale. The authors' members have
//! 5,000 features each, and gamma is chosen for each encoder.
//!
//! Cost: `E^2 m / B` flops per task and `E^3 / (3 B^2)` for the classifier: B members of E / B features take a B-th of the
//! memory of one with E.

use std::ops::Range;
use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::Reborrow;
use faer::{Accum, Mat, MatRef};

use super::lda::{Moments, SHRINKAGE, Shrinkage};
use super::lifted::{Lifted, indices};
use crate::classifier::{CHUNK, Classifier, Rule, Scorer, bytes_of, softmax};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::FeatureMap;
use crate::linalg::{cast, par};
use crate::memory::{product, sum};
use crate::method::{Input, Method, MethodOptions, Settings};

/// Members by default.
const MEMBERS: usize = 5;

/// An ensemble of discriminant analyses.
pub struct Klda {
    lifted: Lifted,
    shrinkage: Shrinkage,
    table: LabelTable,
    members: Vec<Moments>,
    classifier: Option<Classifier>,
}

impl Klda {
    /// Creates an ensemble that divides the lifted features among its members.
    pub fn new(lift: Arc<dyn FeatureMap>, members: usize, shrinkage: Shrinkage) -> Result<Self, Error> {
        if members == 0 || members > lift.width() {
            let reason = format!("each member needs a part of the {} lifted features", lift.width());
            return Err(Error::setting("ensemble", members, reason));
        }
        let members = (0..members).map(|_| Moments::new()).collect();
        Ok(Klda { lifted: Lifted::new(lift), shrinkage, table: LabelTable::default(), members, classifier: None })
    }
}

/// Returns the lifted features of a member.
fn part(width: usize, members: usize, member: usize) -> Range<usize> {
    width * member / members..width * (member + 1) / members
}

/// The mean of the members' posteriors.
struct Posteriors {
    /// Of all members, one below the other: E x c.
    weights: Mat<f32>,
    /// A column for each member: c x B.
    bias: Mat<f32>,
}

impl Rule for Posteriors {
    fn scores(&self, h: MatRef<'_, f32>) -> Mat<f32> {
        let members = self.bias.ncols();
        let mut scores = Mat::<f32>::zeros(self.weights.ncols(), h.ncols());
        for member in 0..members {
            let rows = part(h.nrows(), members, member);
            let weights = self.weights.as_ref().subrows(rows.start, rows.len());
            let mut z = Mat::<f32>::from_fn(scores.nrows(), scores.ncols(), |c, _| self.bias[(c, member)]);
            matmul(&mut z, Accum::Add, weights.transpose(), h.subrows(rows.start, rows.len()), 1.0, par());
            for (j, column) in scores.col_iter_mut().enumerate() {
                let posterior = softmax(z.col_as_slice(j), 1.0);
                column.iter_mut().zip(posterior).for_each(|(score, p)| *score += p as f32 / members as f32);
            }
        }
        scores
    }

    fn bytes(&self) -> usize {
        bytes_of(&self.weights) + bytes_of(&self.bias)
    }
}

impl Learner for Klda {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        self.classifier = None;
        let classes = indices(&mut self.table, labels);
        let (width, count) = (self.lifted.width(), self.members.len());
        for (member, moments) in self.members.iter_mut().enumerate() {
            moments.grow(part(width, count, member).len(), self.table.len());
        }
        for (x, classes) in x.chunks(CHUNK).zip(classes.chunks(CHUNK)) {
            let h = self.lifted.lift(x);
            for (member, moments) in self.members.iter_mut().enumerate() {
                let rows = part(width, count, member);
                moments.absorb(h.rb().subrows(rows.start, rows.len()), classes);
            }
        }
        self.lifted.wipe(x.len().min(CHUNK));
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if let Some(classifier) = &self.classifier {
            return Ok(classifier.clone());
        }
        let (width, members) = (self.lifted.width(), self.members.len());
        let mut weights = Mat::<f32>::zeros(width, self.table.len());
        let mut bias = Mat::<f32>::zeros(self.table.len(), members);
        for (member, moments) in self.members.iter_mut().enumerate() {
            let (w, b) = moments.weights(self.shrinkage)?;
            let rows = part(width, members, member);
            weights.as_mut().subrows_mut(rows.start, rows.len()).copy_from(cast::<f64, f32>(w.transpose()));
            b.iter().enumerate().for_each(|(class, b)| bias[(class, member)] = *b as f32);
        }
        // The posterior of one member has no other order than its scores.
        let classifier = match members {
            1 => self.lifted.linear(&self.table, weights, bias.col(0).iter().copied().collect()),
            _ => {
                let rule = Scorer::Rule(Box::new(Posteriors { weights, bias }));
                Classifier::new(self.lifted.space(), &self.table, rule)
            }
        };
        Ok(self.classifier.insert(classifier).clone())
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        let samples = self.members.first().map_or(0, Moments::samples);
        Summary { samples, classes: self.table.len(), ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "ensemble": self.members.len(), "shrinkage": self.shrinkage.value() })
    }

    fn state_bytes(&self) -> usize {
        let members: usize = self.members.iter().map(Moments::bytes).sum();
        members + self.classifier.as_ref().map_or(0, Classifier::bytes) + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let (width, members) = (self.lifted.width(), self.members.len());
        let (size, chunk) = (width.div_ceil(members), CHUNK.min(stream.largest_task));
        // Grams have room for a multiple of 256 features.
        let square = product(&[8, size + 256, size + 256]);
        sum(&[
            product(&[members, square]),
            product(&[self.shrinkage.squares() - 1, square]),
            product(&[8 + 8 + 4, width, stream.classes]),
            product(&[4 + 4 + 8 + 16, width, chunk]),
        ])
    }
}

fn build(options: &MethodOptions, settings: &Settings<'_>) -> Result<Box<dyn Learner>, Error> {
    let members = settings.count("ensemble", MEMBERS)?;
    Ok(Box::new(Klda::new(options.map()?, members, Shrinkage::read(settings)?)?))
}

/// The registry entry.
pub(crate) const KLDA: Method = Method {
    name: "klda",
    summary: "an ensemble of discriminant analyses, each on a part of the random Fourier features",
    input: Input::LiftedBy("fourier"),
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[("ensemble", "members, which divide the width among themselves [default: 5]"), SHRINKAGE],
    exempt: &[],
    infinite: false,
    config: None,
    build,
};
