//! RanPAC (McDonnell et al., 2023): ridge regression on lifted features by the normal equations.
//!
//! ```text
//! W (H H' + lambda I) = Y H'        H H' is E x E, in f64, whatever the number of samples
//! ```
//!
//! Lambda is chosen at every task, on that task's samples. Cost per task: `E^2 m` flops for `H H'`, one reduction in
//! the smaller of E and m for lambda; `E^3 / 3` for the classifier. LayUp (Ahrens et al., 2024) is the same regression
//! on the features of several layers, without a lift.

use std::sync::Arc;

use faer::prelude::Reborrow;
use faer::{Mat, MatRef};

use super::holdout;
use super::lifted::{Lifted, add_by_class, grow_columns, indices};
use crate::classifier::{CHUNK, Classifier, bytes_of};
use crate::error::Error;
use crate::features::Features;
use crate::gram::Gram;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::FeatureMap;
use crate::linalg::{cast, squared_norm};
use crate::memory::{product, sum};
use crate::method::{Input, Method, MethodOptions, Settings};

/// How lambda is chosen: from the lifted samples of a task (E x m) and their classes, a seed, the number of the task, and
/// the previous lambda.
pub(super) type Choice = fn(MatRef<'_, f32>, &[usize], u64, u64, Option<f64>) -> f64;

/// Ridge regression with lambda fixed, or chosen by hold-out.
pub struct RanPac {
    lifted: Lifted,
    fixed: Option<f64>,
    choice: Choice,
    seed: u64,
    table: LabelTable,
    /// H H'.
    gram: Gram,
    /// (Y H')', E x c.
    sums: Mat<f64>,
    samples: usize,
    tasks: u64,
    /// Lambda of the latest task.
    ridge: Option<f64>,
    /// The classifier, and the training MSE if it is known.
    classifier: Option<(Classifier, Option<f64>)>,
}

impl RanPac {
    /// Creates a model with this lambda, or with one chosen at every task by a hold-out set drawn from `seed`.
    pub fn new(lift: Arc<dyn FeatureMap>, ridge: Option<f64>, seed: u64) -> Self {
        RanPac::choosing(lift, ridge, seed, holdout::choose)
    }

    /// Creates a model with this lambda, or with one chosen at every task by another rule.
    pub(super) fn choosing(lift: Arc<dyn FeatureMap>, ridge: Option<f64>, seed: u64, choice: Choice) -> Self {
        RanPac {
            lifted: Lifted::new(lift),
            fixed: ridge,
            choice,
            seed,
            table: LabelTable::default(),
            gram: Gram::default(),
            sums: Mat::new(),
            samples: 0,
            tasks: 0,
            ridge,
            classifier: None,
        }
    }

    /// Returns W (c x E) in f64.
    pub fn weights(&mut self) -> Result<Mat<f64>, Error> {
        Ok(self.solve()?.0)
    }

    /// Solves for W; returns it, and whether the equations were definite.
    fn solve(&mut self) -> Result<(Mat<f64>, bool), Error> {
        let ridge = self.ridge.filter(|_| self.samples > 0).ok_or(Error::NothingLearned)?;
        let mut w = self.sums.transpose().to_owned();
        let definite = self.gram.solve_regardless(&mut w, ridge)?;
        Ok((w, definite))
    }

    /// Learns a task whose input was validated.
    fn absorb(&mut self, x: Features<'_>, classes: &[usize]) {
        let width = self.lifted.width();
        // The choice needs the whole task at once.
        let batch = if self.fixed.is_some() { CHUNK } else { x.len() };
        for (part, classes) in x.chunks(batch).zip(classes.chunks(batch)) {
            let h = self.lifted.lift(part);
            if self.fixed.is_none() {
                self.ridge = Some((self.choice)(h.rb(), classes, self.seed, self.tasks, self.ridge));
            }
            if self.gram.rank() == 0 {
                self.gram = Gram::zeros(width);
            }
            grow_columns(&mut self.sums, width, self.table.len());
            for (part, classes) in classes.chunks(CHUNK).enumerate() {
                let h: Mat<f64> = cast(h.rb().subcols(part * CHUNK, classes.len()));
                self.gram.add(h.as_ref());
                add_by_class(&mut self.sums, h.as_ref(), classes);
            }
        }
        self.lifted.wipe(x.len().min(CHUNK));
    }
}

impl Learner for RanPac {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        self.classifier = None;
        let classes = indices(&mut self.table, labels);
        self.absorb(x, &classes);
        self.samples += labels.len();
        self.tasks += 1;
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if let Some((classifier, _)) = &self.classifier {
            return Ok(classifier.clone());
        }
        let (w, definite) = self.solve()?;
        // |W H - Y|^2 = M - tr(W J') - lambda |W|^2 where W solves the normal equations.
        let fitted: f64 = (0..w.nrows()).map(|class| w.row(class) * self.sums.col(class)).sum();
        let ridge = self.ridge.unwrap_or(0.0);
        let error = self.samples as f64 - fitted - ridge * squared_norm(w.as_ref());
        let train_mse = definite.then(|| (error / self.samples as f64).max(0.0));
        let classifier = self.lifted.linear(&self.table, cast(w.transpose()), Vec::new());
        Ok(self.classifier.insert((classifier, train_mse)).0.clone())
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary {
            samples: self.samples,
            classes: self.table.len(),
            ridge: self.ridge.filter(|_| self.samples > 0),
            train_mse: self.classifier.as_ref().and_then(|(_, mse)| *mse),
            ..Summary::default()
        }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "ridge": self.fixed, "seed": self.seed })
    }

    fn state_bytes(&self) -> usize {
        let weights = self.classifier.as_ref().map_or(0, |(classifier, _)| classifier.bytes());
        self.gram.bytes() + bytes_of(&self.sums) + weights + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let width = self.lifted.width();
        // A chosen lambda is above rounding; a small fixed one may need LU, and three more squares.
        let (squares, choice) = match self.fixed {
            Some(_) => (4, 0),
            None => (1, holdout::peak_bytes(width, stream)),
        };
        sum(&[
            product(&[squares, 8, width, width]),
            product(&[20, width, stream.classes]),
            product(&[12, width, CHUNK.min(stream.largest_task)]),
            choice,
        ])
    }
}

const SETTINGS: &[(&str, &str)] = &[("ridge", "lambda, instead of a choice by hold-out at every task")];

fn build(options: &MethodOptions, settings: &Settings<'_>) -> Result<Box<dyn Learner>, Error> {
    Ok(Box::new(RanPac::new(options.map()?, settings.ridge()?, options.seed)))
}

/// The registry entry of RanPAC.
pub(crate) const RANPAC: Method = Method {
    name: "ranpac",
    summary: "ridge regression by E x E normal equations, lambda by hold-out at every task",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: SETTINGS,
    exempt: holdout::EXEMPT,
    infinite: false,
    config: None,
    build,
};

/// The registry entry of LayUp.
pub(crate) const LAYUP: Method = Method {
    name: "layup",
    summary: "ridge regression on the features of several layers (x_train_layer* in the file), no lift",
    input: Input::Layers,
    ..RANPAC
};
