//! Spares: they stand by, step in and step back.

use super::*;

fn standing_by() -> Life {
    born_as(Standing::Spare, rules()).on(Event::Turn).on(Event::Listening).does(&[]).is(State::Standby)
}

#[test]
fn a_spare_that_is_ready_stands_by_steps_in_at_once_and_back_after_its_last_request() {
    let life = standing_by();
    assert_eq!(life.life().deadline(), None);
    let life = life.on(Event::StepBack).does(&[]).on(Event::StepIn).does(&[Action::Join]).is(State::Ready);
    let life = life.on(Event::StepIn).does(&[]).on(Event::StepBack).does(&[Action::Withdraw]);
    life.is(State::SteppingBack).on(Event::Finished).does(&[]).is(State::Standby);
}

#[test]
fn a_spare_that_is_needed_again_while_it_finishes_its_requests_joins_after_them() {
    let life = standing_by().on(Event::StepIn).on(Event::StepBack).on(Event::StepIn).does(&[]);
    life.on(Event::Finished).does(&[Action::Join]).is(State::Ready);
}

#[test]
fn a_spare_that_dies_comes_back_and_stands_by() {
    let dies = |life: Life| life.dies_over_a_request().boots_again().on(Event::Listening).is(State::Standby);
    dies(dies(standing_by()).on(Event::StepIn)).on(Event::StepIn).does(&[Action::Join]);
    let stepping_back = || standing_by().on(Event::StepIn).on(Event::StepBack);
    dies(stepping_back());
    let hung = stepping_back().on(Event::Hung).does(&[Action::Diagnose]).on(Event::Diagnosed);
    dies(hung.does(&[Action::Kill(Why::Hung)]));
}

#[test]
fn a_spare_that_is_not_ready_cannot_step_in() {
    let booting = || born_as(Standing::Spare, rules()).on(Event::Turn);
    booting().on(Event::StepIn).does(&[]).on(Event::Listening).does(&[]).is(State::Standby);
}

#[test]
fn a_spare_stops_and_retires_in_every_state() {
    let signal = &[Action::Terminate];
    standing_by().on(Event::Stop).does(signal).dies().is(State::Stopped);
    standing_by().on(Event::Retire).does(signal).dies().is(State::Stopped);
    standing_by().on(Event::Kill).does(&[Action::Kill(Why::Ordered)]).gets_killed().is(State::Stopped);
    standing_by().on(Event::Orphaned).does(&[Action::Kill(Why::Orphaned)]).gets_killed().is(State::Queued);
    let stepping_back = || standing_by().on(Event::StepIn).on(Event::StepBack);
    stepping_back().on(Event::Stop).does(signal).dies().is(State::Stopped);
    let retiring = stepping_back().on(Event::Retire).does(&[]).on(Event::Finished).does(signal);
    retiring.dies().is(State::Stopped);
    standing_by().on(Event::StepIn).on(Event::Retire).does(&[Action::Withdraw]);
}
