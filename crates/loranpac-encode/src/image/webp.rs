//! What the chunks of a WebP file claim, before its decoder allocates that.

use crate::problem::ImageProblem;

/// Whether all chunks lie inside the file. The decoder allocates what a chunk of metadata claims before it reads it.
pub(super) fn chunks_fit(bytes: &[u8]) -> bool {
    chunks(bytes.get(12..).unwrap_or_default()).all(|chunk| chunk.size <= chunk.data.len())
}

/// Refuses a lossy frame that is larger than the image: the decoder compares them after it has allocated the frame.
pub(super) fn check_frames(bytes: &[u8], (width, height): (u32, u32)) -> Result<(), ImageProblem> {
    let frames = chunks(bytes.get(12..).unwrap_or_default()).flat_map(|chunk| {
        // A frame of an animation has 16 bytes of its own, and then chunks.
        let inside = if chunk.kind == b"ANMF" { chunk.data.get(16..).unwrap_or_default() } else { &[] };
        std::iter::once(chunk).chain(chunks(inside))
    });
    for frame in frames.filter(|chunk| chunk.kind == b"VP8 ") {
        let Some(&[w0, w1, h0, h1]) = frame.data.get(6..10) else { continue };
        let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
        let (w, h) = (side(w0, w1), side(h0, h1));
        if w > width || h > height {
            let reason = format!("a frame of {w} x {h} pixels in an image of {width} x {height}");
            return Err(ImageProblem::Damaged(reason));
        }
    }
    Ok(())
}

/// A part of a WebP file.
struct Chunk<'a> {
    kind: &'a [u8; 4],
    /// Bytes that it claims.
    size: usize,
    /// Those of them that the file has.
    data: &'a [u8],
}

/// The chunks of a file, or of a frame of an animation.
fn chunks(mut rest: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    std::iter::from_fn(move || {
        let (kind, behind) = rest.split_first_chunk::<4>()?;
        let (size, behind) = behind.split_first_chunk::<4>()?;
        let size = u32::from_le_bytes(*size) as usize;
        // A chunk of an odd size is followed by a byte that is not used.
        rest = behind.get(size.saturating_add(size % 2)..).unwrap_or_default();
        Some(Chunk { kind, size, data: &behind[..size.min(behind.len())] })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8; 4], size: u32, data: &[u8]) -> Vec<u8> {
        [&kind[..], &size.to_le_bytes(), data].concat()
    }

    fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
        [b"RIFF\0\0\0\0WEBP".to_vec(), chunks.concat()].concat()
    }

    #[test]
    fn chunks_lie_inside_the_file() {
        let file = |chunks: &[(u32, usize)]| {
            file(&chunks.iter().map(|&(size, data)| chunk(b"EXIF", size, &vec![0; data])).collect::<Vec<_>>())
        };
        assert!(chunks_fit(&file(&[(4, 4), (3, 4), (2, 2)])) && chunks_fit(&file(&[(3, 3)])) && chunks_fit(b"RIFF"));
        assert!(!chunks_fit(&file(&[(4, 4), (3, 2)])) && !chunks_fit(&file(&[(u32::MAX, 8)])));
    }

    #[test]
    fn frames_are_no_larger_than_the_image() {
        // The upper two bits of each side are a scale.
        let frame = |w: u8, h: u8| chunk(b"VP8 ", 10, &[0, 0, 0, 0x9d, 1, 0x2a, w, 0x40, h, 0x80]);
        let animated = |w, h| {
            let inside = [vec![0; 16], chunk(b"ALPH", 3, &[0; 4]), frame(w, h)].concat();
            chunk(b"ANMF", inside.len() as u32, &inside)
        };
        let before = chunk(b"VP8X", 10, &[0; 10]);
        let check = |part: Vec<u8>| check_frames(&file(&[before.clone(), part]), (13, 9)).is_ok();
        assert!(check(frame(13, 9)) && check(animated(13, 9)) && check(frame(13, 9)[..16].to_vec()));
        assert!(!check(frame(14, 9)) && !check(frame(13, 10)) && !check(animated(13, 10)) && !check(animated(14, 9)));
        // The size of the chunk is beyond the file.
        assert!(!check([b"VP8 \xff\xff\xff\xff".to_vec(), frame(14, 9)[8..].to_vec()].concat()));
    }
}
