//! Whether a member with an event loop can begin one more request at once. Knows no queue and no process.
//!
//! A fixed number of slots is a guess about the application: one slot wastes the time in which a request waits for a
//! database, and many slots put requests behind a page that computes. An event loop answers the question itself: it
//! either waits for events, so it begins the next request at once, or it computes, so the next request would wait inside
//! the member. A member whose loop can be observed gets requests by this rule, up to its number of slots.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The event loop of a member.
pub trait EventLoop: Send + Sync {
    /// The CPU time that the loop has used so far, if it waits for events at this moment. `None` while it computes, or
    /// waits for anything else.
    ///
    /// The pool calls this under its lock, so it must take only some microseconds and must not block.
    fn cpu_if_waiting(&self) -> Option<Duration>;
}

/// For how long an observation that the loop waits for events is valid.
const OBSERVATION_LASTS: Duration = Duration::from_micros(50);
/// A loop that computes is observed again after a part (1/8) of the time that it has computed so far, or of the cost of a
/// request if that is longer, within these limits.
const AGAIN_AFTER: u32 = 8;
const AGAIN_LIMITS: (Duration, Duration) = (Duration::from_micros(30), Duration::from_millis(2));
/// A loop that waits may get several requests at once if it can begin all of them within this part (1/20) of the time that
/// the oldest waiting request has waited, within these limits ...
const SHARE_OF_WAIT: u32 = 20;
const BURST_LIMITS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(4));
/// ... and at most this many.
const MAX_BURST: f64 = 32.0;
/// For this long after the loop was last seen to wait, its member gets requests without an observation, if all that it has and one more
/// take at most `BURST_LIMITS.0` of CPU time.
const LIGHT_LASTS: Duration = Duration::from_millis(2);
/// A request that has waited for this long may go to a member whose loop computes: it is given *ahead* (see [`LoopObservation::ahead`]).
/// Before that it waits, because another loop may become free and would begin it at once.
const AHEAD_AFTER: Duration = Duration::from_millis(5);
/// A member gets at most this many requests ahead, above the number that it had when its loop last waited.
const MOST_AHEAD: usize = 4;
/// None is given ahead if the member has answered nothing for this time, or for 1.5 times the CPU time of a request if that is longer. Then
/// its loop computes something long, and may hang.
const ANSWERS_WITHIN: Duration = Duration::from_millis(3);
/// The cost of a request is an average in which this many requests count.
const AVERAGED: f64 = 32.0;
/// If the last sample is older than this, the loop is observed again before a member without requests gets several at once.
const SAMPLE_LASTS: Duration = Duration::from_millis(5);

/// What a pool knows about the event loop of one member.
pub(super) struct LoopState {
    event_loop: Arc<dyn EventLoop>,
    /// A cell, because a pool looks for a free member without changing it. The pool's lock guards it.
    seen: Cell<LoopObservation>,
    /// The requests that the member has answered so far.
    answered: Cell<u64>,
}

#[derive(Clone, Copy, Default)]
struct LoopObservation {
    /// If `room` is above 0: until when it is valid. If `room` is 0: when the loop may be observed again.
    until: Option<Instant>,
    /// How many more requests the member can begin, by the last observation.
    room: usize,
    /// Since when every observation has found the loop at work.
    busy_since: Option<Instant>,
    /// The requests given so far.
    given: u64,
    /// The CPU time, and the requests given, when the loop last waited.
    sample: Option<CpuSample>,
    /// The CPU seconds of one request, on average. `None`: not known yet.
    cost: Option<f64>,
    /// The member has answered a request for which its loop has not run. So other threads or processes serve, and the loop decides nothing.
    serves_elsewhere: bool,
    /// How many requests the member had when its loop was last observed to wait. They waited for something else, such as a database. 0: the member
    /// was without requests since.
    waiting: usize,
    /// How many requests the member had answered, and when a look first found so many.
    progress: Option<(u64, Instant)>,
}

