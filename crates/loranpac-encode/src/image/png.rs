//! PNG files without their colour profiles.

use std::borrow::Cow;
use std::ops::Range;

const SIGNATURE: usize = 8;

/// The file without its colour profiles, which nothing here reads: the decoder would unpack them, and 500 kB can become
/// half a gigabyte. A file without one is not copied.
pub(super) fn without_profiles(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut rest = Vec::new();
    let mut start = 0;
    for profile in profiles(bytes) {
        rest.extend_from_slice(&bytes[start..profile.start]);
        start = profile.end;
    }
    if start == 0 {
        return Cow::Borrowed(bytes);
    }
    rest.extend_from_slice(&bytes[start..]);
    Cow::Owned(rest)
}

/// The places of the colour profiles before the pixels. The last of a truncated file ends with the file.
fn profiles(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = SIGNATURE;
    let chunk = move || {
        let (length, kind) = bytes.get(at..)?.get(..8)?.split_first_chunk::<4>()?;
        // Its length, its kind, and behind the contents a checksum.
        let end = (u32::from_be_bytes(*length) as usize).saturating_add(at + 12).min(bytes.len());
        let place = at..end;
        at = end;
        (kind != b"IDAT").then_some((kind == b"iCCP", place))
    };
    std::iter::from_fn(chunk).filter_map(|(is_profile, place)| is_profile.then_some(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32).to_be_bytes(), &kind[..], data, b"sum."].concat()
    }

    fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
        [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat()
    }

    #[test]
    fn profiles_are_left_out_and_everything_else_stays() {
        let (header, profile, text) = (chunk(b"IHDR", &[0; 13]), chunk(b"iCCP", b"profile"), chunk(b"tEXt", b"iCCP"));
        let (pixels, end) = (chunk(b"IDAT", &[7; 30]), chunk(b"IEND", b""));
        let plain = file(&[header.clone(), text.clone(), pixels.clone(), end.clone()]);
        assert!(matches!(without_profiles(&plain), Cow::Borrowed(_)));
        let coloured = [&header, &profile, &text, &profile, &pixels, &end].map(Vec::clone);
        assert_eq!(*without_profiles(&file(&coloured)), plain);
        // Behind the pixels, the decoder ignores them.
        let late = file(&[header.clone(), pixels, profile.clone(), end]);
        assert_eq!(*without_profiles(&late), late);
        // Truncated anywhere, or with a length beyond the file.
        let whole = file(&coloured);
        for length in 0..whole.len() {
            let found = without_profiles(&whole[..length]);
            assert!(!found.windows(8).any(|bytes| bytes == &profile[..8]), "{length}");
        }
        let lie = file(&[header.clone(), b"\xff\xff\xff\xffiCCP and more".to_vec()]);
        assert_eq!(*without_profiles(&lie), file(&[header]));
    }
}
