//! Tests of registrations, silence and outages, on a clock that the test sets.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

struct Told {
    registry: Registry,
    now: Instant,
    /// The number of the connection, now or until the outage.
    connection: u64,
    is_away: bool,
}

fn rules() -> RegistrationRules {
    RegistrationRules {
        stale_threshold: 120 * SECOND,
        keep_empty: 30 * SECOND,
        suspend_pruning: true,
        sharding: Sharding::All,
        segments: Vec::new(),
        folds_paths: false,
        max_routes: 100,
        max_memory: 1 << 20,
    }
}

fn told(rules: RegistrationRules) -> Told {
    let mut told =
        Told { registry: Registry::new(rules), now: Instant::now(), connection: 1, is_away: false };
    told.registry.connected(told.connection, told.now);
    told
}

impl Told {
    fn register(&mut self, text: &str) -> Vec<String> {
        let (changes, odd) = self.registry.register(&Registration::parse(text.as_bytes()).unwrap(), self.now);
        changes.iter().map(show).chain(odd.iter().map(ToString::to_string)).collect()
    }

    fn unregister(&mut self, text: &str) -> Vec<String> {
        let (changes, _) = self.registry.unregister(&Registration::parse(text.as_bytes()).unwrap(), self.now);
        changes.iter().map(show).collect()
    }

    /// What pruning returns after so many seconds.
    fn after(&mut self, seconds: u32, is_connected: bool) -> Vec<String> {
        self.now += seconds * SECOND;
        self.connection += u64::from(self.is_away && is_connected);
        self.is_away = !is_connected;
        let connection = is_connected.then_some(self.connection);
        self.registry.prune(connection, self.now).iter().map(show).collect()
    }

    fn members(&self, uri: &str) -> Vec<String> {
        let entry = self.registry.entry(&RouteKey::parse(uri, false).unwrap());
        entry
            .into_iter()
            .flat_map(|entry| &entry.members)
            .map(|member| member.facts.address.to_string())
            .collect()
    }
}

fn show(change: &RouteChange) -> String {
    match change {
        RouteChange::Joined(key, facts) => format!("{key} + {}", facts.address),
        RouteChange::Opened(key) => format!("{key} opened"),
        RouteChange::Left(key, address, why) => format!("{key} - {address} {why:?}"),
        RouteChange::Ruled(key, options) => {
            format!("{key} {:?} {:?}", options.balancing, options.service_url)
        }
        RouteChange::Closed(key) => format!("{key} closed"),
    }
}

const A: &str = r#"{"host":"10.0.0.1","port":80,"uris":["a.test"],"private_instance_id":"one"}"#;
const B: &str = r#"{"host":"10.0.0.2","port":80,"uris":["a.test"]}"#;

#[test]
fn a_registration_joins_once_and_is_refreshed_without_a_change() {
    let mut told = told(rules());
    assert_eq!(told.register(A), ["a.test + 10.0.0.1:80"]);
    assert_eq!(told.register(A), [""; 0]);
    assert_eq!(told.register(B), ["a.test + 10.0.0.2:80"]);
    assert_eq!(told.members("a.test"), ["10.0.0.1:80", "10.0.0.2:80"]);
}

#[test]
fn a_registration_with_other_facts_replaces_the_member() {
    let mut told = told(rules());
    told.register(A);
    assert_eq!(told.register(&A.replace("one", "two")), ["a.test + 10.0.0.1:80"]);
    assert_eq!(told.register(&A.replace("\"port\"", "\"tls_port\"")), ["a.test + 10.0.0.1:80"]);
    assert_eq!(told.members("a.test"), ["10.0.0.1:80"]);
}

