//! What all live pages and the task that takes pictures share. Takes no picture.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use hostler_engine::exchange::EndedExchange;
use serde::Serialize;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use super::history::LiveHistory;
use crate::admin::status::Sources;

/// A client that asks for single requests asks again within this time.
const ASKED_FOR: Duration = Duration::from_secs(5);
/// A slow request is shown as one of the slowest for this long.
const SLOW_FOR: Duration = Duration::from_secs(60);
/// Pictures that a slow page may be behind. It misses older ones.
const MOST_BEHIND: usize = 8;

/// What all pages share.
pub struct Live {
    pub sources: Arc<Sources>,
    history: Mutex<LiveHistory>,
    /// None once Hostler stops: then all streams end.
    events: Mutex<Option<broadcast::Sender<Bytes>>>,
    /// A page was opened, or a client asks for single requests.
    pub opened: Notify,
    /// When a client last asked for single requests.
    asked: Mutex<Option<Instant>>,
    /// Of the last time that a page or `hostler top` looked.
    pub slowest: SlowestRequests,
}

/// The slowest requests that have ended, the slowest first.
#[derive(Default)]
pub struct SlowestRequests(Mutex<Vec<EndedExchange>>);

impl Live {
    pub fn new(sources: Arc<Sources>) -> Self {
        let (events, _) = broadcast::channel(MOST_BEHIND);
        Self {
            sources,
            history: Mutex::default(),
            events: Mutex::new(Some(events)),
            opened: Notify::new(),
            asked: Mutex::default(),
            slowest: SlowestRequests::default(),
        }
    }

    /// Ends the events of all pages, so that the listener can stop.
    pub fn end(&self) {
        drop(self.events.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.opened.notify_one();
    }

    /// None once Hostler stops.
    pub fn events(&self) -> Option<broadcast::Sender<Bytes>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A client asks for single requests: for some seconds, Hostler looks at those that end.
    pub fn ask(&self) {
        if !self.is_asked() {
            // At once, so that no request is missed that ends before the sampler runs.
            self.sources.recent.observe(1, 1, Duration::ZERO);
        }
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.opened.notify_one();
    }

    pub fn is_asked(&self) -> bool {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_some_and(|at| at.elapsed() < ASKED_FOR)
    }

    pub fn with_history<T>(&self, act: impl FnOnce(&mut LiveHistory) -> T) -> T {
        act(&mut self.history.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl SlowestRequests {
    pub fn note(&self, slowest: &[EndedExchange]) {
        slowest.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Those of the last minute. Perhaps no page has looked since: then those that are noted are older.
    pub fn of_last_minute(&self) -> Vec<EndedExchange> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.iter().filter(|slow| is_of_last_minute(slow)).cloned().collect()
    }
}

pub fn is_of_last_minute(ended: &EndedExchange) -> bool {
    ended.ended.elapsed() < SLOW_FOR
}

/// An event as it goes to a page (`text/event-stream`). JSON has no line breaks.
pub fn event(name: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_of_an_earlier_look_are_not_those_of_the_last_minute() {
        let slow = EndedExchange {
            pool: "app".into(),
            member: None,
            route: None,
            status: 200,
            refusal: None,
            fallback: false,
            aborted: None,
            slot_since: None,
            slot_hold: None,
            queue_wait: Duration::ZERO,
            worker_time: None,
            total: Duration::from_secs(9),
            ended: Instant::now(),
        };
        let slowest = SlowestRequests::default();
        slowest.note(&[slow]);
        tokio::time::advance(SLOW_FOR / 2).await;
        assert_eq!(slowest.of_last_minute().len(), 1);
        tokio::time::advance(SLOW_FOR / 2).await;
        assert!(slowest.of_last_minute().is_empty());
    }
}
