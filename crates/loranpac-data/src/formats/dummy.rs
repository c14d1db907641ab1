//! A format that tests add to the list: this file and one line in [`super::FORMATS`] are all that a new format needs.

use std::io::Read;

use loranpac::Label;

use super::format::{Format, Opening};
use crate::error::{Error, ReadError};
use crate::rows::{LABEL, Piece, Rows};

/// Bytes in pairs: one feature, then the letter of a class.
pub(super) const DUMMY: Format = Format {
    name: "dummy",
    other_names: &["example"],
    opening: Opening::Stream(|path, mut source, _, _| {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(|source| ReadError::new(path, source))?;
        Ok(Box::new(Dummy(bytes)))
    }),
    texts: None,
};

struct Dummy(Vec<u8>);

impl Rows for Dummy {
    fn dim(&self) -> usize {
        1
    }
    fn has(&self, tag: usize) -> bool {
        tag == LABEL
    }
    fn len(&self) -> Option<usize> {
        Some(self.0.len() / 2)
    }
    fn read(&mut self, most: usize) -> Result<Piece, Error> {
        let bytes = self.0.drain(..(2 * most).min(self.0.len())).collect::<Vec<_>>();
        let mut piece = Piece { x: bytes.iter().step_by(2).map(|&x| f32::from(x)).collect(), ..Piece::default() };
        piece.tags[LABEL] = bytes.chunks_exact(2).map(|pair| Label::from(char::from(pair[1]).to_string())).collect();
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use loranpac::Label;

    use crate::{Options, Reader};

    #[test]
    fn a_file_and_a_line_make_a_format() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["week.dummy", "week.EXAMPLE"] {
            let path = folder.path().join(name);
            std::fs::write(&path, b"\x01a\x02b\x03a").unwrap();
            let mut reader = Reader::open(&path, &Options::default()).unwrap();
            let batch = reader.next(2).unwrap().unwrap();
            assert_eq!((batch.x, batch.labels.unwrap()), (vec![1.0, 2.0], vec![Label::from("a"), Label::from("b")]));
            assert_eq!(reader.next(2).unwrap().unwrap().x, [3.0]);
            assert!(reader.next(2).unwrap().is_none());
        }
        let error = Reader::open(folder.path(), &Options { format: Some("other".to_owned()), ..Options::default() });
        assert!(error.is_err());
    }
}
