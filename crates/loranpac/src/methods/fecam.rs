//! FeCAM (Goswami et al., NeurIPS 2023): the Mahalanobis distance to each class, in the metric of its own covariance.
//!
//! ```text
//! x   <- sign(x) |x|^p, then x / |x|                                         Tukey's power transform, p in (0, 1]
//! S   = covariance of class c + shrink v1 I + mix v2 (1 1' - I)              v1, v2: mean of its diagonal and of the rest
//! N   = D^-1/2 S D^-1/2,   D = diag(S)                                       its correlation matrix
//! score(c) = -(x - mu_c)' N^-1 (x - mu_c)
//! ```
//!
//! A covariance of n_c samples has rank n_c - 1, so that N^-1 is computed from a factor of it (Woodbury), and no `d x d`
//! matrix exists where n_c < d:
//!
//! ```text
//! a = shrink v1 - mix v2,   F F' = covariance,   G = F C^-T,   C C' = a I + F' F        k x k
//! (a I + F F')^-1 = (I - G G') / a;   then the rank one term mix v2 1 1' (Sherman and Morrison)
//! ```
//!
//! Memory: `8 d min(n_c, d)` bytes per class. Cost: `2 d n_c^2` flops per class, `2 d M` per prediction. A class with one
//! sample, or with equal ones, has N = I.
//!
//! What may differ from the paper: the transform of negative features, for which it has none (on transformers it is left
//! out: `tukey = 1`); statistics are of transformed samples of length 1, and the covariance is shrunk once (the authors'
//! program shrinks it twice). The paper has p = 1/2, shrink = mix = 1 (100 with few samples).

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use super::factors::{ClassFactor, absorb};
use super::lifted::indices;
use crate::classifier::{CHUNK, Classifier, Rule, Scorer, bytes_of};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::{FeatureSpace, Identity};
use crate::linalg::{cast, cholesky_lower, par};
use crate::memory::{product, sum};
use crate::method::{Input, Method, MethodOptions, Settings};

/// The smallest share of the shrinkage that a direction keeps: more of `mix` could make S indefinite.
const FLOOR: f64 = 1e-6;
/// The default settings.
const TUKEY: f64 = 0.5;
const SHRINK: f64 = 10.0;

/// Per-class means and covariances.
pub struct FeCam {
    dim: usize,
    settings: Shape,
    table: LabelTable,
    classes: Vec<ClassFactor<f64>>,
    classifier: Option<Classifier>,
}

/// p, and the shares of the mean variance and covariance.
#[derive(Debug, Clone, Copy)]
struct Shape {
    tukey: f64,
    shrink: f64,
    mix: f64,
}

impl Shape {
    /// Transforms samples, in columns.
    fn transform(&self, x: MatRef<'_, f32>) -> Mat<f64> {
        let mut y = Mat::from_fn(x.nrows(), x.ncols(), |i, j| {
            let v = f64::from(x[(i, j)]);
            if self.tukey == 1.0 { v } else { v.abs().powf(self.tukey).copysign(v) }
        });
        for column in y.col_iter_mut() {
            let length = column.norm_l2();
            let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
            column.iter_mut().for_each(|v| *v *= scale);
        }
        y
    }
}

/// The distance to one class: `scale' delta^2 - sum of (column' delta)^2 (the last one by its sign)`, `delta = x - mean`.
struct Distance {
    mean: Mat<f64>,
    scale: Vec<f64>,
    columns: Mat<f64>,
    last: f64,
}

