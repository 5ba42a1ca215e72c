//! The screen of `hostler top` and its keys, with statuses made here.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

fn status(granted: u64) -> Value {
    let worker = |index: u64| {
        json!({ "index": index, "pid": 4000 + index, "state": "ready", "uptime_ms": 60_000, "in_use": 1, "slots": 2, "tunnels": 0,
                "streams": 0, "requests": granted / index, "restarts": 0, "memory": index << 26, "utilisation": 0.25, "last_exit": null })
    };
    let pool = |name: &str, queue: u64| {
        json!({ "name": name, "in_use": 2, "slots": 4, "queue_length": queue, "queue_limit": 100, "overloaded": queue > 50,
                "counters": { "granted": granted, "refused_overload": granted / 10 },
                "times": { "queue_wait": { "p50_us": 1200, "p99_us": 480_000 }, "worker_time": { "p50_us": 45_000, "p99_us": 90_000 } },
                "workers": [worker(1), worker(2)] })
    };
    json!({ "version": "0.1.0", "pid": 77, "state": "running", "uptime_ms": 90_000, "memory": 1 << 25,
            "connections": { "open": 9 }, "process": { "cpu_ms": granted }, "pools": [pool("web", 3), pool("api", 80)],
            "advice": [{ "severity": "warning", "text": "web: queue wait p99 is 5 x the worker time", "action": "Add workers." }],
            "requests_now": {
                "oldest": [{ "pool": "web", "lane": "2", "route": "/report/*", "age_us": 12_500_000 }, { "pool": "api", "lane": null, "route": "/api/*", "age_us": 900 }],
                "slowest": [{ "pool": "web", "lane": "1", "route": "/shop/*", "status": 200, "wait_us": 1500, "hold_us": 2_400_000, "total_us": 2_401_500 },
                            { "pool": "api", "lane": null, "route": "/api/*", "status": 503, "refusal": "queue_full", "wait_us": 0, "hold_us": null, "total_us": 300 }] },
            "routes": [{ "answers": { "2xx": granted }, "refusals": { "overloaded": 7 } }], "unrouted": { "answers": {}, "refusals": {} } })
}

fn seen() -> TopState {
    let mut state = TopState::new("127.0.0.1:8081".into(), true);
    let start = Instant::now();
    state.take(start, Ok(status(1000)));
    state.take(start + Duration::from_secs(2), Ok(status(1100)));
    state
}

fn drawn(state: &TopState, width: u16, height: u16) -> String {
    let mut screen = Buffer::empty(Rect::new(0, 0, width, height));
    draw::screen(state, screen.area, &mut screen);
    (0..height).map(|y| page::row_text(&screen, y) + "\n").collect()
}

