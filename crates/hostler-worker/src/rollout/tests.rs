//! Plans, without processes and without a clock.

mod heavy;
mod model;
mod spares;

use std::time::Duration;

use super::*;
use crate::settings::Spares;

const SECOND: Duration = Duration::from_secs(1);

/// A plan, its own clock, and the last actions.
struct Pool {
    plan: Plan,
    now: Instant,
    todo: Vec<RolloutAction>,
}

/// Worker tasks are numbered in the order of their start, so the first ones are 1, 2 ...
fn pool(count: usize) -> Pool {
    let pool =
        Pool { plan: Plan::default(), now: Instant::now(), todo: vec![] }.on(RolloutEvent::Count(count));
    (1..=count as u64).fold(pool, |pool, task| pool.ready(task))
}

fn start_worker(task: u64, index: usize) -> RolloutAction {
    RolloutAction::Start {
        task: WorkerTaskId(task),
        index,
        role: WorkerRole::Successor(ReplaceCause::Restart),
    }
}

fn retire(task: u64) -> RolloutAction {
    RolloutAction::Retire { task: WorkerTaskId(task), why: "replaced by a restart".into() }
}

const OLD: Reason = Reason::Age(SECOND);

impl Pool {
    fn on(mut self, event: RolloutEvent) -> Self {
        (self.plan, self.todo) = self.plan.step(event, self.now);
        self
    }

    fn ready(self, task: u64) -> Self {
        self.on(RolloutEvent::Heard(WorkerTaskId(task), WorkerReport::Ready))
    }

    fn takes_over(self, task: u64) -> Self {
        self.ready(task).on(RolloutEvent::Heard(WorkerTaskId(task), WorkerReport::TookOver))
    }

    fn replaced(self, old: u64, new: u64) -> Self {
        self.takes_over(new).ends(old)
    }

    /// The worker dies after this many failed boots in a row.
    fn fails(self, task: u64, failed_boots: u32) -> Self {
        self.on(RolloutEvent::Heard(
            WorkerTaskId(task),
            WorkerReport::Died { failed_boots, how: "exit code 1".into() },
        ))
    }

    /// The worker dies after it was ready.
    fn dies(self, task: u64) -> Self {
        self.fails(task, 0)
    }

    fn ends(self, task: u64) -> Self {
        self.on(RolloutEvent::Heard(WorkerTaskId(task), WorkerReport::Ended { how: "exit code 3".into() }))
    }

    fn due(self, task: u64) -> Self {
        self.on(RolloutEvent::Due(WorkerTaskId(task), OLD))
    }

    fn after(mut self, time: Duration) -> Self {
        self.now += time;
        self
    }

    #[track_caller]
    fn does(self, todo: &[RolloutAction]) -> Self {
        assert_eq!(self.todo, todo);
        self
    }
}

#[test]
fn a_restart_replaces_one_worker_after_the_other() {
    let pool = pool(2).on(RolloutEvent::Restart).does(&[start_worker(3, 1)]);
    let pool = pool.ready(3).does(&[]).takes_over(3).does(&[retire(1)]);
    let pool = pool.ends(1).does(&[start_worker(4, 2)]);
    assert_eq!((pool.plan.progress(), pool.plan.replacing()), (reached(1, 2, true), Some(2)));
    let pool = pool.takes_over(4).does(&[retire(2)]);
    assert!(pool.plan.is_restarting());
    let pool = pool.ends(2).does(&[RolloutAction::Reached(1)]);
    assert!(!pool.plan.is_restarting());
}

#[test]
fn a_new_worker_that_is_drained_does_not_hold_up_the_restart_and_one_that_died_does() {
    let aside = RolloutEvent::Heard(WorkerTaskId(3), WorkerReport::Aside);
    let pool = || pool(2).on(RolloutEvent::Restart).takes_over(3).does(&[retire(1)]);
    pool().on(aside.clone()).ends(1).does(&[start_worker(4, 2)]);
    // It dies meanwhile, and boots again.
    pool().on(aside).dies(3).ends(1).does(&[]).ready(3).does(&[start_worker(4, 2)]);
}

