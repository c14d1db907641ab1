//! The sufficient statistics of everything learned: Q, S, J, and the counts. No sample is kept.

mod edit;
mod state;
mod whole;

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use state::{Masses, State, Step};

use crate::basis::{Basis, Split};
use crate::buffer::Buffer;
use crate::delta::Delta;
use crate::error::Error;
use crate::factor::Factor;
use crate::gram::Gram;
use crate::linalg::{cleared_norms, par};
use crate::scalar::Scalar;
use crate::spectrum::rounding;

/// Multiple of the rounding unit below which a residual counts as rounding noise.
///
/// With it, the exact duplicate among 4,500 real samples (CLINC150, E = 20,000) adds no direction: r = 4,499.
pub const DEFAULT_DROP: f64 = 20.0;

/// Drift of the basis, in rounding units, above which a compression re-orthonormalises it.
const DRIFT_LIMIT: f64 = 20.0;

/// Where Q is the identity, the triangular factor of an increment of S is computed for chunks of at most this part of E
/// samples: for larger ones it would cost more than it saves on disk.
const SMALL_SHARE: usize = 32;

/// A cut of the spectrum: the removed eigenvalues that are above rounding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// The largest: mu_{k+1}. 0 if only rounding was removed.
    pub largest: f64,
    /// The smallest.
    pub smallest: f64,
    /// Their sum.
    pub sum: f64,
    /// Their number.
    pub directions: usize,
}

impl Cut {
    /// Summarises the eigenvalues that are removed from a spectrum in descending order when `kept` values stay.
    fn of(values: &[f64], kept: usize) -> Cut {
        let removed = values.get(kept..).unwrap_or(&[]);
        let rounding = rounding(values);
        let removed = &removed[..removed.iter().take_while(|value| **value > rounding).count()];
        Cut {
            largest: removed.first().copied().unwrap_or(0.0),
            smallest: removed.last().copied().unwrap_or(0.0),
            sum: removed.iter().sum(),
            directions: removed.len(),
        }
    }
}

/// The losses of the past: cuts of the spectrum (the paper's a_{t-1} and the past part of gamma_t), and directions that
/// were never added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// Sum over past cuts of the largest eigenvalue that each removed: a_{t-1}.
    pub lost: f64,
    /// The largest eigenvalue ever removed.
    pub largest: f64,
    /// Number of past cuts that removed something.
    pub cuts: usize,
    /// Directions that past cuts removed: `M_{t-1} - k_{t-1}` where samples are independent.
    pub removed: usize,
    /// Directions among them that the cap on the basis removed.
    pub capped: usize,
    /// A bound on the change of `H H'` by residuals of rounding size that added no direction.
    pub dropped: f64,
    /// Samples that were unlearned or relabelled without proof that they had been learned under their labels.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub assumed: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Losses {
    /// Adds a cut to the losses.
    fn add(&mut self, cut: Cut) {
        if cut.directions > 0 {
            self.lost += cut.largest;
            self.largest = self.largest.max(cut.largest);
            self.cuts += 1;
            self.removed += cut.directions;
        }
    }
}

/// The weights of samples.
#[derive(Debug, Clone, Copy)]
pub struct Weighted<'a> {
    /// The weight of each sample: the sum of those of its copies.
    pub weights: &'a [f64],
    /// How many copies of it there are.
    pub copies: &'a [usize],
}

/// Multiplies columns by the roots of weights.
fn scale_columns(a: MatMut<'_, f64>, weights: &[f64]) {
    for (column, weight) in a.col_iter_mut().zip(weights) {
        let root = weight.sqrt();
        column.iter_mut().for_each(|value| *value *= root);
    }
}

