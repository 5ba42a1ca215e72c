//! Deadlines that pass while Hostler itself does not run, as in a container that is paused.

use super::*;

const PAUSE: Duration = Duration::from_secs(3600);

#[test]
fn a_worker_that_boots_while_hostler_is_stopped_is_not_late() {
    let life = booting().after(3600 * SECOND).on(LifecycleEvent::Tick).does(&[]);
    let life = life.at_deadline().does(&[Action::YieldTurn]);
    let life = life.on(LifecycleEvent::Listening).does(&[Action::Join]).is(LifecycleState::Ready);
    life.dies().boots_again().at_deadline().at_deadline().does(&[Action::Kill(KillReason::StartTimeout)]);
    let silent = booting().after(3600 * SECOND).on(LifecycleEvent::Tick);
    let resumed = silent.now;
    let silent = silent.at_deadline().at_deadline().does(&[Action::Kill(KillReason::StartTimeout)]);
    assert_eq!(silent.now, resumed + 30 * SECOND);
}

#[test]
fn a_worker_that_stops_while_hostler_is_held_up_has_its_stop_timeout_again() {
    let life = ready().on(LifecycleEvent::Stop).does(&[Action::Leave, Action::Terminate]);
    let life = life.after(PAUSE).on(LifecycleEvent::Tick).does(&[]);
    let resumed = life.now;
    let life = life.on(LifecycleEvent::Tick).does(&[]).at_deadline();
    assert_eq!(life.does(&[Action::Kill(KillReason::StopTimeout)]).now - resumed, 10 * SECOND);
    // It has ended, and that is known only now.
    let life = ready().on(LifecycleEvent::Stop).after(PAUSE).on(LifecycleEvent::Tick).does(&[]);
    life.dies().does(&[]).is(LifecycleState::Stopped);
    let late = ready().on(LifecycleEvent::Stop).after(10 * SECOND + HELD_UP / 2).on(LifecycleEvent::Tick);
    late.does(&[Action::Kill(KillReason::StopTimeout)]);
}

#[test]
fn a_worker_that_has_heard_shutdown_gets_sigterm_after_half_of_its_new_time() {
    let life = ready().on(LifecycleEvent::Hears).on(LifecycleEvent::Stop);
    let life = life.does(&[Action::Leave, Action::SayShutdown]).after(PAUSE);
    let resumed = life.now;
    let life = life.on(LifecycleEvent::Tick).does(&[]).at_deadline().does(&[Action::Terminate]);
    assert_eq!(life.now - resumed, 5 * SECOND);
    let life = life.at_deadline().does(&[Action::Kill(KillReason::StopTimeout)]);
    assert_eq!(life.now - resumed, 10 * SECOND);
}

#[test]
fn a_retiring_worker_finishes_its_requests_although_hostler_was_held_up() {
    let life = ready().on(LifecycleEvent::Retire).after(PAUSE).on(LifecycleEvent::Tick).does(&[]);
    let resumed = life.now;
    life.on(LifecycleEvent::Finished).does(&[Action::Terminate]);
    let life = ready().on(LifecycleEvent::Retire).after(PAUSE).on(LifecycleEvent::Tick).at_deadline();
    assert!(life.does(&[Action::Terminate]).now - resumed >= 60 * SECOND);
}

#[test]
fn a_killed_worker_is_not_given_up_before_its_end_can_be_heard() {
    let life = ready().on(LifecycleEvent::Kill).after(PAUSE).on(LifecycleEvent::Tick).does(&[]);
    assert_ne!(life.life().state(), LifecycleState::Stopped);
    life.at_deadline().does(&[]).is(LifecycleState::Stopped);
}

#[test]
fn a_successor_serves_for_a_moment_after_hostler_was_held_up() {
    let life = successor().on(LifecycleEvent::Listening).after(PAUSE).on(LifecycleEvent::Tick).does(&[]);
    let resumed = life.now;
    let life = life.at_deadline().does(&[Action::TakeOver]);
    assert_eq!(life.now - resumed, PROBATION);
}
