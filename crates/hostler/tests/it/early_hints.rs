//! Early Hints: what a browser gets while its request waits, in HTTP/1.1 and HTTP/2.

use std::future::poll_fn;

use h2::client::ResponseFuture;
use hostler_testkit::{Client, Site, Step, ok, text, upstream, within};
use http::Request;
use serde_json::json;

use crate::http2::{get, talk, whole};
use crate::{in_front_of, site};

const CSS: &str = "</app.css>; rel=preload; as=style";
/// What a browser sends when it opens a page.
const OPENS: (&str, &str) = ("sec-fetch-mode", "navigate");

fn one_slot(early_hints: &str) -> String {
    format!("pools.app.concurrency = 1\n[[routes]]\nmatch = '*'\npool = 'app'\nearly_hints = {early_hints}\n")
}

fn written() -> String {
    one_slot(&format!("['{CSS}', '<https://cdn.test>; rel=preconnect']"))
}

fn opens(path: &str) -> Request<()> {
    let mut request = get(path);
    request.headers_mut().insert(OPENS.0, OPENS.1.parse().unwrap());
    request
}

async fn opened(site: &Site, path: &str) -> Client {
    let mut client = site.connect().await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: site.test\r\nSec-Fetch-Mode: navigate\r\n\r\n")).await;
    client
}

/// The links of the next interim answer. None if the final answer comes first.
async fn hinted(answer: &mut ResponseFuture) -> Option<Vec<String>> {
    let interim = within("a head", poll_fn(|cx| answer.poll_informational(cx))).await?.unwrap();
    assert_eq!(interim.status(), 103);
    let links = interim.headers().get_all("link");
    Some(links.iter().map(|link| link.to_str().unwrap().to_owned()).collect())
}

#[tokio::test]
async fn a_request_that_waits_gets_a_103_before_it_has_a_slot() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, &written()).await;
    let mut talk = talk(&site).await;
    let first = talk.begin(opens("/first"), true).await.0;
    site.settles("app", 1, 0).await;
    let mut second = talk.begin(opens("/second"), true).await.0;
    assert_eq!(hinted(&mut second).await.unwrap(), [CSS, "<https://cdn.test>; rel=preconnect"]);
    assert_eq!(app.targets(), ["/first"], "the other request still waits");
    app.release_all();
    assert_eq!(whole(first).await.1, b"/first");
    let (head, body) = whole(second).await;
    assert_eq!((head.status().as_u16(), &*body), (200, &b"/second"[..]));
    assert!(!head.headers().contains_key("link"), "the answer is the app's own");
    assert_eq!(site.access("/second").await["early_hints"], 2);
    let first = site.access("/first").await;
    assert_eq!(first["early_hints"], json!(null), "it began at once: {first}");
    let hints = site.status().await["routes"][0]["early_hints"].clone();
    assert_eq!(hints["sent"], 1);
    assert_eq!(hints["hosts"], json!([{ "links": [CSS, "<https://cdn.test>; rel=preconnect"] }]));
    let metrics = site.ask_admin("/metrics").await.text();
    assert!(metrics.contains("hostler_early_hints_total{http_route=\"*\"} 1"), "{metrics}");
}

#[tokio::test]
async fn a_request_gets_one_103_of_hostlers_and_then_those_of_the_app() {
    let own = "HTTP/1.1 103 Early Hints\r\nLink: </own.css>; rel=preload\r\n\r\n";
    let app = upstream().does([text(own), vec![Step::Hold], ok("ok")].concat()).start().await;
    let site = in_front_of(&app, &written()).await;
    let mut talk = talk(&site).await;
    let mut first = talk.begin(opens("/first"), true).await.0;
    assert_eq!(hinted(&mut first).await.unwrap(), ["</own.css>; rel=preload"]);
    let mut second = talk.begin(opens("/second"), true).await.0;
    assert_eq!(hinted(&mut second).await.unwrap().len(), 2);
    app.release(1);
    assert_eq!(hinted(&mut second).await.unwrap(), ["</own.css>; rel=preload"]);
    app.release(1);
    assert_eq!(hinted(&mut second).await, None);
    assert_eq!(whole(second).await.1, b"ok");
    assert_eq!(whole(first).await.1, b"ok");
}

