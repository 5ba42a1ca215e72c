//! Which requests a limit counts, refuses and charges.

use std::time::Duration;

use hostler_config::{FairBy, RequestRate};
use hostler_dispatch::SlotCost;
use hostler_wire::Fields;
use tokio::time::advance;

use super::*;
use crate::exchange::{Ledger, NoClient, RouteAccount};
use crate::gateway::fair::FairKeys;
use crate::gateway::target::{PoolTarget, Route, Target};
use crate::gateway::tests::{request, seconds, target};

fn rule(requests: u64, key: &[&str]) -> RateLimit {
    RateLimit {
        requests: Some(RequestRate { requests, burst: requests }),
        worker_time: None,
        per: seconds(60),
        key: key.iter().map(|by| by.parse::<FairBy>().unwrap()).collect(),
        fields: true,
        dry_run: false,
    }
}

fn limiter(rule: &RateLimit) -> Arc<RateLimiter> {
    RateLimiter::new(LimitScope::Route, &"/x".into(), Some(rule), None).unwrap()
}

/// How many of a thousand requests pass.
fn passing(limits: &[Arc<RateLimiter>], ip: &str, fields: &str) -> usize {
    (0..1000).filter(|_| admit(limits, &mut request(ip, fields)).is_ok()).count()
}

/// The lines that the answer gets, and the seconds of `Retry-After`.
fn said(exchange: &Exchange) -> (Vec<String>, u32) {
    let none = Fields::default();
    let lines = exchange.to_client.lines(&none);
    let lines = lines.map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)));
    (lines.collect(), exchange.log_facts.retry_after)
}

/// The slot of the request comes back after this long.
fn hold(exchange: &Exchange, hold: Duration) {
    let ledger = Arc::new(Ledger::new(clock::now()));
    let account = RouteAccount::new(&ledger, &"/x".into(), &Arc::default());
    account.payer(None, &exchange.log_facts.charges).pay(0, SlotCost { hold, cpu: None });
}

