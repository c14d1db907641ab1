//! Trained numbers: named tensors behind each other in one vector, as optimisers and files take them.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A tensor of [`Parameters`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name, such as `blocks.3.adapter.down.weight`.
    pub name: String,
    /// Its sides.
    pub shape: Vec<usize>,
    /// Where its numbers are.
    pub range: Range<usize>,
}

/// All trained numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters {
    tensors: Vec<Tensor>,
    /// The numbers of all tensors.
    pub values: Vec<f32>,
}

impl Parameters {
    /// Adds a tensor. Returns where its numbers are.
    pub fn add(&mut self, name: String, shape: &[usize], start: Start, random: &mut Random) -> Range<usize> {
        let first = self.values.len();
        let count = shape.iter().product::<usize>();
        self.values.extend((0..count).map(|_| random.start(start)));
        let range = first..first + count;
        self.tensors.push(Tensor { name, shape: shape.to_vec(), range: range.clone() });
        range
    }

    /// The tensors, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }
}

/// What the numbers of a tensor are before training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// All the same.
    Constant(f32),
    /// Uniform between the negative and the positive of a number.
    Uniform(f32),
    /// Normal, with a mean and a standard deviation.
    Normal(f32, f32),
}

/// Random numbers that are the same on every machine.
#[derive(Debug, Clone)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// A sequence for a seed; `stream` selects one of many that are independent.
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Random(generator)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform among 0 to n - 1.
    pub fn below(&mut self, n: usize) -> usize {
        // A number beyond n occurs with probability below 2^-40 for any n here.
        ((self.uniform() * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Normal with mean 0 and variance 1.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        libm::sqrt(-2.0 * libm::log(u)) * libm::cos(2.0 * std::f64::consts::PI * v)
    }

    /// Puts the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    fn start(&mut self, start: Start) -> f32 {
        match start {
            Start::Constant(number) => number,
            Start::Uniform(bound) => bound * (2.0 * self.uniform() - 1.0) as f32,
            Start::Normal(mean, deviation) => mean + deviation * self.normal() as f32,
        }
    }
}
