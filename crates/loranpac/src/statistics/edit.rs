//! Edits of the statistics: merge models, unlearn samples, change labels.

use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Mat, MatMut};

use super::{Statistics, scale_columns};
use crate::basis::{BLOCK, Split};
use crate::delta::Delta;
use crate::error::Error;
use crate::linalg::{cleared_norms, column_norms};
use crate::scalar::Scalar;

/// The maximum share of a learned sample's length that may lie outside the basis; rounding is far below.
const OUTSIDE_TOLERANCE: f64 = 1e-3;
/// Samples are not unlearned if their rounding would exceed this share of the mean energy of the remaining samples.
const ROUNDED_AWAY: f64 = 1e-2;
/// The tolerance within which leverages and labels of 0 and 1 prove that samples were learned.
const PROOF_TOLERANCE: f64 = 1e-2;

impl<T: Scalar> Statistics<T> {
    /// Adds everything that another model has learned; its class i is class `classes[i]` here, which may be new.
    ///
    /// With `Q_B = [Q Qn] F`, the other basis in the grown one:
    /// `S <- [S 0; 0 0] + F S_B F'`, `J <- J + J_B`, `N <- [N  J Qn] + N_B F'`. The columns of the other basis are learned
    /// as samples are, and F follows from their coordinates. Cost: `2 E r r_B` flops.
    pub fn merge(&mut self, other: &mut Statistics<T>, classes: &[usize]) -> Delta {
        let width = self.basis.width();
        assert_eq!((width, classes.len()), (other.basis.width(), other.counts.len()));
        self.settle();
        other.settle();
        if other.basis.is_whole() && !self.basis.is_whole() {
            self.make_whole();
        }
        let before = self.basis.rank();
        let mut parts = Vec::new();
        let mut work = Mat::<T>::zeros(width, BLOCK.min(other.basis.rank()));
        for columns in other.basis.columns(0) {
            let count = columns.len() / width;
            let mut h = work.as_mut().subcols_mut(0, count);
            h.copy_from(faer::MatRef::from_column_major_slice(columns, width, count));
            // Directions are dropped here; each has at most the weight of the largest sample along it.
            let Split { known, new, left_out } = self.basis.absorb(h, &vec![1.0; count], self.drop * T::EPSILON);
            let weight = other.gram.trace().sqrt();
            self.losses.dropped += left_out.iter().map(|left| left * weight * (2.0 * weight + left)).sum::<f64>();
            parts.push((known, new));
        }
        let rank = self.basis.rank();
        // F of a whole basis is the identity.
        let mut f = Mat::<f64>::zeros(rank, parts.iter().map(|(known, _)| known.ncols()).sum());
        let mut at = 0;
        for (known, new) in parts {
            let mut columns = f.as_mut().subcols_mut(at, known.ncols());
            columns.rb_mut().subrows_mut(0, known.nrows()).copy_from(&known);
            columns.rb_mut().subrows_mut(known.nrows(), new.nrows()).copy_from(&new);
            at += known.ncols();
        }
        // The columns are those of B_B, and Q_B = B_B L_B^-T.
        other.basis.solve(0, f.as_mut().transpose_mut());
        self.gram().extend(rank - before);
        match other.basis.is_whole() {
            true => self.gram().add_gram(&other.gram),
            false => self.gram().add_turned(f.as_ref(), &other.gram),
        }
        let all = classes.iter().map(|class| class + 1).max().unwrap_or(0).max(self.counts.len());
        self.add_classes(all);
        self.cross.resize_with(all, rank, |_, _| 0.0);
        for (i, &class) in classes.iter().enumerate() {
            self.counts[class] += other.counts[i];
            self.masses.classes[class] += other.masses.classes[i];
            if let (Some(sum), Some(added)) = (self.sums.get_mut(class), other.sums.get(i)) {
                sum.to_mut().iter_mut().zip(added.iter()).for_each(|(sum, v)| *sum += *v);
            }
        }
        let whole = self.basis.is_whole();
        self.outside |= other.outside && !whole;
        if self.outside {
            self.cross = self.project_label_sums();
        } else {
            let turned = match other.outside {
                // N is J, of which N_B has a part only.
                true => Mat::from_fn(other.sums.len(), rank, |i, j| other.sums[i][j].to_f64()),
                false if other.basis.is_whole() => other.cross.clone(),
                false => &other.cross * f.transpose(),
            };
            for (i, &class) in classes.iter().enumerate() {
                (0..rank).for_each(|j| self.cross[(class, j)] += turned[(i, j)]);
            }
        }
        self.samples += other.samples;
        self.masses.all += other.masses.all;
        let mut past = other.losses;
        past.add(other.latest_cut);
        self.losses.add(std::mem::take(&mut self.latest_cut));
        self.losses.lost += past.lost;
        self.losses.largest = self.losses.largest.max(past.largest);
        self.losses.cuts += past.cuts;
        self.losses.removed += past.removed;
        self.losses.capped += past.capped;
        self.losses.dropped += past.dropped;
        self.losses.assumed += past.assumed;
        self.fit_grid();
        let mut delta = Delta::of_classes(classes.iter().copied(), self.counts.len());
        delta.append(Delta::replaced_basis(self.counts.len()));
        delta
    }

