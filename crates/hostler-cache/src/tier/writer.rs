//! Does the writes to one server, in order. No request waits for them. Knows no requests.

use std::sync::Arc;

use tokio::time::Instant;

use super::item::{self, LONGEST_SECONDS, Unwritable};
use super::keeper::{self, UNHURRIED};
use super::server::{Op, Reply, Set};
use super::shared::TierShared;
use super::write_queue::{Write, Writes};
use crate::{Moment, Variants};

/// Writes what is queued, for ever.
pub(super) async fn write<H: Send + Sync + 'static>(
    shared: Arc<TierShared<H>>,
    index: usize,
    mut writes: Writes<H>,
) {
    let server = &shared.servers[index];
    while let Some((write, weight)) = writes.next().await {
        let is_written = match write {
            Write::Put(key, variants) => put(&shared, index, &key, &variants).await,
            Write::Delete(key) => delete(&shared, index, &key).await,
        };
        writes.done(weight);
        if is_written { server.counts.stored.add(1) } else { server.counts.dropped.add(1) }
    }
}

async fn put<H: Send + Sync + 'static>(
    shared: &Arc<TierShared<H>>,
    index: usize,
    key: &[u8],
    variants: &Variants<H>,
) -> bool {
    let server = &shared.servers[index];
    let now = Moment::now();
    let useless = variants.iter().map(|entry| entry.freshness.useless_from()).max().unwrap_or_default();
    let seconds = (useless.0.saturating_sub(now.0) / 1000).min(LONGEST_SECONDS);
    if seconds == 0 || !server.is_here() {
        return false;
    }
    // Otherwise a void item could be written after void items were deleted there (`page::READ_BY_ALL_AFTER`).
    if !shared.log().is_current(index, Instant::now()) && keeper::synchronise(shared, index).await.is_err() {
        return false;
    }
    let name = item::name(&shared.settings.namespace, key);
    let (bytes, mark) = match shared.item(index, key, variants) {
        Ok(item) => item,
        Err(Unwritable::Void) => return false,
        Err(Unwritable::TooLarge) => {
            // What is there is older, and would come back into memory when the newer response has been evicted.
            let _ = server.ask(Op::Delete(&name), UNHURRIED).await;
            return false;
        }
    };
    let set = Set { value: &bytes, mark, seconds };
    matches!(server.ask(Op::Set(&name, set), UNHURRIED).await, Ok(Reply::Done))
}

/// Deletes a key. If that fails, the key is recorded as changed, so that other Hostlers learn of it when the server is
/// back.
async fn delete<H: Send + Sync + 'static>(shared: &TierShared<H>, index: usize, key: &[u8]) -> bool {
    let server = &shared.servers[index];
    let name = item::name(&shared.settings.namespace, key);
    if server.is_here() && server.ask(Op::Delete(&name), UNHURRIED).await.is_ok() {
        return true;
    }
    shared.log().change(index, key);
    false
}
