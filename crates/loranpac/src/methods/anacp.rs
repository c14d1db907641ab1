//! AnaCP (Momeni et al., NeurIPS 2025): a regression that moves samples towards separated class means, and a second one on
//! samples that are drawn again.
//!
//! ```text
//! x / |x| = x;   z_b = gelu(P_b x)                             heads: parts of the lifted features, D = E / B each
//! C: class means of x less their mean, c x d;  Sigma: covariance about them;  C Sigma^-1/2 = U S V'
//! T = unit rows of U (S + alpha) V' Sigma^1/2 + their mean          target of each class
//! Theta_b = (Z_b Z_b' + lambda I)^-1 Z_b Y' T                      contrastive projection, D x d
//! u(x) = sum over heads of unit(Theta_b' z_b) / B
//! replay: R samples of N(mu_c, Sigma) for each class;  h = gelu(P' u(x)),  P' of D rows
//! score(c): ridge regression of the classes of the replay on h, with the same lambda
//! ```
//!
//! Definition and defaults (B = 3, R = 100, alpha = 1, lambda = 100; D = 5,000) are the paper's and those of the authors'
//! program. Where both differ this follows the program: it centres the means, gives targets and projections length 1, and
//! adds alpha to every singular value, for which the paper's Lemma 4.1 has a sign. Singular values of zero have no direction,
//! and stay zero here. Sigma has 1e-4 I added (the program adds it to its first task alone). First-session adaptation of the
//! encoder is not part of it.
//!
//! Classes are drawn again from exact statistics and a fixed seed at every classifier, so that neither order nor division of
//! samples matters. Cost: `E^2 m / B` flops per task; for the classifier `2 (d E + D^2) R c` and `(B + 1) D^3 / 3`.

use std::ops::Range;
use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef};
use rayon::prelude::*;

use super::lda::Moments;
use super::lifted::{Lifted, add_by_class, grow_columns, indices};
use crate::classifier::{CHUNK, Classifier, Rule, Scorer, bytes_of, unit_columns};
use crate::error::Error;
use crate::features::Features;
use crate::gram::Gram;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::{Activation, FeatureMap, Operation, Projection, Random};
use crate::linalg::{cast, par, product as multiply};
use crate::memory::{product, sum};
use crate::method::{Input, Method, MethodOptions, Settings};

/// Added to the variances.
const FLOOR: f64 = 1e-4;
/// Added to the seed for the projection of the second regression, and for the replay.
const SECOND: u64 = 1 << 32;
const REPLAY: u64 = 2 << 32;

/// `gelu(P x / |x|)`.
struct Gelu(Arc<dyn FeatureMap>);

