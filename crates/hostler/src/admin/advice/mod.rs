//! Advice: what is wrong and what to do, found in the figures of the Status. Knows no requests and no processes.

mod board;
mod figures;
mod finding;
mod history;
mod host;
mod peers;
mod queues;
mod responses;
#[cfg(test)]
mod scene;
mod table;
mod times;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use hostler_engine::journal::Level;
use tokio::time::{MissedTickBehavior, interval};

use board::AdviceBoard;
pub use board::AdviceView;
use figures::Figures;
use finding::Finding;
use history::{History, View};
pub use table::{ADVICE, AdviceRow, Severity};

use super::status::Sources;

/// The time between two looks at the Status.
const INTERVAL: Duration = Duration::from_secs(5);

/// Looks at the Status every five seconds, for as long as Hostler runs.
pub async fn watch(sources: Arc<Sources>) {
    // The disk may hang, so another task looks at it.
    tokio::spawn(sources.temp_free.clone().watch(sources.spool.clone()));
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut history, mut board) = (History::default(), AdviceBoard::default());
    loop {
        ticks.tick().await;
        let figures = Figures::of(&sources.status());
        let now = figures.uptime;
        history.observe(figures);
        let found = history.view().map(advise).unwrap_or_default();
        for line in board.update(found, now) {
            let level = if line.severity == Severity::Info { Level::Info } else { Level::Warn };
            sources.journal.event(level, &line.text);
        }
        sources.advice.store(Arc::new(board.raised(now)));
    }
}

/// What the figures show. A pure function: the same figures give the same findings.
fn advise(view: View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    if !view.now.draining {
        queues::find(view, &mut found);
        workers::find(view, &mut found);
        responses::find(view, &mut found);
        host::find(view, &mut found);
        peers::find(view, &mut found);
    }
    found
}

#[cfg(test)]
mod tests;
