//! Eviction beyond a cap on the kept samples: the choice of samples, the sums of their projections, and the loss.

use std::sync::Arc;

use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Mat, Scale};

use super::choose::{Projection, choose};
use super::{Evicted, KernelModel, KernelState};
use crate::certificate::Ledger;
use crate::classifier::whiten;
use crate::config::Config;
use crate::error::Error;
use crate::gram::Gram;
use crate::linalg::{add_gram_upper, add_symmetric_upper, gather, inner_product, mirror_upper, par, product};
use crate::plan::with_slack;
use crate::statistics::{Cut, Losses};

impl KernelModel {
    /// Appends the kept samples of another model; `places` are its classes here.
    pub(super) fn join(&mut self, other: &KernelState, places: &[usize]) {
        let before = self.len();
        if other.weighted.is_some() || self.state.weighted.is_some() {
            let (theirs, classes) = (other.masses(), self.table.len());
            let ours = self.state.weighted_mut();
            ours.kept.extend(other.weights().map_or_else(|| vec![1.0; other.len()], <[f64]>::to_vec));
            ours.masses.classes.resize(classes, 0.0);
            places.iter().zip(&theirs.classes).for_each(|(class, mass)| ours.masses.classes[*class] += mass);
            ours.masses.all += theirs.all;
        }
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

    /// Evicts samples if there are more than the cap and its slack allow. Those stay whose loss would cost most. Returns
    /// whether any were evicted.
    pub(super) fn evict(&mut self) -> bool {
        let Config { max_rank, chunk, .. } = self.config;
        if self.len() <= with_slack(max_rank, chunk) {
            return false;
        }
        self.kernel = Arc::default();
        let (old, mut mass) = (self.old(), vec![1.0; self.len()]);
        if let Some(evicted) = &self.state.evicted {
            mass.iter_mut().zip(0..old).for_each(|(mass, i)| *mass += evicted.mass[(i, i)]);
        }
        let choice = choose(self.polar(), mass, max_rank);
        let stay = choice.stay();
        let (keep, leave) = split(&stay);
        self.state.evicted = Some(self.projected(&keep, &leave, choice.projection(old), true));
        self.retain(&keep);
        true
    }

    /// Removes all samples but those in `stay`, as if they had never been learned. The projections of evicted samples on
    /// them are projected again.
    pub(super) fn remove(&mut self, stay: &[bool]) -> Result<(), Error> {
        let (keep, leave) = split(stay);
        if leave.is_empty() {
            return Ok(());
        }
        if self.state.evicted.is_some() {
            self.renew_kernel();
            let leave = &leave[..leave.partition_point(|i| *i < self.old())];
            let between = self.kernel.part(leave, &keep);
            let mut coefficients = between.clone();
            let mut inner = self.kernel.select(&keep);
            let floor = inner.rounding_floor();
            inner.solve(&mut coefficients, floor)?;
            let old = self.kernel.part(leave, leave) - product(coefficients.as_ref(), between.transpose());
            self.state.evicted = Some(self.projected(&keep, leave, Projection { coefficients, old, new: 0.0 }, false));
        }
        self.retain(&keep);
        Ok(())
    }

    /// Keeps these samples only.
    fn retain(&mut self, keep: &[usize]) {
        // A prefix of K does not change.
        let known: Vec<usize> = keep.iter().copied().filter(|i| *i < self.kernel.rank()).collect();
        self.kernel = Arc::new(self.kernel.select(&known));
        let dim = self.space.dim();
        let rows = keep.iter().flat_map(|i| &self.state.samples[i * dim..(i + 1) * dim]);
        self.state.samples = rows.copied().collect();
        self.state.classes = keep.iter().map(|i| self.state.classes[*i]).collect();
        if let Some(weighted) = &mut self.state.weighted {
            weighted.kept = keep.iter().map(|i| weighted.kept[*i]).collect();
        }
        self.classifier = None;
    }

    /// Returns how many samples may stand for others: those that were kept at the latest eviction.
    fn old(&self) -> usize {
        self.state.evicted.as_ref().map_or(0, |evicted| evicted.mass.nrows())
    }

    /// Returns the contribution of evicted samples in terms of those in `keep`, after those in `leave` are projected on
    /// them. `own` says whether the leaving samples themselves remain in it.
    fn projected(&self, keep: &[usize], leave: &[usize], projection: Projection, own: bool) -> Evicted {
        let none = Evicted::none();
        let before = self.state.evicted.as_ref().unwrap_or(&none);
        let Projection { coefficients: b, old: residual, new } = projection;
        // Of all other samples, the mass is 1, and nothing else is in the sums.
        let (leave_old, keep_old) = (
            &leave[..leave.partition_point(|i| *i < before.mass.nrows())],
            &keep[..keep.partition_point(|i| *i < before.mass.nrows())],
        );
        let (b_old, b_new) = b.as_ref().split_at_row(leave_old.len());
        let mut middle = gather(before.mass.as_ref(), leave_old, leave_old);
        if own {
            (0..leave_old.len()).for_each(|i| middle[(i, i)] += 1.0);
        }
        // |E C|_F^2 for the residuals E of the leaving samples, and the coordinates of all evicted samples on them, C C' = M.
        let lost = inner_product(middle.as_ref(), residual.as_ref()) + new;
        // M_kk + M_kl B + (M_kl B)' + B' M_ll B = M_kk + F' B + B' F for F = M_lk + M_ll B / 2, where M_ll = I for new samples.
        let mut f = product(middle.as_ref(), b_old) * Scale(0.5);
        let mut side = f.as_mut().subcols_mut(0, keep_old.len());
        side += gather(before.mass.as_ref(), leave_old, keep_old);
        let mut mass = Mat::zeros(keep.len(), keep.len());
        let kept = gather(before.mass.as_ref(), keep_old, keep_old);
        mass.as_mut().submatrix_mut(0, 0, keep_old.len(), keep_old.len()).copy_from(&kept);
        drop(kept);
        add_symmetric_upper(mass.as_mut(), f.as_ref(), b_old);
        if own {
            add_gram_upper(mass.as_mut(), b_new);
        }
        // Symmetric to the last bit: only one triangle is stored.
        mirror_upper(mass.as_mut(), 1.0);
        let classes: Vec<usize> = (0..before.sums.nrows()).collect();
        let mut sums = Mat::zeros(self.table.len(), keep.len());
        let mut left = Mat::zeros(self.table.len(), leave.len());
        for (sums, places) in [(&mut sums, keep_old), (&mut left, leave_old)] {
            let own = gather(before.sums.as_ref(), &classes, places);
            sums.as_mut().submatrix_mut(0, 0, classes.len(), places.len()).copy_from(&own);
        }
        if own {
            leave.iter().enumerate().for_each(|(j, i)| left[(self.state.classes[*i], j)] += self.state.root(*i));
        }
        sums += product(left.as_ref(), b.as_ref());
        Evicted {
            mass,
            sums,
            samples: before.samples + if own { leave.len() } else { 0 },
            unlabelled: before.unlabelled,
            evictions: before.evictions + usize::from(own),
            error: before.error + before.latest,
            latest: lost.max(0.0).sqrt(),
        }
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
            weighted: self.state.weighted.is_some(),
        }
    }
}

/// Returns the places that are true, and the others.
fn split(stay: &[bool]) -> (Vec<usize>, Vec<usize>) {
    (0..stay.len()).partition(|i| stay[*i])
}
