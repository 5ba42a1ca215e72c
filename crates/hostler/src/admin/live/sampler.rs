//! The task that takes pictures for all live pages and samples for the history. Knows no page.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use hostler_engine::exchange::EndedExchange;
use serde::Serialize;
use tokio::sync::broadcast::Sender;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::frame::{EndedPicture, LiveFrame, ShownPools};
use super::history::{RouteTimes, STEP};
use super::requests::{self, RequestUnderWay};
use super::shared::{Live, event, is_of_last_minute};
use crate::admin::status::Status;

/// The shortest time between two pictures: at most ten a second.
const FRAME: Duration = Duration::from_millis(100);
/// The shortest time between two Statuses.
const STATUS: Duration = Duration::from_secs(1);
/// After a picture, the task rests at least this many times as long as the picture took. So pictures take at most a part of one CPU.
const REST: u32 = 50;
/// The longest rest. A machine with too much work may delay one picture for long.
const LONGEST_REST: Duration = Duration::from_millis(500);
/// The ended requests that a picture shows, about.
const SHOWN: usize = 120;
const MOST_SLOW: usize = 10;
/// So many of the oldest requests are in a Status.
const MOST_OLD: usize = 10;

/// The Status as the page gets it.
#[derive(Serialize)]
struct LiveStatus {
    status: Status,
    /// Percentiles by route, over the last fifteen minutes.
    route_times: std::collections::BTreeMap<Arc<str>, RouteTimes>,
    /// The requests that have been under way for longest.
    oldest: Vec<RequestUnderWay>,
    /// The slowest requests that ended in the last minute, the slowest first.
    slowest: Vec<EndedPicture>,
    /// Milliseconds since 1970 of the moment 0 of pictures.
    began: i64,
}

/// How many of the ended requests are shown, which are the slowest, and which pools are shown.
struct Sampling {
    every: u32,
    every_without_slot: u32,
    slowest: Vec<EndedExchange>,
    shown: ShownPools,
}

/// Ends when Hostler stops.
pub async fn run(live: Arc<Live>) {
    let mut history = interval(STEP);
    history.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sampling = Sampling::new();
    let (mut next_frame, mut next_status) = (Instant::now(), Instant::now());
    loop {
        let Some(events) = live.events() else { return };
        let has_page = events.receiver_count() > 0;
        let is_watched = has_page || live.is_asked();
        if !is_watched {
            live.sources.recent.observe(0, 1, Duration::MAX);
            drop(live.sources.recent.take());
        }
        // A sender that is kept during the wait would keep the streams open.
        drop(events);
        tokio::select! {
            _ = history.tick() => {
                let sample = live.with_history(|history| history.sample(&live.sources));
                let marks = live.with_history(|history| history.marks().clone());
                if has_page && let Some(events) = live.events() {
                    let data = serde_json::json!({ "samples": [sample], "marks": marks });
                    send(&events, event("sample", &data));
                }
            }
            () = live.opened.notified(), if !is_watched => {
                sampling = Sampling::new();
                live.sources.recent.observe(1, 1, Duration::ZERO);
                (next_frame, next_status) = (Instant::now(), Instant::now() + STATUS);
            }
            () = sleep_until(next_frame), if is_watched => {
                let Some(events) = live.events() else { return };
                let began = Instant::now();
                let ended = sampling.take(&live);
                live.slowest.note(&sampling.slowest);
                next_frame = began + FRAME;
                if !has_page {
                    continue;
                }
                let frame = LiveFrame::take(&live.sources, sampling.every, &ended, &mut sampling.shown);
                send(&events, event("frame", &frame));
                next_frame = began + FRAME.max((began.elapsed() * REST).min(LONGEST_REST));
                if next_status <= began {
                    let began = Instant::now();
                    send(&events, status_event(&live, &sampling.slowest));
                    next_status = began + STATUS.max((began.elapsed() * REST).min(STATUS * 3));
                }
            }
        }
    }
}

/// The event with the whole Status.
pub fn status_event(live: &Live, slowest: &[EndedExchange]) -> Bytes {
    let sources = &live.sources;
    let uptime = i64::try_from(sources.started.elapsed().as_millis()).unwrap_or(i64::MAX);
    let status = LiveStatus {
        status: sources.status(),
        route_times: live.with_history(|history| history.route_times(&sources.routes.load())),
        oldest: requests::oldest(sources, MOST_OLD),
        slowest: slowest.iter().map(|ended| EndedPicture::of(ended, sources.started)).collect(),
        began: jiff::Timestamp::now().as_millisecond() - uptime,
    };
    event("status", &status)
}

impl Sampling {
    fn new() -> Self {
        Self { every: 1, every_without_slot: 1, slowest: Vec::new(), shown: ShownPools::default() }
    }

    /// The requests that ended since the last picture, and from now on as many as a picture shows.
    fn take(&mut self, live: &Live) -> Vec<EndedExchange> {
        let ended = live.sources.recent.take();
        self.slowest.retain(is_of_last_minute);
        self.slowest.extend(ended.iter().cloned());
        self.slowest.sort_by_key(|slow| std::cmp::Reverse(slow.total));
        self.slowest.truncate(MOST_SLOW);
        let with_slot = ended.iter().filter(|ended| ended.slot_since.is_some()).count();
        self.every = fitting(self.every, with_slot);
        self.every_without_slot = fitting(self.every_without_slot, ended.len() - with_slot);
        let is_full = self.slowest.len() == MOST_SLOW;
        let slow = self.slowest.last().filter(|_| is_full).map_or(Duration::ZERO, |slow| slow.total);
        // Requests as slow as the slowest ones are all alike: then one of many is enough.
        let slow = if self.every > 1 { slow * 2 } else { slow }.max(Duration::from_micros(1));
        live.sources.recent.observe(self.every, self.every_without_slot, slow);
        ended
    }
}

/// The next `every`, after so many exchanges were shown with this one.
fn fitting(every: u32, shown: usize) -> u32 {
    match shown {
        many if many > SHOWN => (every * 2).min(1 << 16),
        few if few < SHOWN / 4 => (every / 2).max(1),
        _ => every,
    }
}

/// An error means that no page is open any more.
fn send(events: &Sender<Bytes>, event: Bytes) {
    let _ = events.send(event);
}
