//! The incremental SVD of the paper, implemented literally in f32 without its safeguards: no truncation, and no
//! re-orthogonalisation of U (Remark re-orthogonalize), or U, Sigma and V updated together. The paper found both worse
//! than [`LoRanPac`](super::LoRanPac) and Min-Norm; they exist for comparison.
//!
//! ```text
//! [Q, R] = qr(H - U U' H),   [Sigma U'H; 0 R] = U' S V',   U <- [U Q] U',   V <- diag(V, I) V'
//! W = (J U) Sigma^-2 U'        or, with V:        W = (Y V) Sigma^-1 U'
//! ```
//!
//! Cost: `2 E (k + m)^2` flops and an SVD of size k + m at every task, however small the task.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::Reborrow;
use faer::{Accum, Mat, MatRef};

use super::family::UNSTABLE;
use super::lifted::{Lifted, add_by_class, grow_columns, indices};
use crate::classifier::{CHUNK, Classifier, bytes_of};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::FeatureMap;
use crate::linalg::{par, product};
use crate::memory::{self, sum};
use crate::method::{Input, Method};

/// The learner.
pub struct IncrementalSvd {
    lifted: Lifted,
    /// Whether V is kept as well, and W is formed with it.
    joint: bool,
    max_rank: usize,
    table: LabelTable,
    samples: usize,
    factors: Factors,
    /// The class of each row of V.
    classes: Vec<usize>,
    /// J' = (Y H')', E x c.
    sums: Mat<f32>,
    classifier: Option<Classifier>,
}

/// `H = U Sigma V'`, truncated to the kept factors.
struct Factors {
    /// U, E x k.
    u: Mat<f32>,
    sigma: Vec<f32>,
    /// V, M x k.
    v: Mat<f32>,
}

impl IncrementalSvd {
    /// Creates a model that keeps U and Sigma, and with `joint` V as well.
    pub fn new(lift: Arc<dyn FeatureMap>, joint: bool, max_rank: usize) -> Self {
        IncrementalSvd {
            lifted: Lifted::new(lift),
            joint,
            max_rank,
            table: LabelTable::default(),
            samples: 0,
            factors: Factors { u: Mat::new(), sigma: Vec::new(), v: Mat::new() },
            classes: Vec::new(),
            sums: Mat::new(),
            classifier: None,
        }
    }
}

impl Factors {
    /// Returns the factors updated with more samples, at most `most` of them; with V if `joint`.
    fn updated(&self, h: MatRef<'_, f32>, joint: bool, most: usize) -> Result<Factors, Error> {
        let (width, m, k) = (h.nrows(), h.ncols(), self.sigma.len());
        let c = product(self.u.transpose(), h);
        let mut residual = h.to_owned();
        matmul(&mut residual, Accum::Add, &self.u, &c, -1.0, par());
        let qr = residual.qr();
        let (q, r) = (qr.compute_thin_Q(), qr.thin_R());
        let p = q.ncols();
        let mut small = Mat::<f32>::zeros(k + p, k + m);
        (0..k).for_each(|i| small[(i, i)] = self.sigma[i]);
        small.as_mut().submatrix_mut(0, k, k, m).copy_from(&c);
        for j in 0..m {
            (0..p.min(j + 1)).for_each(|i| small[(k + i, k + j)] = r[(i, j)]);
        }
        let svd = small.thin_svd().map_err(|_| Error::Eigen { rank: k + p })?;
        let kept = (k + p).min(k + m).min(width).min(most);
        let sigma: Vec<f32> = svd.S().column_vector().iter().take(kept).copied().collect();
        let (left, right) = (svd.U().subcols(0, kept), svd.V().subcols(0, kept));
        let mut u = product(self.u.as_ref(), left.subrows(0, k));
        matmul(&mut u, Accum::Add, &q, left.subrows(k, p), 1.0, par());
        let mut v = Mat::new();
        if joint {
            v = Mat::zeros(self.v.nrows() + m, kept);
            let (above, mut below) = v.as_mut().split_at_row_mut(self.v.nrows());
            matmul(above, Accum::Replace, &self.v, right.subrows(0, k), 1.0, par());
            below.copy_from(right.subrows(k, m));
        }
        Ok(Factors { u, sigma, v })
    }
}

