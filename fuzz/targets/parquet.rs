#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use loranpac_eval::samples::Format;

static QUIET: Once = Once::new();

fuzz_target!(|data: &[u8]| {
    // The parquet crate panics on some damaged pages; the reader catches that and answers with an error. libFuzzer's own hook
    // would stop at such a panic. One that is not caught still ends the run.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    loranpac_fuzz::check(Format::Parquet, data);
});
