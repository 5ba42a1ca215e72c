//! Histories in which the simulation has found a defect, in their shortest form.

use std::cell::Cell;

use hostler_testkit::Simulation;
use tokio::runtime::Builder;

use super::ProxyHistories;
use super::record::Coverage;
use super::script::{Fault, Script};
use super::steps::{Ask, History, Settings, Step, plain};

/// Runs these steps with one member that has one slot. At the end two plain requests are answered.
fn run(steps: Vec<Step>) -> Coverage {
    let settings = Settings {
        is_tame: false,
        slots: vec![1],
        queue_limit: 100,
        queue_timeout: 900,
        request_timeout: 1_000,
        connect_timeout: 100,
        failures: 0,
        hedge: None,
        streams_body: false,
        capacity: 20_000,
    };
    let unused = Builder::new_current_thread().build().unwrap();
    let history = History { seed: 0, settings, steps };
    ProxyHistories::run(&history, &unused, &Cell::new(0), None).unwrap()
}

#[test]
fn the_last_try_of_a_request_waits_for_a_late_answer_until_the_deadline() {
    let closes = Script { fault: Fault::CloseBefore, ..Script::plain() };
    let is_late = Script { works: 400, ..Script::plain() };
    // After an outage the member counts as one that may be silent, until it answers.
    let outage = Step::Outage { member: 0, long: 30, is_silent: false };
    let ask = Ask { scripts: vec![closes.clone(), closes, is_late], ..plain(1) };
    let seen = run(vec![outage, Step::Ask(ask)]);
    assert_eq!((seen.whole, seen.late), (3, 0), "{seen:?}");
}
