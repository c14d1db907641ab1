//! Eviction beyond a cap on the kept samples: the choice of samples, the sums of their projections, and the loss.

use std::sync::Arc;

use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Mat, Scale};

use super::{Evicted, KernelModel, KernelState};
use crate::certificate::Ledger;
use crate::classifier::whiten;
use crate::config::Config;
use crate::error::Error;
use crate::gram::Gram;
use crate::linalg::{add_symmetric_upper, gather, inner_product, mirror_upper, par, pivoted_cholesky, product};
use crate::plan::with_slack;
use crate::statistics::{Cut, Losses};

impl KernelModel {
    /// Appends the kept samples of another model; `places` are its classes here.
    pub(super) fn join(&mut self, other: &KernelState, places: &[usize]) {
        let before = self.len();
        self.state.counts.resize(self.table.len(), 0);
        places.iter().zip(&other.counts).for_each(|(class, count)| self.state.counts[*class] += count);
        self.state.classes.extend(other.classes.iter().map(|class| places[*class]));
        self.state.samples.extend_from_slice(&other.samples);
        if let Some(ours) = &mut self.state.evicted {
            ours.settle();
        }
        let Some(theirs) = &other.evicted else { return };
        let ours = self.state.evicted.get_or_insert_with(Evicted::none);
        // The other mass matrix follows this one; the samples in between have only their own mass.
        let n = before + theirs.mass.nrows();
        ours.mass.resize_with(n, n, |_, _| 0.0);
        ours.mass.as_mut().submatrix_mut(before, before, n - before, n - before).copy_from(&theirs.mass);
        ours.sums.resize_with(self.table.len(), n, |_, _| 0.0);
        for (class, place) in (0..theirs.sums.nrows()).zip(places) {
            ours.sums.as_mut().row_mut(*place).subcols_mut(before, n - before).copy_from(theirs.sums.row(class));
        }
        ours.samples += theirs.samples;
        ours.unlabelled += theirs.unlabelled;
        ours.evictions += theirs.evictions;
        // The losses of different samples are columns of one matrix.
        ours.error = ours.error.hypot(theirs.error + theirs.latest);
    }

    /// Returns M of the kept samples.
    pub(super) fn mass(&self) -> Mat<f64> {
        let mut mass = Mat::<f64>::identity(self.len(), self.len());
        if let Some(evicted) = &self.state.evicted {
            let m = evicted.mass.nrows();
            mass.as_mut().submatrix_mut(0, 0, m, m).copy_from(&evicted.mass);
            (0..m).for_each(|i| mass[(i, i)] += 1.0);
        }
        mass
    }

    /// Returns the problem in the coordinates in which every sample has mass 1: `G'KG`, `B G^-T`, and G.
    pub(super) fn whitened(&self) -> Result<(Gram, Mat<f64>, Mat<f64>), Error> {
        let (g, gram) = whiten(self.mass(), &self.kernel)?;
        let mut labels = self.state.labels(self.table.len());
        if let Some(evicted) = &self.state.evicted {
            for class in 0..evicted.sums.nrows() {
                let row = labels.as_mut().row_mut(class).subcols_mut(0, evicted.sums.ncols());
                row.iter_mut().zip(evicted.sums.row(class).iter()).for_each(|(sum, v)| *sum += v);
            }
        }
        solve_lower_triangular_in_place(g.as_ref(), labels.as_mut().transpose_mut(), par());
        Ok((gram, labels, g))
    }

    /// Evicts samples if there are more than the cap and its slack allow. The samples that pivoted Cholesky selects
    /// first are kept: they have the most energy outside the span of the others. Returns whether any were evicted.
    pub(super) fn evict(&mut self) -> Result<bool, Error> {
        let Config { max_rank, chunk, .. } = self.config;
        if self.len() <= with_slack(max_rank, chunk) {
            return Ok(false);
        }
        self.renew_kernel();
        let mut factor = self.kernel.to_matrix();
        let (rank, order) = pivoted_cholesky(factor.as_mut()).ok_or(Error::Eigen { rank: self.len() })?;
        drop(factor);
        let mut stay = vec![false; self.len()];
        order.iter().take(max_rank.min(rank.max(1))).for_each(|i| stay[*i] = true);
        self.reduce(&stay, true)?;
        Ok(true)
    }

