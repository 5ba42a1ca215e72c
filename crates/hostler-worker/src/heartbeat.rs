//! Asks a worker with requests regularly how its event loop is doing. The answers give its utilisation; missing answers
//! show that it is blocked, and at last that it hangs. Kills no worker.

use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{Gauge, Load};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::capacity::Capacity;
use super::concurrency::{BEAT, ConcurrencyTuner, Round};
use super::message::{LoopTime, Report, ToWorker};
use super::message_sender::MessageSender;
use super::news::{NewsSender, WorkerNews};
use super::settings::{Slots, WorkerSettings};
use super::vitals::Vitals;

/// If a beat comes this much too late, Hostler was held up, not the worker.
const LATE: Duration = BEAT.saturating_mul(2);
/// A worker that has not answered for this long counts as blocked. It is shorter than the default `queue.timeout` less the time in which a
/// usual app boots, so a spare can serve the requests that wait.
pub(super) const BLOCKED: Duration = Duration::from_secs(3);
/// Two reports with more time between them are not compared: most of that time was a pause without requests.
const LONG: Duration = BEAT.saturating_mul(4);

/// Asks one worker.
pub(super) struct Heartbeat<E> {
    pub gauge: Gauge<E>,
    pub vitals: Arc<Vitals>,
    pub concurrency: Arc<ConcurrencyTuner>,
    pub capacity: Arc<Capacity>,
    /// The newest settings.
    pub settings: watch::Receiver<Arc<WorkerSettings>>,
}

impl<E: Send + Sync + 'static> Heartbeat<E> {
    /// Runs until the member has left and its last lease has ended, until the worker has joined again, or until it has not answered for too long.
    pub async fn attend(
        self,
        preload: MessageSender,
        mut reports: mpsc::Receiver<Option<Report>>,
        news_sender: NewsSender,
    ) {
        let mut silence = Silence::default();
        let mut blocked = false;
        let mut last: Option<HeartbeatReport> = None;
        let (mut beat, mut granted) = (Instant::now(), 0);
        // Asked at once: its first request may keep the event loop from turning.
        silence.asked = preload.tell(ToWorker::Report);
        let mut asked_at = silence.asked.then_some(beat);
        loop {
            tokio::select! {
                // An answer that arrived while Hostler was held up counts before the beat that missed it.
                biased;
                report = reports.recv() => {
                    if std::mem::take(&mut blocked) {
                        self.gauge.set_blocked(false);
                        news_sender.send(WorkerNews::Blocked(false)).await;
                    }
                    // The worker has joined again, and the heartbeat of its new member gets the answers.
                    let Some(report) = report else { return };
                    silence.ends();
                    if let Some(report) = &report {
                        // If the beat is late, the time in which Hostler did not run would count as the worker's.
                        let delay = asked_at.take().map(|at: Instant| at.elapsed());
                        self.vitals.reported(report, delay.filter(|_| beat.elapsed() < LATE));
                    }
                    last = self.take_report(report.map(|report| report.time), last);
                }
                () = sleep_until(beat + BEAT) => {
                    let now = Instant::now();
                    let Some(load) = self.gauge.load() else { return self.vitals.rests() };
                    self.set_slots(load);
                    let silent_for = silence.grows(now - beat, load.is_in_use() && preload.is_open());
                    if silent_for >= self.settings.borrow().hang_timeout {
                        return news_sender.send(WorkerNews::Silent).await;
                    }
                    // A debugger may have stopped it.
                    let is_debugged = self.settings.borrow().development.inspector.is_some();
                    if blocked != (silent_for >= BLOCKED && !is_debugged) {
                        blocked = !blocked;
                        self.gauge.set_blocked(blocked);
                        news_sender.send(WorkerNews::Blocked(blocked)).await;
                    }
                    if load.is_in_use() || load.granted != granted {
                        if !silence.asked {
                            silence.asked = preload.tell(ToWorker::Report);
                            asked_at = Some(now);
                        }
                    } else {
                        self.vitals.rests();
                    }
                    (beat, granted) = (now, load.granted);
                }
            }
        }
    }

    /// Sets the number of slots that the tuner has computed, if it is in charge.
    fn set_slots(&self, load: Load) {
        let slots = self.settings.borrow().slots;
        if self.is_tuned() && self.capacity.slots(slots) != load.slots {
            self.capacity.apply(&self.gauge, slots);
        }
    }

    fn is_tuned(&self) -> bool {
        matches!(self.settings.borrow().slots, Slots::Auto { .. }) && self.capacity.main_thread().is_none()
    }

    fn take_report(&self, time: Option<LoopTime>, last: Option<HeartbeatReport>) -> Option<HeartbeatReport> {
        if time.is_none() {
            self.concurrency.is_blind("the app runs its own cluster, whose event loops cannot be measured");
        }
        let report = HeartbeatReport { at: Instant::now(), time: time?, load: self.gauge.load()? };
        if let Some(round) = last.and_then(|last| report.since(&last)) {
            self.vitals.works(round.utilisation);
            if self.is_tuned() {
                self.concurrency.report(round, report.at);
            }
        }
        Some(report)
    }
}

