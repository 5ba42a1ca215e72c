//! Each advice with figures that raise it and figures that do not. Knows no rules.

mod pools;
mod server;

use std::collections::BTreeSet;
use std::path::Path;

use super::scene::{AdviceCase, Scene, found_at_start};
use super::*;
use crate::admin::docs::objection;
use pools::{QUEUES, WORKERS};
use server::{HOST, PEERS, RESPONSES};

fn cases() -> impl Iterator<Item = &'static AdviceCase> {
    [QUEUES, WORKERS, RESPONSES, HOST, PEERS].into_iter().flatten()
}

#[test]
fn a_calm_server_gets_no_advice() {
    assert_eq!(Scene::calm().found(), []);
}

#[test]
fn each_advice_is_raised_by_its_figures_and_only_this_one() {
    for case in cases() {
        let mut scene = Scene::calm();
        (case.raised)(&mut scene);
        let found = scene.found();
        assert!(found.contains(&(case.row.id, case.text.to_owned())), "{}: {found:?}", case.row.id);
        let others = found.iter().filter(|(id, _)| *id != case.row.id);
        assert_eq!(others.collect::<Vec<_>>(), Vec::<&(&str, String)>::new(), "{}", case.row.id);
    }
}

#[test]
fn no_advice_is_raised_by_figures_that_are_just_not_enough() {
    for case in cases() {
        assert!(!case.quiet.is_empty(), "{}", case.row.id);
        for (n, quiet) in case.quiet.iter().enumerate() {
            let mut scene = Scene::calm();
            quiet(&mut scene);
            let found = scene.found();
            assert!(found.iter().all(|(id, _)| *id != case.row.id), "{}, {n}: {found:?}", case.row.id);
        }
    }
}

#[test]
fn every_advice_has_a_case() {
    let all: BTreeSet<_> = ADVICE.iter().map(|row| row.id).collect();
    let shown: BTreeSet<_> = cases().map(|case| case.row.id).collect();
    assert_eq!(all, shown);
    assert_eq!(ADVICE.len(), all.len(), "an id is used twice");
}

#[test]
fn a_server_that_drains_or_has_just_started_gets_no_advice_about_rates() {
    let mut scene = Scene::calm();
    scene.web().counters.refused_overload = 5000;
    scene.now.draining = true;
    assert_eq!(scene.found(), []);
    let mut scene = Scene::calm();
    scene.web().counters.refused_overload = 5000;
    assert_eq!(found_at_start(scene), 0);
}

#[test]
fn each_page_of_an_advice_exists_with_its_heading() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let rules = std::fs::read_to_string(docs.join("monitoring/hostler.rules.yml")).unwrap();
    for row in ADVICE {
        assert_eq!(objection(row.page), None, "{}", row.id);
        let alert = format!("alert: {}\n", row.alert);
        assert!(row.alert.is_empty() || rules.contains(&alert), "{}: {}", row.id, row.alert);
    }
}