#[derive(Clone, Copy)]
struct CpuSample {
    at: Instant,
    cpu: Duration,
    given: u64,
    /// The requests answered by then, and those at the member.
    answered: u64,
    in_use: usize,
}

impl LoopState {
    pub fn new(event_loop: Arc<dyn EventLoop>) -> Self {
        Self { event_loop, seen: Cell::default(), answered: Cell::default() }
    }

    /// Tells how many requests the member has answered so far. To be called before the loop is observed: the loop must have run for each of
    /// them before.
    pub fn note_answered(&self, answered: u64) {
        self.answered.set(answered);
    }

    /// Whether the member can begin one more request at once. `in_use` requests are at the member; `unsent` of them have
    /// not been sent to it yet, so its loop cannot show them. `waited`: how long the oldest waiting request has waited.
    pub fn can_begin(
        &self,
        in_use: usize,
        unsent: usize,
        waited: impl FnOnce() -> Duration,
        now: Instant,
    ) -> bool {
        let mut seen = self.seen.get();
        if let Some(known) = seen.can_begin(in_use, unsent, now) {
            return known;
        }
        let (answered, waited) = (self.answered.get(), waited());
        seen.note_progress(answered, now);
        match self.event_loop.cpu_if_waiting() {
            Some(cpu) if seen.was_passed_over(cpu, answered) => seen.serves_elsewhere = true,
            Some(cpu) if seen.has_begun(cpu) => {
                seen.waits(CpuSample { at: now, cpu, given: seen.given, answered, in_use }, waited);
                seen.waiting = in_use;
            }
            _ => {
                seen.works(now);
                if waited >= AHEAD_AFTER && seen.answers(now) {
                    seen.room = seen.ahead(in_use);
                }
            }
        }
        self.seen.set(seen);
        seen.serves_elsewhere || seen.room > 0
    }

    /// Whether the member may be able to begin one more request, as far as that is known without an observation.
    pub fn may_begin(&self, in_use: usize, unsent: usize, now: Instant) -> bool {
        self.seen.get().can_begin(in_use, unsent, now) != Some(false)
    }

    /// Until this instant, a member with `in_use` requests begins no other one, unless a request ends. `None`: it may begin one now.
    /// Without `now`, the age of the last observation counts as zero.
    pub fn closed_until(&self, in_use: usize, now: Option<Instant>) -> Option<Instant> {
        let seen = self.seen.get();
        let is_open = in_use == 0 || seen.room > 0 || seen.serves_elsewhere || seen.is_light(in_use, now);
        seen.until.filter(|_| !is_open)
    }

    /// The member gets a request, and had `in_use` before.
    pub fn give(&self, in_use: usize, now: Instant) {
        let mut seen = self.seen.get();
        if seen.serves_elsewhere {
            return;
        }
        if in_use == 0 {
            seen.waiting = 0;
        }
        let is_open = seen.room > 0 && seen.until.is_some_and(|until| now < until);
        if !is_open && in_use == 0 {
            seen.opens(Duration::ZERO, now);
            if seen.is_outdated(now) {
                match self.event_loop.cpu_if_waiting() {
                    Some(cpu) => {
                        let (given, answered) = (seen.given, self.answered.get());
                        let sample = CpuSample { at: now, cpu, given, answered, in_use: 0 };
                        seen.waits(sample, Duration::ZERO);
                    }
                    None => seen.room = 1,
                }
            }
        }
        if is_open || in_use == 0 {
            seen.room -= 1;
        }
        seen.given += 1;
        self.seen.set(seen);
    }

    /// A request that the member got was never sent, so the loop does not run for it.
    pub fn take_back(&self) {
        let mut seen = self.seen.get();
        seen.given = seen.given.saturating_sub(1);
        self.seen.set(seen);
    }
}

impl LoopObservation {
    /// `None`: only an observation can tell.
    fn can_begin(&self, in_use: usize, unsent: usize, now: Instant) -> Option<bool> {
        let is_fresh = self.until.is_some_and(|until| now < until);
        let has_room = is_fresh && self.room > 0;
        if in_use == 0 || has_room || self.serves_elsewhere || self.is_light(in_use, Some(now)) {
            Some(true)
        } else if is_fresh || unsent > 0 {
            Some(false)
        } else {
            None
        }
    }

