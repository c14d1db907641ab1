//! From runs to tables and figures, as a recipe asks for them. Views only read runs.

mod axis;
mod curves;
mod figure;
mod group;
mod paper;
mod table;

pub use axis::{Axis, Place, width_of};
pub use figure::Figure;
pub use group::join;
pub use table::{Cell, Filled, Table};

pub use crate::chart::{Line, Log, Panel};
pub use crate::measure::Metric;