#[tokio::test(start_paused = true)]
async fn a_client_is_an_ipv4_address_or_a_64_of_ipv6() {
    let limits = [limiter(&rule(10, &["client"]))];
    assert_eq!(passing(&limits, "192.0.2.1", ""), 10);
    assert_eq!(passing(&limits, "::ffff:192.0.2.1", ""), 0);
    assert_eq!(passing(&limits, "192.0.2.2", ""), 10);
    assert_eq!(passing(&limits, "2001:db8:1:2::1", ""), 10);
    assert_eq!(passing(&limits, "2001:db8:1:2:ffff::9", ""), 0);
    assert_eq!(passing(&limits, "2001:db8:1:3::1", ""), 10);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_key_is_not_limited_and_without_keys_all_share_one_bucket() {
    let crawler = "User-Agent: Mozilla/5.0 (compatible; ExampleBot/1.0)\r\n";
    let limits = [limiter(&rule(10, &["crawler"]))];
    assert_eq!(passing(&limits, "192.0.2.1", "User-Agent: Mozilla/5.0 Firefox/140.0\r\n"), 1000);
    assert_eq!(passing(&limits, "192.0.2.1", crawler), 10);
    assert_eq!(passing(&limits, "192.0.2.2", crawler), 0, "a crawler has one bucket for all its addresses");
    let limits = [limiter(&rule(10, &["header:X-Api-Key", "client"]))];
    assert_eq!(passing(&limits, "192.0.2.1", "X-Api-Key: one\r\n"), 10);
    assert_eq!(passing(&limits, "192.0.2.1", "X-Api-Key: two\r\n"), 10);
    assert_eq!(passing(&limits, "192.0.2.1", ""), 10);
    let limits = [limiter(&rule(10, &[]))];
    assert_eq!(passing(&limits, "192.0.2.1", ""), 10);
    assert_eq!(passing(&limits, "192.0.2.2", crawler), 0);
}

#[tokio::test(start_paused = true)]
async fn the_fields_say_what_is_left_and_a_request_after_retry_after_passes() {
    let limits = [limiter(&rule(4, &["client"]))];
    let ask = || {
        let mut exchange = request("192.0.2.1", "");
        let outcome = admit(&limits, &mut exchange);
        (said(&exchange), outcome.map_err(|refusal| refusal.detail().unwrap_or_default()))
    };
    let lines = |left: &str| {
        vec!["RateLimit-Policy: \"route\";q=4;w=60".to_owned(), format!("RateLimit: \"route\";{left}")]
    };
    assert_eq!(ask(), ((lines("r=3;t=15"), 0), Ok(())));
    advance(Duration::from_millis(1500)).await;
    assert_eq!(ask(), ((lines("r=2;t=14"), 0), Ok(())));
    assert_eq!((ask().1, ask().1), (Ok(()), Ok(())));
    let detail = "route /x: 4 requests in 1m for each client (client 192.0.2.1)".to_owned();
    assert_eq!(ask(), ((lines("r=0;t=14"), 14), Err(detail)));
    advance(seconds(13)).await;
    assert_eq!(ask().0.1, 1);
    advance(seconds(1)).await;
    assert_eq!(ask(), ((lines("r=0;t=15"), 0), Ok(())));
    assert_eq!(limits[0].view().refused, 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_one_limit_refuses_uses_up_no_token_of_another() {
    let all = limiter(&rule(20, &[]));
    let each = limiter(&rule(5, &["client"]));
    let limits = [all, each];
    assert_eq!(passing(&limits, "192.0.2.1", ""), 5);
    assert_eq!(passing(&limits, "192.0.2.2", ""), 5, "the refused ones of the other client cost nothing");
    assert_eq!(passing(&limits, "192.0.2.3", ""), 5);
    assert_eq!(passing(&limits, "192.0.2.4", ""), 5);
    assert_eq!(passing(&limits, "192.0.2.5", ""), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_refuses_nothing_and_counts_what_it_would_refuse() {
    let limits = [limiter(&RateLimit { dry_run: true, ..rule(10, &["client"]) })];
    assert_eq!(passing(&limits, "192.0.2.1", ""), 1000);
    let view = limits[0].view();
    assert_eq!((view.refused, view.would_refuse), (0, 990));
    let mut exchange = request("192.0.2.1", "");
    admit(&limits, &mut exchange).unwrap();
    assert_eq!(exchange.log_facts.would_refuse, Some("rate_limited"));
    assert!(exchange.log_facts.detail.as_deref().unwrap().ends_with("dry run (client 192.0.2.1)"));
}

#[tokio::test(start_paused = true)]
async fn worker_time_is_charged_at_the_end_and_a_key_in_debt_is_refused_until_it_is_paid() {
    let limits =
        [limiter(&RateLimit { requests: None, worker_time: Some(seconds(6)), ..rule(1, &["client"]) })];
    let ask = |cost: Duration| {
        let mut exchange = request("192.0.2.1", "");
        let outcome = admit(&limits, &mut exchange).map_err(|_| said(&exchange));
        hold(&exchange, cost);
        outcome
    };
    assert_eq!(ask(seconds(5)), Ok(()));
    assert_eq!(ask(seconds(4)), Ok(()), "a second was left");
    // 3 s of debt come back in 30 s, at 6 s a minute.
    assert_eq!(ask(seconds(1)), Err((vec![], 31)));
    advance(seconds(29)).await;
    assert_eq!(ask(seconds(1)), Err((vec![], 2)));
    advance(seconds(2)).await;
    assert_eq!(ask(seconds(1)), Ok(()));
    assert!(passing(&limits, "192.0.2.2", "") == 1000, "another client pays nothing for it");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_its_client_gives_up_pays_what_answered_ones_hold_on_average() {
    let limits =
        [limiter(&RateLimit { requests: None, worker_time: Some(seconds(6)), ..rule(1, &["client"]) })];
    let ledger = Arc::new(Ledger::new(clock::now()));
    let account = RouteAccount::new(&ledger, &"/x".into(), &Arc::default());
    let gives_up = |ip: &str, held: Duration| {
        let mut exchange = request(ip, "");
        let is_admitted = admit(&limits, &mut exchange).is_ok();
        let payer = account.payer(None, &exchange.log_facts.charges);
        payer.pay(0, SlotCost { hold: held, cpu: None });
        payer.pay_early(held, Duration::ZERO);
        is_admitted
    };
    let given_up = |ip: &str, held| (0..1000).take_while(|_| gives_up(ip, held)).count();
    let short = Duration::from_millis(10);
    assert_eq!(given_up("192.0.2.1", short), 600, "no average is known");
    (0..20).for_each(|_| account.note_hold(seconds(2)));
    assert_eq!(given_up("192.0.2.2", short), 3);
    assert_eq!(given_up("192.0.2.3", seconds(6)), 1, "it has held its slot for longer");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_would_refuse_as_many_as_the_limit_in_force_refuses() {
    let time = RateLimit { requests: None, worker_time: Some(seconds(10)), ..rule(1, &["client"]) };
    let (mut limit, mut trial) = (limiter(&time), limiter(&RateLimit { dry_run: true, ..time.clone() }));
    for _ in 0..60 {
        for limit in [&mut limit, &mut trial] {
            let mut exchange = request("192.0.2.1", "");
            if admit(std::slice::from_ref(limit), &mut exchange).is_ok() {
                hold(&exchange, seconds(4));
            }
        }
        advance(seconds(2)).await;
    }
    assert_eq!(trial.view().would_refuse, limit.view().refused);
    assert!((40..60).contains(&limit.view().refused), "{:?}", limit.view());
}

#[tokio::test(start_paused = true)]
async fn the_quota_is_never_less_than_what_is_left_and_has_a_window_of_whole_seconds() {
    for (requests, burst, per, expected) in [
        (100, 100, seconds(60), "q=100;w=60 r=99;t=1"),
        (100, 200, seconds(60), "q=200;w=120 r=199;t=1"),
        (100, 10, seconds(60), "q=100;w=60 r=9;t=1"),
        (5, 1, seconds(1), "q=5;w=1 r=0;t=1"),
        (2, 3, seconds(1), "q=4;w=2 r=2;t=1"),
        (1000, 1000, Duration::from_millis(1), "q=1000000;w=1 r=999;t=1"),
        (3, 3, Duration::from_millis(1500), "q=4;w=2 r=2;t=1"),
    ] {
        let rate = RequestRate { requests, burst };
        let limits = [limiter(&RateLimit { requests: Some(rate), per, ..rule(1, &["client"]) })];
        let mut exchange = request("192.0.2.1", "");
        admit(&limits, &mut exchange).unwrap();
        let (lines, _) = said(&exchange);
        let lines = lines.join(" ").replace("RateLimit-Policy: \"route\";", "");
        assert_eq!(lines.replace("RateLimit: \"route\";", ""), expected, "{rate:?} {per:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_worker_time_says_nothing_of_requests() {
    let limits = [limiter(&RateLimit { worker_time: Some(seconds(6)), ..rule(2, &["client"]) })];
    let mut exchange = request("192.0.2.1", "");
    admit(&limits, &mut exchange).unwrap();
    hold(&exchange, seconds(9));
    let mut exchange = request("192.0.2.1", "");
    assert!(admit(&limits, &mut exchange).is_err());
    assert_eq!(said(&exchange), (vec![], 31));
    advance(seconds(31)).await;
    assert_eq!(passing(&limits, "192.0.2.1", ""), 2);
    let mut exchange = request("192.0.2.1", "");
    assert!(admit(&limits, &mut exchange).is_err());
    let lines = ["RateLimit-Policy: \"route\";q=2;w=60", "RateLimit: \"route\";r=0;t=30"];
    assert_eq!(said(&exchange), (lines.map(String::from).to_vec(), 30));
}

#[tokio::test(start_paused = true)]
async fn after_the_time_of_retry_after_no_limit_refuses_the_request() {
    let one_at_once = |requests: u64, key: &[&str]| RateLimit {
        requests: Some(RequestRate { requests, burst: 1 }),
        ..rule(requests, key)
    };
    let ask = |limits: &[Arc<RateLimiter>]| {
        let mut exchange = request("192.0.2.1", "");
        let outcome = admit(limits, &mut exchange).map_err(|_| said(&exchange));
        hold(&exchange, Duration::from_millis(6500));
        outcome
    };
    let lines = |quota: &str, left: &str| {
        vec![format!("RateLimit-Policy: \"route\";{quota}"), format!("RateLimit: \"route\";{left}")]
    };
    let (each, all) = (one_at_once(60, &["client"]), one_at_once(2, &[]));
    let both = [limiter(&each), limiter(&all)];
    assert_eq!(ask(&both), Ok(()));
    assert_eq!(ask(&both), Err((lines("q=60;w=60", "r=0;t=1"), 30)), "the other limit has a token in 30 s");
    advance(seconds(29)).await;
    assert_eq!(ask(&both), Err((lines("q=2;w=60", "r=0;t=1"), 1)));
    advance(seconds(1)).await;
    assert_eq!(ask(&both), Ok(()));

    let with_trial = [limiter(&each), limiter(&RateLimit { dry_run: true, ..all })];
    assert_eq!(ask(&with_trial), Ok(()));
    assert_eq!(ask(&with_trial), Err((lines("q=60;w=60", "r=0;t=1"), 1)), "a dry run refuses nothing");

    let of_both_units =
        [limiter(&RateLimit { worker_time: Some(seconds(6)), ..one_at_once(1, &["client"]) })];
    assert_eq!(ask(&of_both_units), Ok(()));
    assert_eq!(ask(&of_both_units), Err((vec![], 60)), "5 s for the worker time, 60 s for the next token");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_makes_up_names_of_crawlers_has_two_buckets_at_most() {
    let rotating = |key: &[&str]| {
        let limits = [limiter(&rule(10, key))];
        let fields = |at: usize| format!("User-Agent: x{at}bot/1.0\r\n");
        (0..1000).filter(|at| admit(&limits, &mut request("192.0.2.1", &fields(*at))).is_ok()).count()
    };
    // The first name has been sent once.
    assert_eq!((rotating(&["crawler", "client"]), rotating(&["crawler"])), (11, 11));
}

#[tokio::test(start_paused = true)]
async fn an_empty_field_is_none_and_several_lines_are_one_value() {
    let limits = [limiter(&rule(10, &["header:X-Api-Key", "client"]))];
    assert_eq!(passing(&limits, "192.0.2.1", "X-Api-Key:\r\n"), 10);
    assert_eq!(passing(&limits, "192.0.2.2", "X-Api-Key:\r\n"), 10, "each address has its bucket");
    assert_eq!(passing(&limits, "192.0.2.2", "X-Api-Key: \r\nX-Api-Key:\r\n"), 0);
    assert_eq!(passing(&limits, "192.0.2.3", "X-Api-Key: a\r\nX-Api-Key: b\r\n"), 10);
    assert_eq!(passing(&limits, "192.0.2.3", "X-Api-Key: a, b\r\n"), 0);
    assert_eq!(passing(&limits, "192.0.2.3", "X-Api-Key: a\r\n"), 10);
}

#[tokio::test(start_paused = true)]
async fn a_value_has_one_bucket_however_its_client_writes_it() {
    let limits = [limiter(&rule(10, &["header:Authorization", "cookie:session"]))];
    assert_eq!(passing(&limits, "192.0.2.1", "Authorization: Bearer one\r\n"), 10);
    assert_eq!(passing(&limits, "192.0.2.1", "Authorization: Bearer one\r\nAuthorization: x\r\n"), 0);
    for credentials in ["bearer one", "BEARER one", "Bearer   one"] {
        let fields = format!("Authorization: {credentials}\r\n");
        assert_eq!(passing(&limits, "192.0.2.1", &fields), 0, "{credentials}");
    }
    for credentials in ["Bearer One", "one", "One"] {
        let fields = format!("Authorization: {credentials}\r\n");
        assert_eq!(passing(&limits, "192.0.2.1", &fields), 10, "{credentials}");
    }
    assert_eq!(passing(&limits, "192.0.2.1", "Cookie: session=abc\r\n"), 10);
    for cookie in ["session=%61bc", "session=\"abc\"", "session= abc", "session =abc", "a=1; session=ab%63 "]
    {
        assert_eq!(passing(&limits, "192.0.2.1", &format!("Cookie: {cookie}\r\n")), 0, "{cookie}");
    }
    assert_eq!(passing(&limits, "192.0.2.1", "Cookie: session=abd\r\n"), 10);
}

#[tokio::test(start_paused = true)]
async fn a_reload_that_does_not_change_the_rule_keeps_the_buckets() {
    let first = limiter(&rule(10, &["client"]));
    assert_eq!(passing(std::slice::from_ref(&first), "192.0.2.1", ""), 10);
    let again = |rule: &RateLimit| {
        RateLimiter::new(LimitScope::Route, &"/x".into(), Some(rule), Some(&first)).unwrap()
    };
    assert_eq!(passing(&[again(&rule(10, &["client"]))], "192.0.2.1", ""), 0);
    assert_eq!(passing(&[again(&rule(11, &["client"]))], "192.0.2.1", ""), 11);
    assert!(RateLimiter::new(LimitScope::Route, &"/x".into(), None, Some(&first)).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_reload_that_changes_the_rule_keeps_the_counts() {
    let dry = limiter(&RateLimit { dry_run: true, ..rule(10, &["client"]) });
    assert_eq!(passing(std::slice::from_ref(&dry), "192.0.2.1", ""), 1000);
    let limit =
        |before| RateLimiter::new(LimitScope::Route, &"/x".into(), Some(&rule(10, &["client"])), before);
    let strict = limit(Some(&dry)).unwrap();
    assert_eq!(passing(std::slice::from_ref(&strict), "192.0.2.1", ""), 10);
    let counts = |limit: &RateLimiter| (limit.view().refused, limit.view().would_refuse);
    assert_eq!(counts(&strict), (990, 990));
    assert_eq!(counts(&limit(None).unwrap()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_ledger_and_the_key_count_a_request_that_is_refused() {
    let fair = FairKeys::new(&[FairBy::Client], None).unwrap();
    let target = PoolTarget { fair: Some(fair.clone()), ..target() };
    let ledger = target.meter.ledger.clone();
    let mut route = Route::new("*".into(), Target::Pool(target), 1 << 20);
    route.limits = [limiter(&rule(1, &["client"]))].into();
    assert!(crate::gateway::begin(&route, &mut request("192.0.2.1", ""), &mut NoClient).await.is_ok());
    let mut exchange = request("192.0.2.1", "");
    assert!(crate::gateway::begin(&route, &mut exchange, &mut NoClient).await.is_err());
    let account = exchange.account.take().expect("a refused request has an account");
    account.end(exchange.log_facts.fair.as_deref(), Duration::ZERO, true);
    let key = &fair.view().keys[0];
    assert_eq!((&*key.key, key.requests, key.refused), ("client 192.0.2.0/24", 1, 1));
    assert_eq!(ledger.view(None, clock::now()).all.requests.minute, 1);
}
