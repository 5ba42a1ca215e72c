//! Clients that stay with one of several members (`sticky`), and two Hostlers in front of the same members.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hostler_testkit::{ReceivedAnswer, Site, Upstream, UpstreamPlan, eventually, ok, upstream};
use http::Request;

use crate::http2::{get, talk};
use crate::site;

/// A member that answers with its name, and then with the header field that tells of a move.
fn named(name: &'static str) -> UpstreamPlan {
    upstream().script(move |seen| {
        let moved = seen.field("x-hostler-moved").unwrap_or_default();
        ok(format!("{name} {moved}").trim_end())
    })
}

async fn members() -> Vec<Upstream> {
    let mut members = Vec::new();
    for name in ["one", "two", "three"] {
        members.push(named(name).start().await);
    }
    members
}

fn text(members: &[Upstream], sticky: &str) -> String {
    let list: Vec<_> = members.iter().map(|member| format!("'{}'", member.address())).collect();
    format!("[pools.app]\nmembers = [{}]\nsticky = {sticky}\n", list.join(", "))
}

async fn before(members: &[Upstream], sticky: &str) -> Site {
    site(&text(members, sticky)).start().await
}

const SECRET: &str = "{ secret = 'sixteen characters and more' }";

fn cookie(answer: &ReceivedAnswer) -> String {
    answer.field("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

async fn with_cookie(site: &Site, cookie: &str) -> ReceivedAnswer {
    site.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n")).await
}

#[tokio::test]
async fn two_hostlers_with_the_same_secret_read_each_others_cookies() {
    let members = members().await;
    let [one, two] = [before(&members, SECRET).await, before(&members, SECRET).await];
    for _ in 0..4 {
        let first = one.get("/").await;
        let cookie = cookie(&first);
        let second = with_cookie(&two, &cookie).await;
        assert_eq!(first.text(), second.text());
        second.assert_no_field("set-cookie");
    }
    let other = before(&members, "{ secret = 'another key of its own' }").await;
    let foreign = with_cookie(&other, &cookie(&one.get("/").await)).await;
    assert!(foreign.text().ends_with(" gone"), "{}", foreign.text());
    assert!(foreign.field("set-cookie").is_some());
}

#[tokio::test]
async fn the_first_few_cookies_of_the_name_count() {
    let members = members().await;
    let site = before(&members, "'cookie'").await;
    let first = site.get("/").await;
    let own = cookie(&first);
    let foreign = format!("{}={}; ", own.split('=').next().unwrap(), "0".repeat(32));
    let behind = |number| format!("{}{own}", foreign.repeat(number));
    with_cookie(&site, &behind(7)).await.assert_no_field("set-cookie").assert_ok(&first.text());
    let lost = with_cookie(&site, &behind(8)).await;
    assert!(lost.text().ends_with(" gone") && lost.field("set-cookie").is_some(), "{}", lost.text());
}

#[tokio::test]
async fn two_hostlers_choose_the_same_member_by_a_header_field() {
    let members = members().await;
    let by = "'header:X-User'";
    let [one, two] = [before(&members, by).await, before(&members, by).await];
    let mut chosen = HashSet::new();
    for user in 0..40 {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX-User: user-{user}\r\n\r\n");
        let answers = [one.send(&request).await.text(), two.send(&request).await.text()];
        assert_eq!(answers[0], answers[1]);
        chosen.extend(answers);
    }
    assert_eq!(chosen.len(), 3);
}

#[tokio::test]
async fn only_the_clients_of_a_removed_member_move() {
    let mut members = members().await;
    let site = before(&members, "'query:user'").await;
    let users: Vec<_> = (0..12).map(|user| format!("/?user=user-{user}")).collect();
    let mut owners = BTreeMap::new();
    for user in &users {
        owners.insert(user, site.get(user).await.text());
    }
    drop(members.pop());
    site.rewrite(&text(&members, "'query:user'"));
    site.command(&["reload"]).await.assert_exit(0);
    for user in &users {
        let (before, after) = (&owners[user], site.get(user).await.text());
        assert!(before == "three" || *before == after, "{user}: {before} became {after}");
        assert_ne!(after, "three");
    }
}

#[tokio::test]
async fn a_member_that_cannot_be_reached_loses_its_clients_and_the_app_is_told() {
    let mut members = members().await;
    let site = before(&members, "'cookie'").await;
    let mut cookies = BTreeMap::new();
    while cookies.len() < 3 {
        let answer = site.get("/").await;
        cookies.insert(answer.text(), cookie(&answer));
    }
    members.remove(0).stop().await;
    let moved = with_cookie(&site, &cookies["one"]).await;
    assert!(moved.text().ends_with(" gone"), "{}", moved.text());
    let settled = with_cookie(&site, &cookie(&moved)).await.text();
    assert_eq!(format!("{settled} gone"), moved.text());
    assert_eq!(with_cookie(&site, &cookies["two"]).await.text(), "two");
}

#[tokio::test]
async fn a_request_that_reaches_its_own_member_after_all_has_not_moved() {
    let healthy = Arc::new(AtomicBool::new(false));
    let is_healthy = healthy.clone();
    let member = upstream().script(move |seen| {
        let moved = seen.field("x-hostler-moved").unwrap_or_default();
        match seen.target() == "/health" && !is_healthy.load(Ordering::Relaxed) {
            true => hostler_testkit::text("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
            false => ok(format!("one {moved}").trim_end()),
        }
    });
    let member = member.start().await;
    let checks = "path = '/health'\ninterval = '50ms'\nunhealthy = 1\nhealthy = 1\n";
    let pool = "request_timeout = '2m'\nqueue.timeout = '1m'\n";
    let config = format!(
        "{}{pool}[pools.app.health_check]\n{checks}",
        text(std::slice::from_ref(&member), "'address'")
    );
    let site = site(&config).start().await;
    let shows = async |key: &str, value: serde_json::Value| {
        let what = format!("{key} to be {value}");
        eventually(&what, async || {
            let pool = site.pool("app").await;
            (pool[key] == value || pool["members"][0][key] == value).then_some(())
        })
        .await;
    };
    shows("unhealthy", true.into()).await;
    let mut client = site.begin("/").await;
    shows("queue_length", 1.into()).await;
    healthy.store(true, Ordering::Relaxed);
    client.answer().await.assert_ok("one");
    assert_eq!(site.pool("app").await["sticky"]["moved"]["gone"], 0);
}

#[tokio::test]
async fn cookies_stay_valid_over_a_reload_and_an_upgrade() {
    let members = members().await;
    let site = before(&members, "'cookie'").await;
    let first = site.get("/").await;
    let cookie = cookie(&first);
    site.rewrite(&text(&members, "{ wait = '1s' }"));
    site.command(&["reload"]).await.assert_exit(0);
    with_cookie(&site, &cookie).await.assert_no_field("set-cookie").assert_ok(&first.text());
    site.command(&["upgrade"]).await.assert_exit(0);
    let after = eventually("an answer of the successor", async || {
        let answer = with_cookie(&site, &cookie).await;
        site.lines().iter().any(|line| line.contains("has taken over")).then_some(answer)
    })
    .await;
    after.assert_no_field("set-cookie").assert_ok(&first.text());
    assert!(!site.lines().iter().any(|line| line.contains("sticky_key")), "the key is secret");
}

#[tokio::test]
async fn streams_of_http2_stay_with_the_member_of_their_client() {
    let members = members().await;
    let site = before(&members, "'cookie'").await;
    let mut talk = talk(&site).await;
    for _ in 0..3 {
        let (first, body) = talk.ask(get("/")).await;
        let set = first.headers()["set-cookie"].to_str().unwrap();
        let cookie = set.split(';').next().unwrap();
        for _ in 0..4 {
            let request = Request::get("http://site.test/").header("cookie", "a=b").header("cookie", cookie);
            let (again, same) = talk.ask(request.body(()).unwrap()).await;
            assert_eq!((again.headers().get("set-cookie"), same), (None, body.clone()));
        }
    }
}

#[tokio::test]
async fn a_session_of_engine_io_goes_to_the_member_that_began_it() {
    let mut members = Vec::new();
    for name in ["one", "two"] {
        let script = upstream().script(move |seen| match seen.target().contains("sid=") {
            true => ok(name),
            false => ok(format!("0{{\"sid\":\"{name}-{}\",\"upgrades\":[]}}", seen.target().len())),
        });
        members.push(script.start().await);
    }
    for (sticky, stays) in [("'auto'", true), ("'off'", false)] {
        let site = before(&members, &format!("{sticky}\nchoice = 'round_robin'")).await;
        let mut strays = 0;
        for number in 0..6 {
            let begin =
                site.get(&format!("/socket.io/?EIO=4&transport=polling&t={}", "x".repeat(number))).await;
            let body = begin.text();
            let id = body.strip_prefix("0{\"sid\":\"").unwrap().split('"').next().unwrap().to_owned();
            let name = id.split('-').next().unwrap().to_owned();
            for _ in 0..4 {
                let session = format!("/socket.io/?EIO=4&transport=polling&sid={id}");
                strays += usize::from(site.get(&session).await.text() != name);
                // Other requests change which member is next.
                site.get("/").await.assert_status(200);
            }
        }
        assert_eq!(strays == 0, stays, "{sticky}: {strays} strays");
        if stays {
            assert_eq!(site.pool("app").await["sticky"]["sessions"], 6);
            // A pool that starts anew, because it connects in another way, still knows where they are.
            site.rewrite(&format!("{}protocol = 'http2'\n", text(&members, sticky)));
            site.command(&["reload"]).await.assert_exit(0);
            assert_eq!(site.pool("app").await["sticky"]["sessions"], 6);
        } else {
            assert!(site.pool("app").await["sticky"].is_null());
        }
    }
}
