//! Splitting by two projections, for columns that stay orthonormal themselves:
//!
//! ```text
//! C  = Q' H;  [Qn, Rn] = qr(H - Q C);  D = Q' Qn;  [Qn, R2] = qr(Qn - Q D)      project, factorise, both again
//! C <- C + D Rn,  Rn <- R2 Rn
//! ```
//!
//! Cost: `8 E r m + O(E m^2)` flops, all in matrix products. Only the m new columns are factorised.

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut};

use super::Split;
use super::columns::Columns;
use crate::linalg::{par, transposed};
use crate::orthonormalise::{Factors, orthonormalise};
use crate::scalar::Scalar;

/// Maximum number of re-orthogonalisation rounds; two suffice unless the data is adversarial.
const MAX_ROUNDS: usize = 5;
/// A new direction that shrinks below this share of its length when it is projected again is rounding noise inside the
/// span of the basis, and would never become orthogonal. A true direction, above the drop level, keeps nearly all of
/// its length.
const TRUE_DIRECTION: f64 = 0.1;

impl<T: Scalar> Columns<T> {
    /// Splits `h` (E x m) into known and new components; the new directions Qn replace its first columns.
    ///
    /// `norms` are the columns' lengths. A residual of at most `drop` times that is rounding noise and adds no
    /// direction; with `drop = 0` every residual becomes one, as in a plain QR factorisation.
    pub fn split(&self, mut h: MatMut<'_, T>, norms: &[f64], drop: f64) -> Split {
        assert_eq!(h.nrows(), self.width());
        let projected = self.project(h.rb());
        let mut known: Mat<f64> = transposed(projected.as_ref());
        let room = self.width() - self.rank();
        if room == 0 {
            return Split { known, new: Mat::zeros(0, h.ncols()), left_out: vec![0.0; h.ncols()] };
        }
        self.add_product(h.rb_mut(), transposed(projected.as_ref()).as_ref(), -1.0);
        let Factors { rn: mut new, mut left_out } = orthonormalise(h.rb_mut(), norms, drop, room);
        let mut qn = h.subcols_mut(0, new.nrows());
        let least = if drop == 0.0 { f64::MIN_POSITIVE } else { TRUE_DIRECTION };
        for _ in 0..MAX_ROUNDS {
            let p = qn.ncols();
            let overlap = self.project(qn.rb());
            self.add_product(qn.rb_mut(), transposed(overlap.as_ref()).as_ref(), -1.0);
            let overlap: Mat<f64> = transposed(overlap.as_ref());
            let Factors { rn: r2, left_out: again } = orthonormalise(qn.rb_mut(), &vec![1.0; p], least, p);
            for (i, lost) in again.iter().enumerate().filter(|(_, lost)| **lost > 0.0) {
                (0..left_out.len()).for_each(|j| left_out[j] += lost * new[(i, j)].abs());
            }
            matmul(&mut known, Accum::Add, &overlap, &new, 1.0, par());
            // R2' R2 is what Qn' Qn was before this round: the factorisation may have reordered the columns.
            let departure = r2.transpose() * &r2 - Mat::<f64>::identity(p, p);
            let settled = overlap.norm_max() < 0.01 && departure.norm_max() < 0.1;
            new = &r2 * &new;
            qn = qn.subcols_mut(0, new.nrows());
            if settled {
                break;
            }
        }
        Split { known, new, left_out }
    }
}
