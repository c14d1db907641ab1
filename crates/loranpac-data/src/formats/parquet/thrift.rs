//! A walk over the parts of a Parquet file in Thrift's compact protocol: the footer and the headers of pages.
//!
//! The `parquet` crate reads these parts, but trusts some of their numbers: it would reserve memory for two thousand
//! million children of a column, or for a page of two gigabytes in a file of a hundred bytes. Every header is therefore
//! walked over before the crate sees it, and impossible numbers are refused.

/// The deepest nesting of structures; Parquet needs seven levels.
const DEEPEST: usize = 24;

/// Why a walk ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The bytes ended.
    Ended,
    /// An impossible value.
    Bad(&'static str),
}

/// An item of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// A whole number.
    Number(i64),
    /// The beginning of a structure, an element of a list.
    Item,
}

/// Called for each item, with the numbers of the fields that lead to it.
pub(super) type Visit<'v> = &'v mut dyn FnMut(&[i16], Met) -> Result<(), &'static str>;

/// Walks over one structure; returns its number of bytes.
pub(super) fn walk(bytes: &[u8], visit: Visit<'_>) -> Result<usize, Stopped> {
    let mut walker = Walker { bytes, at: 0, path: Vec::new(), visit };
    walker.structure()?;
    Ok(walker.at)
}

struct Walker<'b, 'v> {
    bytes: &'b [u8],
    at: usize,
    path: Vec<i16>,
    visit: Visit<'v>,
}

impl Walker<'_, '_> {
    fn structure(&mut self) -> Result<(), Stopped> {
        if self.path.len() >= DEEPEST {
            return Err(Stopped::Bad("structures are nested too deeply"));
        }
        let mut last = 0i16;
        loop {
            let byte = self.byte()?;
            let (step, kind) = (byte >> 4, byte & 15);
            if kind == 0 {
                return Ok(());
            }
            let field = match step {
                0 => i16::try_from(signed(self.number()?)).ok(),
                step => last.checked_add(step.into()),
            };
            last = field.ok_or(Stopped::Bad("the number of a field is out of range"))?;
            self.path.push(last);
            // The kind itself holds a boolean.
            if !matches!(kind, 1 | 2) {
                self.value(kind)?;
            }
            self.path.pop();
        }
    }

    fn value(&mut self, kind: u8) -> Result<(), Stopped> {
        match kind {
            // A byte is read as a number, which takes one byte only below 128; Parquet's bytes are.
            3 => match self.byte()? {
                byte @ ..128 => self.meet(Met::Number(byte.into())),
                _ => Err(Stopped::Bad("a byte is out of range")),
            },
            4 | 5 => {
                let number = signed(self.number()?);
                let fits = if kind == 4 { i16::try_from(number).is_ok() } else { i32::try_from(number).is_ok() };
                if fits { self.meet(Met::Number(number)) } else { Err(Stopped::Bad("a number is out of range")) }
            }
            6 => {
                let number = signed(self.number()?);
                self.meet(Met::Number(number))
            }
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.skip(length)
            }
            9 | 10 => self.list(),
            12 => self.structure(),
            13 => self.skip(16),
            _ => Err(Stopped::Bad("a value of an unknown kind")),
        }
    }

    fn list(&mut self) -> Result<(), Stopped> {
        let byte = self.byte()?;
        let count = if byte >> 4 == 15 { self.number()? } else { (byte >> 4).into() };
        // Each element has at least one byte. Readers disagree about booleans in lists, and Parquet has none here.
        if count > 0 && matches!(byte & 15, 0..=2) {
            return Err(Stopped::Bad("a list of an unknown kind"));
        }
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(Stopped::Ended);
        }
        for _ in 0..count {
            if byte & 15 == 12 {
                self.meet(Met::Item)?;
            }
            self.value(byte & 15)?;
        }
        Ok(())
    }

    fn meet(&mut self, met: Met) -> Result<(), Stopped> {
        (self.visit)(&self.path, met).map_err(Stopped::Bad)
    }

    fn byte(&mut self) -> Result<u8, Stopped> {
        let byte = *self.bytes.get(self.at).ok_or(Stopped::Ended)?;
        self.at += 1;
        Ok(byte)
    }

    /// Seven bits at a time, the lowest first.
    fn number(&mut self) -> Result<u64, Stopped> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(Stopped::Bad("a number has too many bytes"))
    }

    fn skip(&mut self, length: u64) -> Result<(), Stopped> {
        if length > (self.bytes.len() - self.at) as u64 {
            return Err(Stopped::Ended);
        }
        self.at += length as usize;
        Ok(())
    }
}

/// Signed numbers are written in the order 0, -1, 1, -2, ...
fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers, with the fields that lead to them.
    type Places = Vec<(Vec<i16>, Met)>;

    fn numbers(bytes: &[u8]) -> Result<(usize, Places), Stopped> {
        let mut met = Vec::new();
        let length = walk(bytes, &mut |path, what| {
            met.push((path.to_vec(), what));
            Ok(())
        })?;
        Ok((length, met))
    }

    #[test]
    fn numbers_are_met_with_the_fields_that_lead_to_them() {
        // 1: i32 = -3; 2: list of one structure { 5: i64 = 200 }; 4: "ab"; then a byte that is not ours.
        let bytes = [0x15, 5, 0x19, 0x1c, 0x56, 0x90, 3, 0, 0x28, 2, b'a', b'b', 0, 99];
        let met = vec![(vec![1], Met::Number(-3)), (vec![2], Met::Item), (vec![2, 5], Met::Number(200))];
        assert_eq!(numbers(&bytes), Ok((13, met)));
        for cut in 0..13 {
            assert_eq!(numbers(&bytes[..cut]), Err(Stopped::Ended), "{cut}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(numbers(&[0x1c; 100]), Err(Stopped::Bad("structures are nested too deeply")));
        assert!(matches!(numbers(&[0x15, 255, 255, 255, 255, 255, 1, 0]), Err(Stopped::Bad(_))), "beyond 32 bits");
        assert!(matches!(numbers(&[0x16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), Err(Stopped::Bad(_))));
        assert_eq!(numbers(&[0x19, 0xfc, 255, 255, 3, 0]), Err(Stopped::Ended), "a list longer than the file");
        assert!(matches!(numbers(&[0x19, 0x21, 1, 1, 0]), Err(Stopped::Bad(_))), "a list of truth values");
    }
}