#[test]
fn a_restart_with_newer_code_dismisses_the_worker_that_boots_with_older_code() {
    let newer = |task| RolloutAction::Retire { task: WorkerTaskId(task), why: "there is newer code".into() };
    let pool = pool(1).on(RolloutEvent::RestartAnew).does(&[start_worker(2, 1)]);
    let pool = pool.on(RolloutEvent::RestartAnew).does(&[newer(2), start_worker(3, 1)]);
    // The dismissed worker says nothing about the newer code.
    let pool = pool.fails(2, 1).does(&[]).ends(2).does(&[]);
    let pool = pool.takes_over(3).does(&[retire(1)]);
    // A change while the old worker finishes its requests: the next replacement follows.
    let pool = pool
        .on(RolloutEvent::RestartAnew)
        .does(&[])
        .ends(1)
        .does(&[RolloutAction::Reached(2), start_worker(4, 1)]);
    pool.replaced(3, 4).does(&[RolloutAction::Reached(3)]);
}

fn reached(replaced: usize, total: usize, any_ready: bool) -> Reached {
    Reached { replaced, total, any_ready }
}

#[test]
fn where_no_worker_is_ready_a_failed_restart_says_so() {
    let error = RestartError::Boot { worker: 1, how: "exit code 3".into(), reached: reached(0, 1, false) };
    let told =
        "the new worker 1 did not get ready: exit code 3; 0 of 1 workers were replaced, and none is ready";
    assert_eq!(error.to_string(), told);
    pool(1).fails(1, 1).on(RolloutEvent::Restart).ends(2).does(&[RolloutAction::Fail(error)]);
}

#[test]
fn a_generation_that_is_not_ready_ends_the_restart_and_the_old_workers_stay() {
    let pool = pool(2).on(RolloutEvent::Restart).replaced(1, 3).ends(4);
    let error = RestartError::Boot { worker: 2, how: "exit code 3".into(), reached: reached(1, 2, true) };
    assert_eq!(
        error.to_string(),
        "the new worker 2 did not get ready: exit code 3; 1 of 2 workers were replaced, the others stay"
    );
    let pool = pool.does(&[RolloutAction::Fail(error)]).ready(2).does(&[]);
    // The next attempt begins with the oldest worker and replaces all.
    let pool = pool.on(RolloutEvent::Restart).does(&[start_worker(5, 2)]).replaced(2, 5);
    pool.does(&[start_worker(6, 1)]).replaced(3, 6).does(&[RolloutAction::Reached(2)]);
}

#[test]
fn a_restart_during_a_restart_joins_it_and_replaces_workers_booted_before() {
    let pool = pool(2).on(RolloutEvent::Restart).on(RolloutEvent::Restart).does(&[]);
    // 3 booted between the two commands: new enough for the first, not for the second.
    let pool = pool.replaced(1, 3).does(&[start_worker(4, 2)]);
    let pool = pool.replaced(2, 4).does(&[RolloutAction::Reached(1), start_worker(5, 1)]);
    pool.replaced(3, 5).does(&[RolloutAction::Reached(2)]);
}

#[test]
fn a_second_restart_fails_only_by_its_own_worker_and_both_tell_what_the_first_has_replaced() {
    let pool = pool(3).on(RolloutEvent::Restart).replaced(1, 4).on(RolloutEvent::Restart);
    let pool = pool.ends(5).does(&[start_worker(6, 2)]).ends(6);
    let error = RestartError::Boot { worker: 2, how: "exit code 3".into(), reached: reached(1, 3, true) };
    assert!(error.has_replaced_some());
    pool.does(&[RolloutAction::Fail(error)]);
}

#[test]
fn a_new_worker_that_has_died_is_waited_for() {
    let pool = pool(2).on(RolloutEvent::Restart).takes_over(3).dies(3).does(&[]).ends(1).does(&[]);
    pool.ready(3).does(&[start_worker(4, 2)]);
}

