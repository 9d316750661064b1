//! A module in file form: the meta file up to the file's magic number, then the file.
#![no_main]

#[path = "../checks.rs"]
#[allow(dead_code, reason = "each target uses one check")]
mod checks;

const MAGIC: [u8; 4] = 0x0270_0027_u32.to_le_bytes();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let split = bytes.windows(4).position(|four| four == MAGIC).unwrap_or(bytes.len());
    let (meta, file) = bytes.split_at(split);
    checks::meta_file(file, meta);
});