/// The figures at a report. All except the time only grow.
struct HeartbeatReport {
    at: Instant,
    time: LoopTime,
    load: Load,
}

impl HeartbeatReport {
    fn since(&self, last: &Self) -> Option<Round> {
        let span = self.at - last.at;
        let active = self.time.active.checked_sub(last.time.active)? as f64;
        let idle = self.time.idle.checked_sub(last.time.idle)? as f64;
        let leases = self.load.lease_time.saturating_sub(last.load.lease_time);
        (span <= LONG && active + idle > 0.0).then(|| Round {
            utilisation: active / (active + idle),
            leases: leases.as_secs_f64() / span.as_secs_f64(),
            short: self.load.is_short_since(&last.load),
        })
    }
}

/// How long a worker has not answered although it should have.
#[derive(Default)]
struct Silence {
    /// It was asked and has not answered yet.
    asked: bool,
    length: Duration,
}

impl Silence {
    fn ends(&mut self) {
        *self = Self::default();
    }

    /// Counts a beat without an answer. A late beat does not count: Hostler itself did not run, so it could not read the
    /// answer.
    fn grows(&mut self, by: Duration, should_answer: bool) -> Duration {
        if !(self.asked && should_answer) {
            self.length = Duration::ZERO;
        } else if by < LATE {
            self.length += by;
        }
        self.length
    }
}

#[cfg(test)]
mod tests {
    use hostler_dispatch::{Claim, Membership, Pool, PoolSettings};
    use tokio::task::yield_now;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::development::Development;
    use crate::news::NewsReceiver;

    const REPORT: Report = Report { time: LoopTime { active: 1, idle: 1 }, heap: None, gc: None };

    /// A heartbeat at work: what the worker is asked, its answers, and what the worker task hears.
    fn attended(
        membership: &Membership<()>,
        vitals: &Arc<Vitals>,
        development: Development,
    ) -> (mpsc::Receiver<ToWorker>, mpsc::Sender<Option<Report>>, NewsReceiver) {
        let tuner: Arc<ConcurrencyTuner> = Arc::default();
        let settings = WorkerSettings { hang_timeout: 1000 * BEAT, development, ..WorkerSettings::default() };
        let heartbeat = Heartbeat {
            gauge: membership.gauge(),
            vitals: Arc::clone(vitals),
            concurrency: Arc::clone(&tuner),
            capacity: Arc::new(Capacity::of(None, tuner)),
            settings: watch::channel(Arc::new(settings)).1,
        };
        let ((preload, asked), (sender, reports)) = (mpsc::channel(4), mpsc::channel(4));
        let (news_sender, news_receiver) = NewsSender::pair(1);
        tokio::spawn(heartbeat.attend(MessageSender(preload), reports, news_sender));
        (asked, sender, news_receiver)
    }

