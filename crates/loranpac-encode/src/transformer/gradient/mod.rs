//! Gradients of the operations of a block: linear layers, attention, normalisations and elementwise functions.

mod attention;
mod elementwise;
mod linear;
mod norm;

pub(crate) use attention::attend_backward;
pub(crate) use elementwise::Each;
pub(crate) use linear::{Transposed, flatten, product_over_rows, sum_of_rows};
