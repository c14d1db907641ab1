//! What a cap on samples leaves: who stays, what is left of those who go, and what that costs.

use faer::Mat;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;

use super::Infinite;
use crate::certificate::Books;
use crate::error::Error;
use crate::gram::Gram;
use crate::learner::Config;
use crate::linalg::{cholesky_lower, par, pivoted_cholesky};
use crate::memory::with_slack;
use crate::statistics::{Cut, Losses};

/// What the learner is made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kept {
    /// Z: the samples that are kept, one after the other.
    pub samples: Vec<f32>,
    /// The class of each.
    pub classes: Vec<usize>,
    /// Samples of each class, gone ones included.
    pub counts: Vec<usize>,
    /// What those have left that are gone.
    pub gone: Option<Gone>,
}

/// What samples have left that are not kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Gone {
    /// `M - I` of the first samples that are kept, n x n.
    pub mass: Mat<f64>,
    /// `B - Y_Z` of the same, c x n; rows of later classes are missing.
    pub sums: Mat<f64>,
    /// How many they are.
    pub samples: usize,
    /// How many of them belong to no class any more.
    pub orphans: usize,
    /// How often samples had to go.
    pub times: usize,
    /// A bound on the length of what the projections have lost: `|H - Phi (...)|_F`, without the latest.
    pub error: f64,
    /// The same for those who went last, as long as no sample has come since: what they have lost is orthogonal to
    /// everything that is kept, and costs the classifier nothing.
    pub latest: f64,
}

impl Gone {
    /// New samples are coming: what was lost last may have components along them.
    pub(super) fn settle(&mut self) {
        self.error += std::mem::take(&mut self.latest);
    }
}

impl Infinite {
    /// Appends what another model has kept; `places` are its classes here.
    pub(super) fn join(&mut self, other: &Kept, places: &[usize]) {
        let before = self.len();
        self.kept.counts.resize(self.table.len(), 0);
        places.iter().zip(&other.counts).for_each(|(class, count)| self.kept.counts[*class] += count);
        self.kept.classes.extend(other.classes.iter().map(|class| places[*class]));
        self.kept.samples.extend_from_slice(&other.samples);
        if let Some(ours) = &mut self.kept.gone {
            ours.settle();
        }
        let Some(theirs) = &other.gone else { return };
        let ours = self.kept.gone.get_or_insert_with(|| Gone {
            mass: Mat::zeros(0, 0),
            sums: Mat::zeros(0, 0),
            samples: 0,
            orphans: 0,
            times: 0,
            error: 0.0,
            latest: 0.0,
        });
        // Theirs begins where ours ends; what lies between has no mass but its own.
        let n = before + theirs.mass.nrows();
        ours.mass.resize_with(n, n, |_, _| 0.0);
        ours.mass.as_mut().submatrix_mut(before, before, n - before, n - before).copy_from(&theirs.mass);
        ours.sums.resize_with(self.table.len(), n, |_, _| 0.0);
        for (class, place) in (0..theirs.sums.nrows()).zip(places) {
            ours.sums.as_mut().row_mut(*place).subcols_mut(before, n - before).copy_from(theirs.sums.row(class));
        }
        ours.samples += theirs.samples;
        ours.orphans += theirs.orphans;
        ours.times += theirs.times;
        // The losses of different samples are columns of one matrix.
        ours.error = ours.error.hypot(theirs.error + theirs.latest);
    }

    /// M of the samples that are kept.
    fn mass(&self) -> Mat<f64> {
        let mut mass = Mat::<f64>::identity(self.len(), self.len());
        if let Some(gone) = &self.kept.gone {
            let m = gone.mass.nrows();
            mass.as_mut().submatrix_mut(0, 0, m, m).copy_from(&gone.mass);
            (0..m).for_each(|i| mass[(i, i)] += 1.0);
        }
        mass
    }

    /// The problem in the coordinates in which everything has mass 1: `G'KG`, `B G^-T`, and G.
    pub(super) fn whitened(&self) -> Result<(Gram, Mat<f64>, Mat<f64>), Error> {
        let n = self.len();
        let mut g = self.mass();
        if !cholesky_lower(g.as_mut(), par()) {
            return Err(Error::NotPositiveDefinite { rank: n, ridge: 0.0 });
        }
        for j in 1..n {
            g.col_mut(j).subrows_mut(0, j).fill(0.0);
        }
        let kernel = g.transpose() * (self.kernel.to_matrix() * &g);
        let mut gram = Gram::zeros(n);
        gram.set_matrix(kernel.as_ref());
        let mut labels = self.labels();
        if let Some(gone) = &self.kept.gone {
            for class in 0..gone.sums.nrows() {
                let row = labels.as_mut().row_mut(class).subcols_mut(0, gone.sums.ncols());
                row.iter_mut().zip(gone.sums.row(class).iter()).for_each(|(sum, v)| *sum += v);
            }
        }
        solve_lower_triangular_in_place(g.as_ref(), labels.as_mut().transpose_mut(), par());
        Ok((gram, labels, g))
    }

