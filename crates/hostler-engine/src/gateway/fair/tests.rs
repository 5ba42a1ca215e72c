//! Which requests have the same key, and what the status shows of a key.

use hostler_config::FairBy;

use super::*;
use crate::gateway::tests::request;

fn keys(by: &[&str]) -> Arc<FairKeys> {
    let by: Vec<FairBy> = by.iter().map(|by| by.parse().unwrap()).collect();
    FairKeys::new(&by, None).unwrap()
}

fn words(by: &[&str], ip: &str, fields: &str) -> String {
    let keys = keys(by);
    KeyPart::of(&keys.by, CLIENT, &request(ip, fields)).words(CLIENT, 0xABCDEF)
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
    let named = |name: &str| keys.of(&mut request("192.0.2.1", &format!("User-Agent: {name}/7.1\r\n")));
    assert_eq!(named("SEMrushBot"), named("SemrushBot"), "a name is the same in any case");
    assert_ne!(named("SemrushBot"), named("OtherBot"));
}

#[test]
fn a_reload_that_changes_no_key_keeps_what_was_measured() {
    let before = keys(&["client"]);
    assert!(Arc::ptr_eq(&FairKeys::new(&[FairBy::Client], Some(&before)).unwrap(), &before));
    assert!(!Arc::ptr_eq(&FairKeys::new(&[FairBy::Crawler], Some(&before)).unwrap(), &before));
    assert!(FairKeys::new(&[], Some(&before)).is_none());
}
