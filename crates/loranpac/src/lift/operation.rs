//! A feature map as a list of operations, for programs that compute it elsewhere.

/// The function applied to the product `p' x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// The identity.
    Linear,
    /// `max(z, 0)`, the paper's.
    Relu,
    /// `1 / (1 + exp(-z))` (Schmidt et al., 1992).
    Sigmoid,
}

/// One step from a sample x to its lifted features; each step takes the result of the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Operation {
    /// Divides by the length; zero stays zero.
    Unit,
    /// Multiplies by P, times `scale`.
    Project {
        /// The factor.
        scale: f32,
    },
    /// Applies a function to every feature.
    Activate(Activation),
    /// Takes the absolute value of every feature.
    Absolute,
    /// Replaces `z_0, z_1, ...` by `cos z_0, sin z_0, cos z_1, ...`, without the last sine where E is odd.
    CosinesAndSines,
    /// Puts the features of the sample itself in front.
    PrependSample,
    /// Multiplies by a factor.
    Scale(f32),
    /// Applies `z Phi(z)` to every feature, Phi the normal distribution (Hendrycks and Gimpel, 2016).
    Gelu,
    /// Keeps the largest features, this many, and sets all others to zero.
    KeepLargest(usize),
}