impl FeatureMap for Gelu {
    fn name(&self) -> &'static str {
        "gelu-random"
    }
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn width(&self) -> usize {
        self.0.width()
    }
    fn lift(&self, x: MatRef<'_, f32>, mut h: MatMut<'_, f32>) {
        self.0.lift(unit_columns(cast::<f32, f64>(x).as_ref()).as_ref(), h.rb_mut());
        gelu(h);
    }
    fn operations(&self) -> Vec<Operation> {
        let rest = self.0.operations().into_iter().chain([Operation::Gelu]);
        std::iter::once(Operation::Unit).chain(rest).collect()
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Computes `z Phi(z)`, entry by entry.
fn gelu(z: MatMut<'_, f32>) {
    let apply = |v: &mut f32| *v *= 0.5 * (1.0 + libm::erff(*v * std::f32::consts::FRAC_1_SQRT_2));
    z.par_col_iter_mut().for_each(|column| column.iter_mut().for_each(apply));
}

/// Settings.
#[derive(Debug, Clone, Copy)]
struct Shape {
    heads: usize,
    replay: usize,
    spread: f64,
    ridge: f64,
    seed: u64,
}

/// Contrastive projection and a regression on replayed samples.
pub struct AnaCp {
    lifted: Lifted,
    linear: Arc<dyn FeatureMap>,
    shape: Shape,
    table: LabelTable,
    /// Of samples of length 1.
    inputs: Moments,
    /// `Z_b Z_b'`, and `Z_b Y'`, D x c.
    heads: Vec<(Gram, Mat<f64>)>,
    classifier: Option<Classifier>,
}

/// Returns the lifted features of a head.
fn part(width: usize, heads: usize, head: usize) -> Range<usize> {
    width * head / heads..width * (head + 1) / heads
}

/// Both regressions.
struct Projected {
    /// `(Z_b Z_b' + lambda I)^-1 Z_b Y'` of all heads, one below the other: E x c.
    heads: Mat<f32>,
    count: usize,
    /// T', d x c.
    targets: Mat<f32>,
    second: Random,
    /// D x c.
    weights: Mat<f32>,
}

impl Projected {
    /// Returns `gelu(P' u)` of lifted samples.
    fn features(&self, z: MatRef<'_, f32>) -> Mat<f32> {
        let mut u = Mat::<f64>::zeros(self.targets.nrows(), z.ncols());
        for head in 0..self.count {
            let rows = part(z.nrows(), self.count, head);
            let theta = self.heads.as_ref().subrows(rows.start, rows.len());
            let likeness = multiply(theta.transpose(), z.subrows(rows.start, rows.len()));
            let projected: Mat<f64> = cast(multiply(self.targets.as_ref(), likeness.as_ref()).as_ref());
            u += cast::<f32, f64>(unit_columns(projected.as_ref()).as_ref()) * faer::Scale(1.0 / self.count as f64);
        }
        let mut h = Mat::<f32>::zeros(self.second.width(), z.ncols());
        self.second.lift(cast::<f64, f32>(u.as_ref()).as_ref(), h.as_mut());
        gelu(h.as_mut());
        h
    }
}

impl Rule for Projected {
    fn scores(&self, h: MatRef<'_, f32>) -> Mat<f32> {
        multiply(self.weights.transpose(), self.features(h).as_ref())
    }

    fn bytes(&self) -> usize {
        bytes_of(&self.heads) + bytes_of(&self.targets) + bytes_of(&self.weights) + self.second.bytes()
    }
}

impl AnaCp {
    fn new(linear: Arc<dyn FeatureMap>, shape: Shape) -> Result<Self, Error> {
        if shape.heads > linear.width() {
            let reason = format!("each head needs a part of the {} lifted features", linear.width());
            return Err(Error::setting("heads", shape.heads, reason));
        }
        let heads = (0..shape.heads).map(|_| (Gram::default(), Mat::new())).collect();
        let (lifted, table) = (Lifted::new(Arc::new(Gelu(linear.clone()))), LabelTable::default());
        Ok(AnaCp { lifted, linear, shape, table, inputs: Moments::new(), heads, classifier: None })
    }

    /// Returns the targets T' (d x c), and the root of Sigma.
    fn targets(&self) -> Result<(Mat<f64>, Mat<f32>), Error> {
        let (mut scatter, means) = (self.inputs.scatter.clone(), &self.inputs.means);
        let (d, c) = (means.nrows(), means.ncols());
        let samples = self.inputs.samples() as f64;
        let mean = Mat::from_fn(d, 1, |i, _| means.row(i).iter().sum::<f64>() / c as f64);
        let reduced = scatter.reduce();
        let power = |exponent: f64| {
            move |values: &[f64], _: &[f64]| -> Vec<f64> {
                values.iter().map(|v| (v.max(0.0) / samples + FLOOR).powf(exponent)).collect()
            }
        };
        let mut whitened = Mat::from_fn(c, d, |class, i| means[(i, class)] - mean[(i, 0)]);
        scatter.apply_reduced(&reduced, &mut whitened, power(-0.5))?;
        // U (S + alpha) V' = U (1 + alpha / S) U' (U S V')
        let mut gram = Gram::zeros(c);
        gram.add(whitened.as_ref());
        let mut spread = whitened.transpose().to_owned();
        gram.apply_function(&mut spread, |values, _| {
            let rounding = 1e-12 * values.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
            values.iter().map(|v| if *v > rounding { 1.0 + self.shape.spread / v.sqrt() } else { 1.0 }).collect()
        })?;
        let mut moved = spread.transpose().to_owned();
        scatter.apply_reduced(&reduced, &mut moved, power(0.5))?;
        let moved = Mat::from_fn(d, c, |i, class| moved[(class, i)] + mean[(i, 0)]);
        let mut root = Mat::<f64>::identity(d, d);
        scatter.apply_reduced(&reduced, &mut root, power(0.5))?;
        Ok((cast(unit_columns(moved.as_ref()).as_ref()), cast(root.as_ref())))
    }

    /// Forms both regressions.
    fn form(&mut self) -> Result<Projected, Error> {
        let (width, c, Shape { ridge, replay, seed, .. }) = (self.lifted.width(), self.table.len(), self.shape);
        let (targets, root) = self.targets()?;
        let mut heads = Mat::<f32>::zeros(width, c);
        for (head, (gram, sums)) in self.heads.iter_mut().enumerate() {
            let mut solved = sums.transpose().to_owned();
            gram.solve_regardless(&mut solved, ridge)?;
            let rows = part(width, self.shape.heads, head);
            heads.as_mut().subrows_mut(rows.start, rows.len()).copy_from(cast::<f64, f32>(solved.transpose()));
        }
        let (d, size) = (targets.nrows(), part(width, self.shape.heads, 0).len().max(1));
        let second = Projection::from_seed(size, d, seed.wrapping_add(SECOND), true);
        let second = Random::new(second, Activation::Linear);
        let targets: Mat<f32> = cast(targets.as_ref());
        let mut formed = Projected { heads, count: self.shape.heads, targets, second, weights: Mat::new() };

        let mut gram = Gram::zeros(size);
        let mut sums = Mat::<f64>::zeros(size, c);
        let draws = Projection::from_seed(replay * c, d, seed.wrapping_add(REPLAY), false);
        let (mut scratch, mut work) = (Vec::new(), Vec::new());
        for first in (0..replay * c).step_by(CHUNK) {
            let count = CHUNK.min(replay * c - first);
            let normal = MatRef::from_column_major_slice(draws.rows(first, count, &mut scratch), d, count);
            let mut x = Mat::<f32>::from_fn(d, count, |i, j| self.inputs.means[(i, (first + j) / replay)] as f32);
            matmul(&mut x, Accum::Add, &root, normal, 1.0, par());
            work.resize(width * count, 0.0f32);
            let mut z = MatMut::from_column_major_slice_mut(&mut work, width, count);
            self.linear.lift(x.as_ref(), z.rb_mut());
            gelu(z.rb_mut());
            let h: Mat<f64> = cast(formed.features(z.rb()).as_ref());
            let classes: Vec<usize> = (first..first + count).map(|row| row / replay).collect();
            gram.add(h.as_ref());
            add_by_class(&mut sums, h.as_ref(), &classes);
        }
        let mut solved = sums.transpose().to_owned();
        gram.solve_regardless(&mut solved, ridge)?;
        formed.weights = cast(solved.transpose());
        Ok(formed)
    }
}

impl Learner for AnaCp {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.linear.dim())?;
        self.classifier = None;
        let classes = indices(&mut self.table, labels);
        let (width, count) = (self.lifted.width(), self.table.len());
        self.inputs.grow(x.dim(), count);
        for (part, classes) in x.chunks(CHUNK).zip(classes.chunks(CHUNK)) {
            let unit = unit_columns(cast::<f32, f64>(part.as_matrix()).as_ref());
            self.inputs.absorb(unit.as_ref(), classes);
            let z = self.lifted.lift(part);
            for (head, (gram, sums)) in self.heads.iter_mut().enumerate() {
                let rows = self::part(width, self.shape.heads, head);
                if gram.rank() == 0 {
                    *gram = Gram::zeros(rows.len());
                }
                grow_columns(sums, rows.len(), count);
                let z: Mat<f64> = cast(z.rb().subrows(rows.start, rows.len()));
                gram.add(z.as_ref());
                add_by_class(sums, z.as_ref(), classes);
            }
        }
        self.lifted.wipe(x.len().min(CHUNK));
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if let Some(classifier) = &self.classifier {
            return Ok(classifier.clone());
        }
        if self.table.is_empty() {
            return Err(Error::NothingLearned);
        }
        let rule = Scorer::Rule(Box::new(self.form()?));
        let classifier = Classifier::new(self.lifted.space(), &self.table, rule);
        Ok(self.classifier.insert(classifier).clone())
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        let (samples, ridge) = (self.inputs.samples(), Some(self.shape.ridge));
        Summary { samples, classes: self.table.len(), ridge, ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        let Shape { heads, replay, spread, ridge, seed } = self.shape;
        serde_json::json!({ "heads": heads, "replay": replay, "spread": spread, "ridge": ridge, "seed": seed })
    }

    fn state_bytes(&self) -> usize {
        let heads: usize = self.heads.iter().map(|(gram, sums)| gram.bytes() + bytes_of(sums)).sum();
        let classifier = self.classifier.as_ref().map_or(0, Classifier::bytes);
        heads + self.inputs.bytes() + classifier + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let (width, d, heads) = (self.lifted.width(), self.linear.dim(), self.shape.heads);
        let size = width.div_ceil(heads);
        // Grams have room for a multiple of 256 features.
        let square = |size: usize| product(&[8, size + 256, size + 256]);
        sum(&[
            product(&[heads + 1, square(size)]),
            product(&[6, square(d)]),
            product(&[24, sum(&[width, size, product(&[2, d])]), stream.classes]),
            product(&[4, size, d]),
            // Two copies of lifted samples, one of a head in f64, and samples.
            product(&[8 + 4, width, CHUNK]),
            product(&[24, sum(&[size, d]), CHUNK]),
        ])
    }
}

