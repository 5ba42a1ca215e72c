//! The turn of a suspect: while it lasts, similar requests wait. Knows no requests.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::exchange::LoopWatch;

/// How many requests may wait for their turn.
const MAX_WAITING: usize = 1000;
/// How many of them are woken at each change. The others look from time to time.
const MAX_WOKEN: usize = 100;

/// The turn of one suspect. It ends when it is dropped, or before that if its trial takes long.
pub(super) struct Turn {
    end: Box<dyn Fn() + Send + Sync>,
    is_over: AtomicBool,
}

impl Turn {
    /// `end` lets similar requests go on. It may be called twice.
    pub fn new(end: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { end: Box::new(end), is_over: AtomicBool::new(false) })
    }

    /// Ends the turn after `least`, if it lasts so long, but goes on up to `most` until the event loop of its worker is seen to turn. Then
    /// calls `share`.
    pub fn end_after(
        self: &Arc<Self>,
        (least, most): (Duration, Duration),
        event_loop: Option<LoopWatch>,
        share: impl FnOnce() + Send + 'static,
    ) {
        let (turn, began) = (Arc::downgrade(self), Instant::now());
        tokio::spawn(async move {
            sleep_until(began + least).await;
            let turns = async {
                let Some(event_loop) = event_loop else { return pending().await };
                while turn.strong_count() > 0 && !event_loop.turns().await {}
            };
            // An error: it does not turn, or nothing tells.
            let _ = timeout_at(began + most, turns).await;
            if let Some(turn) = turn.upgrade() {
                turn.is_over.store(true, Ordering::Relaxed);
                (turn.end)();
                share();
            }
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        (self.end)();
    }
}

/// The requests that wait for their turn: how many of each client.
#[derive(Default)]
pub(in crate::gateway) struct TurnLine(Mutex<HashMap<u64, usize>>);

impl TurnLine {
    pub fn len(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one request that waits for its turn.
pub(in crate::gateway) struct TurnWait<'a> {
    line: &'a TurnLine,
    client: u64,
    is_woken: bool,
}

impl<'a> TurnWait<'a> {
    /// None if too many wait, or if this client has as many places as are free: the others get one, too.
    pub fn begin(line: &'a TurnLine, client: u64) -> Option<Self> {
        let mut waiting = line.lock();
        let all: usize = waiting.values().sum();
        let own = waiting.get(&client).copied().unwrap_or_default();
        if own >= MAX_WAITING.saturating_sub(all) {
            return None;
        }
        waiting.insert(client, own + 1);
        Some(Self { line, client, is_woken: all < MAX_WOKEN })
    }

    /// Whether the request waits for changes. If not, it looks from time to time.
    pub fn is_woken(&self) -> bool {
        self.is_woken
    }
}

impl Drop for TurnWait<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut own) = self.line.lock().entry(self.client) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

/// The turn of a request on trial. None if it has none, or if it is the turn of a stream, which ends by itself.
pub(super) fn as_turn(turn: Option<&(dyn Any + Send + Sync)>) -> Option<&Arc<Turn>> {
    turn?.downcast_ref()
}

/// Whether the request with this turn is on trial, so that similar requests wait and its worker gets no other.
pub(super) fn is_on_trial(turn: Option<&(dyn Any + Send + Sync)>) -> bool {
    let lasts = |turn: &Arc<Turn>| !turn.is_over.load(Ordering::Relaxed);
    turn.is_some() && as_turn(turn).is_none_or(lasts)
}
