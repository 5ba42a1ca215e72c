//! Histories in which the simulation has found a defect, in their shortest form.

use std::cell::Cell;

use hostler_testkit::Simulation;
use tokio::runtime::Builder;

use super::ProxyHistories;
use super::record::Coverage;
use super::script::{Fault, Script};
use super::steps::{Ask, History, Settings, Step, plain};

/// Runs these steps with members that have so many slots. At the end each slot has two plain requests, which are answered. Returns all that
/// happens, too.
fn run(slots: Vec<usize>, steps: Vec<Step>) -> (Coverage, String) {
    let settings = Settings {
        is_tame: false,
        slots,
        queue_limit: 100,
        queue_timeout: 900,
        request_timeout: 1_000,
        connect_timeout: 20,
        failures: 1,
        hedge: None,
        streams_body: false,
        capacity: 20_000,
        hangs_up: false,
    };
    let unused = Builder::new_current_thread().build().unwrap();
    let history = History { seed: 0, settings, steps };
    let mut trace = String::new();
    (ProxyHistories::run(&history, &unused, &Cell::new(0), Some(&mut trace)).unwrap(), trace)
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
    let steps = vec![outage, Step::Ask(busy), Step::Pass(60), Step::Ask(ask)];
    let (seen, _) = run(vec![1, 1], steps);
    assert_eq!((seen.whole, seen.late), (6, 0), "{seen:?}");
}

#[test]
fn a_request_that_kept_connections_swallow_is_sent_three_times() {
    let closes = Script { fault: Fault::CloseBefore, ..Script::plain() };
    // Five connections are kept. Then each of them ends over the request, and no new one can be made.
    let first = (1..=5).map(|id| Step::Ask(plain(id)));
    let outage = Step::Outage { member: 0, long: 2_000, is_silent: false };
    let ask = Ask { scripts: vec![closes], ..plain(6) };
    let steps = first.chain([Step::Pass(100), outage, Step::Ask(ask), Step::Pass(3_000)]).collect();
    let (seen, trace) = run(vec![5], steps);
    assert_eq!((trace.matches("gets GET 6.").count(), seen.unreachable), (3, 1), "{trace}");
}
