//! Which links are learnt, and which clients get them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};

use hostler_config::EarlyHintLinks;
use hostler_wire::{Limits, ResponseHead};

use super::EarlyHints;
use super::learnt::{ENOUGH, LONGEST, MOST_HOSTS, MOST_LINKS};
use crate::exchange::{Edit, Exchange, Protocol};
use crate::gateway::tests::exchange;
use crate::proxy::tests::TestClient;

const CSS: &str = "</app.css>; rel=preload; as=style";
const PAGE: &str = "Content-Type: text/html; charset=utf-8\r\n";

fn request(method: &str, host: &str, fields: &str) -> Exchange {
    let mut exchange = exchange();
    let head = format!("{method} / HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
    exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
    exchange.protocol = Protocol::Http2;
    exchange
}

fn answer(status: u16, fields: &str) -> ResponseHead {
    let mut head = ResponseHead::default();
    let text = format!("HTTP/1.1 {status} \r\n{fields}\r\n");
    head.parse(text.as_bytes(), &Limits { max_size: 1 << 20, ..Limits::default() }).unwrap();
    head
}

/// Learning hints of a pool whose workers are of this release.
fn learning(release: u64) -> (EarlyHints, Arc<AtomicU64>) {
    let newest = Arc::new(AtomicU64::new(release));
    (EarlyHints::new(&EarlyHintLinks::Learn, false, &newest), newest)
}

fn learns(hints: &EarlyHints, times: u8, exchange: &Exchange, head: &ResponseHead) {
    (0..times).for_each(|_| hints.learn(exchange, head, 0));
}

/// The links that a browser gets that opens a page of this host.
fn sent_to(hints: &EarlyHints, host: &str) -> Vec<String> {
    sent(hints, &mut request("GET", host, "Sec-Fetch-Mode: navigate\r\n"))
}

fn sent(hints: &EarlyHints, exchange: &mut Exchange) -> Vec<String> {
    let mut client = TestClient::<false>::default();
    let cx = &mut Context::from_waker(Waker::noop());
    hints.send(exchange, &mut client, cx);
    hints.send(exchange, &mut client, cx);
    assert!(client.interim.len() <= 1, "a request gets one 103");
    let links: Vec<_> = client
        .interim
        .iter()
        .flat_map(|head| head.fields.values("link").map(|link| String::from_utf8(link.into()).unwrap()))
        .collect();
    assert_eq!(exchange.log_facts.early_hints as usize, links.len());
    links
}

#[tokio::test]
async fn a_link_is_sent_once_the_last_answers_have_had_it_in_common() {
    let (hints, _) = learning(0);
    let stranger = request("GET", "a.test", "");
    let with = |links: &str| answer(200, &format!("{PAGE}Link: {links}\r\n"));
    learns(&hints, ENOUGH - 1, &stranger, &with(&format!("{CSS}, </a.woff2>; rel=preload; as=font")));
    assert_eq!(sent_to(&hints, "a.test"), [""; 0]);
    learns(&hints, 1, &stranger, &with(CSS));
    assert_eq!(sent_to(&hints, "a.test"), [CSS]);
    assert_eq!(sent_to(&hints, "A.TEST"), [CSS]);
    assert_eq!(sent_to(&hints, "b.test"), [""; 0], "another host has other pages");
    assert_eq!(hints.view(3).hosts[0].links, [CSS]);
    learns(&hints, 1, &stranger, &answer(200, PAGE));
    assert_eq!(sent_to(&hints, "a.test"), [""; 0], "the last answer has no links");
}

#[tokio::test]
async fn nothing_is_learnt_from_what_is_for_one_person() {
    let page = format!("{PAGE}Link: {CSS}\r\n");
    let personal = [
        ("", "Set-Cookie: a=1\r\n"),
        ("", "Vary: Accept-Encoding, Cookie\r\n"),
        ("", "Vary: authorization\r\n"),
        ("", "Vary: *\r\n"),
        ("", "Cache-Control: max-age=0, Private\r\n"),
        ("", "Cache-Control: private=\"x\"\r\n"),
        ("", "Cache-Control: no-store\r\n"),
        ("Cookie: session=1\r\n", ""),
        ("Authorization: Basic YQ==\r\n", ""),
        ("Client-Cert: :MIIB:\r\n", ""),
    ];
    for (asked, said) in personal {
        let (hints, _) = learning(0);
        let head = answer(200, &format!("{page}{said}"));
        learns(&hints, 2 * ENOUGH, &request("GET", "a.test", asked), &head);
        assert_eq!(sent_to(&hints, "a.test"), [""; 0], "{asked}{said}");
        // Nor does it change what is known.
        learns(&hints, ENOUGH, &request("GET", "a.test", ""), &answer(200, &page));
        let none = answer(200, &format!("{PAGE}{said}"));
        learns(&hints, 1, &request("GET", "a.test", asked), &none);
        assert_eq!(sent_to(&hints, "a.test"), [CSS], "{asked}{said}");
    }
    let (hints, _) = learning(0);
    let mut shown = request("GET", "a.test", "");
    shown.certificate = Some([0][..].into());
    learns(&hints, ENOUGH, &shown, &answer(200, &page));
    assert_eq!(sent_to(&hints, "a.test"), [""; 0], "a client certificate");
}

#[tokio::test]
async fn a_fetch_that_no_client_waits_for_teaches_no_more_than_its_request() {
    let page = answer(200, &format!("{PAGE}Link: {CSS}\r\n"));
    let stranger = request("GET", "a.test", "");
    let mut shown = request("GET", "a.test", "");
    shown.certificate = Some([0][..].into());
    let mut without_links = request("GET", "a.test", "");
    without_links.to_client.own.push(Edit::Remove("Link".into()));
    for (exchange, is_learnt) in [(stranger, true), (shown, false), (without_links, false)] {
        let (hints, _) = learning(0);
        learns(&hints, ENOUGH, &exchange.copy_for_refresh(), &page);
        assert_eq!(sent_to(&hints, "a.test").len(), usize::from(is_learnt));
    }
}

#[tokio::test]
async fn only_whole_pages_are_learnt_from() {
    let cases = [
        ("GET", 200, PAGE, true),
        ("GET", 200, "Content-Type: application/xhtml+xml\r\n", true),
        ("GET", 200, "Content-Type: TEXT/HTML\r\n", true),
        ("GET", 200, "Content-Type: application/json\r\n", false),
        ("GET", 200, "", false),
        ("GET", 404, PAGE, false),
        ("GET", 206, PAGE, false),
        ("GET", 302, PAGE, false),
        ("HEAD", 200, PAGE, false),
        ("POST", 200, PAGE, false),
    ];
    for (method, status, kind, is_learnt) in cases {
        let (hints, _) = learning(0);
        let head = answer(status, &format!("{kind}Link: {CSS}\r\n"));
        learns(&hints, ENOUGH, &request(method, "a.test", ""), &head);
        assert_eq!(sent_to(&hints, "a.test").len(), usize::from(is_learnt), "{method} {status} {kind}");
    }
}

#[tokio::test]
async fn only_links_that_mean_the_same_on_every_page_are_learnt() {
    for (link, is_learnt) in [
        (CSS, true),
        ("<https://cdn.test>; rel=preconnect", true),
        ("<HTTPS://cdn.test/a.js>; rel=modulepreload", true),
        ("<//cdn.test>; rel=\"dns-prefetch\"", true),
        ("</a>; rel=\"next preload\"; as=style", true),
        ("</a>; rel=next", false),
        ("</a>", false),
        ("<app.css>; rel=preload; as=style", false),
        ("<../app.css>; rel=preload; as=style", false),
        ("<?a>; rel=preload; as=fetch", false),
        ("<data:text/css,a>; rel=preload; as=style", false),
        ("</a>; rel=preload; anchor=\"/b\"", false),
        ("</a b>; rel=preload", false),
    ] {
        let (hints, _) = learning(0);
        let head = answer(200, &format!("{PAGE}Link: {link}\r\n"));
        learns(&hints, ENOUGH, &request("GET", "a.test", ""), &head);
        assert_eq!(sent_to(&hints, "a.test").len(), usize::from(is_learnt), "{link}");
    }
}

#[tokio::test]
async fn a_deploy_makes_what_was_learnt_void() {
    let (hints, newest) = learning(3);
    let stranger = request("GET", "a.test", "");
    let page = |link: &str| answer(200, &format!("{PAGE}Link: {link}\r\n"));
    let new = "</app.2.css>; rel=preload; as=style";
    (0..ENOUGH).for_each(|_| hints.learn(&stranger, &page(CSS), 3));
    assert_eq!(sent_to(&hints, "a.test"), [CSS]);
    newest.store(4, Ordering::Relaxed);
    assert_eq!(sent_to(&hints, "a.test"), [""; 0], "a new worker has joined");
    assert_eq!(hints.view(0).hosts, []);
    (0..ENOUGH).for_each(|_| hints.learn(&stranger, &page(CSS), 3));
    assert_eq!(sent_to(&hints, "a.test"), [""; 0], "an old worker still answers");
    (0..ENOUGH).for_each(|_| hints.learn(&stranger, &page(new), 4));
    assert_eq!(sent_to(&hints, "a.test"), [new]);
}

#[tokio::test]
async fn what_is_learnt_is_bounded() {
    let (hints, _) = learning(0);
    let link = |number: usize| format!("</{number}.css>; rel=preload; as=style");
    let long = format!("</{}>; rel=preload", "x".repeat(LONGEST));
    let all: Vec<_> = std::iter::once(long).chain((0..100).map(link)).collect();
    let head = answer(200, &format!("{PAGE}Link: {}\r\n", all.join(", ")));
    learns(&hints, ENOUGH, &request("GET", "a.test", ""), &head);
    assert_eq!(sent_to(&hints, "a.test"), (0..MOST_LINKS).map(link).collect::<Vec<_>>());
    let wide: Vec<_> = (0..MOST_LINKS)
        .map(|number| format!("</{number}{}>; rel=preload", "x".repeat(LONGEST - 30)))
        .collect();
    learns(
        &hints,
        ENOUGH,
        &request("GET", "b.test", ""),
        &answer(200, &format!("{PAGE}Link: {}\r\n", wide.join(", "))),
    );
    let bytes: usize = sent_to(&hints, "b.test").iter().map(String::len).sum();
    assert!((3500..=4096).contains(&bytes), "{bytes}");
    for number in 0..MOST_HOSTS - 1 {
        learns(&hints, 1, &request("GET", &format!("{number}.test"), ""), &head);
    }
    assert_eq!(sent_to(&hints, "a.test"), [""; 0], "the host that was asked least recently");
    assert_ne!(sent_to(&hints, "b.test"), [""; 0]);
}

#[tokio::test]
async fn links_that_the_route_removes_are_not_learnt() {
    let (hints, _) = learning(0);
    let mut stranger = request("GET", "a.test", "");
    stranger.to_client.own.push(Edit::Remove("Link".into()));
    learns(&hints, ENOUGH, &stranger, &answer(200, &format!("{PAGE}Link: {CSS}\r\n")));
    assert_eq!(sent_to(&hints, "a.test"), [""; 0]);
}

#[tokio::test]
async fn only_browsers_that_open_a_page_and_are_known_to_take_a_103_get_one() {
    let links = EarlyHintLinks::List(vec![CSS.parse().unwrap()]);
    let newest = Arc::default();
    let navigate = "Sec-Fetch-Mode: navigate\r\n";
    for (method, fields, expected) in [
        ("GET", navigate, true),
        ("GET", "sec-fetch-mode: Navigate\r\n", true),
        ("GET", "Sec-Fetch-Mode: cors\r\n", false),
        ("GET", "", false),
        ("HEAD", navigate, false),
        ("POST", navigate, false),
        ("GET", "Sec-Fetch-Mode: navigate\r\nSec-Purpose: prefetch;prerender\r\n", false),
    ] {
        for (protocol, http1, takes) in
            [(Protocol::Http2, false, true), (Protocol::Http1, false, false), (Protocol::Http1, true, true)]
        {
            let hints = EarlyHints::new(&links, http1, &newest);
            let mut exchange = request(method, "a.test", fields);
            exchange.protocol = protocol;
            let got = sent(&hints, &mut exchange);
            assert_eq!(got.len(), usize::from(expected && takes), "{method} {fields} {protocol:?} {http1}");
        }
    }
    let mut old = exchange();
    let head = b"GET / HTTP/1.0\r\nHost: a\r\nSec-Fetch-Mode: navigate\r\n\r\n";
    old.head.parse(head, &Limits::default()).unwrap();
    assert_eq!(sent(&EarlyHints::new(&links, true, &newest), &mut old), [""; 0]);
}