fn build(options: &MethodOptions, settings: &Settings<'_>) -> Result<Box<dyn Learner>, Error> {
    let shape = Shape {
        heads: settings.count("heads", 3)?,
        replay: settings.count("replay", 100)?,
        spread: settings.number("spread", 1.0)?,
        ridge: settings.ridge()?.unwrap_or(100.0),
        seed: options.seed,
    };
    if !(shape.spread >= 0.0 && shape.spread.is_finite()) {
        return Err(Error::setting("spread", shape.spread, "it must be a number >= 0"));
    }
    if shape.ridge == 0.0 {
        return Err(Error::setting("ridge", 0, "it must be above 0"));
    }
    Ok(Box::new(AnaCp::new(options.map()?, shape)?))
}

/// The registry entry.
pub(crate) const ANACP: Method = Method {
    name: "anacp",
    summary: "regression towards separated class means, then a second one on samples drawn from the classes (AnaCP)",
    input: Input::LiftedBy("random"),
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[
        ("heads", "projections, which divide the width among themselves [default: 3]"),
        ("replay", "samples that are drawn for each class [default: 100]"),
        ("spread", "alpha, by which class means are moved apart [default: 1]"),
        ("ridge", "lambda of both regressions [default: 100]"),
    ],
    exempt: &[],
    infinite: false,
    config: None,
    build,
};