impl Learner for IncrementalSvd {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        let width = self.lifted.width();
        if self.samples == 0 {
            self.factors.u = Mat::zeros(width, 0);
        }
        let h = self.lifted.lift(x);
        match self.factors.updated(h.rb(), self.joint, self.max_rank) {
            Ok(updated) => self.factors = updated,
            Err(error) => {
                self.lifted.wipe(0);
                return Err(error);
            }
        }
        self.classifier = None;
        let classes = indices(&mut self.table, labels);
        grow_columns(&mut self.sums, width, self.table.len());
        add_by_class(&mut self.sums, h.rb(), &classes);
        if self.joint {
            self.classes.extend(&classes);
        }
        self.samples += labels.len();
        self.lifted.wipe(x.len().min(CHUNK));
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if self.samples == 0 {
            return Err(Error::NothingLearned);
        }
        if let Some(classifier) = &self.classifier {
            return Ok(classifier.clone());
        }
        let Factors { u, sigma, v } = &self.factors;
        // A lower bound keeps noise from overflowing.
        let inverse = |i: usize| sigma[i].max(1e-10 * sigma[0]).max(1e-15).recip();
        // k x c: Sigma^-2 U' J', or Sigma^-1 (Y V)'.
        let mut inner = if self.joint {
            let mut sums = Mat::<f32>::zeros(sigma.len(), self.table.len());
            add_by_class(&mut sums, v.transpose(), &self.classes);
            sums
        } else {
            product(u.transpose(), self.sums.as_ref())
        };
        for (i, row) in inner.as_mut().row_iter_mut().enumerate() {
            let scale = if self.joint { inverse(i) } else { inverse(i) * inverse(i) };
            row.iter_mut().for_each(|v| *v *= scale);
        }
        let classifier = self.lifted.linear(&self.table, product(u.as_ref(), inner.as_ref()), Vec::new());
        Ok(self.classifier.insert(classifier).clone())
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        let (samples, classes, rank) = (self.samples, self.table.len(), Some(self.factors.sigma.len()));
        Summary { samples, classes, basis_rank: rank, kept_rank: rank, ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "joint": self.joint, "max_rank": self.max_rank })
    }

    fn state_bytes(&self) -> usize {
        let Factors { u, sigma, v } = &self.factors;
        let rows = self.classes.capacity() * size_of::<usize>() + sigma.capacity() * size_of::<f32>();
        let classifier = self.classifier.as_ref().map_or(0, Classifier::bytes);
        bytes_of(u) + bytes_of(v) + bytes_of(&self.sums) + classifier + rows + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let (width, task) = (self.lifted.width(), stream.largest_task);
        let rank = stream.samples.min(width).min(self.max_rank.saturating_add(task));
        let v = if self.joint { memory::product(&[2, 4, stream.samples, rank]) } else { 0 };
        sum(&[
            memory::product(&[2, 4, width, rank]),
            memory::product(&[8, 4, rank, rank]),
            memory::product(&[4, 4, width, task]),
            memory::product(&[2, 4, width, stream.classes]),
            v,
        ])
    }
}

/// The registry entry of Min-Norm without re-orthogonalisation.
pub(crate) const WITHOUT_REORTHOGONALISATION: Method = Method {
    name: "min-norm-drifting",
    summary: "min-norm by a literal incremental SVD whose U is never re-orthogonalised",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[],
    exempt: UNSTABLE,
    infinite: false,
    config: None,
    build: |options, _| Ok(Box::new(IncrementalSvd::new(options.map()?, false, options.max_rank.max(1)))),
};

/// The registry entry of Min-Norm with V.
pub(crate) const JOINT: Method = Method {
    name: "min-norm-joint",
    summary: "min-norm by a literal incremental SVD of U, Sigma and V together (V has a row for every sample)",
    exemplar_free: false,
    build: |options, _| Ok(Box::new(IncrementalSvd::new(options.map()?, true, options.max_rank.max(1)))),
    ..WITHOUT_REORTHOGONALISATION
};
