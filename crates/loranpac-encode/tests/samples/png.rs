//! A PNG file whose header lies.

/// A PNG file of 100 kB that claims these sides.
pub fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: &[u8; 4], data: &[u8]| {
        file.extend((data.len() as u32).to_be_bytes());
        file.extend(kind);
        file.extend(data);
        file.extend(crc(&[&kind[..], data].concat()).to_be_bytes());
    };
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    chunk(b"IHDR", &[&sides[..], &[8, 2, 0, 0, 0]].concat());
    chunk(b"IDAT", &vec![0; 100_000]);
    chunk(b"IEND", b"");
    file
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}
