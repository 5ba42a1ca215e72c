//! Workers that hang, in the pool and while they leave.

use super::*;

#[test]
fn a_hung_worker_is_killed_and_replaced() {
    let life = ready().after(60 * SECOND).on(LifecycleEvent::Hung).does(&[Action::Leave, Action::Diagnose]);
    let life = life.on(LifecycleEvent::Diagnosed).does(&[Action::Kill(KillReason::Hung)]);
    life.gets_killed().does(&[Action::AskTurn]);
    booting().on(LifecycleEvent::Hung).does(&[]);
}

#[test]
fn a_hung_worker_without_a_stack_trace_is_killed_in_time_too() {
    let life = hung();
    let before = life.now;
    let life = life.at_deadline().does(&[Action::Kill(KillReason::Hung)]);
    assert!(life.now - before < 2 * SECOND);
    life.on(LifecycleEvent::Diagnosed).does(&[]).gets_killed().does(&[Action::AskTurn]);
}

#[test]
fn a_hung_worker_is_asked_for_its_stack_once_and_outlives_no_stop() {
    hung().on(LifecycleEvent::Hung).does(&[]).on(LifecycleEvent::Listening).does(&[]);
    hung()
        .on(LifecycleEvent::Stop)
        .does(&[Action::Kill(KillReason::Hung)])
        .gets_killed()
        .is(LifecycleState::Stopped);
    hung()
        .on(LifecycleEvent::Kill)
        .does(&[Action::Kill(KillReason::Ordered)])
        .gets_killed()
        .is(LifecycleState::Stopped);
    hung()
        .on(LifecycleEvent::Orphaned)
        .does(&[Action::Kill(KillReason::Orphaned)])
        .gets_killed()
        .does(&[Action::AskTurn]);
    hung().dies().does(&[Action::AskTurn]);
    ready().on(LifecycleEvent::Diagnosed).does(&[]);
}
