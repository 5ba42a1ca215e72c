//! One Hostler of a site, for the tests of the tier: its memory, and its part of the shared tier.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hostler_cache::{Cache, Entry, FetchMark, Freshness, Moment, Packing, Tier, TierSettings, Vary};
use hostler_testkit::eventually;

/// A server that is slower than this counts as away. The tests run on busy machines, and none of them asserts speed.
pub const TIME_LIMIT: Duration = Duration::from_secs(5);

/// One Hostler of a site.
pub struct Hostler {
    pub cache: Arc<Cache<String>>,
    pub tier: Tier<String>,
    pub told: Arc<Mutex<Vec<String>>>,
}

pub fn packing() -> Packing<String> {
    Packing {
        write: |head, into| into.extend_from_slice(head.as_bytes()),
        read: |bytes| String::from_utf8(bytes.to_vec()).ok(),
        bytes: String::len,
    }
}

pub fn hostler_with(servers: &[String], timeout: Duration) -> Hostler {
    let cache = Arc::new(Cache::new(10 << 20, 1 << 20));
    let settings = TierSettings {
        servers: servers.iter().map(|server| server.as_str().into()).collect(),
        namespace: "test".into(),
        timeout,
        max_item: 1_000_000,
    };
    let told = Arc::<Mutex<Vec<String>>>::default();
    let listener = told.clone();
    let tell = move |notice: hostler_cache::Notice<'_>| {
        let text = format!("{}: {}", notice.server, notice.lost.unwrap_or("here"));
        listener.lock().unwrap().push(text);
    };
    let tier = Tier::start(settings, packing(), cache.clone(), tell);
    Hostler { cache, tier, told }
}

pub fn hostler(servers: &[String]) -> Hostler {
    hostler_with(servers, TIME_LIMIT)
}

/// Two Hostlers of one site, which have found all these servers.
pub async fn two_hostlers(servers: &[String]) -> (Hostler, Hostler) {
    let both = (hostler(servers), hostler(servers));
    both.0.finds(servers.len()).await;
    both.1.finds(servers.len()).await;
    both
}

pub fn entry(body: &str, tags: &[&str]) -> Arc<Entry<String>> {
    let now = Moment::now();
    let freshness =
        Freshness { received: now, lifetime: 600, shared: true, validates: true, ..Freshness::default() };
    Arc::new(Entry {
        head: Arc::new("HTTP/1.1 200 OK".into()),
        head_bytes: 15,
        body: Bytes::copy_from_slice(body.as_bytes()),
        freshness,
        vary: Vary::default(),
        asked: FetchMark::now(None),
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
        forms: Box::default(),
    })
}

impl Hostler {
    /// Waits until this many servers can be used.
    pub async fn finds(&self, count: usize) {
        let look = async || {
            let here = self.tier.status().iter().filter(|server| server.state == "here").count();
            (here == count).then_some(())
        };
        eventually(format!("{count} servers to be here"), look).await;
    }

    /// Stores an entry as if it had been fetched just now. Returns false if a purge came in the same millisecond or
    /// later.
    pub fn stores(&self, key: &str, entry: Arc<Entry<String>>) -> bool {
        self.stores_what_was_asked(key, entry, self.tier.mark_fetch(key.as_bytes()))
    }

    pub fn stores_what_was_asked(&self, key: &str, entry: Arc<Entry<String>>, asked: FetchMark) -> bool {
        let entry = Arc::new(Entry { asked, ..Arc::into_inner(entry).unwrap() });
        let is_kept = self.cache.keep(key.as_bytes(), entry);
        if is_kept {
            self.tier.put(key.as_bytes(), self.cache.look(key.as_bytes()).unwrap());
        }
        is_kept
    }

    /// Waits until this entry is gone.
    pub async fn forgets(&self, key: &str) {
        let look = async || self.body(key).is_none().then_some(());
        eventually(format!("{key} to be forgotten"), look).await;
    }

    pub fn body(&self, key: &str) -> Option<Bytes> {
        let variants = self.cache.look(key.as_bytes())?;
        variants.find(|_| true).ok().map(|entry| entry.body.clone())
    }

    pub fn count(&self, name: &str) -> u64 {
        self.tier.status().iter().map(|server| server.counts[name].as_u64().unwrap()).sum()
    }

    /// Waits until another Hostler's entry can be read from the tier.
    pub async fn gets(&self, key: &str) -> Bytes {
        let look = async || {
            self.tier.fetch(key.as_bytes()).await;
            self.body(key)
        };
        eventually(format!("{key} from the tier"), look).await
    }
}

/// The page on the server.
pub async fn log(server: &str) -> String {
    use async_memcached::{AsciiProtocol, Client};
    let mut client = Client::new(format!("tcp://{server}")).await.unwrap();
    String::from_utf8(client.get("test:5:log").await.unwrap().unwrap().data.unwrap()).unwrap()
}
