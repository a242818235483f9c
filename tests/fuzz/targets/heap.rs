#![no_main]

#[allow(dead_code, reason = "each target uses its part")]
#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::heap(bytes));
