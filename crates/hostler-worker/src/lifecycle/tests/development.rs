//! Lives of workers whose app is being developed, without processes and without a clock.

use super::*;
use crate::development::Development;

fn developed() -> WorkerSettings {
    let development =
        Development { waits_for_changes: true, retire_timeout: Some(SECOND), ..Development::default() };
    WorkerSettings { development, ..settings() }
}

#[test]
fn while_an_app_is_developed_a_failed_boot_waits_for_a_change() {
    let failed =
        spawned(developed()).on(LifecycleEvent::Turn).on(LifecycleEvent::Exited(DeathReport::default()));
    let life = failed.life.as_ref().unwrap();
    assert!(life.waits_for_change() && life.deadline() > Some(failed.now + 1_000 * SECOND));
    // Its successor is not tried twice.
    let successor = born_as(PoolRole::Successor, developed()).on(LifecycleEvent::Turn);
    let failed = successor.on(LifecycleEvent::Exited(DeathReport::default()));
    assert_eq!(failed.life.as_ref().unwrap().state(), LifecycleState::Stopped);
    // A worker that had requests boots again at once.
    let served = DeathReport { served: true, ..DeathReport::default() };
    let ready = spawned(developed()).on(LifecycleEvent::Turn).on(LifecycleEvent::Listening);
    let dead = ready.on(LifecycleEvent::Exited(served));
    assert_eq!(dead.life.as_ref().unwrap().state(), LifecycleState::Queued);
}

#[test]
fn while_an_app_is_developed_a_replaced_worker_has_little_time_to_finish() {
    let ready = spawned(developed()).on(LifecycleEvent::Turn).on(LifecycleEvent::Listening);
    let leaving = ready.on(LifecycleEvent::Retire);
    assert_eq!(leaving.life.as_ref().unwrap().deadline(), Some(leaving.now + SECOND));
}
