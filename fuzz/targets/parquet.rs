#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use loranpac_data::fence::is_fenced;

fuzz_target!(|data: &[u8]| {
    // A panic of the decoder becomes an error of the reader; libFuzzer's hook would abort before that.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !is_fenced() {
                usual(panic);
            }
        }));
    });
    loranpac_fuzz::check("parquet", data);
});