    /// Removes a class from J and N; the classes after it move up by one. Its samples stay in S.
    ///
    /// All other classes are marked dirty: files that hold them together with this class must be written without it.
    pub fn forget(&mut self, class: usize) -> Delta {
        if !self.basis.is_whole() {
            self.sums.remove(class);
        }
        self.counts.remove(class);
        self.masses.classes.remove(class);
        let place = |i: usize| if i < class { i } else { i + 1 };
        self.cross = Mat::from_fn(self.counts.len(), self.cross.ncols(), |i, j| self.cross[(place(i), j)]);
        Delta::of_classes(0..self.counts.len(), self.counts.len())
    }

    /// Moves samples `h` (E x m, destroyed) from their classes to others; only J and N change. Returns the number of
    /// samples that could not be checked; see [`Statistics::unlearn`].
    pub fn relabel(&mut self, h: MatMut<'_, T>, from: &[usize], to: &[usize]) -> Result<(usize, Delta), Error> {
        self.relabel_weighted(h, from, to, None)
    }

    /// The same for samples that were learned with these weights.
    pub fn relabel_weighted(
        &mut self,
        mut h: MatMut<'_, T>,
        from: &[usize],
        to: &[usize],
        weights: Option<&[f64]>,
    ) -> Result<(usize, Delta), Error> {
        assert_eq!((h.ncols(), h.ncols()), (from.len(), to.len()));
        self.check_counts(from)?;
        let all = to.iter().map(|class| class + 1).max().unwrap_or(0).max(self.counts.len());
        let norms = cleared_norms(h.rb_mut());
        let kept = h.rb().to_owned();
        let (known, outside) = self.coordinates(h.rb_mut());
        self.check_learned(&outside, &norms)?;
        let unchecked = self.unproven(&scaled(&known, weights), from, weights)?;
        self.losses.assumed += unchecked;
        self.add_classes(all);
        self.cross.resize_with(all, self.basis.rank(), |_, _| 0.0);
        for sample in 0..from.len() {
            let weight = weights.map_or(1.0, |weights| weights[sample]);
            self.shift(from[sample], -weight, kept.col(sample), known.col(sample));
            self.shift(to[sample], weight, kept.col(sample), known.col(sample));
            self.counts[from[sample]] -= 1;
            self.counts[to[sample]] += 1;
            self.masses.subtract(from[sample], weight);
            self.masses.add(to[sample], weight);
        }
        Ok((unchecked, Delta::of_classes(from.iter().chain(to).copied(), self.counts.len())))
    }

    /// Removes samples `h` (E x m, destroyed) of the given classes: `S <- S - C C'`, `J <- J - Y H'`. Directions that
    /// only these samples had are removed. Refused after any cut: the remainder of the samples is then unknown.
    ///
    /// Samples that were never learned are refused if they lie outside the basis, if S would not remain semidefinite,
    /// or if N has another label for them. If there are at least as many samples as directions, none of these checks
    /// can decide: samples that were never learned may go undetected. The number of unchecked samples is returned, and
    /// counted in [`super::Losses::assumed`].
    pub fn unlearn(&mut self, h: MatMut<'_, T>, classes: &[usize]) -> Result<(usize, Delta), Error> {
        self.unlearn_weighted(h, classes, None)
    }