/// Everything that the closed-form classifier needs:
///
/// ```text
/// Q  E x r   orthonormal basis            S  r x r   Q' (H H') Q, f64
/// J  E x c   (Y H')', one column per class  N  c x r   J Q, f64, kept up to date without touching J
/// M, n_c     samples in all and per class
/// ```
///
/// A sample of weight w enters all of them as `sqrt(w) h` with the label `sqrt(w) y`, and counts w in M and n_c where these stand
/// for `|Y|^2`. Where Q is the identity, N is J, and there is no other.
#[derive(Debug, Clone)]
pub struct Statistics<T> {
    basis: Basis<T>,
    /// Shared with classifiers until it changes.
    gram: Arc<Gram>,
    /// Increments of S, in this order, that are applied when it is first used.
    pending: Vec<Step>,
    cross: Mat<f64>,
    /// J by columns, one per class; none where Q is the identity.
    sums: Vec<Buffer<T>>,
    counts: Vec<usize>,
    samples: usize,
    /// The sums of their weights.
    masses: Masses,
    losses: Losses,
    /// The cut after the latest task; it is added to the losses when the next task is learned.
    latest_cut: Cut,
    /// Whether J may have components outside the basis: true once a compression has dropped directions.
    outside: bool,
    drop: f64,
}

impl<T: Scalar> Statistics<T> {
    /// Creates empty statistics. `drop` is a multiple of the rounding unit; see [`Basis::absorb`].
    pub fn new(width: usize, drop: f64) -> Self {
        Statistics {
            basis: Basis::new(width),
            gram: Arc::default(),
            pending: Vec::new(),
            cross: Mat::zeros(0, 0),
            sums: Vec::new(),
            counts: Vec::new(),
            samples: 0,
            masses: Masses::default(),
            losses: Losses::default(),
            latest_cut: Cut::default(),
            outside: false,
            drop,
        }
    }

    /// Returns the basis Q.
    pub fn basis(&self) -> &Basis<T> {
        &self.basis
    }

    /// Returns the Gram matrix S. It is copied if a classifier still shares it.
    pub fn gram(&mut self) -> &mut Gram {
        self.settle();
        Arc::make_mut(&mut self.gram)
    }

    /// Returns S, shared until it changes.
    pub(crate) fn shared_gram(&mut self) -> Arc<Gram> {
        self.settle();
        self.gram.clone()
    }

    /// Returns the eigenvalues of S in descending order. A copy of S is decomposed if a classifier shares it.
    pub fn eigenvalues(&mut self) -> Result<Vec<f64>, Error> {
        self.settle();
        match Arc::get_mut(&mut self.gram) {
            Some(gram) => gram.eigenvalues(),
            None => (*self.gram).clone().eigenvalues(),
        }
    }

    /// Returns S and N.
    pub(crate) fn gram_and_cross(&mut self) -> (&mut Gram, &Mat<f64>) {
        self.settle();
        (Arc::make_mut(&mut self.gram), &self.cross)
    }

    /// Applies the pending increments of S.
    fn settle(&mut self) {
        for step in std::mem::take(&mut self.pending) {
            match step {
                Step::Whole { rank, upper } => {
                    // `from_state` has checked the sizes.
                    self.gram = Arc::new(Gram::from_packed(&upper, rank).unwrap_or_default());
                }
                Step::Grid { diagonal, numbers } => {
                    self.gram = Arc::new(Gram::from_grid(&diagonal, &numbers).unwrap_or_default());
                }
                Step::Grow(factor) => self.grow(&factor),
            }
        }
    }

    fn grow(&mut self, factor: &Factor) {
        let (b, r) = (factor.matrix(), self.gram.rank());
        Arc::make_mut(&mut self.gram).grow(b.subrows(0, r), b.subrows(r, b.nrows() - r));
    }

    /// Returns N = J Q, c x r.
    pub fn cross(&self) -> &Mat<f64> {
        &self.cross
    }

    /// Returns J of one class, `sum of h`: E numbers. None if Q is the identity: then it is the row of N.
    pub fn label_sum(&self, class: usize) -> Option<&[T]> {
        self.sums.get(class).map(|sum| &**sum)
    }

    /// Computes J Q as a product. Cost: `2 E r c` flops.
    pub fn project_label_sums(&self) -> Mat<f64> {
        if self.sums.is_empty() {
            return self.cross.clone();
        }
        self.project_label_sums_onto(0, Mat::zeros(self.sums.len(), 0).as_ref())
    }

