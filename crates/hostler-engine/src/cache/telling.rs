//! Tells the other process of an upgrade which stored responses unsafe methods have invalidated (RFC 9111 section 4.4). That process has a
//! cache of its own, from which it still answers its last clients. Knows no processes.

use std::sync::Arc;

use hostler_cache::Purge;

use super::SharedCache;
use super::untold::Untold;

/// Collects invalidated keys for one other process, until it is dropped.
pub struct Telling {
    shared_cache: Arc<SharedCache>,
    untold: Arc<Untold>,
}

impl Telling {
    /// Begins to collect.
    pub fn begin(shared_cache: &Arc<SharedCache>) -> Self {
        let untold = Arc::<Untold>::default();
        shared_cache.untold.rcu(|all| all.iter().chain([&untold]).cloned().collect::<Vec<_>>());
        Self { shared_cache: shared_cache.clone(), untold }
    }

    /// Waits until there are purges to tell, and takes all of them.
    pub async fn next(&self) -> Vec<Purge> {
        self.untold.next().await
    }

    /// Applies purges that the other process has told, and passes them on to any third process.
    pub async fn heard(&self, purges: Vec<Purge>) {
        for other in self.shared_cache.untold.load().iter() {
            if !Arc::ptr_eq(other, &self.untold) {
                other.add(purges.iter().cloned());
            }
        }
        self.shared_cache.purge_memory(purges).await;
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let is_other = |other: &&Arc<Untold>| !Arc::ptr_eq(other, &self.untold);
        self.shared_cache.untold.rcu(|all| all.iter().filter(is_other).cloned().collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use super::super::untold::MOST_BYTES;
    use super::*;
    use crate::journal::{Journal, LogFormat};

    fn cache() -> Arc<SharedCache> {
        let journal =
            Journal::new(LogFormat::Json, false, std::fs::File::create("/dev/null").unwrap()).unwrap();
        Arc::new(SharedCache::new(1 << 20, 1 << 16, journal))
    }

    fn url(key: &str) -> Purge {
        Purge::Url(key.into())
    }

    #[tokio::test]
    async fn each_other_process_gets_all_that_became_void_since_it_was_told_last() {
        let cache = cache();
        cache.forget(b"a.test/before");
        let (older, newer) = (Telling::begin(&cache), Telling::begin(&cache));
        cache.forget(b"a.test/2");
        cache.forget_in_memory(b"a.test/1");
        cache.forget(b"a.test/2");
        assert_eq!(older.next().await, [url("a.test/1"), url("a.test/2")]);
        cache.forget(b"b.test/\xff?x=1");
        assert_eq!(older.next().await, [Purge::Prefix("b.test/".into())]);
        drop(older);
        assert_eq!(cache.untold.load().len(), 1, "nothing is kept for a process that has ended");
        let told = newer.next().await;
        assert_eq!(told, [url("a.test/1"), url("a.test/2"), Purge::Prefix("b.test/".into())]);
    }

    #[tokio::test]
    async fn what_one_process_tells_goes_to_the_third_one_and_not_back() {
        let cache = cache();
        let (older, newer) = (Telling::begin(&cache), Telling::begin(&cache));
        newer.heard(vec![url("a.test/told")]).await;
        cache.forget(b"a.test/own");
        assert_eq!(older.next().await, [url("a.test/own"), url("a.test/told")]);
        assert_eq!(newer.next().await, [url("a.test/own")]);
    }

    #[tokio::test]
    async fn a_process_that_reads_nothing_costs_little_and_loses_everything() {
        let cache = cache();
        let other = Telling::begin(&cache);
        for number in 0..MOST_BYTES {
            cache.forget(format!("a.test/{number}").as_bytes());
        }
        assert_eq!(other.next().await, [Purge::All]);
        cache.forget(b"a.test/later");
        assert_eq!(other.next().await, [url("a.test/later")]);
    }
}
