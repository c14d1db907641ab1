//! The element type of everything of the lifted width: `f32` in production, `f64` as a reference.

use faer::traits::RealField;

/// A real number that the basis can be stored in.
pub trait Scalar: RealField + Copy + Send + Sync + 'static {
    /// Distance from 1 to the next larger number.
    const EPSILON: f64;
    /// Rounds to this type.
    fn from_f64(value: f64) -> Self;
    /// Widens exactly.
    fn to_f64(self) -> f64;
}

impl Scalar for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Scalar for f64 {
    const EPSILON: f64 = f64::EPSILON;
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
}
