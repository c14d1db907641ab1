//! Checks of an ONNX file before it is parsed.
//!
//! The parser of `rten` allocates as many bytes as a field claims, and calls itself for each nested graph. Every message
//! that it reads is therefore walked over first. A message that claims more bytes than there are, deep nesting, and loops,
//! which need not end, are refused.

/// The deepest nesting of messages. A graph within a graph needs three levels.
const DEEPEST: usize = 32;

/// The messages of ONNX that have others in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Value,
    Type,
    TensorType,
    SequenceType,
    Shape,
    /// One whose fields have no further messages.
    Plain,
}

/// What a field has if its bytes are a message.
fn inner(message: Message, field: u64) -> Option<Message> {
    use Message::{Attribute, Graph, Model, Node, Plain, SequenceType, Shape, Tensor, TensorType, Type, Value};
    match (message, field) {
        (Model, 7) => Some(Graph),
        (Model, 8 | 14) => Some(Plain),
        (Graph, 1) => Some(Node),
        (Graph, 5) => Some(Tensor),
        (Graph, 11..=13) => Some(Value),
        (Node, 5) => Some(Attribute),
        (Attribute, 5 | 10) => Some(Tensor),
        (Attribute, 6 | 11) => Some(Graph),
        (Tensor, 13) => Some(Plain),
        (Value, 2) => Some(Type),
        (Type, 1) => Some(TensorType),
        (Type, 4) => Some(SequenceType),
        (TensorType, 2) => Some(Shape),
        (SequenceType, 1) => Some(Type),
        (Shape, 1) => Some(Plain),
        _ => None,
    }
}

/// Walks over a file.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    walk(bytes, Message::Model, 0)
}

fn walk(mut bytes: &[u8], message: Message, depth: usize) -> Result<(), String> {
    if depth > DEEPEST {
        return Err("its graphs or types are nested too deeply".to_owned());
    }
    while !bytes.is_empty() {
        let key = number(&mut bytes)?;
        let length = match key & 7 {
            0 => {
                number(&mut bytes)?;
                continue;
            }
            1 => 8,
            2 => number(&mut bytes)?,
            5 => 4,
            _ => return Err("it has a field of an unknown kind: it is damaged, or no ONNX file".to_owned()),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (value, rest) = bytes.split_at_checked(length).ok_or_else(truncated)?;
        bytes = rest;
        if (message, key >> 3) == (Message::Node, 4) && value == b"Loop" {
            return Err("it has the operator Loop, which is not supported: a loop need not end".to_owned());
        }
        if let Some(inner) = inner(message, key >> 3).filter(|_| key & 7 == 2) {
            walk(value, inner, depth + 1)?;
        }
    }
    Ok(())
}

/// A number of seven bits per byte, the lowest first.
fn number(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(truncated)?;
        *bytes = rest;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(number);
        }
    }
    Err("it has a number of too many bytes: it is damaged, or no ONNX file".to_owned())
}

fn truncated() -> String {
    "it is truncated: a field has more bytes than there are".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut length = bytes.len();
        let mut field = vec![number << 3 | 2];
        while length >= 128 {
            field.push(length as u8 | 128);
            length >>= 7;
        }
        field.push(length as u8);
        field.extend(bytes);
        field
    }

    #[test]
    fn claims_beyond_the_file_are_refused() {
        // A raw tensor of 2^40 bytes, in an initialiser of a graph.
        let claim = [9 << 3 | 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
        let file = field(7, &field(5, &claim));
        assert_eq!(check(&file), Err(truncated()));
        let whole = field(7, &field(5, &field(9, &[1; 300])));
        assert_eq!(check(&whole), Ok(()));
        for cut in 1..whole.len() {
            assert!(check(&whole[..cut]).is_err(), "{cut}");
        }
        assert!(check(&[0xff; 11]).is_err());
        assert!(check(&[3]).is_err(), "a group");
    }

    #[test]
    fn nested_graphs_and_types_have_a_limit_and_loops_are_refused() {
        let nested = |depth: usize| {
            let within = (0..depth).fold(Vec::new(), |graph, _| field(1, &field(5, &field(6, &graph))));
            field(7, &within)
        };
        assert_eq!(check(&nested(5)), Ok(()));
        assert!(check(&nested(100_000)).unwrap_err().contains("nested too deeply"));
        let sequences = (0..1000).fold(Vec::new(), |inner, _| field(4, &field(1, &inner)));
        assert!(check(&field(7, &field(11, &field(2, &sequences)))).unwrap_err().contains("nested too deeply"));
        let graph = |operator: &[u8]| field(7, &field(1, &field(4, operator)));
        assert_eq!(check(&graph(b"Conv")), Ok(()));
        assert!(check(&graph(b"Loop")).unwrap_err().contains("Loop"));
    }
}
