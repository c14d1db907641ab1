//! AIR (Fang et al., 2024): ridge regression on lifted features, in which every class has the same weight.
//!
//! ```text
//! W = Y D H' (H D H' + lambda I)^-1,   D: pi_y for samples of class y,   pi_y = (c / n_y) / (sum over classes of 1 / n)
//! H D H' = B B',   B = [ sqrt(pi_1) L_1 ... ],   L_y L_y' = H_y H_y',   L_y u_y = H_y 1        E x r, r <= M
//! W' = B (B' B + lambda I)^-1 T,   T: sqrt(pi_y) u_y in the rows of class y, column y          r <= E
//! ```
//!
//! For classes of equal size this is plain ridge regression: ACIL and GACL, which `rls` computes recursively. A class may
//! come again, which changes its weight: the paper keeps an `E x E` matrix for each class then, here is its factor of
//! `E x n_y`. So neither order nor division of samples matters. Cost: `2 E n_y^2` flops per class, `E r^2` and
//! `r^3 / 3` for the classifier (`E^2 r` and `E^3 / 3` where r > E). Memory: `4 E M` bytes.
//!
//! The paper fixes lambda for each data set. The default here is a tenth of the mean eigenvalue, `tr(B B') / (10 r)`,
//! which needs no data and suits encoders of any scale.

use std::ops::Range;
use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut};
use rayon::prelude::*;

use super::factors::{ClassFactor, absorb};
use super::lifted::{Lifted, indices};
use crate::classifier::{CHUNK, Classifier};
use crate::error::Error;
use crate::features::Features;
use crate::gram::Gram;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::FeatureMap;
use crate::linalg::{cast, par};
use crate::memory::{product, sum};
use crate::method::{Input, Method};

/// Columns of `B' B` that are computed at a time.
const STEP: usize = 256;

/// Class-balanced ridge regression.
pub struct Air {
    lifted: Lifted,
    fixed: Option<f64>,
    table: LabelTable,
    classes: Vec<ClassFactor<f32>>,
    ridge: f64,
    classifier: Option<Classifier>,
}

impl Air {
    /// Creates a model with this lambda, or with a tenth of the mean eigenvalue.
    pub fn new(lift: Arc<dyn FeatureMap>, ridge: Option<f64>) -> Self {
        let (table, classes) = (LabelTable::default(), Vec::new());
        Air { lifted: Lifted::new(lift), fixed: ridge, table, classes, ridge: ridge.unwrap_or(0.0), classifier: None }
    }

    fn samples(&self) -> usize {
        self.classes.iter().map(ClassFactor::count).sum()
    }

    /// Returns the roots of the weights of the classes.
    fn roots(&self) -> Vec<f64> {
        let inverse = |class: &ClassFactor<f32>| 1.0 / class.count() as f64;
        let mean = self.classes.iter().map(inverse).sum::<f64>() / self.classes.len() as f64;
        self.classes.iter().map(|class| (inverse(class) / mean).sqrt()).collect()
    }

    /// Returns W' (E x c).
    pub fn weights(&mut self) -> Result<Mat<f32>, Error> {
        let (width, count) = (self.lifted.width(), self.classes.len());
        if count == 0 {
            return Err(Error::NothingLearned);
        }
        let roots = self.roots();
        let rank: usize = self.classes.iter().map(ClassFactor::rank).sum();
        let energy: f64 = self.classes.iter().zip(&roots).map(|(class, root)| root * root * class.energy()).sum();
        self.ridge = self.fixed.unwrap_or(energy / (10 * rank.min(width)) as f64);
        if energy == 0.0 {
            return Ok(Mat::zeros(width, count));
        }
        if rank <= width { self.dual(&roots, rank) } else { self.primal(&roots) }
    }