    /// The same for samples that were learned with these weights.
    pub fn unlearn_weighted(
        &mut self,
        mut h: MatMut<'_, T>,
        classes: &[usize],
        weights: Option<&[f64]>,
    ) -> Result<(usize, Delta), Error> {
        assert_eq!(h.ncols(), classes.len());
        if self.losses.cuts > 0 || self.latest_cut.directions > 0 {
            return Err(Error::NotExact { cuts: self.losses.cuts.max(1) });
        }
        self.check_counts(classes)?;
        let norms = cleared_norms(h.rb_mut());
        let kept = h.rb().to_owned();
        let (unscaled, outside) = self.coordinates(h.rb_mut());
        self.check_learned(&outside, &norms)?;
        let known = scaled(&unscaled, weights);
        let unchecked = self.unproven(&known, classes, weights)?;
        // `unproven` has applied all pending increments of S; this copies S, so that it can be restored.
        let old = self.gram.clone();
        self.gram().subtract(known.as_ref());
        // The remainder of a direction that only these samples had is rounding of its coordinates.
        let weight = |sample: usize| weights.map_or(1.0, |weights| weights[sample]);
        let longest = norms.iter().enumerate().map(|(i, norm)| norm * weight(i).sqrt()).fold(0.0, f64::max);
        let floor = 4.0 * self.drop.max(1.0) * T::EPSILON * longest * longest;
        let floor = if old.is_on_grid() { floor.max(old.rounding_floor()) } else { floor };
        let left = self.samples.saturating_sub(classes.len()).max(1) as f64;
        if floor > ROUNDED_AWAY * self.gram.trace().max(0.0) / left && longest > 0.0 {
            self.gram = old;
            return Err(Error::RoundedAway);
        }
        let eigen = match self.gram().eigen() {
            // Subtracting samples that were never added leaves a matrix that is not semidefinite.
            Ok(eigen) if eigen.values.last().is_some_and(|value| *value < -floor) => {
                Err(Error::NeverLearned { row: 0 })
            }
            outcome => outcome,
        };
        let eigen = match eigen {
            Ok(eigen) => eigen,
            Err(error) => {
                self.gram = old;
                return Err(error);
            }
        };
        drop(old);
        let rank = eigen.values.len();
        // A direction is removed if only rounding is left of it, and these samples were its content.
        let theirs = |j: usize| (known.transpose() * eigen.vectors.col(j)).squared_norm_l2();
        let small = (0..rank).rev().take_while(|&j| eigen.values[j] <= floor);
        let removed = match self.basis.is_whole() {
            // Features that were never active are removed with them.
            true if small.clone().any(|j| theirs(j) > 0.0 && theirs(j) >= eigen.values[j].abs()) => small.count(),
            true => 0,
            false => small.take(classes.len()).take_while(|&j| theirs(j) >= eigen.values[j].abs()).count(),
        };
        self.losses.dropped += eigen.values[rank - removed..].iter().map(|value| value.abs()).sum::<f64>();
        for (sample, &class) in classes.iter().enumerate() {
            self.shift(class, -weight(sample), kept.col(sample), unscaled.col(sample));
            self.counts[class] -= 1;
            self.masses.subtract(class, weight(sample));
        }
        self.samples -= classes.len();
        if removed > 0 || !self.basis.is_whole() {
            let kept = eigen.vectors.as_ref().subcols(0, rank - removed);
            let rotation = self
                .basis
                .rotation(kept.ncols(), |range| kept.subcols(range.start, range.len()).transpose().to_owned());
            if self.basis.is_whole() {
                self.restore_label_sums();
            }
            self.cross = &self.cross * kept;
            self.keep_directions(&eigen.values[..rank - removed], rotation);
        }
        self.fit_grid();
        // Other samples may have had small components along the removed directions, and J still has them.
        self.outside |= removed > 0;
        self.losses.assumed += unchecked;
        // All of J is marked dirty: the difference of an old and a new column would reveal the removed samples.
        Ok((unchecked, Delta::everything(self.counts.len())))
    }

    /// Confirms that this many unchecked samples were learned under their labels, by a record of the caller.
    pub fn vouch(&mut self, samples: usize) {
        self.losses.assumed = self.losses.assumed.saturating_sub(samples);
    }