#[test]
fn a_new_worker_whose_boots_fail_ends_the_restart_early() {
    let pool = pool(3).on(RolloutEvent::Restart).replaced(1, 4).fails(4, 1).does(&[]).fails(4, 2).does(&[]);
    let error = RestartError::Unstable { worker: 1, how: "exit code 1".into(), reached: reached(1, 3, true) };
    let unneeded = RolloutAction::Retire { task: WorkerTaskId(5), why: "the new workers keep dying".into() };
    pool.fails(4, 3).does(&[unneeded, RolloutAction::Fail(error)]).takes_over(5).does(&[]);
}

#[test]
fn a_worker_of_an_earlier_restart_neither_holds_up_nor_ends_the_next_one() {
    let pool = pool(3).on(RolloutEvent::Restart).replaced(1, 4).fails(4, 3).ends(5);
    // The new worker of the failed restart still boots with the old code when the better one arrives.
    let pool = pool.on(RolloutEvent::Restart).does(&[start_worker(6, 1)]).fails(4, 4).does(&[]);
    let pool = pool.replaced(4, 6).does(&[start_worker(7, 2)]);
    pool.replaced(2, 7).replaced(3, 8).does(&[RolloutAction::Reached(2)]);
}

#[test]
fn a_worker_that_waits_for_a_change_of_files_does_not_hold_up_the_restart_for_it() {
    let pool = pool(2).on(RolloutEvent::RestartAnew).takes_over(3).fails(3, 1).ends(1).does(&[]);
    let pool = pool.on(RolloutEvent::RestartAnew).does(&[start_worker(4, 1)]);
    pool.replaced(3, 4).replaced(2, 5).does(&[RolloutAction::Reached(2)]);
}

#[test]
fn a_successor_that_requests_crash_is_tried_again_a_few_times() {
    let mut pool = pool(2)
        .on(RolloutEvent::Spares(Spares::Fixed(0)))
        .on(RolloutEvent::Restart)
        .does(&[start_worker(3, 1)]);
    for _ in 0..MOST_LOSSES {
        pool = pool.ready(3).dies(3).does(&[]);
    }
    let error = RestartError::Unstable { worker: 1, how: "exit code 1".into(), reached: reached(0, 2, true) };
    let gone = RolloutAction::Retire { task: WorkerTaskId(3), why: "it keeps dying".into() };
    pool.dies(3).does(&[gone, RolloutAction::Fail(error)]).ends(3).does(&[]);
}

#[test]
fn new_workers_may_die_as_often_as_old_ones_do() {
    let mut pool = pool(3).on(RolloutEvent::Spares(Spares::Fixed(0))).on(RolloutEvent::Restart);
    for _ in 0..50 {
        // The successor and the worker that it replaces die by turns.
        pool = pool.ready(4).dies(4).does(&[]).dies(1).does(&[]).ready(1);
    }
    let mut pool = pool.replaced(1, 4).does(&[start_worker(5, 2)]);
    for _ in 0..50 {
        pool = pool.dies(4).does(&[]).ready(4).dies(3).does(&[]).ready(3);
    }
    let pool = pool.replaced(2, 5).replaced(3, 6).does(&[RolloutAction::Reached(1)]);
    // The next restart starts to count at zero.
    let mut pool = pool.on(RolloutEvent::Restart).does(&[start_worker(7, 1)]);
    for _ in 0..=MOST_LOSSES {
        pool = pool.ready(7).dies(7);
    }
    assert!(matches!(
        pool.todo[..],
        [RolloutAction::Retire { .. }, RolloutAction::Fail(RestartError::Unstable { .. })]
    ));
}

#[test]
fn a_successor_that_took_over_may_die_more_often_within_a_limit() {
    let mut pool =
        pool(2).on(RolloutEvent::Spares(Spares::Fixed(0))).on(RolloutEvent::Restart).replaced(1, 3);
    pool = pool.does(&[start_worker(4, 2)]);
    for _ in 0..MOST_LOSSES_OF_PROVEN {
        pool = pool.dies(3).does(&[]).ready(3).does(&[]);
    }
    let pool = pool.dies(3);
    assert!(matches!(
        pool.todo[..],
        [RolloutAction::Retire { .. }, RolloutAction::Fail(RestartError::Unstable { .. })]
    ));
}

