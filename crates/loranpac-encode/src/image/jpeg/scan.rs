//! The data of one scan: sequential, or one of the steps of a progressive image.

use super::bits::{Bits, Codes};
use super::frame::{Component, Frame};
use super::transform;
use crate::problem::ImageProblem;

/// The order in which the coefficients of a block are coded.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// What a scan has.
pub(super) struct Scan<'a> {
    /// Components, by their places in the frame, with their codes of first and of other coefficients.
    pub parts: Vec<(usize, Option<&'a Codes>, Option<&'a Codes>)>,
    /// The coefficients, from first to last.
    pub first: usize,
    pub last: usize,
    /// The bit at which they begin, and whether earlier scans had higher bits.
    pub low: u32,
    pub refines: bool,
    /// Units between restarts, or 0.
    pub interval: usize,
}

/// State of the decoder within a scan.
struct State<'a> {
    bits: Bits<'a>,
    /// The last first coefficient of each part.
    previous: [i32; 4],
    /// Blocks to come without further coefficients.
    run: u32,
}

impl Scan<'_> {
    /// Decodes the data from an offset on. Returns the offset behind it.
    pub fn decode(&self, frame: &mut Frame, bytes: &[u8], at: usize) -> Result<usize, ImageProblem> {
        let mut state = State { bits: Bits::new(bytes, at), previous: [0; 4], run: 0 };
        let (progressive, units) = (frame.progressive, frame.units);
        // One component alone has no blocks that only fill a unit.
        let alone = self.parts.len() == 1;
        let (across, down) = match self.parts[..] {
            [(place, ..)] => {
                let component = &frame.components[place];
                (component.width.div_ceil(8), component.height.div_ceil(8))
            }
            _ => units,
        };
        for unit in 0..across * down {
            if self.interval > 0 && unit > 0 && unit % self.interval == 0 {
                state.bits.restart(((unit / self.interval - 1) % 8) as u8)?;
                (state.previous, state.run) = ([0; 4], 0);
            }
            let (column, row) = (unit % across, unit / across);
            for (part, &(place, dc, ac)) in self.parts.iter().enumerate() {
                let component = &mut frame.components[place];
                let (wide, high) = if alone { (1, 1) } else { (component.across, component.down) };
                for at in 0..wide * high {
                    let (x, y) = (column * wide + at % wide, row * high + at / wide);
                    if progressive {
                        let block = &mut component.coefficients[y * component.blocks.0 + x];
                        self.refine(&mut state, part, (dc, ac), block)?;
                    } else {
                        let block = sequential(&mut state, part, (dc, ac), component)?;
                        place_block(component, &block, x, y);
                    }
                }
            }
        }
        Ok(state.bits.place())
    }

    /// One step of a block of a progressive image.
    fn refine(
        &self,
        state: &mut State<'_>,
        part: usize,
        (dc, ac): (Option<&Codes>, Option<&Codes>),
        block: &mut [i16; 64],
    ) -> Result<(), ImageProblem> {
        match (self.first, self.refines) {
            (0, false) => {
                let size = state.bits.symbol(dc.ok_or_else(no_codes)?)?;
                state.previous[part] = state.previous[part].wrapping_add(state.bits.signed(checked(size)?)?);
                block[0] = (state.previous[part] << self.low) as i16;
            }
            (0, true) => block[0] |= (state.bits.take(1)? << self.low) as i16,
            (_, false) => self.begin(state, ac.ok_or_else(no_codes)?, block)?,
            (_, true) => self.correct(state, ac.ok_or_else(no_codes)?, block)?,
        }
        Ok(())
    }

    /// The higher bits of coefficients.
    fn begin(&self, state: &mut State<'_>, codes: &Codes, block: &mut [i16; 64]) -> Result<(), ImageProblem> {
        if state.run > 0 {
            state.run -= 1;
            return Ok(());
        }
        let mut at = self.first;
        while at <= self.last {
            let symbol = state.bits.symbol(codes)?;
            let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            match (zeros, size) {
                (15, 0) => at += 16,
                (_, 0) => {
                    state.run = (1 << zeros) + state.bits.take(zeros as u32)? as u32 - 1;
                    return Ok(());
                }
                _ => {
                    at += zeros;
                    let value = state.bits.signed(size)?;
                    *coefficient(block, at)? = (value << self.low) as i16;
                    at += 1;
                }
            }
        }
        Ok(())
    }

    /// One more bit of coefficients: new ones, and a correction of those that are not zero.
    fn correct(&self, state: &mut State<'_>, codes: &Codes, block: &mut [i16; 64]) -> Result<(), ImageProblem> {
        let one = 1i16 << self.low;
        let adjust = |bits: &mut Bits<'_>, value: &mut i16| {
            if bits.take(1)? != 0 && *value & one == 0 {
                *value = if *value > 0 { value.wrapping_add(one) } else { value.wrapping_sub(one) };
            }
            Ok::<(), ImageProblem>(())
        };
        let mut at = self.first;
        while at <= self.last && state.run == 0 {
            let symbol = state.bits.symbol(codes)?;
            let (mut zeros, size) = (usize::from(symbol >> 4), symbol & 15);
            let mut new = 0;
            match (zeros, size) {
                (15, 0) => {}
                (_, 0) => {
                    state.run = (1 << zeros) + state.bits.take(zeros as u32)? as u32;
                    break;
                }
                (_, 1) => new = if state.bits.take(1)? != 0 { one } else { -one },
                _ => return Err(ImageProblem::Damaged("its data corrects by more than one bit".to_owned())),
            }
            // Passes as many zeros as the symbol has, and corrects everything between.
            while at <= self.last {
                let value = coefficient(block, at)?;
                at += 1;
                if *value != 0 {
                    adjust(&mut state.bits, value)?;
                } else if zeros == 0 {
                    *value = new;
                    break;
                } else {
                    zeros -= 1;
                }
            }
        }
        if state.run > 0 {
            while at <= self.last {
                let value = coefficient(block, at)?;
                if *value != 0 {
                    adjust(&mut state.bits, value)?;
                }
                at += 1;
            }
            state.run -= 1;
        }
        Ok(())
    }
}

