//! Archives with links, names that lead elsewhere, false sizes and checksums, and bombs.

use crate::archives::{gzip, tar, zip};
use crate::world::{World, seed};

/// Two images of two classes in a folder.
fn files(image: &[u8]) -> [(&'static str, &[u8]); 2] {
    [("cat/a.png", image), ("dog/b.png", image)]
}

/// A tar archive with a header of this kind in front of other files.
fn with_entry(name: &str, target: &str, kind: tar::EntryType) -> Vec<u8> {
    let image = seed("image/png-rgb");
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(0);
    archive.append_link(&mut header, name, target).unwrap();
    let mut bytes = archive.into_inner().unwrap();
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(tar(&files(&image)));
    bytes
}

/// Replaces a name by another of the same length, and corrects the checksum of the header before it.
fn renamed(mut archive: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    while let Some(at) = archive.windows(from.len()).position(|found| found == from.as_bytes()) {
        archive[at..at + to.len()].copy_from_slice(to.as_bytes());
        if at % 512 == 0 && archive.len() > at + 512 && &archive[at + 257..at + 262] == b"ustar" {
            archive[at + 148..at + 156].fill(b' ');
            let sum: u32 = archive[at..at + 512].iter().map(|byte| u32::from(*byte)).sum();
            archive[at + 148..at + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    archive
}

#[test]
fn archives_with_links_escapes_and_duplicates_are_refused() {
    let world = World::new();
    let image = seed("image/png-rgb");
    let (plain_tar, plain_zip) = (tar(&files(&image)), zip(&files(&image)));
    world.write("good.tar", &plain_tar);
    world.write("good.tar.gz", gzip(&plain_tar));
    world.write("good.zip", &plain_zip);
    for name in ["good.tar", "good.tar.gz", "good.zip"] {
        world.accepted("image-basic", name, &[]);
    }
    for (name, from, to, words) in [
        ("escape", "dog/b.png", "../b2.png", "leads out of the archive"),
        ("twice", "dog/b.png", "cat/a.png", "two files of"),
    ] {
        let packed = renamed(plain_tar.clone(), from, to);
        for (extension, bytes) in
            [("tar.gz", gzip(&packed)), ("tar", packed), ("zip", renamed(plain_zip.clone(), from, to))]
        {
            let file = format!("{name}.{extension}");
            world.write(&file, bytes);
            world.refused("image-basic", &file, &[&file, words]);
        }
    }
    // An absolute path is read like a relative one: nothing is written to disk.
    world.write("absolute.tar", renamed(renamed(plain_tar, "dog/b.png", "/dog/.png"), "cat/a.png", "/cat/.png"));
    world.write("absolute.zip", zip(&[("/cat/a.png", &image), ("/dog/b.png", &image)]));
    world.accepted("image-basic", "absolute.zip", &[]);
    world.refused("image-basic", "absolute.tar", &["no images"]);
    for (name, kind) in [("soft.tar", tar::EntryType::Symlink), ("hard.tar", tar::EntryType::Link)] {
        world.write(name, with_entry("cat/c.png", "/etc/passwd", kind));
        world.refused("image-basic", name, &[name, "cat/c.png is a link"]);
    }
}

#[test]
fn false_checksums_and_sizes_are_errors() {
    let world = World::new();
    let image = seed("image/png-rgb");
    let plain = tar(&files(&image));
    let mut wrong = gzip(&plain);
    let end = wrong.len();
    wrong[end - 6] ^= 1;
    world.write("checksum.tar.gz", &wrong);
    world.refused("image-basic", "checksum.tar.gz", &["checksum.tar.gz", "checksum"]);
    let mut length = gzip(&plain);
    length[end - 1] ^= 1;
    world.write("length.tar.gz", length);
    world.refused("image-basic", "length.tar.gz", &["length.tar.gz"]);
    world.write("short.tar.gz", &wrong[..end - 8]);
    world.refused("image-basic", "short.tar.gz", &["short.tar.gz"]);
    world.write("short.tar", &plain[..700]);
    world.refused("image-basic", "short.tar", &["short.tar", "truncated"]);
    // The size of the first file, in octal, with the checksum of its header.
    let mut large = plain.clone();
    large[124..136].copy_from_slice(b"77777777777\0");
    let large = renamed(large, "cat/a.png", "cat/c.png");
    world.write("size.tar", &large);
    world.refused("image-basic", "size.tar", &["size.tar", "truncated in cat/c.png"]);
    world.write("size.tar.gz", gzip(&large));
    world.refused("image-basic", "size.tar.gz", &["size.tar.gz", "truncated"]);
    let mut zipped = zip(&files(&image));
    let data = zipped.windows(9).position(|found| found == b"cat/a.png").unwrap() + 9;
    zipped[data + 20] ^= 255;
    world.write("data.zip", &zipped);
    world.refused("image-basic", "data.zip", &["cat/a.png"]);
    world.skips("image-basic", "data.zip", &["cat/a.png"]);
    world.write("short.zip", &zipped[..zipped.len() / 2]);
    world.refused("image-basic", "short.zip", &["short.zip"]);
}

#[test]
fn bombs_stop_at_the_limit_of_a_file() {
    let world = World::new();
    let zeros = vec![0; 300 << 20];
    let image = seed("image/png-rgb");
    let bomb = [("cat/a.png", &zeros[..]), ("dog/b.png", &image)];
    world.write("bomb.zip", zip(&bomb));
    world.refused("image-basic", "bomb.zip", &["cat/a.png", "limit of 256 MiB"]);
    world.skips("image-basic", "bomb.zip", &["cat/a.png"]);
    world.write("bomb.tar.gz", gzip(&tar(&bomb)));
    world.skips("image-basic", "bomb.tar.gz", &["cat/a.png"]);
}

#[test]
fn files_of_a_zip_archive_that_share_their_data_are_refused() {
    let world = World::new();
    // Incompressible, so that the data of two files is more than the archive has.
    let data: Vec<u8> = (0..3000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut archive = zip(&[("cat/a.png", &data), ("dog/b.png", b"x")]);
    // The entry of the second file in the directory gets the place, sizes and checksum of the first.
    let entries: Vec<usize> =
        archive.windows(4).enumerate().filter(|(_, found)| *found == b"PK\x01\x02").map(|(at, _)| at).collect();
    let [first, second] = entries[..] else { panic!("{entries:?}") };
    for range in [10..12, 16..28, 42..46] {
        let bytes = archive[first + range.start..first + range.end].to_vec();
        archive[second + range.start..second + range.end].copy_from_slice(&bytes);
    }
    world.write("shared.zip", archive);
    world.refused("image-basic", "shared.zip", &["shared.zip", "overlap"]);
}
