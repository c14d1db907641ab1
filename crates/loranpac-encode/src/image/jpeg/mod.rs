//! JPEG: sequential and progressive, Huffman codes, 8 bits, one, three or four components.
//!
//! Decoders differ in how they round the cosine transform, interpolate colours and convert them; after resizing that makes
//! up to 8 steps of 255 between the decoders that exist in Rust and libjpeg, with which encoders were trained. This one
//! has libjpeg's arithmetic and gives the same pixels. It is strict: data that is truncated is an error, not grey.

mod bits;
mod frame;
mod rows;
mod scan;
mod transform;

use ::image::metadata::Orientation;

use super::Limits;
use crate::problem::ImageProblem;
use bits::Codes;
use frame::Frame;
use rows::Colours;
use scan::{Scan, ZIGZAG};

/// The most scans, of small and of large images. A progressive image has about ten, and each costs the time of one pass
/// over all blocks, even if it has no data.
const MOST_SCANS: usize = 200;
const FEWEST_SCANS: usize = 32;
/// Pixels times scans beyond which an image is large.
const MOST_WORK: usize = 1 << 30;

/// Width, height, pixels and orientation.
type Decoded = (u32, u32, Vec<u8>, Orientation);

/// What the segments before the data say.
struct Tables {
    divisors: [Option<[i32; 64]>; 4],
    /// Codes of first coefficients, and of others.
    codes: [[Option<Codes>; 4]; 2],
    interval: usize,
    jfif: bool,
    /// The colour transform in Adobe's segment.
    adobe: Option<u8>,
    orientation: Orientation,
}

/// Decodes an image.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<Decoded, ImageProblem> {
    let mut tables = Tables {
        divisors: [None; 4],
        codes: [const { [const { None }; 4] }; 2],
        interval: 0,
        jfif: false,
        adobe: None,
        orientation: Orientation::NoTransforms,
    };
    let mut frame: Option<Frame> = None;
    let mut scans = 0;
    // The first two bytes are the marker of the beginning.
    let mut at = 2;
    loop {
        let (marker, next) = next_marker(bytes, at)?;
        at = next;
        if marker == 0xd9 {
            break;
        }
        let length = bytes.get(at..at + 2).ok_or(ImageProblem::Truncated)?;
        let end = at + usize::from(u16::from_be_bytes([length[0], length[1]])).max(2);
        let segment = bytes.get(at + 2..end).ok_or(ImageProblem::Truncated)?;
        at = end;
        match marker {
            0xc0..=0xc2 if frame.is_none() => frame = Some(begin(segment, marker == 0xc2, limits)?),
            0xc0..=0xc2 => return Err(ImageProblem::Damaged("it has two headers".to_owned())),
            0xc4 => tables.set_codes(segment)?,
            0xc3 | 0xc5..=0xcf => {
                return Err(ImageProblem::Unsupported(
                    "JPEG that is lossless, hierarchical or arithmetically coded".to_owned(),
                ));
            }
            0xda => {
                let frame = frame.as_mut().ok_or_else(|| ImageProblem::Damaged("it has no header".to_owned()))?;
                scans += 1;
                let most = (MOST_WORK / (frame.width * frame.height)).clamp(FEWEST_SCANS, MOST_SCANS);
                if scans > most {
                    return Err(ImageProblem::Damaged(format!("it has more than {most} scans")));
                }
                let scan = tables.scan(frame, segment)?;
                at = scan.decode(frame, bytes, at)?;
            }
            0xdb => tables.set_divisors(segment)?,
            0xdd => match segment {
                [high, low, ..] => tables.interval = usize::from(u16::from_be_bytes([*high, *low])),
                _ => return Err(ImageProblem::Truncated),
            },
            0xe0 => tables.jfif |= segment.starts_with(b"JFIF\0"),
            0xe1 => {
                let exif = segment.strip_prefix(b"Exif\0\0").and_then(Orientation::from_exif_chunk);
                tables.orientation = exif.unwrap_or(tables.orientation);
            }
            0xee if segment.starts_with(b"Adobe") => tables.adobe = segment.get(11).copied(),
            _ => {}
        }
    }
    let mut frame = frame.ok_or_else(|| ImageProblem::Damaged("it has no header".to_owned()))?;
    if frame.components.iter().any(|component| component.divisors.is_none()) {
        return Err(ImageProblem::Damaged("a part of its colours is missing".to_owned()));
    }
    if frame.progressive {
        frame.components.iter_mut().try_for_each(scan::finish)?;
    }
    let colours = tables.colours(&frame);
    Ok((frame.width as u32, frame.height as u32, rows::pixels(&frame, colours), tables.orientation))
}

/// Width and height, if there is a header.
pub(super) fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let (marker, next) = next_marker(bytes, at).ok()?;
        let segment = bytes.get(next..)?;
        match (marker, segment) {
            (0xc0..=0xc2, [_, _, _, h1, h0, w1, w0, ..]) => {
                return Some((u16::from_be_bytes([*w1, *w0]).into(), u16::from_be_bytes([*h1, *h0]).into()));
            }
            (0xd9 | 0xda, _) => return None,
            (_, [high, low, ..]) => at = next + usize::from(u16::from_be_bytes([*high, *low])).max(2),
            _ => return None,
        }
    }
}

