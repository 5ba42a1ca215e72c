//! Successors on probation, and workers that are not needed any more.

use super::*;

#[test]
fn a_retiring_worker_leaves_the_pool_finishes_its_requests_and_stops() {
    let life = ready().on(LifecycleEvent::Retire).does(&[Action::Withdraw]);
    let life =
        life.after(50 * SECOND).on(LifecycleEvent::Tick).does(&[]).on(LifecycleEvent::Retire).does(&[]);
    life.on(LifecycleEvent::Finished).does(&[Action::Terminate]).dies().does(&[]).is(LifecycleState::Stopped);
}

#[test]
fn a_listening_worker_gets_shutdown_only_after_its_last_request() {
    let life = ready().on(LifecycleEvent::Hears).on(LifecycleEvent::Retire).does(&[Action::Withdraw]);
    life.on(LifecycleEvent::Finished).does(&[Action::SayShutdown]).at_deadline().does(&[Action::Terminate]);
}

#[test]
fn a_worker_that_has_closed_its_channel_gets_one_sigterm() {
    let life = ready().on(LifecycleEvent::Hears).on(LifecycleEvent::Stop);
    let life = life.does(&[Action::Leave, Action::SayShutdown]);
    let start = life.now;
    let life = life.on(LifecycleEvent::Deaf).does(&[Action::Terminate]).on(LifecycleEvent::Deaf).does(&[]);
    let life = life.at_deadline().does(&[Action::Kill(KillReason::StopTimeout)]);
    assert_eq!(life.now - start, 10 * SECOND);
    ready().on(LifecycleEvent::Deaf).does(&[]);
}

#[test]
fn a_retiring_worker_waits_for_its_last_request_at_most_the_hang_timeout() {
    let life = ready().on(LifecycleEvent::Retire);
    let start = life.now;
    let life = life.at_deadline().does(&[Action::Terminate]);
    assert_eq!(life.now - start, 60 * SECOND);
    life.on(LifecycleEvent::Finished).does(&[]).at_deadline().does(&[Action::Kill(KillReason::StopTimeout)]);
}

#[test]
fn a_retiring_worker_that_hangs_or_dies_is_not_replaced() {
    let hung = || ready().on(LifecycleEvent::Retire).on(LifecycleEvent::Hung).does(&[Action::Diagnose]);
    let killed = hung().on(LifecycleEvent::Diagnosed).does(&[Action::Kill(KillReason::Hung)]);
    killed.gets_killed().does(&[]).is(LifecycleState::Stopped);
    hung().dies().does(&[]).is(LifecycleState::Stopped);
    hung()
        .on(LifecycleEvent::Stop)
        .does(&[Action::Kill(KillReason::Hung)])
        .gets_killed()
        .is(LifecycleState::Stopped);
    ready().on(LifecycleEvent::Retire).dies().does(&[]).is(LifecycleState::Stopped);
    let orphan = ready()
        .on(LifecycleEvent::Retire)
        .on(LifecycleEvent::Orphaned)
        .does(&[Action::Kill(KillReason::Orphaned)]);
    orphan.dies().does(&[]).is(LifecycleState::Stopped);
}

#[test]
fn a_stop_does_not_wait_for_a_retiring_worker() {
    ready()
        .on(LifecycleEvent::Retire)
        .on(LifecycleEvent::Stop)
        .does(&[Action::Terminate])
        .dies()
        .is(LifecycleState::Stopped);
    ready()
        .on(LifecycleEvent::Retire)
        .on(LifecycleEvent::Kill)
        .does(&[Action::Kill(KillReason::Ordered)])
        .dies()
        .is(LifecycleState::Stopped);
}

#[test]
fn a_worker_that_does_not_serve_retires_by_stopping() {
    booting().on(LifecycleEvent::Retire).does(&[Action::Terminate]).dies().is(LifecycleState::Stopped);
    booting().dies().on(LifecycleEvent::Retire).does(&[]).is(LifecycleState::Stopped);
    hung()
        .on(LifecycleEvent::Retire)
        .does(&[])
        .at_deadline()
        .does(&[Action::Kill(KillReason::Hung)])
        .gets_killed()
        .does(&[])
        .is(LifecycleState::Stopped);
}