    /// Solves in the coordinates of the columns of B.
    fn dual(&self, roots: &[f64], rank: usize) -> Result<Mat<f32>, Error> {
        let width = self.lifted.width();
        // The class and the place of each column of B.
        let places = |(class, factor): (usize, &ClassFactor<f32>)| (0..factor.rank()).map(move |j| (class, j));
        let columns: Vec<(usize, usize)> = self.classes.iter().enumerate().flat_map(places).collect();
        let mut gram = Gram::by_columns(rank, STEP, |range: Range<usize>, mut target: MatMut<'_, f64>| {
            let mut panel = Mat::<f32>::zeros(width, range.len());
            for (column, &(class, j)) in panel.col_iter_mut().zip(&columns[range]) {
                let (from, root) = (self.classes[class].factor().col(j), roots[class] as f32);
                column.iter_mut().zip(from.iter()).for_each(|(to, from)| *to = root * from);
            }
            let mut first = 0;
            for (class, root) in self.classes.iter().zip(roots) {
                let rows = class.rank().min(target.nrows().saturating_sub(first));
                let mut block = Mat::<f32>::zeros(rows, panel.ncols());
                let left = class.factor().subcols(0, rows).transpose();
                matmul(&mut block, Accum::Replace, left, &panel, *root as f32, par());
                target.rb_mut().subrows_mut(first, rows).copy_from(cast::<f32, f64>(block.as_ref()));
                first += rows;
            }
        });
        let mut solved = Mat::<f64>::zeros(roots.len(), rank);
        let mut first = 0;
        for (class, (factor, root)) in self.classes.iter().zip(roots).enumerate() {
            factor.ones().iter().enumerate().for_each(|(j, u)| solved[(class, first + j)] = root * u);
            first += factor.rank();
        }
        gram.solve_regardless(&mut solved, self.ridge)?;
        let solved: Mat<f32> = cast(solved.as_ref());
        let mut weights = Mat::<f32>::zeros(width, roots.len());
        let mut first = 0;
        for (factor, root) in self.classes.iter().zip(roots) {
            let right = solved.as_ref().subcols(first, factor.rank()).transpose();
            matmul(&mut weights, Accum::Add, factor.factor(), right, *root as f32, par());
            first += factor.rank();
        }
        Ok(weights)
    }

    /// Solves the normal equations, E x E.
    fn primal(&self, roots: &[f64]) -> Result<Mat<f32>, Error> {
        let width = self.lifted.width();
        let mut gram = Gram::zeros(width);
        let mut solved = Mat::<f64>::zeros(roots.len(), width);
        for (class, (factor, root)) in self.classes.iter().zip(roots).enumerate() {
            let mut l: Mat<f64> = cast(factor.factor());
            l.par_col_iter_mut().for_each(|column| column.iter_mut().for_each(|v| *v *= root));
            gram.add(l.as_ref());
            for (column, u) in l.col_iter().zip(factor.ones()) {
                column.iter().enumerate().for_each(|(i, v)| solved[(class, i)] += root * u * v);
            }
        }
        gram.solve_regardless(&mut solved, self.ridge)?;
        Ok(cast(solved.transpose()))
    }
}

impl Learner for Air {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        self.classifier = None;
        let classes = indices(&mut self.table, labels);
        for (part, classes) in x.chunks(CHUNK).zip(classes.chunks(CHUNK)) {
            absorb(&mut self.classes, self.lifted.lift(part).rb(), classes);
        }
        self.lifted.wipe(x.len().min(CHUNK));
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if let Some(classifier) = &self.classifier {
            return Ok(classifier.clone());
        }
        let weights = self.weights()?;
        let classifier = self.lifted.linear(&self.table, weights, Vec::new());
        Ok(self.classifier.insert(classifier).clone())
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary {
            samples: self.samples(),
            classes: self.table.len(),
            ridge: self.classifier.as_ref().map(|_| self.ridge),
            ..Summary::default()
        }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "ridge": self.fixed })
    }

    fn state_bytes(&self) -> usize {
        let factors: usize = self.classes.iter().map(ClassFactor::bytes).sum();
        factors + self.classifier.as_ref().map_or(0, Classifier::bytes) + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let width = self.lifted.width();
        let held = product(&[width, stream.classes]).min(stream.samples);
        let side = held.min(width);
        // A factor, the matrix that it is computed from, and its factorisation; the lifted samples of a chunk.
        let absorbing = product(&[12, width, stream.largest_task]);
        // As RanPAC: a small lambda may need LU.
        let squares = if self.fixed.is_some() { 4 } else { 1 };
        let solving = sum(&[product(&[squares, 8, side, side]), product(&[24, side, stream.classes])]);
        let weights = product(&[12, width, sum(&[stream.classes, STEP])]);
        sum(&[product(&[4, width, held]), absorbing.max(sum(&[solving, weights])), product(&[4, width, CHUNK])])
    }
}

/// The registry entry.
pub(crate) const AIR: Method = Method {
    name: "air",
    summary: "ridge regression in which all classes have the same weight, whatever their size",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[("ridge", "lambda, instead of a tenth of the mean eigenvalue")],
    exempt: &[],
    infinite: false,
    config: None,
    build: |options, settings| Ok(Box::new(Air::new(options.map()?, settings.ridge()?))),
};
