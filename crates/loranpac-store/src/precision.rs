//! Numbers as little-endian bytes: single precision unchanged, half precision scaled by a power of two.
//!
//! Weights of a least-squares classifier on E features are about `1 / (|h| sqrt(E))`: 1e-6 is usual, where half
//! precision (whose normal numbers end at 6e-5) has two or three bits left. They are therefore stored as `2^k w`,
//! together with k. A power of two is exact.

use std::ops::Deref;

use half::f16;
use loranpac::Label;

use crate::error::Error;

/// The largest k: `2^-k` and its products remain normal numbers.
pub(crate) const LARGEST_EXPONENT: i32 = 100;

/// The precision of the numbers in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Single precision: exact.
    #[default]
    F32,
    /// Half precision: half the size, eleven bits.
    F16,
}

impl Precision {
    /// Returns the bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Precision::F32 => 4,
            Precision::F16 => 2,
        }
    }
}

/// A precision, and the k of the power of two `2^k` by which numbers are multiplied before they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoding {
    pub precision: Precision,
    pub exponent: i32,
}

impl Encoding {
    /// Creates an encoding without a power of two.
    pub fn plain(precision: Precision) -> Self {
        Encoding { precision, exponent: 0 }
    }

    /// Chooses the encoding of the weights of all labels: the largest is scaled to between 2^14 and 2^15, and one
    /// beyond 65504 is refused.
    pub fn of_weights(
        columns: impl Iterator<Item = impl Deref<Target = [f32]>>,
        labels: &[Label],
        precision: Precision,
    ) -> Result<Self, Error> {
        if precision == Precision::F32 {
            return Ok(Encoding::plain(precision));
        }
        let mut largest = 0.0f32;
        for (column, label) in columns.zip(labels) {
            let value = column.iter().copied().fold(0.0f32, |most, v| if v.abs() > most.abs() { v } else { most });
            if value.abs() > f16::MAX.to_f32() {
                return Err(Error::HalfRange { class: label.to_string(), value });
            }
            largest = largest.max(value.abs());
        }
        let mut exponent = 0;
        while largest > 0.0 && largest < 16384.0 && exponent < LARGEST_EXPONENT {
            largest *= 2.0;
            exponent += 1;
        }
        Ok(Encoding { precision, exponent })
    }

    /// Returns `2^-k`, by which stored numbers are multiplied.
    pub fn unit(self) -> f32 {
        2.0f32.powi(-self.exponent)
    }

    /// Encodes numbers into `bytes`, replacing its contents.
    pub fn encode(self, values: &[f32], bytes: &mut Vec<u8>) {
        bytes.clear();
        let factor = 2.0f32.powi(self.exponent);
        match self.precision {
            Precision::F32 => values.iter().for_each(|v| bytes.extend((factor * v).to_le_bytes())),
            Precision::F16 => values.iter().for_each(|v| bytes.extend(f16::from_f32(factor * v).to_le_bytes())),
        }
    }

    /// Decodes bytes into `values`.
    pub fn decode(self, bytes: &[u8], values: &mut [f32]) {
        let unit = self.unit();
        match self.precision {
            Precision::F32 => {
                let numbers = bytes.as_chunks::<4>().0;
                values.iter_mut().zip(numbers).for_each(|(v, b)| *v = unit * f32::from_le_bytes(*b));
            }
            Precision::F16 => {
                let numbers = bytes.as_chunks::<2>().0;
                values.iter_mut().zip(numbers).for_each(|(v, b)| *v = unit * f16::from_le_bytes(*b).to_f32());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_weights_keep_eleven_bits_in_half_precision() {
        for size in [1e-30f32, 1e-7, 1e-3, 1.0, 6e4] {
            let weights: Vec<f32> = (0..50).map(|i| size * (1.0 - i as f32 / 60.0)).collect();
            let encoding = Encoding::of_weights([&weights[..]].into_iter(), &[Label::from(0)], Precision::F16).unwrap();
            let (mut bytes, mut back) = (Vec::new(), vec![0.0; 50]);
            encoding.encode(&weights, &mut bytes);
            encoding.decode(&bytes, &mut back);
            for (back, weight) in back.iter().zip(&weights) {
                assert!((back - weight).abs() <= weight.abs() / 2048.0, "{weight} became {back}");
            }
        }
    }

    #[test]
    fn a_weight_beyond_half_precision_is_refused_by_its_class() {
        let columns = [[1.0; 3], [1.0, -65505.0, 1.0]];
        let refused =
            Encoding::of_weights(columns.iter().map(|c| &c[..]), &[Label::from(0), Label::from("owl")], Precision::F16);
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("owl") && message.contains("-65505"), "{message}");
    }

    #[test]
    fn zeros_stay_zeros() {
        let encoding = Encoding::of_weights([&[0.0; 3][..]].into_iter(), &[Label::from(0)], Precision::F16).unwrap();
        assert_eq!(encoding.exponent, 0);
    }
}