    /// The cost of a request. Zero while it is not known.
    fn known_cost(&self) -> Duration {
        Duration::from_secs_f64(self.cost.unwrap_or(0.0))
    }

    /// How long ago the loop was last seen to wait. Longer than any limit if never.
    fn sample_age(&self, now: Instant) -> Duration {
        self.sample.map_or(Duration::MAX, |sample| now.saturating_duration_since(sample.at))
    }

    /// Whether all requests of the member, and one more, need so little CPU time that a look would cost as much.
    fn is_light(&self, in_use: usize, now: Option<Instant>) -> bool {
        // The cost is known only if there is a sample, and without it a burst has one request.
        in_use < self.burst(Duration::ZERO) && now.is_none_or(|now| self.sample_age(now) < LIGHT_LASTS)
    }

    /// Whether the loop has begun the requests that it was given. If it has used no CPU time since then, it waits for
    /// something else than requests.
    fn has_begun(&self, cpu: Duration) -> bool {
        self.sample.is_none_or(|before| self.given <= before.given || cpu > before.cpu)
    }

    /// Whether a request was answered although the loop has used no CPU time since the last sample. Responses to requests that the member
    /// had at that sample do not count: they may have been on their way.
    fn was_passed_over(&self, cpu: Duration, answered: u64) -> bool {
        self.sample.is_some_and(|before| {
            cpu == before.cpu && answered.saturating_sub(before.answered) > before.in_use as u64
        })
    }

    /// Whether the cost may have changed since it was measured.
    fn is_outdated(&self, now: Instant) -> bool {
        self.sample_age(now) >= SAMPLE_LASTS
    }

    fn waits(&mut self, sample: CpuSample, waited: Duration) {
        if let Some(before) = self.sample
            && self.given > before.given
        {
            let requests = (self.given - before.given) as f64;
            let cost = sample.cpu.saturating_sub(before.cpu).as_secs_f64() / requests;
            let weight = (requests / AVERAGED.min(self.given as f64)).min(1.0);
            self.cost = Some(self.cost.map_or(cost, |average| average + weight * (cost - average)));
        }
        self.sample = Some(sample);
        self.opens(waited, sample.at);
    }

    /// The member can begin a burst of requests.
    fn opens(&mut self, waited: Duration, now: Instant) {
        self.until = Some(now + OBSERVATION_LASTS);
        self.room = self.burst(waited);
        self.busy_since = None;
    }

    fn works(&mut self, now: Instant) {
        let busy = now.saturating_duration_since(*self.busy_since.get_or_insert(now));
        let (least, most) = AGAIN_LIMITS;
        self.until = Some(now + (busy.max(self.known_cost()) / AGAIN_AFTER).clamp(least, most));
        self.room = 0;
    }

    fn note_progress(&mut self, answered: u64, now: Instant) {
        if self.progress.is_none_or(|(before, _)| answered > before) {
            self.progress = Some((answered, now));
        }
    }

    /// Whether the member has answered a request a short time ago.
    fn answers(&self, now: Instant) -> bool {
        let within = ANSWERS_WITHIN.max(self.known_cost() * 3 / 2);
        self.progress.is_some_and(|(_, at)| now.saturating_duration_since(at) < within)
    }

    /// How many requests the member gets ahead, while its loop computes. Requests often wait for something first, such as a database. If
    /// they began to wait only when the loop has finished all other work, requests would come in groups, and all members would wait at the
    /// same time. So the member may have a few more requests than when its loop last waited, and gets another one for each that it answers.
    /// A loop that answers nothing gets none. An app that only computes gets none either: its requests go to the first loop that waits.
    fn ahead(&self, in_use: usize) -> usize {
        let more = MOST_AHEAD.min(self.waiting.saturating_sub(1));
        (self.waiting + more).saturating_sub(in_use).min(MOST_AHEAD)
    }

