//! Spares: they stand by, take a place in the pool, and give it back.

use super::*;

fn standing_by() -> Life {
    born_as(PoolRole::Spare, settings())
        .on(LifecycleEvent::Turn)
        .on(LifecycleEvent::Listening)
        .does(&[])
        .is(LifecycleState::Standby)
}

#[test]
fn a_ready_spare_stands_by_steps_in_at_once_and_steps_back_after_its_last_request() {
    let life = standing_by();
    assert_eq!(life.life().deadline(), None);
    let life = life
        .on(LifecycleEvent::StepBack)
        .does(&[])
        .on(LifecycleEvent::StepIn)
        .does(&[Action::Join])
        .is(LifecycleState::Ready);
    let life =
        life.on(LifecycleEvent::StepIn).does(&[]).on(LifecycleEvent::StepBack).does(&[Action::Withdraw]);
    life.is(LifecycleState::SteppingBack).on(LifecycleEvent::Finished).does(&[]).is(LifecycleState::Standby);
}

#[test]
fn a_spare_that_is_needed_again_while_it_finishes_its_requests_joins_after_them() {
    let life = standing_by()
        .on(LifecycleEvent::StepIn)
        .on(LifecycleEvent::StepBack)
        .on(LifecycleEvent::StepIn)
        .does(&[]);
    life.on(LifecycleEvent::Finished).does(&[Action::Join]).is(LifecycleState::Ready);
}

#[test]
fn a_spare_that_dies_comes_back_and_stands_by() {
    let dies = |life: Life| {
        life.dies_over_a_request().boots_again().on(LifecycleEvent::Listening).is(LifecycleState::Standby)
    };
    dies(dies(standing_by()).on(LifecycleEvent::StepIn)).on(LifecycleEvent::StepIn).does(&[Action::Join]);
    let stepping_back = || standing_by().on(LifecycleEvent::StepIn).on(LifecycleEvent::StepBack);
    dies(stepping_back());
    let hung =
        stepping_back().on(LifecycleEvent::Hung).does(&[Action::Diagnose]).on(LifecycleEvent::Diagnosed);
    dies(hung.does(&[Action::Kill(KillReason::Hung)]));
}

#[test]
fn a_spare_that_is_not_ready_cannot_step_in() {
    let booting = || born_as(PoolRole::Spare, settings()).on(LifecycleEvent::Turn);
    booting()
        .on(LifecycleEvent::StepIn)
        .does(&[])
        .on(LifecycleEvent::Listening)
        .does(&[])
        .is(LifecycleState::Standby);
}

#[test]
fn a_spare_stops_and_retires_in_every_state() {
    let signal = &[Action::Terminate];
    standing_by().on(LifecycleEvent::Stop).does(signal).dies().is(LifecycleState::Stopped);
    standing_by().on(LifecycleEvent::Retire).does(signal).dies().is(LifecycleState::Stopped);
    standing_by()
        .on(LifecycleEvent::Kill)
        .does(&[Action::Kill(KillReason::Ordered)])
        .gets_killed()
        .is(LifecycleState::Stopped);
    standing_by()
        .on(LifecycleEvent::Orphaned)
        .does(&[Action::Kill(KillReason::Orphaned)])
        .gets_killed()
        .is(LifecycleState::Queued);
    let stepping_back = || standing_by().on(LifecycleEvent::StepIn).on(LifecycleEvent::StepBack);
    stepping_back().on(LifecycleEvent::Stop).does(signal).dies().is(LifecycleState::Stopped);
    let retiring =
        stepping_back().on(LifecycleEvent::Retire).does(&[]).on(LifecycleEvent::Finished).does(signal);
    retiring.dies().is(LifecycleState::Stopped);
    standing_by().on(LifecycleEvent::StepIn).on(LifecycleEvent::Retire).does(&[Action::Withdraw]);
}
