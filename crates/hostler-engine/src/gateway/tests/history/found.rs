//! Histories in which the simulation has found a defect, in their shortest form.

use std::cell::Cell;

use hostler_testkit::Simulation;
use tokio::runtime::Builder;

use super::ProxyHistories;
use super::record::Coverage;
use super::script::{Fault, Script};
use super::steps::{Ask, History, Settings, Step, plain};

/// Runs these steps with two members that have one slot each. At the end four plain requests are answered.
fn run(steps: Vec<Step>) -> Coverage {
    let settings = Settings {
        is_tame: false,
        slots: vec![1, 1],
        queue_limit: 100,
        queue_timeout: 900,
        request_timeout: 1_000,
        connect_timeout: 20,
        failures: 1,
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
    // The first request finds one member silent, which is ejected, and keeps the other one busy. When the second request comes, the first
    // member may be asked again, and has not answered since.
    let busy = Ask { scripts: vec![Script { works: 600, ..Script::plain() }], ..plain(1) };
    let ask = Ask { scripts: vec![closes.clone(), closes, is_late], ..plain(2) };
    let outage = Step::Outage { member: 0, long: 25, is_silent: true };
    let seen = run(vec![outage, Step::Ask(busy), Step::Pass(60), Step::Ask(ask)]);
    assert_eq!((seen.whole, seen.late), (6, 0), "{seen:?}");
}
