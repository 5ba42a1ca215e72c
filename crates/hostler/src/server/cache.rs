//! The cache as the server runs it: made, connected to memcached, purged. Knows no requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_cache::{Purge, Purged, Query, TierSettings, keys_of_url};
use hostler_config::Config;
use hostler_engine::cache::SharedCache;
use hostler_engine::journal::{Journal, Level, SeldomLine};
use tokio::time::Instant;

use crate::admin::{CommandDone, CommandError, Purging};

/// How long a stop waits for memcached to take purges.
const DELIVERY: Duration = Duration::from_secs(2);
/// Of a server that comes and goes, the log says at most this often that it is lost. An advice names a server that stays away.
const LOG_PAUSE: Duration = Duration::from_secs(600);
/// A server that has answered for this long does not count as one that comes and goes: the log names its loss at once.
const STEADY: Duration = Duration::from_secs(60);

pub(super) fn open(config: &Config, journal: &Journal) -> Arc<SharedCache> {
    let shared_cache =
        Arc::new(SharedCache::new(config.cache.memory, config.cache.max_entry, journal.clone()));
    share(&shared_cache, config.cache.tier.as_ref(), journal);
    shared_cache
}

/// Which news of the memcached servers the log has. A server that is too slow is lost and found again every ten seconds.
#[derive(Default)]
struct ServerNews(Mutex<BTreeMap<String, ToldServer>>);

#[derive(Default)]
struct ToldServer {
    /// Limits how often the log says that the server is lost.
    lost: SeldomLine,
    /// When it was found again last, whether the log says so or not.
    came: Option<Instant>,
    /// Whether its last line says that it is lost. None: it has no line.
    is_lost: Option<bool>,
}

impl ServerNews {
    /// Whether to log now that a server is lost (`is_lost`), or that it answers again.
    fn is_told(&self, server: &str, is_lost: bool) -> bool {
        let (mut servers, now) = (self.0.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        let told = servers.entry(server.to_owned()).or_default();
        if !is_lost {
            told.came = Some(now);
            return told.is_lost.replace(false) != Some(false);
        }
        if told.came.is_some_and(|came| now.saturating_duration_since(came) >= STEADY) {
            told.lost = SeldomLine::default();
        }
        let is_due = told.lost.is_due(LOG_PAUSE, now);
        if is_due {
            told.is_lost = Some(true);
        }
        is_due
    }
}

/// Changes the memcached servers, and logs when a server fails or recovers.
pub(super) fn share(shared_cache: &Arc<SharedCache>, settings: Option<&TierSettings>, journal: &Journal) {
    let (journal, news) = (journal.clone(), ServerNews::default());
    shared_cache.share(settings, move |notice| match notice.lost {
        lost if !news.is_told(notice.server, lost.is_some()) => {}
        None => journal.event(Level::Info, &format!("memcached {}: it answers", notice.server)),
        Some(why) => {
            let text =
                format!("memcached {}: {why}; Hostler does not use it until it answers again", notice.server);
            journal.event(Level::Warn, &text);
        }
    });
}

pub(super) async fn purge(config: &Config, shared_cache: &SharedCache, meant: Vec<Purge>) -> CommandDone {
    let Purged { entries, told, servers } = shared_cache.purge(meant).await;
    let has_cache = config.routes.iter().any(|route| route.caching.is_some());
    if entries == 0 && servers == 0 && !has_cache {
        return vec!["no route has a cache".into()];
    }
    let mut done =
        vec![format!("{entries} stored {} purged", if entries == 1 { "response" } else { "responses" })];
    if servers > 0 {
        // Other Hostlers read the purge there.
        let then = match told < servers {
            true => "the others get the purge when they answer again, and other Hostlers half a second later",
            false => "other Hostlers follow within half a second",
        };
        done.push(format!("{told} of {servers} memcached servers have the purge; {then}"));
    }
    done
}

/// Before the end: memcached gets the purges that it has not got yet, if it answers. Otherwise they are lost with this process.
pub(super) async fn deliver(shared_cache: &SharedCache, at_once: bool, journal: &Journal) {
    let lost = shared_cache.deliver(if at_once { Duration::ZERO } else { DELIVERY }).await;
    let keys = lost.iter().filter(|purge| matches!(purge, Purge::Url(_))).count();
    let wide = lost.len() - keys;
    if !lost.is_empty() {
        let text = format!(
            "purges are lost, because memcached did not take them before Hostler ended: {keys} of one key each and {wide} of a tag, \
             a prefix or everything; other Hostlers may still serve these responses: repeat the purges there"
        );
        journal.event(Level::Warn, &text);
    }
}

/// What a command means. A URL has several keys, because routes may read its query in different ways.
pub(super) fn resolve(config: &Config, purging: Purging) -> Result<Vec<Purge>, CommandError> {
    let mut queries = vec![Query::AsSent];
    for query in config.routes.iter().filter_map(|route| Some(&route.caching.as_ref()?.query)) {
        if !queries.contains(query) {
            queries.push(query.clone());
        }
    }
    let mut meant = Vec::new();
    for url in &purging.urls {
        for query in &queries {
            for key in keys(query, url)? {
                if !meant.contains(&Purge::Url(key.clone())) {
                    meant.push(Purge::Url(key));
                }
            }
        }
    }
    for prefix in &purging.prefixes {
        meant.extend(keys(&Query::AsSent, prefix)?.into_iter().map(Purge::Prefix));
    }
    meant.extend(purging.tags.into_iter().map(Purge::Tag));
    if purging.all {
        meant.push(Purge::All);
    }
    if meant.is_empty() {
        return Err(CommandError::Invalid("a purge needs url=, prefix=, tag= or all=true".into()));
    }
    Ok(meant)
}

fn keys(query: &Query, url: &str) -> Result<Vec<String>, CommandError> {
    let keys = keys_of_url(query, url).into_iter().flatten().map(String::from_utf8);
    let keys: Vec<_> = keys.filter_map(Result::ok).collect();
    if keys.is_empty() {
        return Err(CommandError::Invalid(format!(
            "{url:?} is not a URL such as https://www.example.com/page"
        )));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_comes_and_goes_has_a_pair_of_lines_in_ten_minutes() {
        let news = ServerNews::default();
        assert!(news.is_told("a", false), "at the start");
        for _ in 0..2 {
            assert!(news.is_told("a", true) && news.is_told("a", false));
            for _ in 0..100 {
                advance(Duration::from_secs(1)).await;
                assert!(!news.is_told("a", true) && !news.is_told("a", false));
            }
            assert!(news.is_told("b", true) && news.is_told("b", false), "another server");
            advance(LOG_PAUSE).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_is_told_if_the_server_has_answered_for_a_while_since_the_last_one() {
        let news = ServerNews::default();
        assert!(news.is_told("a", false) && news.is_told("a", true) && news.is_told("a", false));
        advance(STEADY - Duration::from_secs(1)).await;
        assert!(!news.is_told("a", true) && !news.is_told("a", false));
        advance(STEADY).await;
        assert!(news.is_told("a", true));
        advance(STEADY).await;
        assert!(news.is_told("a", false));
    }
}