    /// Lets samples go when there are more than the cap and its slack allow: those stay that pivoted Cholesky takes first,
    /// which have the most energy outside the span of the others.
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        let Config { max_rank, chunk, .. } = self.config;
        if self.len() <= with_slack(max_rank, chunk) {
            return Ok(());
        }
        self.renew_kernel();
        let mut factor = self.kernel.to_matrix();
        let (rank, order) = pivoted_cholesky(factor.as_mut()).ok_or(Error::Eigen { rank: self.len() })?;
        drop(factor);
        let mut stay = vec![false; self.len()];
        order.iter().take(max_rank.min(rank.max(1))).for_each(|i| stay[*i] = true);
        self.reduce(&stay, true)
    }

    /// Keeps some of the samples. The others leave their projections, if they are only `gone` (K is there then); otherwise they have never
    /// been there, and only what lies on them of samples that went before is projected.
    pub(super) fn reduce(&mut self, stay: &[bool], gone: bool) -> Result<(), Error> {
        let (keep, leave): (Vec<usize>, Vec<usize>) = (0..self.len()).partition(|i| stay[*i]);
        if leave.is_empty() {
            return Ok(());
        }
        if gone || self.kept.gone.is_some() {
            if !gone {
                self.renew_kernel();
            }
            self.kept.gone = Some(self.projected(&keep, &leave, gone)?);
        }
        // A prefix of K stays what it was.
        let known: Vec<usize> = keep.iter().copied().filter(|i| *i < self.kernel.rank()).collect();
        self.kernel = self.kernel.select(&known);
        let dim = self.lift.dim();
        let rows = keep.iter().flat_map(|i| &self.kept.samples[i * dim..(i + 1) * dim]);
        self.kept.samples = rows.copied().collect();
        self.kept.classes = keep.iter().map(|i| self.kept.classes[*i]).collect();
        self.written = 0;
        self.classifier = None;
        Ok(())
    }

    /// What is left of the samples in `leave` on the span of those in `keep`.
    fn projected(&self, keep: &[usize], leave: &[usize], own: bool) -> Result<Gone, Error> {
        let k = self.kernel.to_matrix();
        let between = Mat::from_fn(leave.len(), keep.len(), |i, j| k[(leave[i], keep[j])]);
        let mut b = between.clone();
        let mut inner = self.kernel.select(keep);
        let floor = inner.rounding_floor();
        inner.solve(&mut b, floor)?;
        drop(inner);
        let mut mass = self.mass();
        let mut sums = Mat::zeros(self.table.len(), self.len());
        let old = self.kept.gone.as_ref();
        if let Some(old) = old {
            sums.as_mut().submatrix_mut(0, 0, old.sums.nrows(), old.sums.ncols()).copy_from(&old.sums);
        }
        for &i in leave {
            match own {
                true => sums[(self.kept.classes[i], i)] += 1.0,
                false => mass[(i, i)] -= 1.0,
            }
        }
        let part = |rows: &[usize], columns: &[usize]| {
            Mat::from_fn(rows.len(), columns.len(), |i, j| mass[(rows[i], columns[j])])
        };
        let (middle, side) = (part(leave, leave), part(keep, leave));
        // |E C|_F^2 for the residuals E of those that leave, and what everything gone has on them, C C' = M.
        let residual =
            Mat::from_fn(leave.len(), leave.len(), |i, j| k[(leave[i], leave[j])]) - &b * between.transpose();
        let lost: f64 = (0..leave.len()).map(|j| middle.col(j).transpose() * residual.col(j)).sum();
        let cross = &side * &b;
        let mut new = part(keep, keep) + &cross + cross.transpose() + b.transpose() * (&middle * &b);
        for j in 0..keep.len() {
            new[(j, j)] -= 1.0;
            // Symmetric to the last bit: one triangle is written down.
            (0..j).for_each(|i| new[(j, i)] = new[(i, j)]);
        }
        let columns = |list: &[usize]| Mat::from_fn(sums.nrows(), list.len(), |c, j| sums[(c, list[j])]);
        let sums = columns(keep) + columns(leave) * &b;
        Ok(Gone {
            mass: new,
            sums,
            samples: old.map_or(0, |gone| gone.samples) + if own { leave.len() } else { 0 },
            orphans: old.map_or(0, |gone| gone.orphans),
            times: old.map_or(0, |gone| gone.times) + usize::from(own),
            error: old.map_or(0.0, |gone| gone.error + gone.latest),
            latest: lost.max(0.0).sqrt(),
        })
    }

    pub(super) fn books(&self) -> Books {
        let gone = self.kept.gone.as_ref();
        let lost = self.lost();
        let samples = gone.map_or(0, |gone| gone.samples);
        let cuts = gone.map_or(0, |gone| gone.times);
        Books {
            samples: self.samples(),
            largest_class: self.kept.counts.iter().copied().max().unwrap_or(0),
            // No eigenvalue was cut, so that there is no gamma.
            past: Losses { lost, largest: 0.0, cuts, removed: samples, capped: samples, dropped: 0.0, assumed: 0 },
            latest: Cut::default(),
            semidefinite: gone.is_none(),
            keeps_samples: true,
        }
    }
}