    #[test]
    fn silence_counts_only_while_a_heartbeat_is_due_and_hostler_reads() {
        let mut silence = Silence::default();
        assert_eq!(silence.grows(BEAT, true), Duration::ZERO, "it has not been asked");
        silence.asked = true;
        assert_eq!(silence.grows(BEAT, true), BEAT);
        assert_eq!(silence.grows(100 * BEAT, true), BEAT, "Hostler was stopped");
        assert_eq!(silence.grows(BEAT, true), 2 * BEAT);
        assert_eq!(silence.grows(BEAT, false), Duration::ZERO, "it has no requests, or no way to answer");
        silence.grows(BEAT, true);
        silence.ends();
        assert_eq!(silence.length, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_with_requests_that_does_not_answer_is_blocked_until_it_does() {
        let pool = Pool::new("test", PoolSettings::default());
        let membership = pool.join((), 2);
        let (_asked, reports, mut news_receiver) =
            attended(&membership, &Arc::default(), Development::default());
        advance(100 * BEAT).await;
        let _lease = pool.acquire(Claim::default()).await.unwrap();
        let begin = Instant::now();
        assert!(matches!(news_receiver.recv().await, Some((1, WorkerNews::Blocked(true)))));
        let took = begin.elapsed();
        assert!((BLOCKED..=BLOCKED + 2 * BEAT).contains(&took), "{took:?}");
        let other = pool.join((), 1);
        let elsewhere = pool.acquire(Claim::default()).await.unwrap();
        assert_eq!(elsewhere.member(), other.id());
        let waits = timeout(BEAT, pool.acquire(Claim::default())).await;
        assert!(waits.is_err(), "a slot of the blocked worker is free, and no request gets it");
        reports.try_send(Some(REPORT)).unwrap();
        assert!(matches!(news_receiver.recv().await, Some((1, WorkerNews::Blocked(false)))));
        assert_eq!(pool.acquire(Claim::default()).await.unwrap().member(), membership.id());
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_a_debugger_may_have_stopped_is_not_blocked() {
        let pool = Pool::new("test", PoolSettings::default());
        let membership = pool.join((), 1);
        let development = Development { inspector: "127.0.0.1:9229".parse().ok(), ..Development::default() };
        let (_asked, _reports, mut news_receiver) = attended(&membership, &Arc::default(), development);
        let _lease = pool.acquire(Claim::default()).await.unwrap();
        assert!(matches!(news_receiver.recv().await, Some((1, WorkerNews::Silent))), "after hang_timeout");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_hostler_did_not_run_is_no_delay_of_the_event_loop() {
        let pool = Pool::new("test", PoolSettings::default());
        let membership = pool.join((), 1);
        let vitals = Arc::default();
        let (mut asked, reports, _news_receiver) = attended(&membership, &vitals, Development::default());
        assert_eq!(asked.recv().await, Some(ToWorker::Report));
        reports.try_send(Some(REPORT)).unwrap();
        advance(120 * BEAT).await;
        while vitals.node().age.is_none() {
            yield_now().await;
        }
        assert_eq!(vitals.node().event_loop_delay, None, "Hostler was stopped");

        let _lease = pool.acquire(Claim::default()).await.unwrap();
        assert_eq!(asked.recv().await, Some(ToWorker::Report));
        advance(BEAT / 10).await;
        reports.try_send(Some(REPORT)).unwrap();
        while vitals.node().event_loop_delay.is_none() {
            yield_now().await;
        }
        assert_eq!(vitals.node().event_loop_delay.map(|delay| delay.max), Some(BEAT / 10));
    }

    #[test]
    fn a_round_covers_the_time_between_two_reports() {
        let load = |lease_ms, queued| Load {
            slots: 4,
            in_use: 1,
            tunnels: 0,
            streams: 0,
            granted: 9,
            lease_time: Duration::from_millis(lease_ms),
            queued,
            waiting: 0,
        };
        let at = Instant::now();
        let time = |active, idle| LoopTime { active, idle };
        let first = HeartbeatReport { at, time: time(1_000, 9_000), load: load(5_000, 1) };
        let next = HeartbeatReport { at: at + BEAT, time: time(1_125, 9_375), load: load(6_000, 1) };
        assert_eq!(next.since(&first), Some(Round { utilisation: 0.25, leases: 2.0, short: false }));
        let later = HeartbeatReport { at: at + 2 * BEAT, time: time(1_125, 9_875), load: load(6_000, 2) };
        assert_eq!(later.since(&next), Some(Round { utilisation: 0.0, leases: 0.0, short: true }));
        let after_a_rest = HeartbeatReport { at: at + 20 * BEAT, ..later };
        assert_eq!(after_a_rest.since(&next), None);
        assert_eq!(first.since(&next), None, "another process");
    }
}