    /// Keeps the samples in `stay`. The others are evicted and leave their projections (K must be up to date), or are
    /// removed as if they had never been learned: then only the projections of evicted samples on them are projected
    /// again.
    pub(super) fn reduce(&mut self, stay: &[bool], evict: bool) -> Result<(), Error> {
        let (keep, leave): (Vec<usize>, Vec<usize>) = (0..self.len()).partition(|i| stay[*i]);
        if leave.is_empty() {
            return Ok(());
        }
        if evict || self.state.evicted.is_some() {
            if !evict {
                self.renew_kernel();
            }
            self.state.evicted = Some(self.projected(&keep, &leave, evict)?);
        }
        // A prefix of K does not change.
        let known: Vec<usize> = keep.iter().copied().filter(|i| *i < self.kernel.rank()).collect();
        self.kernel = Arc::new(self.kernel.select(&known));
        let dim = self.space.dim();
        let rows = keep.iter().flat_map(|i| &self.state.samples[i * dim..(i + 1) * dim]);
        self.state.samples = rows.copied().collect();
        self.state.classes = keep.iter().map(|i| self.state.classes[*i]).collect();
        self.classifier = None;
        Ok(())
    }

    /// Returns the projections of the samples in `leave` on the span of those in `keep`.
    fn projected(&self, keep: &[usize], leave: &[usize], own: bool) -> Result<Evicted, Error> {
        let between = self.kernel.part(leave, keep);
        let mut b = between.clone();
        let mut inner = self.kernel.select(keep);
        let floor = inner.rounding_floor();
        inner.solve(&mut b, floor)?;
        drop(inner);
        let mut mass = self.mass();
        let mut sums = Mat::zeros(self.table.len(), self.len());
        let old = self.state.evicted.as_ref();
        if let Some(old) = old {
            sums.as_mut().submatrix_mut(0, 0, old.sums.nrows(), old.sums.ncols()).copy_from(&old.sums);
        }
        for &i in leave {
            match own {
                true => sums[(self.state.classes[i], i)] += 1.0,
                false => mass[(i, i)] -= 1.0,
            }
        }
        let middle = gather(mass.as_ref(), leave, leave);
        let mut turned = product(middle.as_ref(), b.as_ref());
        // |E C|_F^2 for the residuals E of the leaving samples, and the coordinates of all evicted samples on them,
        // C C' = M: the trace of M (K - B K_between').
        let energy = self.kernel.part(leave, leave);
        let lost = inner_product(middle.as_ref(), energy.as_ref()) - inner_product(turned.as_ref(), between.as_ref());
        drop((middle, energy, between));
        // M_kk + M_kl B + (M_kl B)' + B' M_ll B = M_kk + F' B + B' F for F = M_lk + M_ll B / 2.
        turned = turned * Scale(0.5) + gather(mass.as_ref(), leave, keep);
        let mut new = gather(mass.as_ref(), keep, keep);
        drop(mass);
        add_symmetric_upper(new.as_mut(), turned.as_ref(), b.as_ref());
        // Symmetric to the last bit: only one triangle is stored.
        mirror_upper(new.as_mut(), 1.0);
        (0..keep.len()).for_each(|j| new[(j, j)] -= 1.0);
        let columns = |list: &[usize]| Mat::from_fn(sums.nrows(), list.len(), |c, j| sums[(c, list[j])]);
        let sums = columns(keep) + product(columns(leave).as_ref(), b.as_ref());
        Ok(Evicted {
            mass: new,
            sums,
            samples: old.map_or(0, |evicted| evicted.samples) + if own { leave.len() } else { 0 },
            unlabelled: old.map_or(0, |evicted| evicted.unlabelled),
            evictions: old.map_or(0, |evicted| evicted.evictions) + usize::from(own),
            error: old.map_or(0.0, |evicted| evicted.error + evicted.latest),
            latest: lost.max(0.0).sqrt(),
        })
    }

    /// Returns the quantities of the certificate.
    pub(super) fn ledger(&self) -> Ledger {
        let evicted = self.state.evicted.as_ref();
        let lost = self.classifier.as_ref().and_then(|c| c.kernel()).map_or(0.0, |kernel| kernel.lost);
        let samples = evicted.map_or(0, |evicted| evicted.samples);
        let cuts = evicted.map_or(0, |evicted| evicted.evictions);
        Ledger {
            samples: self.state.learned(),
            largest_class: self.state.counts.iter().copied().max().unwrap_or(0),
            // No eigenvalue was cut, so there is no gamma.
            past: Losses { lost, largest: 0.0, cuts, removed: samples, capped: samples, dropped: 0.0, assumed: 0 },
            latest: Cut::default(),
            semidefinite: evicted.is_none(),
            keeps_samples: true,
        }
    }
}
