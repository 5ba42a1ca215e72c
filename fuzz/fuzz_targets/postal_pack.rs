//! Hands what libFuzzer makes up to the check of the same name; knows nothing of what is checked.
#![no_main]

#[path = "../files.rs"]
mod files;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| files::postal_pack(bytes));
