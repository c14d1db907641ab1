//! Nearest neighbours: the cosine of a sample with every sample learned, and a vote of the k closest.
//!
//! ```text
//! score(c) = sum over the k nearest of class c of exp((cos - 1) / t)      vote = weighted
//! score(c) = sum over the k nearest of class c of 1 + 1e-4 cos              vote = majority: the cosines decide ties
//! ```
//!
//! What practitioners use on embeddings; with weights, the evaluation of self-supervised encoders (Wu et al., 2018, k = 200
//! and t = 0.07). It keeps all samples: `4 d M` bytes. Cost: `2 d M` flops per prediction, nothing to learn.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef};
use rayon::prelude::*;

use super::lifted::indices;
use crate::classifier::{CHUNK, Classifier, Rule, Scorer, unit_columns};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::{FeatureSpace, Identity};
use crate::linalg::{cast, par};
use crate::memory::{product, sum};
use crate::method::{Input, Method, MethodOptions, Settings};

/// Neighbours that vote by default.
const NEIGHBOURS: usize = 30;
/// The temperature of weights by default, that of Wu et al.
const TEMPERATURE: f32 = 0.07;

/// All samples, and their classes.
pub struct Knn {
    dim: usize,
    vote: Vote,
    table: LabelTable,
    kept: Arc<Kept>,
}

/// How neighbours vote.
#[derive(Debug, Clone, Copy)]
struct Vote {
    neighbours: usize,
    /// None: all votes are equal.
    temperature: Option<f32>,
}

#[derive(Clone, Default)]
struct Kept {
    /// Samples of length 1, one after the other.
    samples: Vec<f32>,
    classes: Vec<usize>,
}

/// A vote among the samples of a moment.
struct Nearest {
    kept: Arc<Kept>,
    dim: usize,
    classes: usize,
    vote: Vote,
}

impl Rule for Nearest {
    fn scores(&self, h: MatRef<'_, f32>) -> Mat<f32> {
        let unit = unit_columns(cast::<f32, f64>(h).as_ref());
        let samples = MatRef::from_column_major_slice(&self.kept.samples, self.dim, self.kept.classes.len());
        let mut cosines = Mat::<f32>::zeros(samples.ncols(), unit.ncols());
        matmul(&mut cosines, Accum::Replace, samples.transpose(), &unit, 1.0, par());
        let mut scores = Mat::<f32>::zeros(self.classes, unit.ncols());
        scores.par_col_iter_mut().zip(cosines.par_col_iter()).for_each(|(mut scores, cosines)| {
            let mut found: Vec<(f32, usize)> = cosines.iter().copied().zip(self.kept.classes.iter().copied()).collect();
            // Of equally close samples those of the first class count: their order does not matter.
            let closest = |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            let last = self.vote.neighbours.min(found.len()) - 1;
            found.select_nth_unstable_by(last, closest);
            found.truncate(last + 1);
            found.sort_unstable_by(closest);
            for (cosine, class) in found {
                scores[class] += match self.vote.temperature {
                    Some(temperature) => ((cosine - 1.0) / temperature).exp(),
                    None => 1.0 + 1e-4 * cosine,
                };
            }
        });
        scores
    }

    fn bytes(&self) -> usize {
        0
    }
}

impl Learner for Knn {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.dim)?;
        let classes = indices(&mut self.table, labels);
        // Classifiers that were formed before keep what they have.
        let kept = Arc::make_mut(&mut self.kept);
        for part in x.chunks(CHUNK) {
            let unit = unit_columns(cast::<f32, f64>(part.as_matrix()).as_ref());
            unit.col_iter().for_each(|column| kept.samples.extend(column.iter()));
        }
        kept.classes.extend(classes);
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if self.kept.classes.is_empty() {
            return Err(Error::NothingLearned);
        }
        let (kept, vote) = (self.kept.clone(), self.vote);
        let rule = Nearest { kept, dim: self.dim, classes: self.table.len(), vote };
        let space = FeatureSpace::from(Arc::new(Identity::new(self.dim)));
        Ok(Classifier::new(space, &self.table, Scorer::Rule(Box::new(rule))))
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary { samples: self.kept.classes.len(), classes: self.table.len(), ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "neighbours": self.vote.neighbours, "temperature": self.vote.temperature })
    }

    fn state_bytes(&self) -> usize {
        self.kept.samples.capacity() * size_of::<f32>() + self.kept.classes.capacity() * size_of::<usize>()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        // A vector that grows is copied into one of twice its size.
        let kept = product(&[3, stream.samples, sum(&[product(&[4, self.dim]), 8])]);
        let threads = rayon::current_num_threads();
        let scoring = product(&[stream.samples, sum(&[4 * CHUNK, 16 * threads])]);
        sum(&[kept, scoring, product(&[16, self.dim, CHUNK]), product(&[4, stream.classes, CHUNK])])
    }
}

fn build(options: &MethodOptions, settings: &Settings<'_>) -> Result<Box<dyn Learner>, Error> {
    let temperature: f32 = settings.number("temperature", TEMPERATURE)?;
    if !(temperature > 0.0 && temperature.is_finite()) {
        return Err(Error::setting("temperature", temperature, "it must be a number above 0"));
    }
    let temperature = match settings.get("vote") {
        None | Some("weighted") => Some(temperature),
        Some("majority") => None,
        Some(other) => return Err(Error::setting("vote", other, "it is weighted or majority")),
    };
    let vote = Vote { neighbours: settings.count("neighbours", NEIGHBOURS)?, temperature };
    let (table, kept) = (LabelTable::default(), Arc::default());
    Ok(Box::new(Knn { dim: options.space.dim(), vote, table, kept }))
}

/// The registry entry.
pub(crate) const KNN: Method = Method {
    name: "knn",
    summary: "nearest neighbours by cosine similarity, on plain features; keeps all samples",
    input: Input::Plain,
    continual: true,
    exemplar_free: false,
    truncates: false,
    cuts: false,
    settings: &[
        ("neighbours", "samples that vote [default: 30]"),
        ("vote", "weighted (default): closer samples count more; majority: all count the same"),
        ("temperature", "t of the weights exp((cos - 1) / t) [default: 0.07]"),
    ],
    exempt: &[],
    infinite: false,
    config: None,
    build,
};
