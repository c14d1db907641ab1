//! Bits of entropy-coded data, and Huffman codes.

use crate::problem::ImageProblem;

/// Bits of a code that are found by one look into a table.
const FAST: u32 = 9;

/// The data of one scan, up to the next marker.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// The next byte.
    at: usize,
    /// Bits that were read and not used yet, in the lowest places.
    store: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Bits<'a> {
        Bits { bytes, at, store: 0, count: 0 }
    }

    /// The offset of the first byte that is not part of the bits that were used.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Drops the rest of a byte and passes the marker of a restart.
    pub fn restart(&mut self, number: u8) -> Result<(), ImageProblem> {
        (self.store, self.count) = (0, 0);
        match self.bytes.get(self.at..self.at + 2) {
            Some([0xff, found]) if *found == 0xd0 | number => {
                self.at += 2;
                Ok(())
            }
            Some(_) => Err(ImageProblem::Damaged("a restart marker is missing".to_owned())),
            None => Err(ImageProblem::Truncated),
        }
    }

    /// Reads bytes until there are more than 32 bits, or no more bytes before the next marker.
    fn fill(&mut self) {
        while self.count <= 56 {
            let byte = match self.bytes.get(self.at..) {
                Some([0xff, 0x00, ..]) => {
                    self.at += 2;
                    0xff
                }
                Some([0xff, ..]) | Some([]) | None => return,
                Some([byte, ..]) => {
                    self.at += 1;
                    *byte
                }
            };
            self.store = self.store << 8 | u64::from(byte);
            self.count += 8;
        }
    }

    /// The next bits without using them; zeros after the end. At most 16.
    fn peek(&mut self, bits: u32) -> u32 {
        if self.count < bits {
            self.fill();
        }
        let there = self.count.min(bits);
        let value = self.store >> (self.count - there) & ((1 << there) - 1);
        (value << (bits - there)) as u32
    }

    /// Uses bits that were seen by [`Bits::peek`].
    fn skip(&mut self, bits: u32) -> Result<(), ImageProblem> {
        if self.count < bits {
            return Err(match self.at >= self.bytes.len() {
                true => ImageProblem::Truncated,
                false => ImageProblem::Damaged("its data ends before its last pixels".to_owned()),
            });
        }
        self.count -= bits;
        Ok(())
    }

    /// The next bits, at most 16.
    pub fn take(&mut self, bits: u32) -> Result<i32, ImageProblem> {
        let value = self.peek(bits);
        self.skip(bits)?;
        Ok(value as i32)
    }

    /// A number of this many bits, of which the first half of all values is negative.
    pub fn signed(&mut self, bits: u32) -> Result<i32, ImageProblem> {
        if bits == 0 {
            return Ok(0);
        }
        let value = self.take(bits)?;
        Ok(if value < 1 << (bits - 1) { value - (1 << bits) + 1 } else { value })
    }

    /// The next symbol.
    pub fn symbol(&mut self, codes: &Codes) -> Result<u8, ImageProblem> {
        let (length, symbol) = codes.fast[self.peek(FAST) as usize];
        if length > 0 {
            self.skip(length.into())?;
            return Ok(symbol);
        }
        let bits = self.peek(16);
        for length in FAST + 1..=16 {
            let code = (bits >> (16 - length)) as i32;
            if code <= codes.last[length as usize] {
                self.skip(length)?;
                let place = code + codes.shift[length as usize];
                return usize::try_from(place).ok().and_then(|at| codes.symbols.get(at).copied()).ok_or_else(unknown);
            }
        }
        // Zeros after the end can look like an unknown code.
        self.skip(16)?;
        Err(unknown())
    }
}

fn unknown() -> ImageProblem {
    ImageProblem::Damaged("its data has an unknown code".to_owned())
}

/// A table of Huffman codes.
#[derive(Clone)]
pub(super) struct Codes {
    /// Length and symbol by the first bits; length 0 for longer codes.
    fast: Vec<(u8, u8)>,
    /// The last code of each length, or -1.
    last: [i32; 17],
    /// From a code to the place of its symbol.
    shift: [i32; 17],
    symbols: Vec<u8>,
}

impl Codes {
    /// Codes from the number of codes of each length and their symbols.
    pub fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Codes> {
        let mut codes =
            Codes { fast: vec![(0, 0); 1 << FAST], last: [-1; 17], shift: [0; 17], symbols: symbols.to_vec() };
        let (mut code, mut place) = (0i32, 0usize);
        for (length, &count) in (1u32..).zip(counts) {
            codes.shift[length as usize] = place as i32 - code;
            for _ in 0..count {
                if code >> length != 0 {
                    return None;
                }
                if length <= FAST {
                    let first = (code << (FAST - length)) as usize;
                    codes.fast[first..first + (1 << (FAST - length))].fill((length as u8, *symbols.get(place)?));
                }
                code += 1;
                place += 1;
            }
            codes.last[length as usize] = if count > 0 { code - 1 } else { -1 };
            code <<= 1;
        }
        (place == symbols.len()).then_some(codes)
    }
}