    /// Computes J Q for the columns of Q from `first` on, given those before; a few classes at a time: J is stored by
    /// class.
    fn project_label_sums_onto(&self, first: usize, known: MatRef<'_, f64>) -> Mat<f64> {
        const CLASSES: usize = 64;
        let width = self.basis.width();
        let mut products = Mat::zeros(self.sums.len(), self.basis.rank() - first);
        let mut group = Mat::<T>::zeros(width, CLASSES.min(self.sums.len()));
        for (at, sums) in self.sums.chunks(CLASSES).enumerate() {
            group.par_col_iter_mut().zip(sums).for_each(|(column, sums)| {
                column.iter_mut().zip(sums.iter()).for_each(|(target, value)| *target = *value);
            });
            let known = known.subrows(at * CLASSES, sums.len()).transpose();
            let onto = self.basis.coordinates_from(first, known, group.as_ref().subcols(0, sums.len()));
            products.as_mut().subrows_mut(at * CLASSES, sums.len()).copy_from(onto.transpose());
        }
        products
    }

    /// Returns the number of samples seen, M.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the number of samples seen of each class.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Returns the sums of the weights of samples; they are the numbers of samples if all weights are 1.
    pub fn masses(&self) -> &Masses {
        &self.masses
    }

    /// Returns whether any sample had a weight other than 1.
    pub fn is_weighted(&self) -> bool {
        !self.masses.are_counts(&self.counts, self.samples)
    }

    /// Returns the share of the samples, by weight, whose class is still in the model: 1, unless a class was forgotten.
    /// `|Y|^2 / M`.
    pub fn labelled(&self) -> f64 {
        self.masses.classes.iter().sum::<f64>() / self.masses.all
    }

    /// Returns the losses of past cuts: those before the latest task's own.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Returns the cut that [`Statistics::cut`] made after the latest task.
    pub fn latest_cut(&self) -> Cut {
        self.latest_cut
    }

    /// Returns whether rounding-level directions are kept too (`drop = 0`).
    pub fn keeps_null_directions(&self) -> bool {
        self.drop == 0.0
    }

    /// Returns the bytes held in memory.
    pub fn bytes(&self) -> usize {
        let cross = self.cross.nrows() * self.cross.ncols() * size_of::<f64>();
        let sums = self.sums.len() * self.basis.width() * size_of::<T>();
        self.basis.bytes() + self.gram.bytes() + cross + sums
    }

    /// Prepares empty statistics for a basis of this rank.
    pub fn expect(&mut self, rank: usize) {
        if self.pending.is_empty() {
            Arc::make_mut(&mut self.gram).expect(rank);
        }
    }

    /// Adds lifted samples `h` (E x m, destroyed) of the given classes (indices; new ones are added).
    ///
    /// N needs no product with J: with `H = Q C + Qn Rn`, `(J + Y H') [Q Qn] = [N + Y C',  J Qn + Y Rn']`, and
    /// `J Qn = 0` as long as J lies in the span of Q.
    pub fn absorb(&mut self, h: MatMut<'_, T>, classes: &[usize]) -> Delta {
        self.absorb_weighted(h, classes, None)
    }

