//! The part of protobuf's encoding that an ONNX file needs: messages are written field by field, and traversed without
//! a schema. Field numbers are ONNX's (`onnx.proto`, Apache-2.0) and never change.

use std::io::{self, ErrorKind, Read, Seek};

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// Appends an integer field.
    pub fn int(mut self, field: u32, value: i64) -> Self {
        self.key(field, 0);
        self.varint(value as u64);
        self
    }

    /// Appends a single-precision field.
    pub fn float(mut self, field: u32, value: f32) -> Self {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends text, bytes, or a nested message.
    pub fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Self {
        self.begin(field, value.as_ref().len() as u64);
        self.0.extend_from_slice(value.as_ref());
        self
    }

    /// Appends the same field several times.
    pub fn repeat<T: AsRef<[u8]>>(self, field: u32, values: impl IntoIterator<Item = T>) -> Self {
        values.into_iter().fold(self, |message, value| message.bytes(field, value))
    }

    /// Begins a field whose bytes are written elsewhere.
    pub fn begin(&mut self, field: u32, length: u64) {
        self.key(field, 2);
        self.varint(length);
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// Appends a varint: seven bits per byte, the lowest first; all but the last byte have their eighth bit set.
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A traversal of the fields of a message.
pub(super) struct Fields<R> {
    source: R,
    /// Remaining bytes of the message: nothing beyond them is read or allocated.
    left: u64,
}

/// The content of a field.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    /// A number of any kind, which is skipped.
    Number,
    /// This many bytes, which the caller takes or skips.
    Bytes(u64),
}

impl<R: Read + Seek> Fields<R> {
    /// Creates a traversal of the next `length` bytes of the source.
    pub fn new(source: R, length: u64) -> Self {
        Fields { source, left: length }
    }

    /// Returns the number and the content of the next field.
    pub fn next(&mut self) -> io::Result<Option<(u64, Value)>> {
        if self.left == 0 {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => self.varint().map(|_| Value::Number)?,
            1 => self.skip(8).map(|()| Value::Number)?,
            2 => Value::Bytes(self.varint()?),
            5 => self.skip(4).map(|()| Value::Number)?,
            other => return Err(invalid(format!("a field has the unknown wire type {other}"))),
        };
        Ok(Some((key >> 3, value)))
    }

    /// Skips bytes.
    pub fn skip(&mut self, length: u64) -> io::Result<()> {
        self.claim(length)?;
        let distance = i64::try_from(length).map_err(|_| invalid("a field is too long"))?;
        self.source.seek_relative(distance)
    }

    /// Reads bytes.
    pub fn take(&mut self, length: u64) -> io::Result<Vec<u8>> {
        self.claim(length)?;
        let length = usize::try_from(length).map_err(|_| invalid("a field is too long"))?;
        let mut bytes = vec![0; length];
        self.source.read_exact(&mut bytes).map(|()| bytes)
    }

    fn claim(&mut self, length: u64) -> io::Result<()> {
        let rest = self.left.checked_sub(length);
        self.left = rest.ok_or_else(|| invalid(format!("a field claims {length} bytes, {} are left", self.left)))?;
        Ok(())
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            self.claim(1)?;
            let mut byte = [0];
            self.source.read_exact(&mut byte)?;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(invalid("a number has more than ten bytes"))
    }
}

/// Creates the error of bytes that are not a protobuf message.
fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn numbers_are_encoded_as_the_protobuf_manual_says() {
        assert_eq!(Message::default().int(1, 150).as_ref(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().bytes(2, "testing").as_ref(), b"\x12\x07testing");
        assert_eq!(Message::default().int(1, -1).as_ref().len(), 11);
        assert_eq!(Message::default().float(2, 1.0).as_ref(), [0x15, 0, 0, 0x80, 0x3f]);
    }

    #[test]
    fn a_walk_finds_every_field_and_stops_at_the_end() {
        let message = Message::default().int(1, 1 << 40).float(20, 2.5).bytes(300, "abc").int(7, -5);
        let mut fields = Fields::new(Cursor::new(&message), message.as_ref().len() as u64);
        assert_eq!(fields.next().unwrap(), Some((1, Value::Number)));
        assert_eq!(fields.next().unwrap(), Some((20, Value::Number)));
        assert_eq!(fields.next().unwrap(), Some((300, Value::Bytes(3))));
        assert_eq!(fields.take(3).unwrap(), b"abc");
        assert_eq!(fields.next().unwrap(), Some((7, Value::Number)));
        assert_eq!(fields.next().unwrap(), None);
    }

    #[test]
    fn a_field_that_claims_more_than_there_is_is_refused() {
        let mut fields = Fields::new(Cursor::new(b"\x12\xff\xff\xff\xff\x0fabc"), 9);
        let Some((2, Value::Bytes(length))) = fields.next().unwrap() else { panic!() };
        assert!(fields.take(length).is_err());
    }
}
