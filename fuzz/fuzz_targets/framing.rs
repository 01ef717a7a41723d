#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| omniglot_fuzz::checks::framing::check(data));
