//! Images that are truncated, and images whose headers lie.

use crate::png::png_header;
use crate::world::{World, message, seed};

/// An image of every format, and the names of the files in the corpus.
const KINDS: [(&str, &str); 14] = [
    ("a.jpg", "jpeg/full"),
    ("b.jpg", "jpeg/progressive"),
    ("c.jpg", "jpeg/restarts"),
    ("d.png", "image/png-rgb"),
    ("e.png", "image/png-interlaced"),
    ("f.png", "image/png-palette"),
    ("g.webp", "image/webp-lossy"),
    ("h.webp", "image/webp-lossless"),
    ("i.bmp", "image/bmp-rgb"),
    ("j.bmp", "image/bmp-palette"),
    ("k.gif", "image/gif-still"),
    ("l.tif", "image/tiff-plain"),
    ("m.tif", "image/tiff-lzw"),
    ("n.tif", "image/tiff-deflate"),
];

#[test]
fn truncated_images_are_named_and_skipped() {
    let world = World::new();
    world.write("photos/good.png", seed("image/png-rgb"));
    for (name, file) in KINDS {
        let whole = seed(file);
        world.write(&format!("whole/{name}"), &whole);
        world.write(&format!("photos/{name}"), &whole[..whole.len() / 2]);
    }
    world.accepted("image-basic", "whole", &[]);
    world.skips("image-basic", "photos", &KINDS.map(|kind| kind.0));
    world.refused("image-basic", "photos", &["a.jpg", "truncated"]);
    for (name, words) in [("d.png", "truncated"), ("g.webp", "g.webp"), ("i.bmp", "truncated"), ("l.tif", "l.tif")] {
        world.refused("image-basic", &format!("photos/{name}"), &[name, words]);
    }
}

/// A copy with other bytes at a place.
fn edited(file: &str, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut copy = seed(file);
    copy[at..at + bytes.len()].copy_from_slice(bytes);
    copy
}

/// The place of some bytes in a file.
fn place(file: &str, bytes: &[u8]) -> usize {
    seed(file).windows(bytes.len()).position(|found| found == bytes).unwrap()
}

#[test]
fn headers_that_lie_are_refused_within_the_limit_on_memory() {
    let world = World::new();
    let most = [255; 4];
    let sides = [0, 0, 0xc3, 0x50, 0, 0, 0xc3, 0x50];
    let mut large = edited("image/png-rgb", 16, &sides);
    // The checksum of the header is wrong now, but comes after the size; a hundred kilobytes of data come behind.
    large.extend(vec![0; 100_000]);
    let frame = place("jpeg/full", &[0xff, 0xc0]) + 5;
    let progressive = place("jpeg/progressive", &[0xff, 0xc2]) + 5;
    let table = place("jpeg/full", &[0xff, 0xc4]) + 2;
    let lies = [
        ("png-sides.png", large),
        ("png-crc.png", edited("image/png-rgb", 29, &[0; 4])),
        ("png-chunk.png", edited("image/png-rgb", 33, &most)),
        ("png-palette.png", edited("image/png-palette", place("image/png-palette", b"PLTE") - 4, &[0, 0, 0, 0])),
        ("jpeg-sides.jpg", edited("jpeg/full", frame, &most)),
        ("jpeg-progressive.jpg", edited("jpeg/progressive", progressive, &most)),
        ("jpeg-none.jpg", edited("jpeg/full", frame, &[0; 4])),
        ("jpeg-table.jpg", edited("jpeg/full", table, &[255; 2])),
        ("jpeg-codes.jpg", edited("jpeg/full", table + 3, &[255; 16])),
        ("bmp-sides.bmp", edited("image/bmp-rgb", 18, &[255, 255, 255, 127, 255, 255, 255, 127])),
        ("bmp-negative.bmp", edited("image/bmp-rgb", 18, &[255, 255, 255, 255, 0, 0, 0, 128])),
        ("bmp-start.bmp", edited("image/bmp-rgb", 10, &most)),
        ("gif-sides.gif", edited("image/gif-still", 6, &most)),
        ("gif-frame.gif", edited("image/gif-still", place("image/gif-still", b",\0\0\0\0") + 5, &most)),
        ("tiff-directory.tif", edited("image/tiff-plain", 4, &most)),
        ("not.png", b"just words".to_vec()),
        ("empty.png", Vec::new()),
    ];
    world.write("photos/good.png", seed("image/png-rgb"));
    for (name, bytes) in &lies {
        world.write(&format!("photos/{name}"), bytes);
    }
    world.skips("image-basic", "photos", &lies.each_ref().map(|lie| lie.0));
    world.refused("image-basic", "photos/png-sides.png", &["damaged"]);
    world.refused("image-basic", "photos/jpeg-sides.jpg", &["65535 x 65535", "limit of 100 million"]);
    world.refused("image-basic", "photos/empty.png", &["the file is empty"]);
    world.refused("image-basic", "photos/not.png", &["not an image", "JPEG, PNG, WebP"]);
}

#[test]
fn a_progressive_image_of_hundreds_of_scans_is_refused() {
    let world = World::new();
    let file = seed("jpeg/progressive-grey");
    // The first scan again and again: from its header to the next marker.
    let scan = file.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap();
    let is_marker = |pair: &[u8]| pair[0] == 0xff && pair[1] != 0 && !(0xd0..=0xd7).contains(&pair[1]);
    let end = scan + 2 + file[scan + 2..].windows(2).position(is_marker).unwrap();
    let mut many = file[..scan].to_vec();
    (0..300).for_each(|_| many.extend(&file[scan..end]));
    many.extend(&file[scan..]);
    world.write("many.jpg", many);
    world.refused("image-basic", "many.jpg", &["many.jpg", "more than 200 scans"]);
}

#[test]
fn a_huge_image_in_a_small_file_is_refused_within_the_limit_on_memory() {
    let world = World::new();
    let huge = png_header(50_000, 50_000);
    assert!(huge.len() < 110_000);
    world.write("photos/red/good.png", seed("image/png-rgb"));
    world.write("photos/red/huge.png", huge);
    let words = ["huge.png", "50000 x 50000 pixels", "limit of 100 million"];
    world.refused("image-basic", "photos", &words);
    world.skips("image-basic", "photos", &["huge.png"]);
    let run = |arguments: &[&str]| world.call(&[arguments, &["--threads", "2"]].concat());
    assert!(world.call(&["init", "m.lrp", "--encoder", "image-basic", "--width", "50"]).status.success());
    let before = std::fs::read(world.at("m.lrp/MANIFEST")).unwrap();
    let output = run(&["learn", "m.lrp", "photos", "--no-cache"]);
    assert!(
        !output.status.success() && words.iter().all(|word| message(&output).contains(word)),
        "{}",
        message(&output)
    );
    assert_eq!(std::fs::read(world.at("m.lrp/MANIFEST")).unwrap(), before);
    assert!(run(&["learn", "m.lrp", "photos", "--no-cache", "--skip-bad"]).status.success());
    let output = run(&["predict", "m.lrp", "photos/red/huge.png", "--no-cache"]);
    assert!(words.iter().all(|word| message(&output).contains(word)), "{}", message(&output));
}
