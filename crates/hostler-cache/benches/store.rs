//! Compares stores: which eviction finds more of the requested keys, and how long a lookup takes. Our store, moka and
//! foyer on the same bytes.
//!
//! cargo bench -p hostler-cache --bench store

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use foyer_memory::{CacheBuilder, EvictionConfig, LfuConfig, S3FifoConfig, SieveConfig};
use hostler_cache::{Cache, Entry, FetchMark, Freshness, Moment, Vary};
use moka::policy::EvictionPolicy;

/// How many keys exist, and how many of them fit into a store on average.
const KEYS: usize = 1_000_000;
const FITTING: usize = 100_000;
const REQUESTS: usize = 1_500_000;
/// After this many requests comes a crawler. It requests many pages that no other client wants.
const SCAN_EVERY: usize = 150_000;
const SCAN: usize = 50_000;

type Key = [u8; 32];
type Owned = Box<[u8]>;

/// What each compared store can do.
trait Store: Sync {
    fn has(&self, key: &Key) -> bool;
    fn put(&self, key: &Key, size: usize);
}

impl Store for moka::sync::Cache<Box<[u8]>, Arc<usize>, foldhash::quality::RandomState> {
    fn has(&self, key: &Key) -> bool {
        self.get(key.as_slice()).is_some()
    }
    fn put(&self, key: &Key, size: usize) {
        self.insert(key.as_slice().into(), Arc::new(size));
    }
}

impl Store for foyer_memory::Cache<Key, Arc<usize>> {
    fn has(&self, key: &Key) -> bool {
        self.get(key).is_some()
    }
    fn put(&self, key: &Key, size: usize) {
        self.insert(*key, Arc::new(size));
    }
}

impl Store for Cache<()> {
    fn has(&self, key: &Key) -> bool {
        self.look(key).is_some()
    }
    fn put(&self, key: &Key, size: usize) {
        static BODY: [u8; 64 << 10] = [0; 64 << 10];
        let freshness = Freshness {
            received: Moment(1),
            lifetime: 60,
            shared: true,
            validates: true,
            ..Freshness::default()
        };
        let entry = Entry {
            head: Arc::new(()),
            head_bytes: 0,
            body: Bytes::from_static(&BODY[..size]),
            freshness,
            vary: Vary::default(),
            asked: FetchMark::now(None),
            tags: Box::default(),
            forms: Box::default(),
        };
        self.keep(key, Arc::new(entry));
    }
}

/// The requested keys with the distribution of real traffic: few keys often, most hardly ever.
fn zipf(skew: f64) -> Vec<u32> {
    let mut sum = 0.0;
    let cumulated: Vec<f64> = (1..=KEYS)
        .map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(7);
    let mut next = || {
        let at = random.f64() * sum;
        cumulated.partition_point(|value| *value < at) as u32
    };
    (0..REQUESTS).map(|_| next()).collect()
}

fn key(rank: usize) -> Key {
    let mut key = *b"www.example.org/products/0000000";
    let mut rest = rank;
    for digit in key[25..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// From 300 bytes to 40 kB. One in ten is large.
fn size(rank: usize) -> usize {
    let random = fastrand::Rng::with_seed(rank as u64).f64();
    300 + (random.powi(4) * 40_000.0) as usize
}

fn hit_ratio(store: &dyn Store, asked: &[u32], scans: bool) -> f64 {
    let (mut hits, mut counted, mut scanned) = (0_u32, 0_u32, KEYS);
    for (request, rank) in asked.iter().enumerate() {
        if scans && request % SCAN_EVERY == 0 {
            for rank in scanned..scanned + SCAN {
                store.put(&key(rank), size(rank));
            }
            scanned += SCAN;
        }
        let (key, rank) = (key(*rank as usize), *rank as usize);
        let found = store.has(&key);
        if !found {
            store.put(&key, size(rank));
        }
        if request > REQUESTS / 3 {
            counted += 1;
            hits += u32::from(found);
        }
    }
    f64::from(hits) / f64::from(counted)
}

/// Nanoseconds of CPU for a lookup that finds an entry, on this many threads at once.
fn look(store: &dyn Store, threads: usize) -> f64 {
    const WARM: usize = 10_000;
    const LOOKS: usize = 500_000;
    let keys: Vec<Key> = (0..WARM).map(key).filter(|key| store.has(key)).collect();
    let taken: Vec<u64> = std::thread::scope(|scope| {
        let looking = |thread: usize| {
            let keys = &keys;
            move || {
                let mut random = fastrand::Rng::with_seed(thread as u64);
                let before = cpu_time();
                for _ in 0..LOOKS {
                    black_box(store.has(&keys[random.usize(..keys.len())]));
                }
                cpu_time() - before
            }
        };
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(looking(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("invariant: nothing in it panics")).collect()
    });
    taken.iter().sum::<u64>() as f64 / (LOOKS * threads) as f64
}

/// Nanoseconds that this thread has run. Unlike the wall clock, this excludes other programs on the machine.
fn cpu_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or_default()
}

fn contenders(bytes: usize) -> Vec<(&'static str, Box<dyn Store>)> {
    let moka = |policy| {
        let cache = moka::sync::Cache::builder()
            .max_capacity(bytes as u64)
            .eviction_policy(policy)
            .weigher(|key: &Owned, size: &Arc<usize>| (key.len() + **size + 512) as u32)
            .build_with_hasher(foldhash::quality::RandomState::default());
        Box::new(cache) as Box<dyn Store>
    };
    let foyer = |eviction: EvictionConfig| {
        let cache: foyer_memory::Cache<Key, Arc<usize>> = CacheBuilder::new(bytes)
            .with_shards(16)
            .with_eviction_config(eviction)
            .with_weighter(|key: &Key, size: &Arc<usize>| key.len() + **size + 512)
            .build();
        Box::new(cache) as Box<dyn Store>
    };
    vec![
        ("ours", Box::new(Cache::<()>::new(bytes as u64, 1 << 20))),
        ("moka TinyLFU", moka(EvictionPolicy::tiny_lfu())),
        ("moka LRU", moka(EvictionPolicy::lru())),
        ("foyer w-TinyLFU", foyer(LfuConfig::default().into())),
        ("foyer S3-FIFO", foyer(S3FifoConfig::default().into())),
        ("foyer SIEVE", foyer(SieveConfig.into())),
    ]
}

fn main() {
    let average = (0..10_000).map(size).sum::<usize>() / 10_000 + 512 + size_of::<Key>();
    let bytes = FITTING * average;
    println!("{KEYS} keys, {average} bytes each, room for {FITTING}");
    println!(
        "{:<16} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}",
        "", "zipf 0.8", "+ scans", "zipf 1.0", "+ scans", "1 thr", "2 thr"
    );
    let (flat, steep) = (zipf(0.8), zipf(1.0));
    for at in 0..contenders(bytes).len() {
        let fresh = || contenders(bytes).swap_remove(at);
        let (name, store) = fresh();
        let ratios = [
            hit_ratio(&*fresh().1, &flat, false),
            hit_ratio(&*fresh().1, &flat, true),
            hit_ratio(&*fresh().1, &steep, false),
            hit_ratio(&*store, &steep, true),
        ];
        print!("{name:<16}");
        ratios.iter().for_each(|ratio| print!(" {:>8.2}%", ratio * 100.0));
        println!(" {:>4.0} ns {:>4.0} ns", look(&*store, 1), look(&*store, 2));
    }
}
