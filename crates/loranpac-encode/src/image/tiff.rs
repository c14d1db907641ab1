//! What the directory of a TIFF file claims, before its decoder allocates that.

use crate::problem::ImageProblem;

/// Tags whose values the decoder reads. Others, such as colour profiles and private ones, stay in the file.
const READ: [u16; 20] =
    [256, 257, 258, 259, 262, 273, 274, 277, 278, 279, 284, 317, 322, 323, 324, 325, 338, 339, 347, 530];

/// The most values of all these tags: a decoded value takes 32 bytes, and a copy of it 8.
const MOST_VALUES: u64 = 3 << 20;

/// Refuses a directory with a tag that claims more bytes than the file has, or too many values. A directory that is not
/// intact is left to the decoder.
pub(super) fn check_directory(bytes: &[u8]) -> Result<(), ImageProblem> {
    let little = bytes.starts_with(b"II");
    let number = |at: usize, length: usize| {
        let bytes = bytes.get(at..at.checked_add(length)?)?.iter();
        let add = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
        Some(if little { bytes.rev().fold(0, add) } else { bytes.fold(0, add) })
    };
    let Some((start, entries)) = number(4, 4).and_then(|start| Some((start as usize, number(start as usize, 2)?)))
    else {
        return Ok(());
    };
    let mut values = 0;
    for at in (0..entries as usize).map(|entry| start + 2 + 12 * entry) {
        let (Some(tag), Some(kind), Some(count)) = (number(at, 2), number(at + 2, 2), number(at + 4, 4)) else {
            return Ok(());
        };
        if !READ.iter().any(|&read| u32::from(read) == tag) {
            continue;
        }
        values += u64::from(count);
        if u64::from(count) * size(kind) > bytes.len() as u64 {
            return Err(ImageProblem::Damaged(format!("tag {tag} claims {count} values, more than the file has")));
        }
        if values > MOST_VALUES {
            return Err(ImageProblem::DecoderMemory);
        }
    }
    Ok(())
}

/// Bytes of a value, by its type.
fn size(kind: u32) -> u64 {
    match kind {
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16 | 17 | 18 => 8,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TIFF file of 1,000 bytes whose directory has entries of a tag, a type and a number of values.
    fn file(little: bool, entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let short = |x: u16| if little { x.to_le_bytes() } else { x.to_be_bytes() };
        let long = |x: u32| if little { x.to_le_bytes() } else { x.to_be_bytes() };
        let mut bytes = [if little { b"II*\0" } else { b"MM\0*" }, &long(8)[..], &short(entries.len() as u16)].concat();
        for &(tag, kind, count) in entries {
            bytes.extend([&short(tag)[..], &short(kind), &long(count), &[0; 4]].concat());
        }
        bytes.resize(1_000.max(bytes.len()), 0);
        bytes
    }

    #[test]
    fn tags_that_are_read_have_no_more_values_than_the_file() {
        for little in [false, true] {
            let check = |entries: &[(u16, u16, u32)]| check_directory(&file(little, entries));
            assert_eq!(check(&[(256, 3, 500), (273, 4, 250), (347, 7, 1_000), (530, 5, 125)]), Ok(()));
            for (tag, kind, count) in
                [(257, 3, 501), (273, 4, 251), (347, 7, 1_001), (530, 5, 126), (279, 16, u32::MAX)]
            {
                assert!(matches!(check(&[(256, 3, 1), (tag, kind, count)]), Err(ImageProblem::Damaged(_))), "{tag}");
            }
            // Metadata that are not read are no reason to refuse the pixels.
            assert_eq!(check(&[(34_675, 7, u32::MAX), (700, 1, 1_001)]), Ok(()));
            // Many tags, each as large as the file.
            assert_eq!(check(&vec![(273, 1, 1_000); 4_000]), Err(ImageProblem::DecoderMemory));
        }
    }

    #[test]
    fn a_directory_that_is_not_in_the_file_is_left_to_the_decoder() {
        let whole = file(true, &[(256, 3, 1), (257, 3, 1)]);
        (0..40).for_each(|length| assert_eq!(check_directory(&whole[..length]), Ok(()), "{length}"));
        assert_eq!(check_directory(b"II*\0\xff\xff\xff\xff"), Ok(()));
    }
}