    /// The same for weighted samples. The basis does not depend on the weights.
    pub fn absorb_weighted(
        &mut self,
        mut h: MatMut<'_, T>,
        classes: &[usize],
        weighted: Option<Weighted<'_>>,
    ) -> Delta {
        let width = self.basis.width();
        let weight = |sample: usize| weighted.map_or(1.0, |weighted| weighted.weights[sample]);
        let copies = |sample: usize| weighted.map_or(1, |weighted| weighted.copies[sample]);
        assert_eq!((h.nrows(), h.ncols()), (width, classes.len()));
        let norms = cleared_norms(h.rb_mut());
        self.losses.add(std::mem::take(&mut self.latest_cut));
        let known_classes = self.counts.len();
        let all_classes = classes.iter().map(|class| class + 1).max().unwrap_or(0).max(known_classes);
        self.add_classes(all_classes);
        for (sample, &class) in classes.iter().enumerate() {
            self.counts[class] += copies(sample);
            self.samples += copies(sample);
            self.masses.add(class, weight(sample));
        }

        if !self.basis.is_whole() {
            self.add_label_sums(h.rb(), classes, weight);
        }
        let rank = self.basis.rank();
        let Split { mut known, mut new, left_out } = self.basis.absorb(h, &norms, self.drop * T::EPSILON);
        // |H H' - (H - R) (H - R)'| <= sum of 2 |h| |r| + |r|^2
        let change = |(i, (norm, left)): (usize, (&f64, &f64))| weight(i) * left * (2.0 * norm + left);
        self.losses.dropped += norms.iter().zip(&left_out).enumerate().map(change).sum::<f64>();

        // Column after column, as N is stored.
        let mut cross = Mat::zeros(all_classes, rank + new.nrows());
        cross.par_col_iter_mut().enumerate().for_each(|(i, mut column)| {
            let added = if i < rank {
                column.rb_mut().subrows_mut(0, known_classes).copy_from(self.cross.col(i));
                known.row(i)
            } else {
                new.row(i - rank)
            };
            let added = classes.iter().zip(added.iter()).enumerate();
            added.for_each(|(sample, (&class, value))| column[class] += weight(sample) * value);
        });
        if self.outside {
            // J has components outside the old basis, which may lie along the new directions.
            let onto = self.project_label_sums_onto(rank, cross.as_ref().subcols(0, rank));
            cross.as_mut().subcols_mut(rank, new.nrows()).copy_from(onto);
        }
        self.cross = cross;
        if let Some(Weighted { weights, .. }) = weighted {
            scale_columns(known.as_mut(), weights);
            scale_columns(new.as_mut(), weights);
        }
        let mut delta = Delta::of_classes(classes.iter().copied(), all_classes);
        let whole = self.basis.is_whole();
        if whole {
            let energy: f64 = norms.iter().enumerate().map(|(i, norm)| weight(i) * (norm * norm)).sum();
            let changed = self.set_grid(self.fits_grid(self.trace() + energy));
            if changed || classes.len() * SMALL_SHARE > width {
                self.gram().add(known.as_ref());
                delta.drop_factors();
                return delta;
            }
        }
        let factor = Factor::new(known.as_ref(), new.as_ref());
        // Whole features have the precision of f32 themselves.
        let factor = if whole { factor.rounded() } else { factor };
        if self.pending.is_empty() {
            self.grow(&factor);
        } else {
            self.pending.push(Step::Grow(factor.clone()));
        }
        if self.outside {
            delta.cross.extend(0..all_classes);
        }
        delta.factors.push(factor);
        delta
    }

    /// Adds classes without samples, up to this number of classes.
    fn add_classes(&mut self, classes: usize) {
        self.counts.resize(classes, 0);
        self.masses.classes.resize(classes, 0.0);
        if !self.basis.is_whole() {
            let width = self.basis.width();
            self.sums.resize_with(classes, || Buffer::from(vec![T::from_f64(0.0); width]));
        }
    }

    /// Adds samples to the label sums J (Algorithm 5).
    fn add_label_sums(&mut self, h: MatRef<'_, T>, classes: &[usize], weight: impl Fn(usize) -> f64 + Sync) {
        const ROWS: usize = 2048;
        let mut samples = vec![Vec::new(); self.sums.len()];
        classes.iter().enumerate().for_each(|(sample, &class)| samples[class].push(sample));
        self.sums.par_iter_mut().zip(&samples).filter(|(_, samples)| !samples.is_empty()).for_each(
            |(sums, samples)| {
                sums.to_mut().par_chunks_mut(ROWS).enumerate().for_each(|(part, sums)| {
                    for &sample in samples {
                        let (column, weight) =
                            (h.col(sample).subrows(part * ROWS, sums.len()), T::from_f64(weight(sample)));
                        sums.iter_mut().zip(column.iter()).for_each(|(sum, v)| *sum += *v * weight);
                    }
                });
            },
        );
    }