#[test]
fn a_small_terminal_shows_advice_pools_lanes_and_refusals() {
    let shown = drawn(&seen(), 80, 24);
    for part in [
        "hostler 0.1.0 pid 77 running, up 1m 30s",
        "50 req/s  9 connections  cpu 5 %  32.0 MiB",
        "warning: web: queue wait p99 is 5 x the worker time.",
        "> web              2/4    3/100     50    1.2ms 480.0ms   45.0ms  90.0ms       5",
        "> 1               ready            1/2     50   25%  64.0 MiB        0  #.",
        " !api              2/4   80/100",
        "overloaded 7",
        "q quit",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

#[test]
fn every_size_can_be_drawn() {
    for (width, height) in [(0, 0), (1, 1), (10, 3), (40, 10), (80, 24), (300, 100)] {
        let mut state = seen();
        for view in TopView::ALL {
            state.view = view;
            drawn(&state, width, height);
        }
        state.helps = true;
        drawn(&state, width, height);
    }
    drawn(&TopState::new("x".into(), false), 80, 24);
}

#[test]
fn a_snapshot_has_all_pools() {
    let mut status = status(1000);
    let named = |at: usize| {
        let mut pool = status["pools"][0].clone();
        pool["name"] = json!(format!("app{at}"));
        pool
    };
    let pools: Vec<Value> = (0..150).map(named).collect();
    status["pools"] = pools.into();
    let mut state = TopState::new("127.0.0.1:8081".into(), false);
    state.take(Instant::now(), Ok(status));
    let shown = snapshot(&state);
    assert!((0..150).all(|at| shown.contains(&format!(" app{at} "))), "{shown}");
}

#[test]
fn the_arrows_choose_a_pool_and_then_its_worker() {
    let mut state = seen();
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Down);
    assert!(drawn(&state, 80, 24).contains(">!api"));
    press(&mut state, KeyCode::Tab);
    press(&mut state, KeyCode::Down);
    let shown = drawn(&state, 80, 24);
    assert!(shown.contains("> 2  ") && shown.contains("pid 4002"), "{shown}");
    assert!(!press(&mut state, KeyCode::Char('q')));
}

#[test]
fn a_blocked_worker_is_called_so_and_says_for_how_long() {
    let (mut state, mut status) = (seen(), status(1200));
    status["pools"][0]["workers"][0]["blocked_ms"] = json!(12_345);
    state.take(Instant::now() + Duration::from_secs(4), Ok(status));
    let shown = drawn(&state, 80, 40);
    assert!(shown.contains("> 1               blocked ") && shown.contains("blocked for 12s: "), "{shown}");
}

#[test]
fn a_member_of_two_pools_has_a_rate_in_each() {
    let status = |of_web: u64, of_api: u64| {
        let pool = |name: &str, granted: u64| json!({ "name": name, "members": [{ "id": 1, "endpoint": "10.0.0.1:80", "granted": granted }] });
        json!({ "pid": 77, "pools": [pool("web", of_web), pool("api", of_api)] })
    };
    let (mut state, start) = (TopState::new("127.0.0.1:8081".into(), true), Instant::now());
    state.take(start, Ok(status(1000, 5000)));
    state.take(start + Duration::from_secs(2), Ok(status(1100, 5010)));
    let rates: Vec<_> =
        state.pools().iter().map(|pool| state.worker_rate(pool, &pool["members"][0])).collect();
    assert_eq!(rates, [50.0, 5.0]);
}

#[test]
fn the_order_changes_by_a_key() {
    let mut state = seen();
    press(&mut state, KeyCode::Char('s'));
    press(&mut state, KeyCode::Char('s'));
    let names: Vec<_> = state.pools().iter().map(|pool| pool["name"].clone()).collect();
    assert_eq!(names, ["api", "web"], "the longest queue first");
    let numbers: Vec<_> = state.workers().iter().map(|worker| worker["index"].clone()).collect();
    assert_eq!(numbers, [2, 1], "the most memory first");
}

#[test]
fn a_server_that_is_away_keeps_its_last_figures_on_the_screen() {
    let mut state = seen();
    state.take(Instant::now(), Err("no Hostler answers on 127.0.0.1:8081: connection refused".into()));
    let shown = drawn(&state, 80, 24);
    assert!(shown.contains("127.0.0.1:8081: connection refused; trying again"), "{shown}");
    assert!(shown.contains("> web"), "{shown}");
    let mut successor = status(5);
    successor["pid"] = json!(78);
    state.take(Instant::now() + Duration::from_secs(5), Ok(successor));
    assert_eq!(state.total_rate(super::state::answers), 0.0, "another process counts from 0");
    assert!(!drawn(&state, 80, 24).contains("trying again"));
}

#[test]
fn a_complaint_that_is_wider_than_the_terminal_is_shown_whole() {
    let mut state = TopState::new("10.0.0.5:8081".into(), true);
    let why = "this Hostler needs its admin token: set HOSTLER_ADMIN_TOKEN, or name its file with --admin-token-file";
    state.take(Instant::now(), Err(why.into()));
    let shown = drawn(&state, 80, 24);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("{why}; trying again")), "{shown}");
    assert!(!shown.contains("no Hostler answers"), "{shown}");
}

#[test]
fn a_pause_keeps_the_figures() {
    let mut state = seen();
    press(&mut state, KeyCode::Char('p'));
    state.take(Instant::now(), Ok(status(9999)));
    assert_eq!(state.status()["process"]["cpu_ms"], 1100);
    assert!(drawn(&state, 80, 24).contains("PAUSED"));
}

#[test]
fn a_snapshot_is_text_without_keys() {
    let text = snapshot(&seen());
    assert!(
        text.starts_with("hostler 0.1.0") && text.contains("> web") && !text.contains("q quit"),
        "{text}"
    );
    assert!(!text.contains('\x1b') && text.ends_with("7\n"), "{text}");
    assert!(text.contains("oldest requests now") && text.contains("slowest of the last minute"), "{text}");
}

