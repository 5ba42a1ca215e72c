//! Drains a pool that was removed from the configuration. Does not know what replaces it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use hostler_engine::gateway::{Route, Target};
use hostler_engine::journal::Level;
use tokio::time::sleep;

use super::pools::RunningPool;
use super::running::{RunningServer, UnlistedPool};

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Lets the pool's requests finish in the background, then stops its workers or drops its members. Waits for `server.drain_timeout` at
/// most, as the end of the program does. A request whose body is still being read holds its route but is not in the queue yet; `routes`
/// show whether there are such requests.
pub(super) fn drain(running: &Arc<RunningServer>, pool: RunningPool, routes: Vec<Weak<Route>>) {
    pool.let_go();
    pool.pool.dismiss_tunnels();
    let leaving = UnlistedPool::enter(running, &pool);
    let running = running.clone();
    let leads_here =
        |route: Arc<Route>| matches!(&route.target, Target::Pool(target) if target.name == pool.name);
    let routes: Vec<_> = routes.into_iter().filter(|route| route.upgrade().is_some_and(leads_here)).collect();
    tokio::spawn(async move {
        let finished = async {
            while routes.iter().any(|route| route.strong_count() > 0) || is_busy(&pool) {
                sleep(POLL_INTERVAL).await;
            }
        };
        if running.drained(finished).await.is_none() {
            let then = if leaving.is_some() { "; its workers are stopped" } else { "" };
            let text = format!("pool {}: requests did not end in server.drain_timeout{then}", pool.name);
            running.journal.event(Level::Warn, &text);
        }
        if let Some(leaving) = leaving {
            leaving.supervisor.stop().await;
        }
    });
}

fn is_busy(pool: &RunningPool) -> bool {
    pool.pool.snapshot().is_busy()
}
