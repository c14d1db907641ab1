//! The large initialisers, P and W': they are never copied as a whole, in the model or next to it.

use std::io::{self, Write};

use loranpac::Weights;
use loranpac::lift::{self, Projection};

use super::graph::{element_type, half_name};
use super::proto::Message;
use crate::error::Error;
use crate::inference::Inference;
use crate::precision::{Encoding, Precision};

/// Number of values of P that are generated at a time.
const STRIP: usize = 1 << 18;

/// A matrix in C order that is written strip by strip.
pub(super) struct Tensor<'a> {
    name: &'static str,
    shape: [usize; 2],
    encoding: Encoding,
    values: Values<'a>,
    /// Bytes of all its numbers.
    pub bytes: u64,
}

enum Values<'a> {
    Projection(Projection),
    /// E x c by column, which is c x E by row.
    Weights(Weights<'a>),
}

/// Returns P, for lifts that have one, and W'.
pub(super) fn tensors(model: &Inference, encoding: Encoding) -> Result<Vec<Tensor<'_>>, Error> {
    let lift = &model.lift;
    let rows = lift::find(&lift.name)?.projection.count(lift.dim, lift.computed());
    let mut tensors = Vec::new();
    if rows > 0 {
        let values = Values::Projection(Projection::from_seed(rows, lift.dim, lift.seed, false));
        tensors.push(Tensor::new("projection", [rows, lift.dim], Encoding::plain(encoding.precision), values)?);
    }
    let weights = model.weights()?;
    let shape = [weights.classes(), weights.width()];
    tensors.push(Tensor::new("weights", shape, encoding, Values::Weights(weights))?);
    Ok(tensors)
}

impl<'a> Tensor<'a> {
    fn new(name: &'static str, shape: [usize; 2], encoding: Encoding, values: Values<'a>) -> Result<Self, Error> {
        let factors = [shape[0], shape[1], encoding.precision.bytes()];
        let bytes = factors.iter().try_fold(1u64, |product, n| product.checked_mul(*n as u64));
        let bytes = bytes.filter(|bytes| i64::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or(Error::TensorSize { rows: shape[0], columns: shape[1] })?;
        Ok(Tensor { name, shape, encoding, values, bytes })
    }

    /// Returns the `TensorProto` without its numbers.
    pub fn head(&self) -> Message {
        let dims = self.shape.iter().fold(Message::default(), |message, n| message.int(1, *n as i64));
        let name = match self.encoding.precision {
            Precision::F32 => self.name.to_owned(),
            Precision::F16 => half_name(self.name),
        };
        dims.int(2, element_type(self.encoding.precision)).bytes(8, name)
    }

    /// Writes the numbers.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        match &self.values {
            Values::Weights(weights) => {
                for column in weights.columns() {
                    self.encoding.encode(&column, &mut bytes);
                    out.write_all(&bytes)?;
                }
            }
            Values::Projection(projection) => {
                let (rows, mut scratch) = (projection.width(), Vec::new());
                let strip = (STRIP / projection.dim()).max(1);
                for first in (0..rows).step_by(strip) {
                    let part = projection.rows(first, strip.min(rows - first), &mut scratch);
                    self.encoding.encode(part, &mut bytes);
                    out.write_all(&bytes)?;
                }
            }
        }
        Ok(())
    }
}