/// A whole block, multiplied by the divisors.
fn sequential(
    state: &mut State<'_>,
    part: usize,
    (dc, ac): (Option<&Codes>, Option<&Codes>),
    component: &Component,
) -> Result<[i32; 64], ImageProblem> {
    let (dc, ac) = (dc.ok_or_else(no_codes)?, ac.ok_or_else(no_codes)?);
    let divisors = component.divisors.as_ref().ok_or_else(no_codes)?;
    let mut block = [0; 64];
    let size = state.bits.symbol(dc)?;
    state.previous[part] = state.previous[part].wrapping_add(state.bits.signed(checked(size)?)?);
    block[0] = state.previous[part].wrapping_mul(divisors[0]);
    let mut at = 1;
    while at < 64 {
        let symbol = state.bits.symbol(ac)?;
        let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        match (zeros, size) {
            (15, 0) => at += 16,
            (_, 0) => break,
            _ => {
                at += zeros;
                let value = state.bits.signed(size)?;
                let place = usize::from(*ZIGZAG.get(at).ok_or_else(too_many)?);
                block[place] = value * divisors[place];
                at += 1;
            }
        }
    }
    Ok(block)
}

/// Samples from all coefficients of a progressive image.
pub(super) fn finish(component: &mut Component) -> Result<(), ImageProblem> {
    let divisors = component.divisors.ok_or_else(no_codes)?;
    for (at, block) in std::mem::take(&mut component.coefficients).iter().enumerate() {
        let block = std::array::from_fn(|at| i32::from(block[at]) * divisors[at]);
        place_block(component, &block, at % component.blocks.0, at / component.blocks.0);
    }
    Ok(())
}

fn place_block(component: &mut Component, block: &[i32; 64], x: usize, y: usize) {
    let stride = component.blocks.0 * 8;
    transform::inverse(block, &mut component.samples[y * 8 * stride + x * 8..], stride);
}

/// A coefficient by its place in the order of coding.
fn coefficient(block: &mut [i16; 64], at: usize) -> Result<&mut i16, ImageProblem> {
    let place = ZIGZAG.get(at).ok_or_else(too_many)?;
    Ok(&mut block[usize::from(*place)])
}

/// The size of a first coefficient.
fn checked(size: u8) -> Result<u32, ImageProblem> {
    if size > 16 { Err(too_many()) } else { Ok(size.into()) }
}

fn too_many() -> ImageProblem {
    ImageProblem::Damaged("its data has too many coefficients".to_owned())
}

fn no_codes() -> ImageProblem {
    ImageProblem::Damaged("a table that its data needs is missing".to_owned())
}