    /// How many requests the member gets at once. The last of them waits inside the member for the others, but only for a small part of the
    /// time that the oldest request has waited in the queue.
    fn burst(&self, waited: Duration) -> usize {
        let (least, most) = BURST_LIMITS;
        let seconds = (waited / SHARE_OF_WAIT).clamp(least, most).as_secs_f64();
        let requests = self.cost.map_or(1.0, |cost| seconds / cost.max(f64::EPSILON));
        requests.clamp(1.0, MAX_BURST) as usize
    }
}

impl fmt::Debug for LoopState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopState").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A loop that a test controls.
    #[derive(Default)]
    struct TestLoop(Mutex<Option<Duration>>);

    impl TestLoop {
        fn set(&self, cpu_if_waiting: Option<Duration>) {
            *self.0.lock().unwrap() = cpu_if_waiting;
        }
    }

    impl EventLoop for TestLoop {
        fn cpu_if_waiting(&self) -> Option<Duration> {
            *self.0.lock().unwrap()
        }
    }

    fn begin() -> (Arc<TestLoop>, LoopState, Instant) {
        let event_loop = Arc::new(TestLoop::default());
        (Arc::clone(&event_loop), LoopState::new(event_loop), Instant::now())
    }

    fn no_wait() -> Duration {
        Duration::ZERO
    }

    const MS: Duration = Duration::from_millis(1);
    const MICROS: Duration = Duration::from_micros(1);

    #[test]
    fn a_loop_that_waits_takes_a_request_and_a_loop_that_computes_does_not() {
        let (event_loop, state, now) = begin();
        event_loop.set(Some(MS));
        assert!(state.can_begin(3, 0, no_wait, now));
        event_loop.set(None);
        let now = now + OBSERVATION_LASTS;
        assert!(!state.can_begin(3, 0, no_wait, now));
        assert!(state.can_begin(0, 0, no_wait, now), "a member without requests always takes one");
    }

    #[test]
    fn a_loop_that_waits_but_has_not_run_since_it_got_a_request_has_not_begun_it() {
        let (event_loop, state, now) = begin();
        event_loop.set(Some(MS));
        assert!(state.can_begin(1, 0, no_wait, now));
        state.give(1, now);
        assert!(!state.can_begin(2, 0, no_wait, now + MS));
        event_loop.set(Some(MS + MICROS));
        assert!(state.can_begin(2, 0, no_wait, now + 2 * MS));
    }

    #[test]
    fn a_loop_that_does_not_run_for_requests_that_are_answered_decides_nothing() {
        let (event_loop, state, now) = begin();
        event_loop.set(Some(MS));
        assert!(state.can_begin(1, 0, no_wait, now));
        state.give(1, now);
        state.note_answered(1);
        assert!(!state.can_begin(1, 0, no_wait, now + MS), "it may be the answer to the request before");
        state.note_answered(2);
        assert!(state.can_begin(1, 0, no_wait, now + 2 * MS));
        (0..100).for_each(|_| state.give(1, now + 2 * MS));
        event_loop.set(None);
        assert!(state.can_begin(101, 0, no_wait, now + 9 * MS));
        assert_eq!(state.closed_until(101, None), None);
    }

    #[test]
    fn a_loop_that_has_run_for_the_requests_that_are_answered_decides() {
        let (event_loop, state, mut now) = begin();
        for answered in 0..100 {
            event_loop.set(Some(MICROS * u32::try_from(answered).unwrap()));
            state.note_answered(answered);
            assert!(state.can_begin(1, 0, no_wait, now));
            state.give(1, now);
            now += LIGHT_LASTS;
        }
        event_loop.set(None);
        assert!(!state.can_begin(1, 0, no_wait, now));
    }

    #[test]
    fn a_request_that_was_never_sent_does_not_close_the_member() {
        let (event_loop, state, now) = begin();
        event_loop.set(Some(MS));
        assert!(state.can_begin(2, 0, no_wait, now));
        state.give(1, now);
        state.take_back();
        assert!(state.can_begin(2, 0, no_wait, now + MS));
    }

    #[test]
    fn a_request_that_is_not_sent_yet_closes_the_member() {
        let (event_loop, state, now) = begin();
        event_loop.set(Some(MS));
        assert!(!state.can_begin(1, 1, no_wait, now));
        assert!(state.can_begin(1, 0, no_wait, now));
    }

    #[test]
    fn a_loop_is_observed_again_after_an_eighth_of_the_time_that_it_has_worked() {
        let (event_loop, state, now) = begin();
        assert!(!state.can_begin(1, 0, no_wait, now));
        assert!(!state.can_begin(1, 0, no_wait, now + 8 * MS), "observed, still busy: not again for 1 ms");
        event_loop.set(Some(MS));
        assert!(!state.can_begin(1, 0, no_wait, now + 8 * MS + 999 * MICROS));
        assert!(state.can_begin(1, 0, no_wait, now + 9 * MS));
    }

    #[test]
    fn a_member_without_requests_is_measured_before_it_gets_several() {
        let (event_loop, state, now) = begin();
        for millis in 0..4_000 {
            event_loop.set(Some(10 * MICROS * millis));
            state.give(0, now + MS * millis);
        }
        assert_eq!(state.seen.get().room, 31, "short requests: 32 at once");
        event_loop.set(Some(40 * MS + 20 * MS));
        state.give(0, now + Duration::from_secs(5));
        assert_eq!(state.seen.get().room, 0, "the last one took 20 ms");
    }

    #[test]
    fn requests_that_have_waited_long_go_several_at_once_to_a_loop_that_takes_longer() {
        let room = |cost: Duration, waited: Duration| {
            let (event_loop, state, now) = begin();
            let mut cpu = Duration::ZERO;
            for millis in 0..100 {
                event_loop.set(Some(cpu));
                assert!(state.can_begin(1, 0, || waited, now + 10 * MS * millis));
                state.give(1, now + 10 * MS * millis);
                cpu += cost
                    * u32::try_from(state.seen.get().given - state.seen.get().sample.unwrap().given).unwrap();
            }
            state.seen.get().room + 1
        };
        assert_eq!(room(1_200 * MICROS, 20 * MS), 1, "1 ms");
        assert_eq!(room(1_200 * MICROS, 50 * MS), 2, "2.5 ms");
        assert_eq!(room(1_200 * MICROS, 10_000 * MS), 3, "the limit of 4 ms");
        assert_eq!(room(5 * MS, 10_000 * MS), 1, "a page");
    }

    #[test]
    fn a_loop_whose_requests_have_waited_for_something_gets_some_ahead_while_it_works() {
        let (event_loop, state, now) = begin();
        for turn in 0..4 {
            // One more request each time. All of them wait, and each has cost 2 ms.
            let in_use = 1 + turn as usize;
            event_loop.set(Some(2 * MS * turn));
            assert!(state.can_begin(in_use, 0, no_wait, now + 10 * MS * turn));
            state.give(in_use, now + 10 * MS * turn);
        }
        event_loop.set(None);
        let mut in_use = 5;
        let mut given = |now: Instant, waited: Duration, answered: u64| {
            let before = in_use;
            state.note_answered(answered);
            while state.can_begin(in_use, 0, || waited, now) {
                state.give(in_use, now);
                in_use += 1;
            }
            in_use - before
        };
        let now = now + 40 * MS;
        assert_eq!(given(now, 4 * MS, 1), 0, "another loop may wait soon");
        assert_eq!(
            given(now + 3 * MS, 5 * MS, 2),
            2,
            "four waited, so it gets three more, and has one of them"
        );
        assert_eq!(given(now + 5 * MS, 5 * MS, 2), 0, "it has enough");
        in_use = 5;
        let mut again = |after: Duration, answered: u64| {
            state.note_answered(answered);
            let room = state.can_begin(in_use, 0, || 20_000 * MS, now + after);
            if room {
                state.give(in_use, now + after);
                in_use += 1;
            }
            room
        };
        assert!(again(7 * MS, 4), "it has answered two");
        assert!(!again(20_000 * MS, 4), "it hangs");
        assert!(again(20_010 * MS, 5), "it goes on");
    }

    #[test]
    fn a_loop_whose_requests_only_compute_gets_none_ahead() {
        let (event_loop, state, now) = begin();
        for turn in 0..40 {
            // From the second turn of four on, the member is without requests.
            let in_use = if turn % 4 == 0 { 3 } else { 0 };
            event_loop.set(Some(2 * MS * turn));
            assert!(state.can_begin(in_use, 0, no_wait, now + 10 * MS * turn));
            state.give(in_use, now + 10 * MS * turn);
        }
        event_loop.set(None);
        state.note_answered(1);
        assert!(!state.can_begin(1, 0, || 1_000 * MS, now + 1_000 * MS));
        state.note_answered(2);
        assert!(!state.can_begin(1, 0, || 1_000 * MS, now + 2_000 * MS));
    }

    #[test]
    fn a_loop_is_observed_after_an_eighth_of_the_cost_of_its_requests() {
        let (event_loop, state, now) = begin();
        for turn in 0..40 {
            event_loop.set(Some(2 * MS * turn));
            assert!(state.can_begin(1, 0, no_wait, now + 10 * MS * turn));
            state.give(1, now + 10 * MS * turn);
        }
        let now = now + Duration::from_secs(1);
        event_loop.set(None);
        assert!(!state.can_begin(1, 0, no_wait, now));
        event_loop.set(Some(80 * MS));
        assert!(!state.can_begin(1, 0, no_wait, now + 249 * MICROS));
        assert!(state.can_begin(1, 0, no_wait, now + 250 * MICROS));
    }

    #[test]
    fn a_member_whose_requests_need_a_millisecond_together_gets_them_without_a_look() {
        let (event_loop, state, now) = begin();
        for turn in 0..40 {
            event_loop.set(Some(100 * MICROS * turn));
            assert!(state.can_begin(20, 0, no_wait, now + 10 * MS * turn));
            state.give(20, now + 10 * MS * turn);
        }
        let seen = now + 390 * MS;
        event_loop.set(None);
        let can_begin = |in_use, after| state.can_begin(in_use, in_use, no_wait, seen + after);
        assert!(can_begin(9, MS), "it has nine requests of 100 microseconds");
        assert!(!can_begin(10, MS));
        assert!(!can_begin(9, 2 * MS), "it was not seen for two milliseconds");
        let [light, heavy] = [9, 10].map(|in_use| state.closed_until(in_use, Some(seen + MS)));
        assert!(light.is_none() && heavy.is_none_or(|until| until < seen + MS), "{light:?}, {heavy:?}");
    }

    #[test]
    fn several_requests_at_once_go_only_to_a_loop_that_begins_all_of_them_in_a_millisecond() {
        let (event_loop, state, mut now) = begin();
        let mut cpu = Duration::ZERO;
        let mut burst = |cost: Duration| {
            let given = state.seen.get().given - state.seen.get().sample.map_or(0, |before| before.given);
            cpu += cost * u32::try_from(given).unwrap();
            event_loop.set(Some(cpu));
            now += LIGHT_LASTS;
            let requests = (1..=64).find(|unsent| {
                assert!(*unsent > 1 || state.can_begin(1, 0, no_wait, now));
                state.give(*unsent, now);
                !state.can_begin(1 + *unsent, *unsent, no_wait, now)
            });
            requests.unwrap()
        };
        assert_eq!(burst(200 * MICROS), 1, "the cost is not known yet");
        assert_eq!(burst(200 * MICROS), 5);
        let bursts: Vec<_> = (0..40).map(|_| burst(10 * MICROS)).collect();
        assert_eq!(bursts.last(), Some(&32), "the limit");
        assert_eq!(burst(5 * MS), 1, "32 requests of 5 ms");
        let bursts: Vec<_> = (0..200).map(|_| burst(10 * MICROS)).collect();
        assert_eq!((bursts[0], bursts[20], bursts[199]), (1, 1, 32), "the average falls slowly");
    }
}