#[test]
fn a_recycling_whose_successor_keeps_dying_keeps_the_old_worker() {
    let mut pool = pool(2).due(2);
    for _ in 0..=MOST_LOSSES {
        pool = pool.ready(3).dies(3);
    }
    let gone = RolloutAction::Retire { task: WorkerTaskId(3), why: "it keeps dying".into() };
    let (how, pause) = ("exit code 1".into(), 30 * SECOND);
    pool.does(&[gone, RolloutAction::KeepOld { index: 2, reason: OLD, how, pause }]);
}

#[test]
fn an_old_worker_that_dies_during_its_replacement_changes_nothing() {
    let pool = pool(1).on(RolloutEvent::Restart).dies(1).does(&[]).fails(1, 5).does(&[]);
    pool.replaced(1, 2).does(&[RolloutAction::Reached(1)]);
}

#[test]
fn a_stop_ends_a_restart_and_no_worker_is_started_any_more() {
    let pool = pool(2)
        .on(RolloutEvent::Restart)
        .on(RolloutEvent::Stop)
        .does(&[RolloutAction::Fail(RestartError::Stopping)]);
    pool.takes_over(3).does(&[]).on(RolloutEvent::Restart).does(&[]).on(RolloutEvent::Count(5)).does(&[]);
}

#[test]
fn more_workers_are_booted_and_fewer_retire_from_the_end() {
    let pool = pool(2).on(RolloutEvent::Count(3));
    let pool = pool
        .does(&[RolloutAction::Start { task: WorkerTaskId(3), index: 3, role: WorkerRole::Regular }])
        .ready(3);
    let fewer =
        |task| RolloutAction::Retire { task: WorkerTaskId(task), why: "fewer workers are wanted".into() };
    let pool = pool.on(RolloutEvent::Count(1)).does(&[fewer(2), fewer(3)]);
    pool.on(RolloutEvent::Count(1)).does(&[]);
}

#[test]
fn a_drained_worker_is_put_back_if_only_drained_ones_are_left() {
    let aside = |task| RolloutEvent::Heard(WorkerTaskId(task), WorkerReport::Aside);
    let fewer =
        |task| RolloutAction::Retire { task: WorkerTaskId(task), why: "fewer workers are wanted".into() };
    let back = RolloutAction::Undrain(WorkerTaskId(1));
    pool(2).on(aside(1)).on(RolloutEvent::Count(1)).does(&[fewer(2), back]);
    // Worker 2 serves.
    pool(3).on(aside(1)).on(RolloutEvent::Count(2)).does(&[fewer(3)]);
    // An operator has drained both.
    pool(2).on(aside(1)).on(aside(2)).on(RolloutEvent::Count(1)).does(&[fewer(2)]);
}

#[test]
fn fewer_workers_during_a_restart_stop_a_successor_that_is_not_needed() {
    let pool = pool(2).on(RolloutEvent::Restart).replaced(1, 3).on(RolloutEvent::Count(1));
    let fewer =
        |task| RolloutAction::Retire { task: WorkerTaskId(task), why: "fewer workers are wanted".into() };
    pool.does(&[fewer(2), fewer(4), RolloutAction::Reached(1)]).ends(4).does(&[]);
}

#[test]
fn one_is_recycled_at_a_time_and_its_successor_comes_first() {
    let recycle = ReplaceCause::Recycled(OLD);
    let first =
        RolloutAction::Start { task: WorkerTaskId(3), index: 2, role: WorkerRole::Successor(recycle) };
    let pool = pool(2).due(2).does(&[first]).due(1).does(&[]).due(2).does(&[]);
    let gone = RolloutAction::Retire { task: WorkerTaskId(2), why: "recycled: 1 s old".into() };
    let pool = pool.takes_over(3).does(&[gone]).due(1).does(&[]);
    assert_eq!(pool.ends(2).due(1).todo.len(), 1);
}

