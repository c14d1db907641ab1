//! Raw images and texts.

use std::fs;
use std::path::{Path, PathBuf};

/// Texts of three classes that share words, as CSV.
pub fn texts(folder: &Path, rows: usize) -> String {
    let words = [["refund", "money", "charge"], ["parcel", "late", "courier"], ["password", "login", "locked"]];
    let mut table = "text,label,split\n".to_owned();
    for row in 0..rows {
        let (class, split) = (row % 3, if row % 5 == 4 { "test" } else { "train" });
        let [a, b, c] = words[class];
        table += &format!(
            "\"{a} {}, {b} and {c} {}\",{},{split}\n",
            row / 3,
            row * 7919 % 1000,
            ["pay", "post", "account"][class]
        );
    }
    let path = folder.join("tickets.csv");
    fs::write(&path, table).unwrap();
    path.display().to_string()
}

/// A bitmap of one colour with a brighter stripe.
pub fn bitmap(path: &Path, colour: [u8; 3], stripe: usize) {
    let side = 24usize;
    let mut bytes = b"BM".to_vec();
    for number in [54 + 3 * side * side, 0, 54, 40, side, side] {
        bytes.extend((number as u32).to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    for at in 0..side * side {
        bytes.extend(if at % side == stripe { [255; 3] } else { colour });
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Images of two classes: four training and two test samples of each.
pub fn images(folder: &Path) -> PathBuf {
    let root = folder.join("photos");
    for (class, colour) in [("red", [0, 0, 200]), ("green", [0, 200, 0])] {
        for number in 0..6 {
            let split = if number < 4 { "train" } else { "test" };
            bitmap(&root.join(split).join(class).join(format!("{number}.bmp")), colour, number * 3);
        }
    }
    root
}
