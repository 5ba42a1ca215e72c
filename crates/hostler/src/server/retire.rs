//! The end of a pool that nothing leads to any more. Knows nothing of what took its place.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use hostler_engine::gateway::{Route, Target};
use hostler_engine::journal::Level;
use hostler_worker::Supervisor;
use tokio::time::{sleep, timeout};

use super::pools::RunningPool;
use super::running::RunningServer;

/// How often it is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// Lets it finish, in the background, and stops its workers, or lets its members go: no longer than `server.drain_timeout`, as at the end of the
/// program. A request that is still sending its body has found its route, but is not in the queue yet: the pool waits for all that hold
/// one of the old `routes` that lead to it.
pub(super) fn retire(running: &Arc<RunningServer>, pool: RunningPool, routes: Vec<Weak<Route>>) {
    pool.resume();
    pool.pool.dismiss_tunnels();
    let leaving = pool.supervisor.clone().map(|supervisor| RetiringPool::enter(running, supervisor));
    let running = running.clone();
    let leads_here =
        |route: Arc<Route>| matches!(&route.target, Target::Pool(target) if target.name == pool.name);
    let routes: Vec<_> = routes.into_iter().filter(|route| route.upgrade().is_some_and(leads_here)).collect();
    tokio::spawn(async move {
        let finished = async {
            while routes.iter().any(|route| route.strong_count() > 0) || is_busy(&pool) {
                sleep(GLANCE).await;
            }
        };
        if timeout(running.drain_timeout(), finished).await.is_err() {
            let text = format!("pool {}: requests did not end in server.drain_timeout", pool.name);
            running.journal.event(Level::Warn, &text);
        }
        if let Some(leaving) = leaving {
            leaving.supervisor.stop().await;
        }
    });
}

fn is_busy(pool: &RunningPool) -> bool {
    let figures = pool.pool.snapshot();
    figures.in_use > 0 || figures.queue_length > 0 || figures.tunnels > 0
}

/// Known to whoever ends the program for as long as it has not ended by itself.
struct RetiringPool {
    running: Arc<RunningServer>,
    supervisor: Arc<Supervisor>,
}

impl RetiringPool {
    fn enter(running: &Arc<RunningServer>, supervisor: Arc<Supervisor>) -> Self {
        let mut all = running.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(supervisor.clone());
        Self { running: running.clone(), supervisor }
    }
}

impl Drop for RetiringPool {
    fn drop(&mut self) {
        let mut all = self.running.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| !Arc::ptr_eq(other, &self.supervisor));
    }
}
