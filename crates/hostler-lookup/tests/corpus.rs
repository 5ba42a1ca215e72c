//! Runs the checks of the fuzz targets on the stored inputs, and on inputs with changed or missing bytes, so that a plain
//! test run covers both.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed, as it should")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use hostler_lookup::postal::pack;

#[path = "../../../fuzz/files.rs"]
mod files;

/// The number of changes for each input. They are the same in each run.
const CHANGES: u64 = 200;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn on_corpus(target: &str, check: impl Fn(&[u8])) {
    let folder = corpus(target);
    let mut inputs: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(inputs.len() >= 10, "{} has {} inputs", folder.display(), inputs.len());
    for path in inputs {
        however_changed(&std::fs::read(&path).unwrap(), &path, &check);
    }
}

fn however_changed(good: &[u8], path: &Path, check: impl Fn(&[u8])) {
    let holds = |bytes: &[u8]| catch_unwind(AssertUnwindSafe(|| check(bytes))).is_ok();
    assert!(holds(good), "{}", path.display());
    for seed in 0..CHANGES {
        assert!(holds(&changed(good, seed)), "{}, changed by {seed}", path.display());
    }
}

/// Changes a few bytes, most of which are lengths and pointers. Some inputs lose their end.
fn changed(good: &[u8], seed: u64) -> Vec<u8> {
    let (mut random, mut bytes) = (fastrand::Rng::with_seed(seed), good.to_vec());
    for _ in 0..random.usize(1..20) {
        let Some(byte) = random.choice(bytes.iter_mut()) else { break };
        *byte = *random.choice(&[0, 1, 0x7f, 0x80, 0xff, random.clone().u8(..)]).unwrap();
    }
    if random.u8(..8) == 0 {
        bytes.truncate(random.usize(..=good.len()));
    }
    bytes
}

#[test]
fn databases_of_places() {
    on_corpus("mmdb", files::mmdb);
}

#[test]
fn postal_codes() {
    on_corpus("postal_pack", files::postal_pack);
}

/// The section that is too large to be stored as an input: the codes of the US, each with its place.
#[test]
fn the_index_of_the_us() {
    let rows = corpus("postal_pack").join("text_us");
    let packed = pack(std::slice::from_ref(&rows)).unwrap();
    however_changed(packed.as_bytes(), &rows, files::postal_pack);
}
