//! Which requests have the same key, and what the status shows of a key.

use std::collections::HashSet;

use hostler_config::FairBy;

use super::*;
use crate::gateway::tests::request;

fn keys(by: &[&str]) -> Arc<FairKeys> {
    let by: Vec<FairBy> = by.iter().map(|by| by.parse().unwrap()).collect();
    FairKeys::new(&by, None).unwrap()
}

fn words(by: &[&str], ip: &str, fields: &str) -> String {
    let keys = keys(by);
    keys.from.words(&keys.from.of(&request(ip, fields)), 0xABCDEF)
}

#[tokio::test]
async fn a_client_is_its_network() {
    let keys = keys(&["client"]);
    let key = |ip: &str| keys.of(&mut request(ip, ""));
    assert_eq!(key("192.0.2.1"), key("192.0.2.254"));
    assert_ne!(key("192.0.2.1"), key("192.0.3.1"));
    assert_eq!(key("::ffff:192.0.2.7"), key("192.0.2.1"));
    assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:ffff::9"));
    assert_ne!(key("2001:db8:1::1"), key("2001:db8:2::1"));
    assert_eq!(words(&["client"], "192.0.2.77", ""), "client 192.0.2.0/24");
    assert_eq!(words(&["client"], "2001:db8:1:2::1", ""), "client 2001:db8:1::/48");
}

#[tokio::test]
async fn the_first_that_a_request_has_gives_its_key() {
    let by = ["header:X-Api-Key", "cookie:session", "crawler", "client"];
    let crawler = "User-Agent: Mozilla/5.0 (compatible; ExampleBot/1.0)\r\n";
    assert_eq!(
        words(&by, "192.0.2.1", "X-Api-Key: secret\r\nCookie: session=x\r\n"),
        "header X-Api-Key #abcdef"
    );
    assert_eq!(words(&by, "192.0.2.1", "Cookie: a=b; session=x\r\n"), "cookie session #abcdef");
    assert_eq!(words(&by, "192.0.2.1", crawler), "crawler ExampleBot");
    assert_eq!(
        words(&by, "192.0.2.1", "User-Agent: facebookexternalhit/1.1\r\n"),
        "crawler facebookexternalhit"
    );
    assert_eq!(words(&by, "192.0.2.1", "User-Agent: curl/8\r\n"), "client 192.0.2.0/24");
    assert_eq!(words(&["header:X-Api-Key"], "192.0.2.1", ""), "no key");
    let keys = keys(&by);
    let from = |ip: &str| keys.of(&mut request(ip, crawler));
    assert_eq!(from("192.0.2.1"), from("198.51.100.1"), "a crawler with many addresses is one key");
    let named = |ip: &str, name: &str| keys.of(&mut request(ip, &format!("User-Agent: {name}/7.1\r\n")));
    let semrush = named("192.0.3.1", "SEMrushBot");
    assert_eq!(semrush, named("192.0.3.1", "SemrushBot"), "a name is the same in any case");
    assert_ne!(semrush, named("192.0.4.1", "OtherBot"));
}

/// How many keys thousand requests have that come from these addresses under these names.
fn number_of_keys(by: &[&str], from: impl Fn(usize) -> (String, String)) -> usize {
    let keys = keys(by);
    let key = |at| {
        let (ip, user_agent) = from(at);
        keys.of(&mut request(&ip, &format!("User-Agent: {user_agent}\r\n")))
    };
    (0..1000).map(key).collect::<HashSet<_>>().len()
}

#[tokio::test]
async fn a_network_that_makes_up_names_of_crawlers_has_two_keys_at_most() {
    let listed = ["Googlebot/2.1", "facebookexternalhit/1.1", "GPTBot/1.2", "meta-externalagent/1.1"];
    for by in [&["crawler", "client"][..], &["crawler"], &["crawler", "header:X-Api-Key"]] {
        let ip = |at: usize| format!("192.0.2.{}", at % 250);
        assert_eq!(number_of_keys(by, |at| (ip(at), format!("x{at}bot/1.0"))), 2, "{by:?}");
        assert_eq!(number_of_keys(by, |at| (ip(at), listed[at % listed.len()].into())), 2, "{by:?}");
        let page = |at: usize| format!("x{at}/1.0 (+https://example.org/{at})");
        assert_eq!(number_of_keys(by, |at| (ip(at), page(at))), 2, "{by:?}");
        let many = |at: usize| format!("10.{}.{}.1", at / 250, at % 250);
        assert_eq!(number_of_keys(by, |at| (many(at), "GPTBot/1.2".into())), 1, "{by:?}");
    }
    let keys = keys(&["crawler"]);
    let words = |name: &str| {
        let exchange = request("192.0.2.1", &format!("User-Agent: {name}/1.0\r\n"));
        keys.from.words(&keys.from.of(&exchange), 0)
    };
    assert_eq!((words("OneBot"), words("TwoBot")), ("crawler OneBot".into(), "other crawlers".into()));
    assert_eq!(words("OneBot"), "crawler OneBot", "the first name stays");
}

#[tokio::test]
async fn a_route_with_its_own_list_shares_the_keys_of_its_pool() {
    let pool = keys(&["crawler", "client"]);
    let route = pool.of_route(&[FairBy::Header("X-Api-Key".into()), FairBy::Crawler, FairBy::Client]);
    let of = |keys: &FairKeys, fields: &str| keys.of(&mut request("192.0.2.1", fields));
    assert_eq!(of(&route, ""), of(&pool, ""), "a client has one share on all routes");
    let bot = |name: &str| format!("User-Agent: {name}/1.0\r\n");
    assert_eq!(of(&pool, &bot("OneBot")), of(&route, &bot("OneBot")));
    assert_eq!(of(&route, &bot("TwoBot")), of(&route, ""), "it has another name on another route");
    assert_ne!(of(&route, "X-Api-Key: a\r\n"), of(&pool, "X-Api-Key: a\r\n"));
    let mut exchange = request("192.0.2.1", "X-Api-Key: a\r\n");
    route.of(&mut exchange);
    let charge = exchange.log_facts.fair.unwrap();
    assert!(Arc::ptr_eq(&charge.costs, &pool.costs), "the status has the keys of all routes");
}

#[test]
fn a_reload_that_changes_no_key_keeps_what_was_measured() {
    let before = keys(&["client"]);
    assert!(Arc::ptr_eq(&FairKeys::new(&[FairBy::Client], Some(&before)).unwrap(), &before));
    assert!(!Arc::ptr_eq(&FairKeys::new(&[FairBy::Crawler], Some(&before)).unwrap(), &before));
    assert!(FairKeys::new(&[], Some(&before)).is_none());
}
