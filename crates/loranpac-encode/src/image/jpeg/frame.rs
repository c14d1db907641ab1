//! The header of an image: its size, its components and how they are sampled.

use crate::problem::ImageProblem;

/// An image before its data.
pub(super) struct Frame {
    pub width: usize,
    pub height: usize,
    pub progressive: bool,
    pub components: Vec<Component>,
    /// The largest sampling factors.
    pub most: (usize, usize),
    /// Units of interleaved data, across and down.
    pub units: (usize, usize),
}

/// A component: brightness, a colour difference, or an ink.
pub(super) struct Component {
    pub id: u8,
    /// Sampling factors, across and down.
    pub across: usize,
    pub down: usize,
    /// Number of its quantisation table.
    pub table: usize,
    /// Samples, across and down.
    pub width: usize,
    pub height: usize,
    /// Blocks, across and down, with those that only fill the last unit.
    pub blocks: (usize, usize),
    /// Divisors, once its data has begun.
    pub divisors: Option<[i32; 64]>,
    /// Coefficients of all blocks, of a progressive image.
    pub coefficients: Vec<[i16; 64]>,
    /// Samples, row by row; a row has `8 * blocks.0`.
    pub samples: Vec<u8>,
}

impl Frame {
    /// Parses the segment of a frame.
    pub fn parse(segment: &[u8], progressive: bool) -> Result<Frame, ImageProblem> {
        let damaged = |what: &str| ImageProblem::Damaged(what.to_owned());
        let [bits, h1, h0, w1, w0, count, rest @ ..] = segment else { return Err(ImageProblem::Truncated) };
        let (width, height) =
            (usize::from(u16::from_be_bytes([*w1, *w0])), usize::from(u16::from_be_bytes([*h1, *h0])));
        if *bits != 8 {
            return Err(ImageProblem::Unsupported(format!("JPEG of {bits} bits per sample")));
        }
        if ![1, 3, 4].contains(count) {
            return Err(ImageProblem::Unsupported(format!("JPEG of {count} components")));
        }
        let each = rest.as_chunks::<3>().0.get(..usize::from(*count)).ok_or(ImageProblem::Truncated)?;
        let factors = |byte: u8| (usize::from(byte >> 4), usize::from(byte & 15));
        let valid = |(across, down): (usize, usize)| (1..=4).contains(&across) && (1..=4).contains(&down);
        if !each.iter().all(|component| valid(factors(component[1])) && component[2] < 4) {
            return Err(damaged("its header has impossible components"));
        }
        let most = each.iter().fold((1, 1), |most: (usize, usize), component| {
            let (across, down) = factors(component[1]);
            (most.0.max(across), most.1.max(down))
        });
        let units = (width.div_ceil(8 * most.0), height.div_ceil(8 * most.1));
        let component = |&[id, sampling, table]: &[u8; 3]| {
            let (across, down) = factors(sampling);
            if most.0 % across != 0 || most.1 % down != 0 {
                return Err(ImageProblem::Unsupported("JPEG with fractions of pixels".to_owned()));
            }
            let (own_width, own_height) = ((width * across).div_ceil(most.0), (height * down).div_ceil(most.1));
            let blocks = (units.0 * across, units.1 * down);
            let (table, divisors) = (usize::from(table), None);
            let (coefficients, samples) = (Vec::new(), Vec::new());
            let (width, height) = (own_width, own_height);
            Ok(Component { id, across, down, table, width, height, blocks, divisors, coefficients, samples })
        };
        let components = each.iter().map(component).collect::<Result<Vec<_>, _>>()?;
        Ok(Frame { width, height, progressive, components, most, units })
    }

    /// Bytes that decoding needs: samples, coefficients of a progressive image, and the result.
    pub fn bytes(&self) -> u64 {
        let each = if self.progressive { 3 * 64 } else { 64 };
        let blocks = |c: &Component| c.blocks.0 as u64 * c.blocks.1 as u64;
        self.components.iter().map(|c| blocks(c) * each).sum::<u64>() + 3 * self.width as u64 * self.height as u64
    }

    /// Allocates samples and coefficients.
    pub fn allocate(&mut self) {
        for component in &mut self.components {
            let blocks = component.blocks.0 * component.blocks.1;
            component.samples = vec![0; blocks * 64];
            if self.progressive {
                component.coefficients = vec![[0; 64]; blocks];
            }
        }
    }
}
