//! Asks a worker to collect garbage between two requests, when its slots can stay free for that time. Does not know how
//! much garbage there is, only how many requests have left some.

use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{Gauge, Load};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::message::{Garbage, ToWorker};
use super::message_sender::MessageSender;
use super::settings::WorkerSettings;
use super::vitals::Vitals;

/// The first pause between two looks for an idle moment. It doubles with each look ...
const GLANCE: Duration = Duration::from_millis(5);
/// ... up to this. While no collection is due, the pause is always this long.
const REST: Duration = Duration::from_millis(50);
/// A worker that does not answer within this time gets requests again: other workers may be even slower.
const TIME_LIMIT: Duration = Duration::from_millis(250);
/// A minor collection is due after this many requests. With the pages measured in docs/concepts/gc.md, Node itself
/// collects at every fifth or sixth request. Asked at every eighth request, it spent a tenth less time on collections
/// inside requests; asked at every second, nearly half less.
const MINOR_EVERY: u64 = 2;
/// A major collection is due after this many requests, as it takes as long as a slow request ...
const MAJOR_EVERY: u64 = 500;
/// ... and after this time without requests.
const QUIET: Duration = Duration::from_secs(1);

/// Decides when one worker collects garbage.
pub(super) struct Collecting<E> {
    pub gauge: Gauge<E>,
    pub vitals: Arc<Vitals>,
    /// The newest settings.
    pub settings: watch::Receiver<Arc<WorkerSettings>>,
}

impl<E: Send + Sync + 'static> Collecting<E> {
    /// Runs until the member is gone, until the worker has joined again, or until its process can no longer be asked. While the setting
    /// `collect_when_idle` is off, it notices only that the worker has joined again.
    pub async fn attend(mut self, preload: MessageSender, mut collected: mpsc::Receiver<Duration>) {
        let (mut due, mut glance) = (Due::default(), GLANCE);
        loop {
            tokio::select! {
                biased;
                took = collected.recv() => match took {
                    // An answer after the time limit.
                    Some(took) => {
                        self.vitals.collected(took);
                        continue;
                    }
                    None => return,
                },
                is_wanted = async { self.settings.wait_for(|settings| settings.collect_when_idle).await.is_ok() } => {
                    if !is_wanted {
                        return;
                    }
                }
            }
            let Some(load) = self.gauge.load() else { return };
            match due.now(&load, Instant::now()) {
                IdleLook::Collect(garbage) => {
                    glance = GLANCE;
                    self.collect(garbage, &preload, &mut collected).await;
                    due.done(garbage, &load);
                }
                IdleLook::Soon => {
                    sleep(glance).await;
                    glance = REST.min(glance * 2);
                }
                IdleLook::Later => sleep(REST).await,
            }
            if !preload.is_open() {
                return;
            }
        }
    }

    /// Holds the slots until the worker has answered, so that the pause hits no request.
    async fn collect(
        &self,
        garbage: Garbage,
        preload: &MessageSender,
        collected: &mut mpsc::Receiver<Duration>,
    ) {
        let Some(_hold) = self.gauge.hold() else { return };
        if preload.tell(ToWorker::Collect(garbage))
            && let Ok(Some(took)) = timeout(TIME_LIMIT, collected.recv()).await
        {
            self.vitals.collected(took);
        }
    }
}

/// Which collection is due, and when.
#[derive(Default)]
struct Due {
    /// The number of requests at the last collection, and at the last major one.
    minor_at: u64,
    major_at: u64,
    idle_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdleLook {
    /// Collect now.
    Collect(Garbage),
    /// Collect as soon as the worker is idle.
    Soon,
    /// No collection is due.
    Later,
}

impl Due {
    fn now(&mut self, load: &Load, now: Instant) -> IdleLook {
        let is_idle = !load.is_in_use() && load.waiting == 0;
        let idle_since = *self.idle_since.get_or_insert(now);
        if !is_idle {
            self.idle_since = None;
        }
        let is_minor_due = load.granted - self.minor_at >= MINOR_EVERY;
        if is_idle && now - idle_since >= QUIET && load.granted - self.major_at >= MAJOR_EVERY {
            return IdleLook::Collect(Garbage::Major);
        }
        match (is_minor_due, is_idle) {
            (true, true) => IdleLook::Collect(Garbage::Minor),
            (true, false) => IdleLook::Soon,
            _ => IdleLook::Later,
        }
    }

    fn done(&mut self, garbage: Garbage, load: &Load) {
        self.minor_at = load.granted;
        if garbage == Garbage::Major {
            self.major_at = load.granted;
        }
    }
}

#[cfg(test)]
mod tests {
    use hostler_dispatch::{Pool, PoolSettings};
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn it_ends_when_the_worker_joins_again_also_if_nothing_is_to_be_collected() {
        let pool = Pool::new("test", PoolSettings::default());
        let membership = pool.join((), 1);
        let (_changes, settings) = watch::channel(Arc::new(WorkerSettings::default()));
        let collecting = Collecting { gauge: membership.gauge(), vitals: Arc::default(), settings };
        let ((preload, _unread), (answers, collected)) = (mpsc::channel(1), mpsc::channel(1));
        let task = tokio::spawn(collecting.attend(MessageSender(preload), collected));
        yield_now().await;
        assert!(!task.is_finished(), "the setting may change");
        drop(answers);
        timeout(Duration::from_secs(10), task).await.expect("it ends").unwrap();
    }

    fn load(granted: u64, in_use: usize, waiting: usize) -> Load {
        Load {
            slots: 1,
            in_use,
            tunnels: 0,
            streams: 0,
            granted,
            lease_time: Duration::ZERO,
            queued: 0,
            waiting,
        }
    }

    #[test]
    fn a_minor_collection_is_due_after_some_requests_and_waits_for_an_idle_moment() {
        let (mut due, now) = (Due::default(), Instant::now());
        assert_eq!(due.now(&load(MINOR_EVERY - 1, 0, 0), now), IdleLook::Later);
        assert_eq!(due.now(&load(MINOR_EVERY, 1, 0), now), IdleLook::Soon);
        assert_eq!(due.now(&load(MINOR_EVERY, 0, 1), now), IdleLook::Soon, "a request waits for a slot");
        assert_eq!(due.now(&load(MINOR_EVERY, 0, 0), now), IdleLook::Collect(Garbage::Minor));
        due.done(Garbage::Minor, &load(MINOR_EVERY, 0, 0));
        assert_eq!(due.now(&load(MINOR_EVERY, 0, 0), now), IdleLook::Later, "nothing new");
    }

    #[test]
    fn a_major_collection_waits_for_many_requests_and_a_quiet_second() {
        let (mut due, now) = (Due::default(), Instant::now());
        let idle = load(MAJOR_EVERY, 0, 0);
        due.done(Garbage::Minor, &idle);
        assert_eq!(due.now(&idle, now), IdleLook::Later);
        assert_eq!(due.now(&load(MAJOR_EVERY, 1, 0), now + QUIET), IdleLook::Later);
        assert_eq!(due.now(&idle, now + QUIET), IdleLook::Later, "it was busy just now");
        assert_eq!(due.now(&idle, now + 2 * QUIET), IdleLook::Collect(Garbage::Major));
        due.done(Garbage::Major, &idle);
        assert_eq!(due.now(&idle, now + 3 * QUIET), IdleLook::Later);
    }
}