    /// Returns how many of the samples with coordinates C in the basis are not proven to have been learned, each once,
    /// under these classes: none or all of them.
    ///
    /// The coordinates are multiplied by the roots of the weights. Samples that are linearly independent of each other and of all others have `C' S^-1 C = I` and `N S^-1 C = Y`,
    /// and random features give no other sample these values. A sample that cannot be part of S, or that clearly has
    /// the label of another class, is refused.
    fn unproven(&mut self, known: &Mat<f64>, classes: &[usize], weights: Option<&[f64]>) -> Result<usize, Error> {
        let m = classes.len();
        self.settle();
        if self.losses.cuts > 0 || self.latest_cut.directions > 0 || self.gram.rank() == 0 {
            return Ok(m);
        }
        let mut inverted = known.transpose().to_owned();
        let floor = self.gram.rounding_floor();
        match self.gram().solve(&mut inverted, floor) {
            Err(Error::NotPositiveDefinite { .. }) => return Ok(m),
            outcome => outcome?,
        }
        let leverages = &inverted * known - Mat::<f64>::identity(m, m);
        let mut labels = &self.cross * inverted.transpose();
        if let Some(weights) = weights {
            let inverse: Vec<f64> = weights.iter().map(|weight| 1.0 / weight).collect();
            scale_columns(labels.as_mut(), &inverse);
        }
        let off = |sample: usize, class: usize| {
            let expected = |c: usize| if c == class { 1.0 } else { 0.0 };
            (0..labels.nrows()).map(|c| (labels[(c, sample)] - expected(c)).abs()).fold(0.0, f64::max)
        };
        let independent = |sample: usize| leverages.col(sample).norm_max() < PROOF_TOLERANCE;
        let winner =
            |sample: usize| (0..labels.nrows()).max_by(|a, b| labels[(*a, sample)].total_cmp(&labels[(*b, sample)]));
        let other =
            |sample: usize| winner(sample).is_some_and(|c| c != classes[sample] && off(sample, c) < PROOF_TOLERANCE);
        // `c c' <= S` for every sample that is part of S: its leverage is at most 1.
        let impossible = |sample: usize| leverages[(sample, sample)] > PROOF_TOLERANCE;
        if let Some(row) = (0..m).find(|&sample| impossible(sample) || (independent(sample) && other(sample))) {
            return Err(Error::NeverLearned { row });
        }
        let proven = (0..m).all(|sample| independent(sample) && off(sample, classes[sample]) < PROOF_TOLERANCE);
        Ok(if proven { 0 } else { m })
    }

    /// Returns the coordinates of samples in the basis, to more than single precision, and the length of the part
    /// outside.
    fn coordinates(&self, mut h: MatMut<'_, T>) -> (Mat<f64>, Vec<f64>) {
        let mut known = Mat::<f64>::zeros(self.basis.rank(), h.ncols());
        for _ in 0..2 {
            let part = self.basis.coordinates(h.rb());
            self.basis.add_product(h.rb_mut(), part.as_ref(), -1.0);
            known += part;
        }
        (known, column_norms(h.rb()))
    }

    /// Refuses samples with a significant part outside the basis, unless cuts have removed directions.
    fn check_learned(&self, outside: &[f64], norms: &[f64]) -> Result<(), Error> {
        let unknown = outside.iter().zip(norms).position(|(outside, norm)| *outside > OUTSIDE_TOLERANCE * norm);
        let whole = self.losses.cuts == 0 && self.latest_cut.directions == 0;
        match unknown.filter(|_| whole) {
            Some(row) => Err(Error::NeverLearned { row }),
            None => Ok(()),
        }
    }

    /// Refuses more samples of a class than were learned.
    fn check_counts(&self, classes: &[usize]) -> Result<(), Error> {
        let mut left = self.counts.clone();
        for (row, &class) in classes.iter().enumerate() {
            match left.get_mut(class) {
                Some(left) if *left > 0 => *left -= 1,
                _ => return Err(Error::NeverLearned { row }),
            }
        }
        Ok(())
    }

    /// Adds a multiple of a sample to a class in J and N.
    fn shift(&mut self, class: usize, factor: f64, h: faer::ColRef<'_, T>, known: faer::ColRef<'_, f64>) {
        let scale = T::from_f64(factor);
        if let Some(sum) = self.sums.get_mut(class) {
            sum.to_mut().iter_mut().zip(h.iter()).for_each(|(sum, v)| *sum += *v * scale);
        }
        (0..known.nrows()).for_each(|i| self.cross[(class, i)] += factor * known[i]);
    }
}

/// Returns coordinates, multiplied by the roots of weights.
fn scaled(known: &Mat<f64>, weights: Option<&[f64]>) -> Mat<f64> {
    let mut scaled = known.clone();
    if let Some(weights) = weights {
        scale_columns(scaled.as_mut(), weights);
    }
    scaled
}
