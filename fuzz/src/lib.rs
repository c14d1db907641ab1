//! What every target does: read the bytes, and hold the reader to its promises.

#[path = "../../crates/loranpac-encode/tests/made/mod.rs"]
mod made;
#[path = "../../crates/loranpac-data/tests/files/promises.rs"]
mod promises;
#[path = "../../crates/loranpac-encode/tests/promises/mod.rs"]
mod encoders;

use std::path::PathBuf;
use std::sync::Once;

use loranpac_data::fence::is_fenced;
pub use promises::check;

/// A file with these bytes, for readers that want one.
pub fn file(target: &str, data: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("loranpac-fuzz-{target}-{}", std::process::id()));
    std::fs::write(&path, data).unwrap();
    path
}

/// Reads the bytes with the reader of `loranpac-encode` of this name.
pub fn check_encoder(target: &str, data: &[u8]) {
    hide_fenced_panics();
    let folder = std::env::temp_dir().join(format!("loranpac-fuzz-{target}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    encoders::check(&promises::MEMORY, &folder, target, data);
}

/// A panic of a decoder becomes an error of the reader; libFuzzer's hook would abort before that.
pub fn hide_fenced_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !is_fenced() {
                usual(panic);
            }
        }));
    });
}