#[test]
fn the_oldest_and_the_slowest_requests_are_shown_by_a_key() {
    let mut state = seen();
    press(&mut state, KeyCode::Char('r'));
    let shown = drawn(&state, 80, 24);
    for part in
        ["     12.50s  web/2                /report/*", "      900us  api: in the queue    /api/*", "> web"]
    {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("pid 4001"), "the workers make room: {shown}");
    press(&mut state, KeyCode::Char('r'));
    let shown = drawn(&state, 80, 24);
    for part in [
        "      2.40s    1.5ms     2.40s  200    web/1            /shop/*",
        "      300us      0us         -  503    -                /api/* (queue_full)",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    press(&mut state, KeyCode::Char('r'));
    assert!(drawn(&state, 80, 24).contains("pid 4001"));
    press(&mut state, KeyCode::Char('3'));
    assert_eq!(state.view, TopView::Slowest);
}

#[test]
fn a_small_terminal_shows_the_oldest_requests_first() {
    let mut state = seen();
    press(&mut state, KeyCode::Char('2'));
    let shown = drawn(&state, 40, 12);
    assert!(shown.contains("12.50s  web/2"), "{shown}");
}

#[test]
fn a_hostler_that_tells_no_requests_or_has_none_is_said_so() {
    let mut state = seen();
    state.view = TopView::Oldest;
    let mut older = status(2000);
    older["requests_now"].take();
    state.take(Instant::now(), Ok(older));
    assert!(drawn(&state, 80, 24).contains("does not show single requests"));
    let mut idle = status(2000);
    idle["requests_now"] = json!({ "oldest": [], "slowest": [] });
    state.take(Instant::now(), Ok(idle));
    assert!(drawn(&state, 80, 24).contains("no request is under way"));
}

#[test]
fn a_snapshot_of_many_workers_has_all_views() {
    let mut many = status(1000);
    let worker = many["pools"][0]["workers"][0].clone();
    many["pools"][0]["workers"] = Value::Array(vec![worker; 500]);
    let mut state = TopState::new("127.0.0.1:8081".into(), true);
    state.take(Instant::now(), Ok(many));
    let text = snapshot(&state);
    assert_eq!(text.matches(" ready ").count(), 500, "{text}");
    assert!(text.contains("/report/*") && text.contains("slowest of the last minute"), "{text}");
}

#[test]
fn a_wide_terminal_shows_long_names_whole() {
    let mut long = status(1000);
    long["pools"][0]["name"] = json!("checkout-service-europe");
    let mut state = TopState::new("127.0.0.1:8081".into(), true);
    state.take(Instant::now(), Ok(long));
    assert!(
        drawn(&state, 120, 24).contains("> checkout-service-europe      2/4"),
        "{}",
        drawn(&state, 120, 24)
    );
    assert!(drawn(&state, 80, 24).contains("> checkout-se      2/4"), "{}", drawn(&state, 80, 24));
}

#[test]
fn an_advice_in_another_script_is_broken_into_lines() {
    let mut foreign = status(1000);
    let word = "\u{8f66}".repeat(15);
    foreign["advice"][0]["text"] = json!(format!("{word} {word} {word}"));
    let mut state = TopState::new("127.0.0.1:8081".into(), true);
    state.take(Instant::now(), Ok(foreign));
    drawn(&state, 21, 24);
    // Each of these characters takes two columns.
    let shown = drawn(&state, 60, 24);
    assert_eq!(shown.matches('\u{8f66}').count(), 45, "{shown}");
    let shown = snapshot(&state);
    assert!(shown.contains(&format!("warning: {word} {word} {word}.\n  Add workers.")), "{shown}");
}

#[test]
fn each_worker_can_be_chosen_while_one_is_replaced() {
    let mut replacing = status(1000);
    let [old, new, other] = [(1, 4), (1, 5), (2, 3)];
    let workers = [old, new, other].map(|(index, generation)| {
        json!({ "index": index, "generation": generation, "pid": 4000 + generation, "state": "ready" })
    });
    replacing["pools"][0]["workers"] = json!(workers);
    let mut state = TopState::new("127.0.0.1:8081".into(), true);
    state.take(Instant::now(), Ok(replacing.clone()));
    state.in_workers = true;
    let chosen: Vec<_> = (0..3)
        .map(|_| {
            state.choose(1);
            state.chosen_worker()
        })
        .collect();
    assert_eq!(chosen, [Some(1), Some(2), Some(2)]);
    state.choose(-1);
    state.choose(-1);
    replacing["pools"][0]["workers"] = json!([workers[2], workers[1]]);
    state.take(Instant::now(), Ok(replacing));
    assert_eq!(state.chosen_worker(), Some(1), "the successor is chosen in place of the one that has gone");
}

#[tokio::test(start_paused = true)]
async fn after_late_answers_the_next_question_comes_a_second_later() {
    let mut ticks = every_second();
    ticks.tick().await;
    tokio::time::advance(5 * SECOND).await;
    ticks.tick().await;
    let asked = Instant::now();
    ticks.tick().await;
    assert!(asked.elapsed() >= SECOND, "{:?}", asked.elapsed());
}
