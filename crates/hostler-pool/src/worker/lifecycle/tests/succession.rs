//! Successors on probation, and workers that are needed no more.

use super::*;

#[test]
fn one_that_retires_leaves_the_pool_finishes_its_requests_and_stops_then() {
    let life = ready().on(Event::Retire).does(&[Action::Withdraw]);
    let life = life.after(50 * SECOND).on(Event::Tick).does(&[]).on(Event::Retire).does(&[]);
    life.on(Event::Finished).does(&[Action::Terminate]).dies().does(&[]).is(State::Stopped);
}

#[test]
fn one_that_hears_is_told_to_shut_down_only_after_its_last_request() {
    let life = ready().on(Event::Hears).on(Event::Retire).does(&[Action::Withdraw]);
    life.on(Event::Finished).does(&[Action::SayShutdown]).at_deadline().does(&[Action::Terminate]);
}

#[test]
fn one_that_retires_waits_no_longer_than_a_hang_for_its_last_request() {
    let life = ready().on(Event::Retire);
    let start = life.now;
    let life = life.at_deadline().does(&[Action::Terminate]);
    assert_eq!(life.now - start, 60 * SECOND);
    life.on(Event::Finished).does(&[]).at_deadline().does(&[Action::Kill(Why::StopTimeout)]);
}

#[test]
fn one_that_hangs_dies_or_loses_its_app_while_it_retires_does_not_come_back() {
    let hung = || ready().on(Event::Retire).on(Event::Hung).does(&[Action::Diagnose]);
    let killed = hung().on(Event::Diagnosed).does(&[Action::Kill(Why::Hung)]);
    killed.gets_killed().does(&[]).is(State::Stopped);
    hung().dies().does(&[]).is(State::Stopped);
    hung().on(Event::Stop).does(&[Action::Kill(Why::Hung)]).gets_killed().is(State::Stopped);
    ready().on(Event::Retire).dies().does(&[]).is(State::Stopped);
    let orphan = ready().on(Event::Retire).on(Event::Orphaned).does(&[Action::Kill(Why::Orphaned)]);
    orphan.dies().does(&[]).is(State::Stopped);
}

#[test]
fn a_stop_does_not_wait_for_one_that_retires() {
    ready().on(Event::Retire).on(Event::Stop).does(&[Action::Terminate]).dies().is(State::Stopped);
    ready().on(Event::Retire).on(Event::Kill).does(&[Action::Kill(Why::Ordered)]).dies().is(State::Stopped);
}

#[test]
fn one_that_does_not_serve_retires_by_stopping() {
    booting().on(Event::Retire).does(&[Action::Terminate]).dies().is(State::Stopped);
    booting().dies().on(Event::Retire).does(&[]).is(State::Stopped);
    hung()
        .on(Event::Retire)
        .does(&[])
        .at_deadline()
        .does(&[Action::Kill(Why::Hung)])
        .gets_killed()
        .does(&[])
        .is(State::Stopped);
}

#[test]
fn a_successor_takes_over_when_it_has_been_in_the_pool_for_a_moment() {
    let life = successor().on(Event::Listening).does(&[Action::Join]);
    let life = life.after(PROBATION / 2).on(Event::Tick).does(&[]);
    let life = life.at_deadline().does(&[Action::TakeOver]).is(State::Ready);
    assert_eq!((life.life().standing(), life.life().deadline()), (Standing::Regular, None));
    life.dies().does(&[Action::Leave, Action::AskTurn]);
}

#[test]
fn a_successor_that_dies_before_it_is_ready_has_one_more_chance() {
    let life = successor().dies().does(&[Action::AskTurn]).on(Event::Turn);
    life.dies().does(&[]).is(State::Stopped);
    let life = successor().on(SPAWN_FAILED).on(Event::Turn);
    life.on(SPAWN_FAILED).does(&[]).is(State::Stopped);
}

#[test]
fn so_has_one_that_dies_as_soon_as_it_is_ready() {
    let life = successor().on(Event::Listening).dies().does(&[Action::Leave, Action::AskTurn]);
    life.on(Event::Turn).on(Event::Listening).dies().does(&[Action::Leave]).is(State::Stopped);
}

#[test]
fn a_successor_that_dies_over_requests_is_booted_again_however_often() {
    let mut life = successor();
    for _ in 0..20 {
        life = life.on(Event::Listening).dies_over_a_request().does(&[Action::Leave, Action::AskTurn]);
        life = life.on(Event::Turn);
    }
    // What was before is no failure of its boot.
    let life = life.on(Event::Listening).dies().boots_again().on(Event::Listening);
    let life = life.gets_killed().boots_again().on(Event::Listening);
    life.at_deadline().does(&[Action::TakeOver]);
}

#[test]
fn behind_a_process_that_lives_on_it_is_no_different() {
    let orphaned = |life: Life| {
        let life = life.on(Event::Listening).on(Event::Orphaned);
        life.does(&[Action::Leave, Action::Kill(Why::Orphaned)])
    };
    let killed = Death { killed: true, ..Death::default() };
    let mut life = successor();
    for _ in 0..20 {
        let death = Event::Exited(Death { served: true, ..killed });
        life = orphaned(life).on(death).does(&[Action::AskTurn]).on(Event::Turn);
    }
    // Without a request it has one more chance.
    let life = orphaned(life).on(Event::Exited(killed)).does(&[Action::AskTurn]).on(Event::Turn);
    orphaned(life).on(Event::Exited(killed)).does(&[]).is(State::Stopped);
    // One that does not succeed anybody rests longer and longer.
    let mut life = booting();
    for rest in [0, 200, 500, 1_000] {
        life =
            orphaned(life).on(Event::Exited(killed)).rests_about(Duration::from_millis(rest)).boots_again();
    }
}

#[test]
fn a_successor_that_is_not_ready_in_time_or_hangs_has_none() {
    let life = successor().at_deadline().at_deadline().does(&[Action::Kill(Why::StartTimeout)]);
    life.gets_killed().does(&[]).is(State::Stopped);
    let life = successor().on(Event::Listening).on(Event::Hung).does(&[Action::Leave, Action::Diagnose]);
    life.on(Event::Diagnosed).gets_killed().does(&[]).is(State::Stopped);
}