#[test]
fn a_successor_takes_over_when_it_has_been_in_the_pool_for_a_moment() {
    let life = successor().on(LifecycleEvent::Listening).does(&[Action::Join]);
    let life = life.after(PROBATION / 2).on(LifecycleEvent::Tick).does(&[]);
    let life = life.at_deadline().does(&[Action::TakeOver]).is(LifecycleState::Ready);
    assert_eq!((life.life().role(), life.life().deadline()), (PoolRole::Regular, None));
    life.dies().does(&[Action::Leave, Action::AskTurn]);
}

#[test]
fn a_successor_that_dies_before_it_is_ready_has_one_more_chance() {
    let life = successor().dies().does(&[Action::AskTurn]).on(LifecycleEvent::Turn);
    life.dies().does(&[]).is(LifecycleState::Stopped);
    let life = successor().on(SPAWN_FAILED).on(LifecycleEvent::Turn);
    life.on(SPAWN_FAILED).does(&[]).is(LifecycleState::Stopped);
}

#[test]
fn a_successor_that_dies_right_after_readiness_has_one_more_chance() {
    let life = successor().on(LifecycleEvent::Listening).dies().does(&[Action::Leave, Action::AskTurn]);
    life.on(LifecycleEvent::Turn)
        .on(LifecycleEvent::Listening)
        .dies()
        .does(&[Action::Leave])
        .is(LifecycleState::Stopped);
}

#[test]
fn a_successor_that_requests_crash_is_booted_again_every_time() {
    let mut life = successor();
    for _ in 0..20 {
        life =
            life.on(LifecycleEvent::Listening).dies_over_a_request().does(&[Action::Leave, Action::AskTurn]);
        life = life.on(LifecycleEvent::Turn);
    }
    // What happened before is not a failed boot.
    let life = life.on(LifecycleEvent::Listening).dies().boots_again().on(LifecycleEvent::Listening);
    let life = life.gets_killed().boots_again().on(LifecycleEvent::Listening);
    life.at_deadline().does(&[Action::TakeOver]);
}

#[test]
fn a_successor_that_dies_behind_a_living_parent_is_treated_the_same() {
    let orphaned = |life: Life| {
        let life = life.on(LifecycleEvent::Listening).on(LifecycleEvent::Orphaned);
        life.does(&[Action::Leave, Action::Kill(KillReason::Orphaned)])
    };
    let killed = DeathReport { killed: true, ..DeathReport::default() };
    let mut life = successor();
    for _ in 0..20 {
        let death = LifecycleEvent::Exited(DeathReport { served: true, ..killed });
        life = orphaned(life).on(death).does(&[Action::AskTurn]).on(LifecycleEvent::Turn);
    }
    // Without a request it has one more chance.
    let life =
        orphaned(life).on(LifecycleEvent::Exited(killed)).does(&[Action::AskTurn]).on(LifecycleEvent::Turn);
    orphaned(life).on(LifecycleEvent::Exited(killed)).does(&[]).is(LifecycleState::Stopped);
    // A worker that is not a successor rests longer and longer.
    let mut life = booting();
    for rest in [0, 200, 500, 1_000] {
        life = orphaned(life)
            .on(LifecycleEvent::Exited(killed))
            .rests_about(Duration::from_millis(rest))
            .boots_again();
    }
}

#[test]
fn a_successor_that_is_not_ready_in_time_or_hangs_has_no_more_chance() {
    let life = successor().at_deadline().at_deadline().does(&[Action::Kill(KillReason::StartTimeout)]);
    life.gets_killed().does(&[]).is(LifecycleState::Stopped);
    let life = successor()
        .on(LifecycleEvent::Listening)
        .on(LifecycleEvent::Hung)
        .does(&[Action::Leave, Action::Diagnose]);
    life.on(LifecycleEvent::Diagnosed).gets_killed().does(&[]).is(LifecycleState::Stopped);
}
