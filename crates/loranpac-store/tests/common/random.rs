//! Random features in single precision.

#[path = "../../../loranpac/tests/random/mod.rs"]
mod splitmix;

pub use splitmix::Random;

impl Random {
    /// Uniform in [-1, 1).
    pub fn symmetric(&mut self) -> f32 {
        (self.next() >> 11) as f32 / (1u64 << 52) as f32 - 1.0
    }
}
