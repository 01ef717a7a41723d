#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use omniglot_fuzz::graft::mutate_json;

fuzz_target!(|data: &[u8]| omniglot_fuzz::checks::json::check(data));

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    mutate_json(data, size, most, seed)
});