    /// Computes `S <- tau_k(S)`: keeps the k largest eigenvalues, without changing anything E-sized (Algorithm 4's
    /// cut).
    pub fn cut(&mut self, k: impl FnOnce(&[f64]) -> usize) -> Result<Delta, Error> {
        let eigen = self.gram().eigen()?;
        let k = k(&eigen.values);
        if k >= eigen.values.len() {
            return Ok(Delta::none(self.counts.len()));
        }
        let cut = Cut::of(&eigen.values, k);
        self.losses.add(std::mem::replace(&mut self.latest_cut, cut));
        self.gram().set_eigen(&eigen.values[..k], eigen.vectors.as_ref().subcols(0, k));
        Ok(Delta::replaced_gram(self.counts.len()))
    }

    /// Shrinks the basis to its `rank` leading eigendirections: `Q <- Q V`, `S <- diag(mu)`.
    ///
    /// Cost: `2 E r k` flops for k directions, and `5/3 r^3 + 6 r^2 k` in f64.
    pub fn compress(&mut self, rank: usize) -> Result<Delta, Error> {
        self.settle();
        let decomposition = Arc::make_mut(&mut self.gram).decompose()?;
        if rank >= decomposition.values().len() {
            return Ok(Delta::none(self.counts.len()));
        }
        let cut = Cut::of(decomposition.values(), rank);
        let values = decomposition.values()[..rank].to_vec();
        let mut cross = Mat::zeros(self.cross.nrows(), rank);
        let rotation = self.basis.rotation(rank, |range| {
            let rows = decomposition.rows(range.clone());
            let target = cross.as_mut().subcols_mut(range.start, range.len());
            matmul(target, Accum::Replace, &self.cross, rows.transpose(), 1.0, par());
            rows
        });
        self.losses.add(cut);
        self.losses.capped += cut.directions;
        self.outside = true;
        let was_whole = self.basis.is_whole();
        if was_whole {
            self.restore_label_sums();
        }
        self.cross = cross;
        self.keep_directions(&values, rotation);
        let classes = self.counts.len();
        Ok(if was_whole { Delta::everything(classes) } else { Delta::replaced_basis(classes) })
    }

    /// Keeps eigenvectors V of S, given `L^-T V`: `Q <- Q V`, `S <- diag(mu)`. The caller has changed N, and restored J where
    /// there was no basis.
    fn keep_directions(&mut self, values: &[f64], rotation: Mat<T>) {
        self.gram().set_diagonal(&values.iter().map(|v| v.max(0.0)).collect::<Vec<_>>());
        self.basis.rotate(rotation);
        if self.basis.drift() > DRIFT_LIMIT * T::EPSILON {
            self.reorthonormalise(values);
        }
    }

    /// Re-orthonormalises the basis, for `S = diag(mu)`. With `Q' Q = L L'`: `Q <- Q L^-T`, `S <- L' S L`, `N <- N L`, which
    /// represent the same matrices.
    fn reorthonormalise(&mut self, values: &[f64]) {
        // Only a rank-deficient basis could fail here, and the columns are orthonormal but for rounding.
        let Some(mut l) = self.basis.orthonormalise() else { return };
        self.cross = &self.cross * &l;
        l.par_col_iter_mut().enumerate().for_each(|(j, column)| {
            let below = values.len() - j;
            column.subrows_mut(j, below).iter_mut().zip(&values[j..]).for_each(|(l, mu)| *l *= mu.max(0.0).sqrt());
        });
        self.gram().set_product(l.as_ref());
    }

    /// Computes `(X Q')'`: maps coefficients in the basis (c x r) to weights of full width (E x c). Cost: `2 E r c`
    /// flops.
    pub fn expand(&self, coefficients: MatRef<'_, f64>) -> Mat<T> {
        let mut w = Mat::zeros(self.basis.width(), coefficients.nrows());
        self.basis.add_product(w.as_mut(), coefficients.transpose(), 1.0);
        w
    }
}
