#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use omniglot_fuzz::mutators::mutate_json;

fuzz_target!(|data: &[u8]| omniglot_fuzz::checks::json::check(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_json(data, size, max_size, seed)
});