/// Returns the distance to a class.
fn distance(class: &ClassFactor<f64>, shape: Shape) -> Distance {
    let (l, n) = (class.factor(), class.count() as f64);
    let (d, k) = (l.nrows(), l.ncols());
    let ones = class.ones();
    let u = Mat::from_fn(k, 1, |j, _| ones[j]);
    let sums = l * &u;
    let mean = Mat::from_fn(d, 1, |i, _| sums[(i, 0)] / n);
    // L (I - u u' / n) L' is the scatter; the square root of the matrix between is I - share u u' / |u|^2.
    let length = u.squared_norm_l2();
    let share = 1.0 - (1.0 - length / n).max(0.0).sqrt();
    let f = (l - &sums * u.transpose() * faer::Scale(share / length)) * faer::Scale(1.0 / (n - 1.0).max(1.0).sqrt());
    let variances: Vec<f64> = f.row_iter().map(|row| row.squared_norm_l2()).collect();
    let v1 = variances.iter().sum::<f64>() / d as f64;
    // Rounding of the mean is no variance.
    if v1 * d as f64 <= 1e-24 * mean.squared_norm_l2() || n < 2.0 {
        return Distance { mean, scale: vec![1.0; d], columns: Mat::zeros(d, 0), last: 1.0 };
    }
    let total: f64 = (0..k).map(|j| f.col(j).iter().sum::<f64>().powi(2)).sum();
    let v2 = (total - v1 * d as f64) / ((d * d - d).max(1)) as f64;
    let shrinkage = shape.shrink * v1;
    let a = (shrinkage - shape.mix * v2).max(FLOOR * shrinkage);
    let diagonal: Vec<f64> = variances.iter().map(|v| v + shrinkage).collect();

    let mut c = f.transpose() * &f;
    (0..k).for_each(|j| c[(j, j)] += a);
    assert!(cholesky_lower(c.as_mut(), Par::Seq), "a positive matrix plus a multiple of the identity is definite");
    let mut g = f.transpose().to_owned();
    solve_lower_triangular_in_place(c.as_ref(), g.as_mut(), Par::Seq);
    // G' 1, and z = (a I + F F')^-1 1.
    let along = Mat::from_fn(k, 1, |j, _| g.row(j).iter().sum::<f64>());
    let mixed = shape.mix * v2;
    let z = match mixed {
        0.0 => Mat::zeros(0, 0),
        _ => (Mat::<f64>::ones(d, 1) - g.transpose() * &along) * faer::Scale(1.0 / a),
    };
    let weight = if mixed == 0.0 { 0.0 } else { mixed / (1.0 + mixed * z.sum()).max(FLOOR) };
    let columns = Mat::from_fn(d, k + z.ncols(), |i, j| {
        let value = if j < k { g[(j, i)] / a.sqrt() } else { weight.abs().sqrt() * z[(i, 0)] };
        diagonal[i].sqrt() * value
    });
    let scale = diagonal.iter().map(|v| v / a).collect();
    Distance { mean, scale, columns, last: if weight < 0.0 { -1.0 } else { 1.0 } }
}

/// The distances to all classes, expanded so that each batch takes three products of matrices.
struct Mahalanobis {
    shape: Shape,
    /// Scales and twice the scaled means, d x c, and `scale' mean^2`.
    scales: Mat<f32>,
    means: Mat<f32>,
    constants: Vec<f32>,
    /// The columns of all classes, d x sum of k, their products with the means, and where those of each class end.
    columns: Mat<f32>,
    offsets: Vec<f32>,
    ends: Vec<usize>,
    last: Vec<f32>,
}

impl Mahalanobis {
    fn new(classes: &[ClassFactor<f64>], dim: usize, shape: Shape) -> Self {
        let all: Vec<Distance> = classes.par_iter().map(|class| distance(class, shape)).collect();
        let ends: Vec<usize> = all
            .iter()
            .scan(0, |end, distance| {
                *end += distance.columns.ncols();
                Some(*end)
            })
            .collect();
        let mut columns = Mat::zeros(dim, ends.last().copied().unwrap_or(0));
        let mut offsets = Vec::with_capacity(columns.ncols());
        for from in &all {
            for column in from.columns.col_iter() {
                let target = columns.col_mut(offsets.len());
                target.iter_mut().zip(column.iter()).for_each(|(to, from)| *to = *from as f32);
                offsets.push((column.transpose() * from.mean.col(0)) as f32);
            }
        }
        let weighted = |i: usize, c: usize| all[c].scale[i] * all[c].mean[(i, 0)];
        Mahalanobis {
            shape,
            scales: Mat::from_fn(dim, all.len(), |i, c| all[c].scale[i] as f32),
            means: Mat::from_fn(dim, all.len(), |i, c| 2.0 * weighted(i, c) as f32),
            constants: (0..all.len())
                .map(|c| (0..dim).map(|i| weighted(i, c) * all[c].mean[(i, 0)]).sum::<f64>() as f32)
                .collect(),
            columns,
            offsets,
            ends,
            last: all.iter().map(|distance| distance.last as f32).collect(),
        }
    }
}

