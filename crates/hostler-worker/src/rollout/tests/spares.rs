//! Spares: when there are any, and when they join the pool.

use super::super::spares::{CALM, WINDOW};
use super::*;

fn spare(task: u64, index: usize) -> RolloutAction {
    RolloutAction::Start { task: WorkerTaskId(task), index, role: WorkerRole::Spare }
}

fn steps_in(task: u64) -> RolloutAction {
    RolloutAction::StepIn(WorkerTaskId(task))
}

fn steps_back(task: u64) -> RolloutAction {
    RolloutAction::StepBack(WorkerTaskId(task))
}

fn dismissed(task: u64, why: &str) -> RolloutAction {
    RolloutAction::Retire { task: WorkerTaskId(task), why: why.into() }
}

impl Pool {
    fn blocked(self, task: u64, blocked: bool) -> Self {
        self.on(RolloutEvent::Heard(WorkerTaskId(task), WorkerReport::Blocked(blocked)))
    }
}

/// A pool with one spare that stands by.
fn with_spare(count: usize) -> Pool {
    let next = count as u64 + 1;
    let pool = pool(count).on(RolloutEvent::Spares(Spares::Fixed(1))).does(&[spare(next, count + 1)]);
    pool.ready(next).does(&[])
}

#[test]
fn the_second_death_in_half_a_minute_brings_a_spare_and_a_minute_without_one_ends_it() {
    let pool = pool(2).dies(1).does(&[]).ready(1).after(WINDOW).dies(1).does(&[]).ready(1);
    let pool = pool.after(WINDOW - SECOND).dies(2).does(&[spare(3, 3)]).ready(2);
    assert_eq!(pool.plan.deadline(), Some(pool.now + CALM));
    let pool =
        pool.ready(3).after(CALM - SECOND).dies(2).does(&[steps_in(3)]).ready(2).does(&[steps_back(3)]);
    let pool =
        pool.after(CALM - SECOND).on(RolloutEvent::Tick).does(&[]).after(SECOND).on(RolloutEvent::Tick);
    let pool = pool.does(&[dismissed(3, "no spare is needed any more")]);
    assert_eq!(pool.plan.deadline(), None);
    pool.dies(1).does(&[]);
}

#[test]
fn a_blocked_worker_brings_a_spare_that_serves_until_its_loop_turns_again() {
    let pool = pool(2).blocked(1, true).does(&[spare(3, 3)]).ready(3).does(&[steps_in(3)]);
    let pool = pool.after(CALM).on(RolloutEvent::Tick).does(&[]).blocked(1, false).does(&[steps_back(3)]);
    let pool = pool.after(CALM - SECOND).blocked(2, true).does(&[steps_in(3)]);
    // It is killed and boots again.
    let pool = pool.dies(2).does(&[]).ready(2).does(&[steps_back(3)]).after(CALM).on(RolloutEvent::Tick);
    pool.does(&[dismissed(3, "no spare is needed any more")]).blocked(3, true).does(&[]);
}

#[test]
fn a_worker_that_is_blocked_for_long_keeps_its_spare_also_if_that_boots_slowly_or_dies() {
    let pool = pool(2).blocked(1, true).does(&[spare(3, 3)]).after(CALM).on(RolloutEvent::Tick).does(&[]);
    let pool = pool.ready(3).does(&[steps_in(3)]).after(CALM).dies(3).does(&[]);
    let pool = pool.ready(3).does(&[steps_in(3)]).blocked(1, false).does(&[steps_back(3)]);
    let pool = pool.after(CALM).on(RolloutEvent::Tick);
    pool.does(&[dismissed(3, "no spare is needed any more")]);
}

#[test]
fn a_blocked_worker_has_a_spare_only_if_it_is_allowed() {
    pool(1).blocked(1, true).does(&[]);
    pool(2).on(RolloutEvent::Spares(Spares::Fixed(0))).blocked(1, true).does(&[]);
    with_spare(1).blocked(1, true).does(&[steps_in(2)]);
}

#[test]
fn a_spare_in_the_place_of_a_worker_whose_boots_fail_stays_until_that_is_back() {
    let pool = pool(2).dies(1).ready(1).dies(1).does(&[spare(3, 3)]).ready(3).does(&[steps_in(3)]);
    let pool = pool.fails(1, 1).after(CALM).on(RolloutEvent::Tick).does(&[]).fails(1, 2).does(&[]);
    assert_eq!(pool.plan.deadline(), None, "its end is no question of time");
    let left = RolloutEvent::Heard(WorkerTaskId(3), WorkerReport::Left);
    let pool = pool.ready(1).does(&[steps_back(3)]).on(left);
    pool.does(&[dismissed(3, "no spare is needed any more")]).ends(3).does(&[]);
}

#[test]
fn the_end_of_a_spare_is_due_until_it_is_seen() {
    let pool = pool(2).dies(1).does(&[]).ready(1).dies(1).does(&[spare(3, 3)]).ready(1).ready(3);
    // Something else happens at the same moment, and is handled first.
    let pool = pool.after(CALM);
    assert_eq!(pool.plan.deadline(), Some(pool.now));
    let pool = pool.on(RolloutEvent::Tick).does(&[dismissed(3, "no spare is needed any more")]);
    assert_eq!(pool.plan.deadline(), None, "it is due once");
}

#[test]
fn a_single_worker_has_no_spare_unless_configured_and_0_means_none() {
    let alone = pool(1).dies(1).ready(1).dies(1).does(&[]).ready(1);
    alone.on(RolloutEvent::Spares(Spares::Fixed(1))).does(&[spare(2, 2)]);
    let pool = pool(2).on(RolloutEvent::Spares(Spares::Fixed(0))).dies(1).dies(2).does(&[]);
    pool.on(RolloutEvent::Spares(Spares::Auto)).does(&[spare(3, 3)]);
}

