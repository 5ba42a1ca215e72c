//! Workers that take more than `max_memory` from their start: their successors need as much.

use super::*;

const HEAVY: Reason = Reason::FromStart(300 << 20);

impl Pool {
    fn due_from_start(self, task: u64) -> Self {
        self.on(RolloutEvent::Due(WorkerTaskId(task), HEAVY))
    }
}

#[test]
fn workers_that_are_too_large_from_their_start_are_replaced_less_and_less_often() {
    let (mut pool, mut worker) = (pool(1), 1);
    for seconds in [30, 60, 120, 240, 480, 960, 960] {
        pool = pool.due_from_start(worker);
        assert_eq!(pool.todo.len(), 1, "started after the pause");
        pool = pool.replaced(worker, worker + 1).due_from_start(worker + 1).does(&[]);
        pool = pool.after((seconds - 1) * SECOND).due_from_start(worker + 1).does(&[]).after(SECOND);
        worker += 1;
    }
}

#[test]
fn the_wait_is_one_for_all_workers_of_a_pool_and_for_no_other_reason() {
    let pool =
        pool(3).due_from_start(2).replaced(2, 4).due_from_start(1).does(&[]).due_from_start(4).does(&[]);
    let leaks = RolloutEvent::Due(WorkerTaskId(1), Reason::Memory(900 << 20));
    assert_eq!(pool.on(leaks).todo.len(), 1, "this one has grown");
}

#[test]
fn after_a_restart_the_new_workers_show_again_what_they_need() {
    let pool = pool(1).due_from_start(1).replaced(1, 2).due_from_start(2).does(&[]);
    let pool = pool.on(RolloutEvent::Restart).replaced(2, 3).due_from_start(3);
    assert_eq!(pool.todo.len(), 1);
}

#[test]
fn a_spare_that_is_too_large_from_its_start_is_replaced_no_more_often() {
    let spare = |task| RolloutAction::Start { task: WorkerTaskId(task), index: 2, role: WorkerRole::Spare };
    let pool = pool(1).on(RolloutEvent::Spares(Spares::Fixed(1))).does(&[spare(2)]);
    let why = format!("recycled: {HEAVY}").into();
    let gone = RolloutAction::Retire { task: WorkerTaskId(2), why };
    let pool = pool.ready(2).due_from_start(2).does(&[gone, spare(3)]);
    pool.ready(3).due_from_start(3).does(&[]).due_from_start(1).does(&[]);
}
