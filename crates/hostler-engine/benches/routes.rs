//! What a look into a table of ten thousand routes takes, alone and while another thread replaces it again and again.
//!
//! cargo bench -p hostler --bench routes

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use hdrhistogram::Histogram;
use hostler_config::{HostPattern, PathPattern};
use hostler_engine::route::Table;
use tokio::time::Instant;

const ROUTES: usize = 10_000;
const LOOKUPS: usize = 2_000_000;

fn host(route: usize) -> String {
    format!("app-{route}.apps.example.test")
}

fn table() -> Table<Arc<usize>> {
    let mut table = Table::default();
    for route in 0..ROUTES {
        // Every tenth host has paths as well.
        let paths = if route % 10 == 0 { ["", "/api", "/api/v1"].as_slice() } else { [""].as_slice() };
        let paths = paths.iter().map(|path| (PathPattern::Prefix((*path).into()), Arc::new(route)));
        table.set(Some(&HostPattern::Exact(host(route))), paths);
    }
    table
}

/// What a look takes, one by one; that of the clock is in it.
fn look(current: &ArcSwap<Table<Arc<usize>>>, lookups: usize) -> Histogram<u64> {
    let mut times = Histogram::new(3).expect("invariant: 3 digits are valid");
    let hosts: Vec<String> = (0..ROUTES).map(host).collect();
    for _ in 0..lookups {
        let host = hosts[fastrand::usize(..ROUTES)].as_bytes();
        let began = Instant::now();
        let found = current.load().find(host, b"/api/v1/carts/1234/items").cloned();
        let took = began.elapsed();
        assert!(found.is_some());
        times.saturating_record(took.as_nanos() as u64);
    }
    times
}

fn show(what: &str, times: &Histogram<u64>) {
    let at = |quantile| times.value_at_quantile(quantile);
    let (middle, high, higher, most) = (at(0.5), at(0.99), at(0.9999), times.max());
    println!("{what}: p50 {middle} ns, p99 {high} ns, p99.99 {higher} ns, most {:.3} ms", most as f64 / 1e6);
}

fn main() {
    let current = ArcSwap::from_pointee(table());
    look(&current, LOOKUPS / 10);
    show("lookup, the table at rest", &look(&current, LOOKUPS));

    let done = AtomicBool::new(false);
    let (times, swaps) = std::thread::scope(|scope| {
        let replacing = scope.spawn(|| {
            let mut swaps = Histogram::<u64>::new(3).expect("invariant: 3 digits are valid");
            while !done.load(Ordering::Relaxed) {
                let began = Instant::now();
                let mut next = (**current.load()).clone();
                let host = HostPattern::Exact(host(fastrand::usize(..ROUTES)));
                next.set(Some(&host), [(PathPattern::Prefix(String::new()), Arc::new(0))]);
                let old = current.swap(Arc::new(next));
                while Arc::strong_count(&old) > 1 {
                    std::thread::yield_now();
                }
                drop(old);
                swaps.saturating_record(began.elapsed().as_nanos() as u64);
                std::thread::park_timeout(Duration::from_millis(10));
            }
            swaps
        });
        let times = look(&current, LOOKUPS);
        done.store(true, Ordering::Relaxed);
        (times, replacing.join().expect("invariant: it does not panic"))
    });
    show("lookup, the table replaced every 10 ms", &times);
    show("a replacement, the old table freed", &swaps);
}
