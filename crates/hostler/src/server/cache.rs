//! Where answers are stored, as the server keeps it: begun, changed and purged. Knows no requests.

use hostler_cache::{Purge, Purged, Query, TierSettings, keys_of_url};
use hostler_config::Config;
use hostler_engine::cache::Stock;
use hostler_engine::journal::{Journal, Level};

use super::running::RunningServer;
use crate::admin::{CommandDone, Purging, Undone};

/// An empty one.
pub(super) fn open(config: &Config, journal: &Journal) -> Stock {
    let stock = Stock::new(config.cache.memory, config.cache.max_entry, journal.clone());
    share(&stock, config.cache.tier.as_ref(), journal);
    stock
}

/// Shares with others from now on as this says. Says so when a server comes or goes.
pub(super) fn share(stock: &Stock, settings: Option<&TierSettings>, journal: &Journal) {
    let journal = journal.clone();
    stock.share(settings, move |notice| match notice.lost {
        None => journal.event(Level::Info, &format!("memcached {}: it answers", notice.server)),
        Some(why) => {
            let text = format!("memcached {}: {why}; nobody asks it until it answers again", notice.server);
            journal.event(Level::Warn, &text);
        }
    });
}

/// Forgets what is meant.
pub(super) async fn purge(running: &RunningServer, purging: Purging) -> Result<CommandDone, Undone> {
    let meant = meant(&running.config.load(), purging)?;
    let Purged { entries, told, servers } = running.stock.purge(meant).await;
    let mut done =
        vec![format!("{entries} stored {} purged", if entries == 1 { "answer" } else { "answers" })];
    if servers > 0 {
        let late = if told < servers { "; the others are told when they are back" } else { "" };
        let text = format!(
            "{told} of {servers} memcached servers know of it{late}; other Hostlers follow within half a second"
        );
        done.push(text);
    }
    Ok(done)
}

/// A URL has as many keys as there are ways in which routes read a query.
fn meant(config: &Config, purging: Purging) -> Result<Vec<Purge>, Undone> {
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
        return Err(Undone::Invalid("purge what? url=, prefix=, tag= or all=true".into()));
    }
    Ok(meant)
}

fn keys(query: &Query, url: &str) -> Result<Vec<String>, Undone> {
    let keys = keys_of_url(query, url).into_iter().flatten().map(String::from_utf8);
    let keys: Vec<_> = keys.filter_map(Result::ok).collect();
    if keys.is_empty() {
        return Err(Undone::Invalid(format!("{url:?} is not a URL such as https://www.example.com/page")));
    }
    Ok(keys)
}