#[test]
fn boots_that_fail_bring_no_spare() {
    pool(2).fails(1, 1).does(&[]).fails(1, 2).does(&[]).fails(2, 1).does(&[]);
}

#[test]
fn a_spare_steps_in_as_soon_as_a_worker_is_missing_and_for_as_long() {
    let left = RolloutEvent::Heard(WorkerTaskId(1), WorkerReport::Left);
    let pool = with_spare(2).on(left).does(&[steps_in(3)]).dies(1).does(&[]).dies(2).does(&[]);
    pool.ready(1).does(&[]).ready(2).does(&[steps_back(3)]).dies(2).does(&[steps_in(3)]);
}

#[test]
fn a_spare_that_dies_steps_in_again_when_it_is_back() {
    let pool = with_spare(2).dies(1).does(&[steps_in(3)]).dies(3).does(&[]);
    pool.ready(3).does(&[steps_in(3)]).dies(3).ready(1).does(&[]).ready(3).does(&[]);
}

#[test]
fn workers_in_their_first_boot_need_no_spare() {
    let pool = Pool { plan: Plan::default(), now: Instant::now(), todo: vec![] };
    let pool = pool
        .on(RolloutEvent::Count(2))
        .on(RolloutEvent::Spares(Spares::Fixed(1)))
        .does(&[spare(3, 3)])
        .ready(3)
        .does(&[]);
    pool.ready(1).does(&[]).ready(2).does(&[]);
}

#[test]
fn a_spare_of_the_old_generation_stays_until_all_workers_are_new() {
    let pool = with_spare(1).on(RolloutEvent::Restart).does(&[RolloutAction::Start {
        task: WorkerTaskId(3),
        index: 1,
        role: WorkerRole::Successor(ReplaceCause::Restart),
    }]);
    let pool = pool.takes_over(3).dies(3).does(&[steps_in(2)]).ready(3).does(&[steps_back(2)]).ends(1);
    let pool = pool.does(&[RolloutAction::Reached(1), dismissed(2, "replaced by a restart"), spare(4, 2)]);
    // A failed boot of a spare changes nothing.
    pool.ready(4).ends(2).on(RolloutEvent::Restart).ends(5).dies(3).does(&[steps_in(4)]);
}

#[test]
fn no_spare_is_started_during_a_restart() {
    let pool = pool(2).on(RolloutEvent::Restart).dies(1).does(&[]).dies(2).does(&[]).ready(1).ready(2);
    let pool = pool.replaced(1, 3).takes_over(4).ends(2);
    pool.does(&[RolloutAction::Reached(1), spare(5, 3)]);
}

#[test]
fn the_numbers_of_spares_come_after_those_of_the_workers() {
    let why = "the number of workers changes";
    let pool = with_spare(1).on(RolloutEvent::Count(2));
    pool.does(&[
        dismissed(2, why),
        RolloutAction::Start { task: WorkerTaskId(3), index: 2, role: WorkerRole::Regular },
        spare(4, 3),
    ]);
}

#[test]
fn a_spare_due_for_recycling_is_replaced_and_nothing_waits_for_that() {
    let pool = with_spare(2).due(3);
    let pool = pool.does(&[dismissed(3, "recycled: 1 s old"), spare(4, 3)]);
    assert_eq!(pool.due(1).todo.len(), 1, "a worker may be recycled meanwhile");
}

#[test]
fn a_spare_that_stands_in_for_a_worker_is_recycled_only_if_another_stands_by() {
    let recycled = |task| dismissed(task, "recycled: 1 s old");
    let stands_in = || with_spare(1).dies(1).does(&[steps_in(2)]);
    let back = stands_in().due(2).does(&[]).fails(1, 1).due(2).does(&[]).ready(1).does(&[steps_back(2)]);
    back.due(2).does(&[recycled(2), spare(3, 2)]);
    let deaf = RolloutEvent::Heard(WorkerTaskId(2), WorkerReport::NotListening(Reason::NotListening));
    let why = "recycled: it does not listen any more";
    stands_in().on(deaf).does(&[dismissed(2, why), spare(3, 2)]);

    let two = pool(2).on(RolloutEvent::Spares(Spares::Fixed(2))).ready(3).ready(4);
    let two = two.dies(1).does(&[steps_in(3)]).due(3);
    two.does(&[recycled(3), spare(5, 3), steps_in(4)]);
}

#[test]
fn a_spare_that_stands_in_for_a_worker_stays_while_the_pool_grows() {
    let third = RolloutAction::Start { task: WorkerTaskId(4), index: 3, role: WorkerRole::Regular };
    let pool = with_spare(2).dies(1).does(&[steps_in(3)]).on(RolloutEvent::Count(3)).does(&[third]);
    let pool = pool.ready(4).does(&[]).ready(1).does(&[steps_back(3)]);
    let left = RolloutEvent::Heard(WorkerTaskId(3), WorkerReport::Left);
    pool.on(left).does(&[dismissed(3, "the number of workers changes"), spare(5, 4)]);
}

#[test]
fn a_new_spare_has_a_number_of_its_own() {
    let pool = pool(2).on(RolloutEvent::Spares(Spares::Fixed(2))).does(&[spare(3, 3), spare(4, 4)]);
    let pool = pool.ready(3).ready(4).due(3).does(&[dismissed(3, "recycled: 1 s old"), spare(5, 3)]);
    pool.ready(5).due(4).does(&[dismissed(4, "recycled: 1 s old"), spare(6, 4)]);
}

#[test]
fn a_stop_starts_no_spare() {
    with_spare(2).on(RolloutEvent::Stop).does(&[]).dies(1).does(&[]).on(RolloutEvent::Tick).does(&[]);
}
