//! The statistics laid open: to be written down, as a whole or as what has changed, and to be made again.

use std::collections::BTreeSet;

use faer::{Mat, MatRef};

use super::{Cut, Losses, Statistics};
use crate::basis::Basis;
use crate::buffer::Buffer;
use crate::gram::Gram;
use crate::scalar::Scalar;

/// What S takes in at a time: `S <- [S 0; 0 0] + B B'`.
///
/// B is the triangular factor of the increment, which is a function of the increment alone: the coordinates of single
/// samples are not in it (unless there was but one).
#[derive(Debug, Clone)]
pub struct Factor {
    rows: usize,
    columns: usize,
    data: Buffer<f64>,
}

impl Factor {
    /// From its numbers, column after column; None if there are not `rows x columns`.
    pub fn from_columns(rows: usize, columns: usize, data: Buffer<f64>) -> Option<Self> {
        (rows.checked_mul(columns) == Some(data.len())).then_some(Factor { rows, columns, data })
    }

    /// The triangular factor for samples with coordinates C in the old directions and Rn in the new ones:
    /// with `[C; Rn]' = G R` and orthonormal G, `B = R'`.
    pub(super) fn new(known: MatRef<'_, f64>, new: MatRef<'_, f64>) -> Self {
        let rows = known.nrows() + new.nrows();
        let stacked = Mat::from_fn(known.ncols(), rows, |sample, i| {
            if i < known.nrows() { known[(i, sample)] } else { new[(i - known.nrows(), sample)] }
        });
        let qr = stacked.qr();
        let r = qr.thin_R();
        let columns = r.nrows();
        let entries = (0..columns).flat_map(|j| (0..rows).map(move |i| if i >= j { r[(j, i)] } else { 0.0 }));
        Factor { rows, columns, data: Buffer::Owned(entries.collect()) }
    }

    /// B, r x m.
    pub fn matrix(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.data, self.rows, self.columns)
    }

    /// Its numbers, column after column.
    pub fn data(&self) -> &[f64] {
        &self.data
    }
}

/// How S comes about.
#[derive(Debug, Clone)]
pub enum Step {
    /// It is given: its upper triangle, column after column.
    Whole {
        /// Its size.
        rank: usize,
        /// `r (r + 1) / 2` numbers.
        upper: Buffer<f64>,
    },
    /// It takes something in.
    Grow(Factor),
}

/// What has changed in the statistics since they were last written down.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// What S has taken in, unless it was replaced.
    pub factors: Vec<Factor>,
    /// S is another matrix now.
    pub gram: bool,
    /// Q has other columns now; otherwise some may have been appended.
    pub basis: bool,
    /// Classes whose column of J is another.
    pub sums: BTreeSet<usize>,
    /// Classes whose row of N is another, apart from zeros at its end.
    pub cross: BTreeSet<usize>,
}

/// Everything that the statistics consist of.
pub struct State<T> {
    /// E.
    pub width: usize,
    /// r.
    pub rank: usize,
    /// The columns of Q, divided as [`Basis::blocks_for`] says.
    pub basis: Vec<Buffer<T>>,
    /// How S comes about, in order.
    pub gram: Vec<Step>,
    /// N, c x r.
    pub cross: Mat<f64>,
    /// J by columns, one per class.
    pub sums: Vec<Buffer<T>>,
    /// Samples of each class.
    pub counts: Vec<usize>,
    /// Samples in all.
    pub samples: usize,
    /// The books.
    pub losses: Losses,
    /// The cut after the latest task.
    pub latest_cut: Cut,
    /// Whether J may have components outside the basis.
    pub outside: bool,
    /// Rounding units below which a residual adds no direction.
    pub drop: f64,
}

impl<T: Scalar> Statistics<T> {
    /// The statistics from all their parts; None if their sizes do not fit together. S is put together when it is needed.
    pub fn from_state(state: State<T>) -> Option<Self> {
        let State { width, rank, basis, gram, cross, sums, counts, samples, losses, latest_cut, outside, drop } = state;
        let mut known = 0;
        for step in &gram {
            known = match step {
                Step::Whole { rank, upper } => {
                    let numbers = rank.checked_add(1)?.checked_mul(*rank)? / 2;
                    (numbers == upper.len()).then_some(*rank)?
                }
                Step::Grow(factor) => (factor.rows >= known).then_some(factor.rows)?,
            };
            if known > rank {
                return None;
            }
        }
        let classes = counts.len();
        let sizes = known == rank && (cross.nrows(), cross.ncols()) == (classes, rank) && sums.len() == classes;
        if !sizes || sums.iter().any(|sum| sum.len() != width) {
            return None;
        }
        Some(Statistics {
            basis: Basis::from_blocks(width, rank, basis)?,
            gram: Gram::default(),
            pending: gram,
            cross,
            sums,
            counts,
            samples,
            losses,
            latest_cut,
            outside,
            drop,
            changes: None,
        })
    }

    /// From now on, what changes is noted.
    pub fn track_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// What has changed so far.
    pub fn changes(&self) -> &Changes {
        static NONE: Changes =
            Changes { factors: Vec::new(), gram: false, basis: false, sums: BTreeSet::new(), cross: BTreeSet::new() };
        self.changes.as_ref().unwrap_or(&NONE)
    }

    /// Puts another note of changes in the place of this one; none, and nothing is noted any more.
    pub fn swap_changes(&mut self, changes: Option<Changes>) -> Option<Changes> {
        std::mem::replace(&mut self.changes, changes)
    }

    /// What has changed since this was last asked.
    pub fn take_changes(&mut self) -> Changes {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes a class for changed: it has another name, under which it is to be written.
    pub fn note_class(&mut self, class: usize) {
        if let Some(changes) = &mut self.changes {
            changes.sums.insert(class);
            changes.cross.insert(class);
        }
    }

    /// Takes everything for changed: it is to be written down for the first time.
    pub fn note_all(&mut self) {
        self.note_basis();
        if let Some(changes) = &mut self.changes {
            changes.sums.extend(0..self.counts.len());
        }
    }

    /// Whether J may have components outside the basis.
    pub fn outside(&self) -> bool {
        self.outside
    }

    pub(super) fn note_gram(&mut self) {
        if let Some(changes) = &mut self.changes {
            changes.gram = true;
            changes.factors.clear();
        }
    }

    pub(super) fn note_basis(&mut self) {
        self.note_gram();
        if let Some(changes) = &mut self.changes {
            changes.basis = true;
            changes.cross.extend(0..self.counts.len());
        }
    }
}
