//! Hands what libFuzzer makes up to the check of the same name; knows nothing of what is checked.
#![no_main]

#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::link(bytes));