impl Rule for Mahalanobis {
    fn scores(&self, h: MatRef<'_, f32>) -> Mat<f32> {
        let x = self.shape.transform(h);
        let squares = Mat::from_fn(x.nrows(), x.ncols(), |i, j| (x[(i, j)] * x[(i, j)]) as f32);
        let x = cast::<f64, f32>(x.as_ref());
        let mut scores = Mat::<f32>::zeros(self.ends.len(), x.ncols());
        matmul(&mut scores, Accum::Replace, self.scales.transpose(), &squares, -1.0, par());
        matmul(&mut scores, Accum::Add, self.means.transpose(), &x, 1.0, par());
        let mut along = Mat::<f32>::zeros(self.offsets.len(), x.ncols());
        matmul(&mut along, Accum::Replace, self.columns.transpose(), &x, 1.0, par());
        scores.par_col_iter_mut().zip(along.par_col_iter()).for_each(|(scores, along)| {
            let mut first = 0;
            for (class, score) in scores.iter_mut().enumerate() {
                let end = self.ends[class];
                let squared = |j: usize| (along[j] - self.offsets[j]).powi(2);
                let sum: f32 = (first..end).map(squared).sum();
                let reversed = if self.last[class] < 0.0 { 2.0 * squared(end - 1) } else { 0.0 };
                *score += sum - reversed - self.constants[class];
                first = end;
            }
        });
        scores
    }

    fn bytes(&self) -> usize {
        let numbers = self.constants.len() + self.offsets.len() + self.last.len();
        bytes_of(&self.scales) + bytes_of(&self.means) + bytes_of(&self.columns) + 4 * numbers + 8 * self.ends.len()
    }
}

impl Learner for FeCam {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.dim)?;
        self.classifier = None;
        let classes = indices(&mut self.table, labels);
        for (part, classes) in x.chunks(CHUNK).zip(classes.chunks(CHUNK)) {
            absorb(&mut self.classes, self.settings.transform(part.as_matrix()).as_ref(), classes);
        }
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if self.classes.is_empty() {
            return Err(Error::NothingLearned);
        }
        let form = || {
            let rule = Mahalanobis::new(&self.classes, self.dim, self.settings);
            let space = FeatureSpace::from(Arc::new(Identity::new(self.dim)));
            Classifier::new(space, &self.table, Scorer::Rule(Box::new(rule)))
        };
        Ok(self.classifier.get_or_insert_with(form).clone())
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        let samples = self.classes.iter().map(ClassFactor::count).sum();
        Summary { samples, classes: self.table.len(), ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        let Shape { tukey, shrink, mix } = self.settings;
        serde_json::json!({ "tukey": tukey, "shrink": shrink, "mix": mix })
    }

    fn state_bytes(&self) -> usize {
        let factors: usize = self.classes.iter().map(ClassFactor::bytes).sum();
        factors + self.classifier.as_ref().map_or(0, Classifier::bytes)
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let columns = product(&[self.dim, stream.classes]).min(stream.samples);
        // Factors, their directions in f64 and in f32, and as many again while a factor is extended or turned.
        let factors = product(&[8 + 8 + 4, self.dim, sum(&[columns, stream.classes])]);
        let work = product(&[32, self.dim, sum(&[CHUNK, self.dim.min(stream.samples)])]);
        sum(&[factors, work, product(&[12, self.dim, stream.classes]), product(&[4, columns, CHUNK])])
    }
}

fn build(options: &MethodOptions, settings: &Settings<'_>) -> Result<Box<dyn Learner>, Error> {
    let shape = Shape {
        tukey: settings.number("tukey", TUKEY)?,
        shrink: settings.number("shrink", SHRINK)?,
        mix: settings.number("mix", 0.0)?,
    };
    if !(shape.tukey > 0.0 && shape.tukey <= 1.0) {
        return Err(Error::setting("tukey", shape.tukey, "it must be above 0 and at most 1 (no transform)"));
    }
    if !(shape.shrink > 0.0 && shape.shrink.is_finite()) {
        return Err(Error::setting("shrink", shape.shrink, "it must be a number above 0"));
    }
    if !(shape.mix >= 0.0 && shape.mix.is_finite()) {
        return Err(Error::setting("mix", shape.mix, "it must be a number >= 0"));
    }
    let (dim, table) = (options.space.dim(), LabelTable::default());
    Ok(Box::new(FeCam { dim, settings: shape, table, classes: Vec::new(), classifier: None }))
}

/// The registry entry.
pub(crate) const FECAM: Method = Method {
    name: "fecam",
    summary: "Mahalanobis distances in the shrunk correlations of each class (FeCAM), on plain features",
    input: Input::Plain,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[
        ("tukey", "power of the features; 1: no transform [default: 0.5]"),
        ("shrink", "share of the mean variance that is added to all variances [default: 10]"),
        ("mix", "share of the mean covariance that is added to all covariances [default: 0]"),
    ],
    exempt: &[],
    infinite: false,
    config: None,
    build,
};
