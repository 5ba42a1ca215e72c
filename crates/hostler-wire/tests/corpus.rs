//! Runs the checks of the fuzz targets on the stored inputs, so that a plain test run covers both. Creates no inputs.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that panics has failed, as it should"
)]

use std::path::Path;

#[path = "../../../fuzz/checks.rs"]
mod checks;

fn on_corpus(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        // A failing check must name the input.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            check(&bytes);
            // Also with every beginning of the input, as a peer that closes early would leave it.
            (0..bytes.len().min(300)).for_each(|end| check(&bytes[..end]));
        }));
        assert!(outcome.is_ok(), "{}", path.display());
        inputs += 1;
    }
    assert!(inputs >= 10, "{} has {inputs} inputs", folder.display());
}

#[test]
fn request_heads() {
    on_corpus("request_head", checks::request_head);
}

#[test]
fn responses() {
    on_corpus("response", checks::response);
}

#[test]
fn chunked_bodies() {
    on_corpus("chunked", checks::chunked);
}

#[test]
fn websocket_frames() {
    on_corpus("frames", checks::frames);
}

#[test]
fn links() {
    on_corpus("link", checks::link);
}
