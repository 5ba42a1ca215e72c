//! Measures that a store uses about as much memory as it reports: the memory of this process before and after it is filled.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::sync::Arc;

use hostler_cache::{Cache, FetchMark, Freshness, Kept, Moment, Vary};
use hostler_engine::cache::{self, Entry};
use hostler_wire::{Limits, ResponseHead};

const HEAD: &str = "HTTP/1.1 200 OK\r
Content-Type: text/html; charset=utf-8\r
Cache-Control: public, max-age=600\r
ETag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"\r
Last-Modified: Sun, 22 Nov 2026 12:00:00 GMT\r
Vary: Accept-Encoding\r
X-Request-Id: 0190163d-8694-739b-aea5-966c26f8ad91\r
Date: Sun, 22 Nov 2026 12:31:00 GMT\r\n\r\n";

/// The bytes for each body size. Twice as much is stored, so that the second half evicts the first.
const BOUND: u64 = 32 << 20;

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Like an entry that is made of a member's answer.
fn entry(store: &Cache<ResponseHead>, size: usize) -> Arc<Entry> {
    let mut came = ResponseHead::default();
    came.parse(HEAD.as_bytes(), &Limits::default()).unwrap();
    let head = cache::stored(&came, &Kept::default(), Moment(1));
    let body = store.share(size as u64).unwrap().own(vec![b'x'; size].into_boxed_slice());
    Arc::new(Entry {
        head_bytes: cache::size(&head),
        head: Arc::new(head),
        body,
        freshness: Freshness { received: Moment(1), lifetime: 600, shared: true, ..Freshness::default() },
        vary: Vary::default(),
        asked: FetchMark::now(None),
        tags: Box::default(),
        forms: Box::default(),
    })
}

#[test]
fn a_stored_entry_uses_the_memory_it_is_charged_for() {
    let mut stores = Vec::new();
    for size in [200, 2_000, 20_000] {
        let before = resident();
        let store = Cache::new(BOUND, 1 << 20);
        for at in 0..2 * BOUND as usize / (size + 1000) {
            store.keep(format!("www.example.com/products/{at}?page=1").as_bytes(), entry(&store, size));
        }
        let counts = store.counts();
        let grown = resident() - before;
        let one = |bytes: u64| bytes / counts.keys;
        println!(
            "{size} bytes: {} keys, {} counted for each and {} taken",
            counts.keys,
            one(counts.bytes),
            one(grown)
        );
        assert!(counts.bytes <= BOUND && counts.bytes > BOUND / 10 * 9, "it is full: {counts:?}");
        let share = grown as f64 / counts.bytes as f64;
        // The rest is fragmentation of the heap: a few per cent, depending on the platform.
        assert!((0.85..1.1).contains(&share), "{size} bytes: {share} of what is counted");
        // Freed memory would be used again by the next one.
        stores.push(store);
    }
}