#[test]
fn an_ordered_replacement_waits_for_the_others_and_for_no_pause() {
    let order = || RolloutEvent::Due(WorkerTaskId(1), Reason::Inspected);
    let recycle = ReplaceCause::Recycled(Reason::Inspected);
    let start = |task| RolloutAction::Start {
        task: WorkerTaskId(task),
        index: 1,
        role: WorkerRole::Successor(recycle.clone()),
    };
    pool(1).on(order()).does(&[start(2)]).ends(2).due(1).does(&[]).on(order()).does(&[start(3)]);
    let pool = || pool(2).due(2).on(order()).does(&[]);
    pool().takes_over(3).ends(2).does(&[start(4)]);
    // A restart replaces it, too.
    pool()
        .on(RolloutEvent::Restart)
        .replaced(2, 3)
        .replaced(1, 4)
        .replaced(3, 5)
        .does(&[RolloutAction::Reached(1)]);
    pool().on(RolloutEvent::Stop).ends(3).does(&[]);
}

#[test]
fn a_worker_that_does_not_listen_any_more_is_replaced_like_one_that_is_recycled() {
    let not_listening =
        RolloutEvent::Heard(WorkerTaskId(1), WorkerReport::NotListening(Reason::NotListening));
    let started = RolloutAction::Start {
        task: WorkerTaskId(2),
        index: 1,
        role: WorkerRole::Successor(ReplaceCause::Recycled(Reason::NotListening)),
    };
    let pool = pool(1).ready(1).on(not_listening.clone()).does(&[started]);
    let why: Arc<str> = "recycled: it does not listen any more".into();
    let retired = RolloutAction::Retire { task: WorkerTaskId(1), why };
    pool.on(not_listening).does(&[]).takes_over(2).does(&[retired]);
}

#[test]
fn a_worker_that_does_not_listen_waits_a_short_time_after_a_failed_replacement_of_any_kind() {
    let not_listening =
        || RolloutEvent::Heard(WorkerTaskId(1), WorkerReport::NotListening(Reason::NotListening));
    // For its age it would be recycled again after 60 s.
    let pool = pool(1).due(1).ends(2).after(30 * SECOND).due(1).ends(3).due(1).does(&[]);
    let mut pool = pool.on(not_listening());
    for successor in 4..10 {
        assert_eq!(pool.todo.len(), 1, "started");
        pool = pool.ends(successor).on(not_listening()).does(&[]).after(10 * SECOND).on(not_listening());
    }
}

#[test]
fn no_worker_is_recycled_during_a_restart_and_a_restart_waits_for_a_recycling() {
    let pool = pool(2).on(RolloutEvent::Restart).due(2).does(&[]);
    let pool = pool.replaced(1, 3).replaced(2, 4).due(3).on(RolloutEvent::Restart).does(&[]);
    // The replacement of 3 had booted before the restart was ordered.
    pool.replaced(3, 5).does(&[start_worker(6, 1)]);
}

#[test]
fn a_recycling_that_fails_keeps_the_old_worker_and_is_tried_again_later_and_later() {
    let mut pool = pool(1);
    let mut successor = 2;
    for seconds in [30, 60, 120, 240, 480, 960, 960] {
        pool = pool.due(1);
        assert_eq!(pool.todo.len(), 1, "started after the pause");
        let (how, pause) = ("exit code 3".into(), seconds * SECOND);
        pool = pool.ends(successor).does(&[RolloutAction::KeepOld { index: 1, reason: OLD, how, pause }]);
        pool = pool.after(pause - SECOND).due(1).does(&[]).after(SECOND);
        successor += 1;
    }
    pool = pool.due(1).replaced(1, successor).due(successor).ends(successor + 1);
    assert!(matches!(pool.todo[..], [RolloutAction::KeepOld { pause, .. }] if pause == 30 * SECOND));
}