#[tokio::test]
async fn an_http_1_1_client_gets_a_103_only_if_the_route_says_so() {
    for (early_hints, interim) in
        [(format!("['{CSS}']"), 0), (format!("{{ links = ['{CSS}'], http1 = true }}"), 1)]
    {
        let app = upstream().holds_requests().start().await;
        let site = in_front_of(&app, &one_slot(&early_hints)).await;
        let mut first = opened(&site, "/first").await;
        site.settles("app", 1, 0).await;
        let mut second = opened(&site, "/second").await;
        if interim > 0 {
            let head = second.next_head().await.unwrap();
            assert_eq!(head.text(), format!("HTTP/1.1 103 Early Hints\r\nLink: {CSS}\r\n\r\n"));
            assert_eq!(app.targets(), ["/first"]);
        }
        let mut other = site.begin("/other").await;
        site.settles("app", 1, 2).await;
        let mut old = site.connect().await;
        old.send("GET /old HTTP/1.0\r\nSec-Fetch-Mode: navigate\r\n\r\n").await;
        site.settles("app", 1, 3).await;
        app.release_all();
        for client in [&mut first, &mut second, &mut other, &mut old] {
            assert_eq!(client.answer().await.assert_status(200).interim, [], "{early_hints}");
        }
        assert_eq!(site.status().await["routes"][0]["early_hints"]["sent"], interim);
    }
}

#[tokio::test]
async fn links_are_learnt_from_pages_for_everyone_and_forgotten_when_the_last_page_lacks_them() {
    let page = |seen: &hostler_testkit::Seen| {
        let link = match seen.target().as_str() {
            "/plain" => String::new(),
            path => {
                format!("Link: </app.css>; rel=preload; as=style, <{path}.js>; rel=preload; as=script\r\n")
            }
        };
        let held = if seen.target().starts_with("/held") { vec![Step::Hold] } else { vec![] };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{link}Content-Length: 2\r\n\r\nok");
        [held, text(head)].concat()
    };
    let app = upstream().script(page).start().await;
    let site = in_front_of(&app, &one_slot("'learn'")).await;
    let mut talk = talk(&site).await;
    let mut wait_at_a_full_queue = async || {
        let first = talk.begin(opens("/held/1"), true).await.0;
        site.settles("app", 1, 0).await;
        let mut second = talk.begin(opens("/held/2"), true).await.0;
        site.settles("app", 1, 1).await;
        app.release(2);
        let links = hinted(&mut second).await.unwrap_or_default();
        assert_eq!((whole(first).await.1, whole(second).await.1), (b"ok".to_vec(), b"ok".to_vec()));
        links
    };
    assert_eq!(wait_at_a_full_queue().await, [""; 0], "nothing is known yet");
    for number in 0..8 {
        site.get(&format!("/page/{number}")).await.assert_status(200);
    }
    assert_eq!(wait_at_a_full_queue().await, [CSS], "what all pages have in common");
    site.get("/plain").await.assert_status(200);
    assert_eq!(wait_at_a_full_queue().await, [""; 0], "the last page had no links");
}

#[tokio::test]
async fn a_request_that_waits_for_the_fetch_of_another_gets_a_103() {
    let app = upstream().holds_requests().start().await;
    let config = written() + "cache = 'standard'\ncollapse = true\n";
    let site = in_front_of(&app, &config).await;
    let mut talk = talk(&site).await;
    let mut leader = talk.begin(opens("/page"), true).await.0;
    site.settles("app", 1, 0).await;
    let mut follower = talk.begin(opens("/page"), true).await.0;
    assert_eq!(hinted(&mut follower).await.unwrap().len(), 2);
    app.release_all();
    assert_eq!(hinted(&mut leader).await, None);
    assert_eq!((whole(leader).await.1, whole(follower).await.1), (b"/page".to_vec(), b"/page".to_vec()));
    assert_eq!(app.targets(), ["/page"]);
}

#[tokio::test]
async fn a_refusal_follows_a_103_as_any_answer_does() {
    let app = upstream().holds_requests().start().await;
    let site = site(&(written() + "[pools.app.queue]\ntimeout = '100ms'\n")).with("app", &app).start().await;
    let mut talk = talk(&site).await;
    let first = talk.begin(opens("/first"), true).await.0;
    site.settles("app", 1, 0).await;
    let mut second = talk.begin(opens("/second"), true).await.0;
    assert_eq!(hinted(&mut second).await.unwrap().len(), 2);
    let (head, _) = whole(second).await;
    assert_eq!(
        (head.status().as_u16(), &head.headers()["hostler-refusal"]),
        (503, &"queue_timeout".parse().unwrap())
    );
    app.release_all();
    whole(first).await;
}