/// The next marker from an offset on, and the offset behind it. Other bytes before it are passed, as libjpeg does.
fn next_marker(bytes: &[u8], at: usize) -> Result<(u8, usize), ImageProblem> {
    let rest = bytes.get(at..).unwrap_or_default();
    // Neither an escaped 0xff, nor a filler, nor a marker without a segment.
    let is_marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0x01 | 0xff | 0xd0..=0xd8);
    let place = rest.windows(2).position(is_marker).ok_or(ImageProblem::Truncated)?;
    Ok((rest[place + 1], at + place + 2))
}

/// Parses a header and allocates, within the limits.
fn begin(segment: &[u8], progressive: bool, limits: &Limits) -> Result<Frame, ImageProblem> {
    let mut frame = Frame::parse(segment, progressive)?;
    super::check_size(frame.width as u32, frame.height as u32, frame.bytes(), limits)?;
    frame.allocate();
    Ok(frame)
}

impl Tables {
    fn set_divisors(&mut self, mut segment: &[u8]) -> Result<(), ImageProblem> {
        while let [head, rest @ ..] = segment {
            let wide = head >> 4 != 0;
            let size = if wide { 128 } else { 64 };
            let (values, rest) = rest.split_at_checked(size).ok_or(ImageProblem::Truncated)?;
            let mut table = [0; 64];
            for (at, &place) in ZIGZAG.iter().enumerate() {
                table[usize::from(place)] = match wide {
                    true => i32::from(u16::from_be_bytes([values[2 * at], values[2 * at + 1]])),
                    false => values[at].into(),
                };
            }
            *self.divisors.get_mut(usize::from(head & 15)).ok_or_else(bad_table)? = Some(table);
            segment = rest;
        }
        Ok(())
    }

    fn set_codes(&mut self, mut segment: &[u8]) -> Result<(), ImageProblem> {
        while let [head, rest @ ..] = segment {
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or(ImageProblem::Truncated)?;
            let total = counts.iter().map(|&count| usize::from(count)).sum();
            let (symbols, rest) = rest.split_at_checked(total).ok_or(ImageProblem::Truncated)?;
            let kind = self.codes.get_mut(usize::from(head >> 4)).ok_or_else(bad_table)?;
            let table = kind.get_mut(usize::from(head & 15)).ok_or_else(bad_table)?;
            *table = Some(Codes::new(counts, symbols).ok_or_else(bad_table)?);
            segment = rest;
        }
        Ok(())
    }

    /// Parses the header of a scan. Its components keep the divisors that are in force at their first scan.
    fn scan(&self, frame: &mut Frame, segment: &[u8]) -> Result<Scan<'_>, ImageProblem> {
        let damaged = || ImageProblem::Damaged("the header of a scan is impossible".to_owned());
        let (&count, rest) = segment.split_first().ok_or(ImageProblem::Truncated)?;
        let (each, rest) = rest.split_at_checked(2 * usize::from(count)).ok_or(ImageProblem::Truncated)?;
        let [first, last, bits, ..] = *rest else { return Err(ImageProblem::Truncated) };
        let mut parts: Vec<(usize, Option<&Codes>, Option<&Codes>)> = Vec::new();
        for &[id, tables] in each.as_chunks::<2>().0 {
            let place = frame.components.iter().position(|component| component.id == id).ok_or_else(damaged)?;
            let codes = |kind: usize, at: u8| self.codes[kind].get(usize::from(at)).and_then(Option::as_ref);
            if parts.iter().any(|part| part.0 == place) {
                return Err(damaged());
            }
            parts.push((place, codes(0, tables >> 4), codes(1, tables & 15)));
            let component = &mut frame.components[place];
            if component.divisors.is_none() {
                component.divisors = Some(self.divisors[component.table].ok_or_else(bad_table)?);
            }
        }
        let (first, last, low) = match frame.progressive {
            true => (usize::from(first), usize::from(last), u32::from(bits & 15)),
            false => (0, 63, 0),
        };
        // First coefficients come alone, and others of one component only.
        let possible = !frame.progressive || (if first == 0 { last == 0 } else { parts.len() == 1 }) && first <= last;
        if parts.is_empty() || !possible || last > 63 || low > 13 {
            return Err(damaged());
        }
        Ok(Scan { parts, first, last, low, refines: frame.progressive && bits >> 4 != 0, interval: self.interval })
    }

    /// What the components are, by the rules of libjpeg.
    fn colours(&self, frame: &Frame) -> Colours {
        let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
        match (ids.len(), self.adobe) {
            (1, _) => Colours::Grey,
            (3, _) if self.jfif => Colours::YCbCr,
            (3, Some(0)) => Colours::Rgb,
            (3, None) if ids == *b"RGB" => Colours::Rgb,
            (3, _) => Colours::YCbCr,
            (_, Some(2)) => Colours::Ycck,
            _ => Colours::Cmyk,
        }
    }
}

fn bad_table() -> ImageProblem {
    ImageProblem::Damaged("a table is damaged".to_owned())
}