#[test]
fn each_uri_of_a_message_is_a_route_and_invalid_ones_are_skipped() {
    let mut told = told(rules());
    let changes =
        told.register(r#"{"host":"::1","port":80,"uris":["B.test/Api/","http://x","*.c.test",null]}"#);
    assert_eq!(changes[..2], ["b.test/Api + [::1]:80", "*.c.test + [::1]:80"]);
    assert!(changes[2].starts_with("the URI \"http://x\" is ignored: "), "{changes:?}");
    assert_eq!(changes.len(), 3);
}

#[test]
fn the_last_registration_sets_the_balancing_and_an_unknown_one_changes_nothing() {
    let mut told = told(rules());
    let with =
        |text: &str| A.replace("\"port\"", &format!("\"options\":{{\"loadbalancing\":\"{text}\"}},\"port\""));
    told.register(A);
    assert_eq!(told.register(&with("least-connection")), ["a.test Some(LeastConnection) \"\""]);
    assert_eq!(told.register(A), [""; 0]);
    assert_eq!(told.register(&with("hash"))[0], IgnoredPart::Balancing("hash".into()).to_string());
    assert_eq!(told.register(&with("round-robin")), ["a.test Some(RoundRobin) \"\""]);
    let service = B.replace("\"port\"", "\"route_service_url\":\"https://x\",\"port\"");
    assert_eq!(told.register(&service)[1], "a.test Some(RoundRobin) \"https://x\"");
    assert_eq!(told.register(A), ["a.test Some(RoundRobin) \"\""]);
}

#[test]
fn a_route_without_members_stays_for_a_while() {
    let mut told = told(rules());
    told.register(A);
    assert_eq!(told.unregister(B), [""; 0]);
    assert_eq!(told.unregister(A), ["a.test - 10.0.0.1:80 Unregistered"]);
    assert_eq!(told.after(30, true), [""; 0]);
    assert_eq!(told.after(1, true), ["a.test closed"]);
    assert_eq!(told.register(A), ["a.test + 10.0.0.1:80"]);
}

#[test]
fn a_route_that_was_inherited_without_members_stays_for_the_rest_of_its_time() {
    let mut told = told(rules());
    let key = |uri: &str| RouteKey::parse(uri, false).unwrap();
    let options = || RouteOptions { balancing: Some(Balancing::LeastConnection), service_url: "".into() };
    let inherit = |told: &mut Told, uri: &str, seconds: u32| {
        let now = told.now;
        let changes = told.registry.inherit_empty(key(uri), options(), seconds * SECOND, now);
        changes.iter().map(show).collect::<Vec<_>>()
    };
    told.register(B);
    let ruled = "empty.test Some(LeastConnection) \"\"";
    assert_eq!(inherit(&mut told, "empty.test", 20), ["empty.test opened", ruled]);
    assert_eq!(inherit(&mut told, "empty.test", 0), [""; 0], "it is known");
    assert_eq!(inherit(&mut told, "a.test", 1), [""; 0], "it has a member");
    assert_eq!(inherit(&mut told, "old.test", 30), [""; 0]);
    assert_eq!(told.after(10, true), [""; 0]);
    assert_eq!(told.after(1, true), ["empty.test closed"]);
}

#[test]
fn with_keep_empty_0_a_route_without_members_is_removed_at_once() {
    let mut told = told(RegistrationRules { keep_empty: Duration::ZERO, ..rules() });
    told.register(A);
    told.register(B);
    assert_eq!(told.unregister(A), ["a.test - 10.0.0.1:80 Unregistered"]);
    assert_eq!(told.unregister(B), ["a.test - 10.0.0.2:80 Unregistered", "a.test closed"]);
    told.register(A);
    assert_eq!(told.after(121, true), ["a.test - 10.0.0.1:80 Silent", "a.test closed"]);
}

#[test]
fn a_member_may_ask_for_less_time_but_not_for_more() {
    let mut told = told(rules());
    let with = |text: &str, seconds: i64| {
        text.replace("\"port\"", &format!("\"stale_threshold_in_seconds\":{seconds},\"port\""))
    };
    told.register(&with(A, 10));
    told.register(&with(B, 1000));
    assert_eq!(told.after(10, true), [""; 0]);
    assert_eq!(told.after(1, true), ["a.test - 10.0.0.1:80 Silent"]);
    assert_eq!(told.after(110, true), ["a.test - 10.0.0.2:80 Silent"]);
    for nothing in [0, -5] {
        told.register(&with(A, nothing));
        assert_eq!(told.after(120, true), [""; 0]);
        assert_eq!(told.after(1, true), ["a.test - 10.0.0.1:80 Silent"]);
    }
}

#[test]
fn a_member_with_tls_leaves_only_when_it_unregisters_or_fails() {
    let mut told = told(rules());
    let tls = A.replace("\"port\"", "\"tls_port\"");
    told.register(&tls);
    told.register(B);
    assert_eq!(told.after(100_000, true), ["a.test - 10.0.0.2:80 Silent"]);
    told.register(B);
    let mut fail = |address| {
        let key = RouteKey::parse("a.test", false).unwrap();
        let changes = told.registry.leave(key, address, Departure::Failed, told.now);
        changes.iter().map(show).collect::<Vec<_>>()
    };
    assert_eq!(fail("10.0.0.2:80"), [""; 0]);
    assert_eq!(fail("10.0.0.9:80"), [""; 0]);
    assert_eq!(fail("10.0.0.1:80"), ["a.test - 10.0.0.1:80 Failed"]);
}

#[test]
fn a_member_with_tls_whose_name_is_not_found_leaves_only_if_its_client_is_silent_too() {
    let mut told = told(rules());
    let tls = A.replace("\"port\"", "\"tls_port\"");
    told.register(&tls);
    let unfound = |told: &mut Told| {
        let key = RouteKey::parse("a.test", false).unwrap();
        let changes = told.registry.leave(key, "10.0.0.1:80", Departure::Unfound, told.now);
        changes.iter().map(show).collect::<Vec<_>>()
    };
    told.after(119, true);
    told.register(&tls);
    told.after(120, true);
    assert_eq!(unfound(&mut told), [""; 0], "its client has registered it again");
    told.after(10, false);
    assert_eq!(unfound(&mut told), [""; 0], "its client cannot register it");
    told.after(0, true);
    told.after(120, true);
    assert_eq!(unfound(&mut told), [""; 0], "its time has started again");
    told.after(1, true);
    assert_eq!(unfound(&mut told), ["a.test - 10.0.0.1:80 Unfound"]);
}

#[test]
fn no_member_is_pruned_while_nats_is_away_and_all_times_start_again_when_it_is_back() {
    let mut told = told(rules());
    told.register(A);
    assert_eq!(told.after(100, false), [""; 0]);
    assert_eq!(told.after(1000, false), [""; 0]);
    assert!(told.registry.is_suspended());
    assert_eq!(told.after(1000, true), [""; 0]);
    assert!(!told.registry.is_suspended());
    assert_eq!(told.after(120, true), [""; 0]);
    assert_eq!(told.after(1, true), ["a.test - 10.0.0.1:80 Silent"]);
}

#[test]
fn an_outage_between_two_prunings_removes_no_member() {
    let mut told = told(rules());
    told.register(A);
    told.now += 100 * SECOND;
    told.connection += 1;
    assert_eq!(told.after(30, true), [""; 0], "pruned before the registrar has noticed the new connection");
    assert_eq!(told.after(110, true), [""; 0]);
    told.connection += 1;
    told.registry.connected(told.connection, told.now);
    assert_eq!(told.after(110, true), [""; 0], "pruned after it has");
    assert_eq!(told.after(11, true), ["a.test - 10.0.0.1:80 Silent"]);
}

#[test]
fn a_look_that_comes_late_removes_no_member_because_its_messages_are_still_unread() {
    for suspend_pruning in [true, false] {
        let mut told = told(RegistrationRules { suspend_pruning, ..rules() });
        told.register(A);
        told.register(B);
        let due = told.now + 30 * SECOND;
        told.now += 500 * SECOND;
        assert_eq!(told.registry.prune_due(Some(1), due, told.now), []);
        // The message had waited in the socket.
        told.register(A);
        told.now += 30 * SECOND;
        let changes = told.registry.prune_due(Some(1), told.now, told.now);
        assert_eq!(changes.iter().map(show).collect::<Vec<_>>(), ["a.test - 10.0.0.2:80 Silent"]);
    }
}

#[test]
fn a_silent_member_is_pruned_in_an_outage_too_if_that_is_configured() {
    let mut told = told(RegistrationRules { suspend_pruning: false, ..rules() });
    told.register(A);
    assert_eq!(told.after(121, false), ["a.test - 10.0.0.1:80 Silent"]);
}

#[test]
fn registrations_of_other_segments_are_ignored() {
    let shared = A;
    let ours = B.replace("\"port\"", "\"isolation_segment\":\"ours\",\"port\"");
    let theirs = B.replace("\"port\"", "\"isolation_segment\":\"theirs\",\"port\"");
    for (sharding, taken) in [
        (Sharding::All, [true, true, true]),
        (Sharding::SharedAndSegments, [true, true, false]),
        (Sharding::Segments, [false, true, false]),
    ] {
        let rules = RegistrationRules { sharding, segments: vec!["ours".into()], ..rules() };
        let one_by_one = [shared, &ours, &theirs].map(|text| !told(rules.clone()).register(text).is_empty());
        assert_eq!(one_by_one, taken, "{sharding:?}");
    }
    let mut told =
        told(RegistrationRules { sharding: Sharding::Segments, segments: vec!["ours".into()], ..rules() });
    told.register(&ours);
    assert_eq!(told.unregister(&theirs), [""; 0]);
    assert_eq!(told.unregister(&ours).len(), 1);
}

#[test]
fn paths_are_case_sensitive_unless_configured() {
    let upper = A.replace("a.test", "A.TEST/Path/");
    assert_eq!(told(rules()).register(&upper), ["a.test/Path + 10.0.0.1:80"]);
    let mut folding = told(RegistrationRules { folds_paths: true, ..rules() });
    assert_eq!(folding.register(&upper), ["a.test/path + 10.0.0.1:80"]);
    assert_eq!(folding.unregister(&upper.to_lowercase()), ["a.test/path - 10.0.0.1:80 Unregistered"]);
}

#[tokio::test(start_paused = true)]
async fn over_the_limits_new_routes_are_refused_and_known_ones_stay() {
    let register = |told: &mut Told, host: &str, uri: &str| {
        told.register(&format!(r#"{{"host":"{host}","port":80,"uris":["{uri}"]}}"#))
    };
    let mut few = told(RegistrationRules { max_routes: 2, ..rules() });
    register(&mut few, "10.0.0.1", "a.test");
    register(&mut few, "10.0.0.1", "b.test");
    let refused = "further routes are refused: there are 2 already (registrar.max_routes)";
    assert_eq!(register(&mut few, "10.0.0.1", "c.test"), [refused]);
    assert_eq!(register(&mut few, "10.0.0.2", "b.test"), ["b.test + 10.0.0.2:80"]);
    few.unregister(r#"{"host":"10.0.0.1","port":80,"uris":["a.test"]}"#);
    few.after(31, true);
    assert_eq!(register(&mut few, "10.0.0.1", "c.test"), ["c.test + 10.0.0.1:80"]);

    let mut small = told(RegistrationRules { max_memory: 12 << 10, ..rules() });
    register(&mut small, "10.0.0.1", "a.test");
    register(&mut small, "10.0.0.1", "b.test");
    let refused =
        "further members are refused: routes and members take 12288 bytes already (registrar.max_memory)";
    assert_eq!(register(&mut small, "10.0.0.1", "c.test"), [refused]);
    assert_eq!(register(&mut small, "10.0.0.1", "a.test"), Vec::<String>::new());
    small.after(121, true);
    small.after(31, true);
    assert_eq!(small.registry.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_long_text_counts_for_each_route_that_repeats_it() {
    let mut told = told(rules());
    let url = format!("https://{}", "x".repeat(100_000));
    let uris: Vec<String> = (0..20).map(|n| format!("\"{n}.test\"")).collect();
    let uris = uris.join(",");
    told.register(&format!(r#"{{"host":"a","port":80,"uris":[{uris}],"route_service_url":"{url}"}}"#));
    assert_eq!(told.registry.iter().count(), 5, "of 20, each with two hundred thousand bytes, in 1 MiB");
}
