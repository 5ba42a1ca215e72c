//! Clients that stay with one worker or member (`sticky`), with apps that keep state in memory.

use futures_util::StreamExt;
use hostler_testkit::{Client, ReceivedAnswer, eventually, within};
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::proc;
use super::site::{Plan, Site, app, configured};

const COOKIE: &str = "pools.app.sticky=cookie";

fn memory(workers: usize) -> Plan {
    app("memory.cjs").workers(workers)
}

/// A browser with one cookie jar. Each request has a connection of its own.
#[derive(Clone, Default)]
struct Browser {
    cookie: Option<String>,
}

/// What the app saw of a request.
struct Seen {
    pid: u64,
    moved: Option<String>,
    answer: ReceivedAnswer,
}

impl Browser {
    fn head(&self, path: &str, more: &str) -> String {
        let cookie =
            self.cookie.as_ref().map_or(String::new(), |cookie| format!("Cookie: a=b; {cookie}\r\n"));
        format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n{cookie}{more}\r\n")
    }

    async fn begin(&self, site: &Site, path: &str) -> Client {
        let mut client = site.connect().await;
        client.send(self.head(path, "")).await;
        client
    }

    async fn get(&mut self, site: &Site, path: &str) -> Seen {
        self.get_with(site, path, "").await
    }

    async fn get_with(&mut self, site: &Site, path: &str, more: &str) -> Seen {
        let mut client = site.connect().await;
        client.send(self.head(path, more)).await;
        self.finish(&mut client).await
    }

    async fn finish(&mut self, client: &mut Client) -> Seen {
        let answer = client.answer().await;
        answer.assert_status(200);
        if let Some(set) = answer.field("set-cookie") {
            self.cookie = set.split(';').next().map(Into::into);
        }
        let json = answer.json();
        let moved = json["headers"]["x-hostler-moved"].as_str().map(Into::into);
        Seen { pid: json["pid"].as_u64().unwrap(), moved, answer }
    }
}

async fn moved(site: &Site) -> (u64, u64) {
    let moved = &site.pool("app").await["sticky"]["moved"];
    (moved["gone"].as_u64().unwrap(), moved["busy"].as_u64().unwrap())
}

#[tokio::test]
async fn a_cookie_keeps_clients_with_their_workers_and_spreads_new_ones() {
    let site = memory(3).option(COOKIE).started().await;
    let mut pids = std::collections::HashSet::new();
    for _ in 0..6 {
        let mut browser = Browser::default();
        let first = browser.get(&site, "/").await;
        let set = first.answer.field("set-cookie").unwrap();
        let (token, attributes) = set.strip_prefix("hostler_app=").unwrap().split_once(';').unwrap();
        assert_eq!((token.len(), attributes), (32, " Path=/; HttpOnly; SameSite=Lax"));
        for _ in 0..4 {
            let again = browser.get(&site, "/").await;
            assert_eq!((again.pid, again.moved), (first.pid, None));
            again.answer.assert_no_field("set-cookie");
        }
        pids.insert(first.pid);
    }
    assert_eq!(pids.len(), 3, "new clients are spread");
    assert_eq!(moved(&site).await, (0, 0));
    site.stop().await;
}

#[tokio::test]
async fn the_cookie_is_secure_if_a_trusted_proxy_says_https() {
    let trusted = "server.trusted_proxies=127.0.0.1";
    for (option, secure) in [(trusted, true), ("server.trusted_proxies=10.0.0.1", false)] {
        let site = memory(1).option(COOKIE).option(option).started().await;
        let https = "X-Forwarded-Proto: https\r\n";
        let seen = Browser::default().get_with(&site, "/", https).await;
        assert_eq!(seen.answer.field("set-cookie").unwrap().ends_with("; Secure"), secure);
        site.stop().await;
    }
    let site = memory(1)
        .option("pools.app.sticky.same_site=none")
        .option("pools.app.sticky.name=at")
        .started()
        .await;
    let set = Browser::default().get(&site, "/").await.answer.field("set-cookie").unwrap();
    assert!(set.starts_with("at=") && set.ends_with("SameSite=None; Secure"), "{set}");
    site.stop().await;
}

#[tokio::test]
async fn a_client_whose_worker_died_moves_and_the_app_is_told_once() {
    let site = memory(2).option(COOKIE).started().await;
    let mut browser = Browser::default();
    let old = browser.get(&site, "/").await.pid;
    let forged = browser.get_with(&site, "/", "X-Hostler-Moved: gone\r\nX_Hostler_Moved: gone\r\n").await;
    assert_eq!(forged.moved, None, "a client cannot say it");
    assert!(!forged.answer.text().contains("hostler_moved"));
    proc::signal(u32::try_from(old).unwrap(), Signal::KILL);
    eventually("the worker to be gone", async || {
        (!site.pids().await.contains(&u32::try_from(old).unwrap())).then_some(())
    })
    .await;
    let next = browser.get_with(&site, "/", "X-Hostler-Moved: nonsense\r\n").await;
    assert_ne!(next.pid, old);
    assert_eq!(next.moved.as_deref(), Some("gone"));
    assert!(next.answer.field("set-cookie").is_some());
    let settled = browser.get(&site, "/").await;
    assert_eq!((settled.pid, settled.moved), (next.pid, None));
    let forged = Browser { cookie: Some(format!("hostler_app={}", "0".repeat(32))) }.get(&site, "/").await;
    assert_eq!(forged.moved.as_deref(), Some("gone"), "a cookie that Hostler has not signed names no worker");
    assert_eq!(moved(&site).await, (2, 0));
    assert!(site.lines().iter().any(|line| line.contains(r#""moved":"gone""#)));
    site.stop().await;
}

#[tokio::test]
async fn a_request_waits_for_its_busy_worker_and_holds_up_no_other() {
    let site = memory(2).option("pools.app.sticky.wait=1h").option("pools.app.concurrency=1").started().await;
    let (mut one, mut other) = (Browser::default(), Browser::default());
    let own = one.get(&site, "/").await.pid;
    let others = other.get(&site, "/").await.pid;
    assert_ne!(own, others);
    let mut busy = one.begin(&site, "/wait?until=released").await;
    site.settles_at(1, 0).await;
    let mut waits = one.begin(&site, "/").await;
    site.settles_at(1, 1).await;
    for _ in 0..5 {
        assert_eq!(other.get(&site, "/").await.pid, others);
        assert_eq!(
            Browser::default().get(&site, "/").await.pid,
            others,
            "a new client takes the free worker"
        );
    }
    site.touch("released");
    assert_eq!(one.finish(&mut busy).await.pid, own);
    let waited = one.finish(&mut waits).await;
    assert_eq!((waited.pid, waited.moved), (own, None));
    site.stop().await;
}

#[tokio::test]
async fn a_request_moves_when_its_worker_is_busy_for_too_long_and_keeps_its_cookie() {
    let site =
        memory(2).option("pools.app.sticky.wait=100ms").option("pools.app.concurrency=1").started().await;
    let mut browser = Browser::default();
    let own = browser.get(&site, "/").await.pid;
    let mut busy = browser.begin(&site, "/wait?until=released").await;
    site.settles_at(1, 0).await;
    let elsewhere = browser.get(&site, "/").await;
    assert_ne!(elsewhere.pid, own);
    assert_eq!(elsewhere.moved.as_deref(), Some("busy"));
    elsewhere.answer.assert_no_field("set-cookie");
    site.touch("released");
    browser.finish(&mut busy).await;
    let back = browser.get(&site, "/").await;
    assert_eq!((back.pid, back.moved), (own, None), "the state is still at its worker");
    assert_eq!(moved(&site).await, (0, 1));
    site.stop().await;
}

#[tokio::test]
async fn a_request_waits_while_the_event_loop_of_its_worker_computes() {
    let site = memory(2).option("pools.app.sticky.wait=1h").started().await;
    let mut browser = Browser::default();
    let own = browser.get(&site, "/").await.pid;
    let mut spins = browser.begin(&site, "/spin?until=released").await;
    site.settles_at(1, 0).await;
    let mut waits = browser.begin(&site, "/").await;
    site.settles_at(1, 1).await;
    assert_ne!(Browser::default().get(&site, "/").await.pid, own);
    site.touch("released");
    assert_eq!(browser.finish(&mut spins).await.pid, own);
    assert_eq!(browser.finish(&mut waits).await.pid, own);
    site.stop().await;
}

#[tokio::test]
async fn a_wait_longer_than_the_queue_timeout_ends_with_it() {
    let site = memory(2)
        .option("pools.app.sticky.wait=1h")
        .option("pools.app.queue.timeout=100ms")
        .option("pools.app.concurrency=1")
        .started()
        .await;
    let mut browser = Browser::default();
    browser.get(&site, "/").await;
    let _busy = browser.begin(&site, "/wait?until=released").await;
    site.settles_at(1, 0).await;
    let mut refused = browser.begin(&site, "/").await;
    refused.answer().await.assert_refused(503, "queue_timeout");
    site.touch("released");
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_is_replaced_still_serves_its_own_clients_while_it_works() {
    let site =
        memory(1).option("pools.app.sticky.drain=30s").option("pools.app.hang_timeout=2m").started().await;
    let mut browser = Browser::default();
    let old = browser.get(&site, "/").await.pid;
    let mut under_way = browser.begin(&site, "/wait?until=released").await;
    site.settles_at(1, 0).await;
    let restarted = async {
        site.command(&["restart"]).await.assert_exit(0);
    };
    let meanwhile = async {
        eventually("new clients to get the successor", async || {
            (Browser::default().get(&site, "/").await.pid != old).then_some(())
        })
        .await;
        eventually("the old worker to leave", async || {
            let pool = site.pool("app").await;
            pool["members"].as_array()?.iter().any(|member| member["left"] == true).then_some(())
        })
        .await;
        for _ in 0..5 {
            let seen = browser.get(&site, "/").await;
            assert_eq!((seen.pid, seen.moved), (old, None));
        }
        site.touch("released");
        assert_eq!(browser.finish(&mut under_way).await.pid, old);
        eventually("the client to move", async || {
            let seen = browser.get(&site, "/").await;
            (seen.pid != old).then(|| assert_eq!(seen.moved.as_deref(), Some("gone")))
        })
        .await;
    };
    tokio::join!(restarted, meanwhile);
    assert_eq!(browser.get(&site, "/").await.moved, None);
    site.stop().await;
}

#[tokio::test]
async fn a_header_a_parameter_a_cookie_of_the_app_or_the_address_chooses_the_worker() {
    for (by, request) in [
        ("header:X-User", "GET / HTTP/1.1\r\nHost: a\r\nX-User: KEY\r\n\r\n"),
        ("query:user", "GET /?a=b&user=KEY HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("cookie:session", "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=b; session=KEY\r\n\r\n"),
    ] {
        let site = memory(3).option(&format!("pools.app.sticky={by}")).started().await;
        let mut workers = std::collections::HashSet::new();
        for key in 0..12 {
            let mut seen = std::collections::HashSet::new();
            for _ in 0..3 {
                let answer = site.send(request.replace("KEY", &format!("user-{key}"))).await;
                seen.insert(
                    answer.assert_no_field("set-cookie").json()["worker"].as_str().unwrap().to_owned(),
                );
            }
            assert_eq!(seen.len(), 1, "{by} {key}");
            workers.extend(seen);
        }
        assert_eq!(workers.len(), 3, "{by}");
        site.get("/").await.assert_status(200);
        site.stop().await;
    }
    let site = memory(3)
        .option("pools.app.sticky=address")
        .option("server.trusted_proxies=127.0.0.1")
        .started()
        .await;
    let mut workers = std::collections::HashSet::new();
    for client in 1..20 {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.{client}\r\n\r\n");
        let [one, two] = [site.send(&request).await.json(), site.send(&request).await.json()];
        assert_eq!(one["pid"], two["pid"]);
        workers.insert(one["worker"].as_str().unwrap().to_owned());
    }
    assert_eq!(workers.len(), 3);
    site.stop().await;
}

#[tokio::test]
async fn a_websocket_goes_to_the_worker_of_its_client() {
    let site = memory(3).option(COOKIE).started().await;
    for _ in 0..4 {
        let mut browser = Browser::default();
        let own = browser.get(&site, "/").await.pid;
        for _ in 0..3 {
            let mut request = "ws://site.test/".into_client_request().unwrap();
            request.headers_mut().insert("cookie", browser.cookie.as_ref().unwrap().parse().unwrap());
            let stream = TcpStream::connect(site.address()).await.unwrap();
            let (mut socket, answer) = within("a handshake", client_async(request, stream)).await.unwrap();
            assert!(answer.headers().get("set-cookie").is_none());
            let greeting = within("a greeting", socket.next()).await.unwrap().unwrap();
            assert_eq!(greeting.into_text().unwrap().as_str(), own.to_string());
        }
    }
    let stream = TcpStream::connect(site.address()).await.unwrap();
    let (_, answer) = within("a handshake", client_async("ws://site.test/", stream)).await.unwrap();
    assert!(answer.headers()["set-cookie"].to_str().unwrap().starts_with("hostler_app="));
    site.stop().await;
}

#[tokio::test]
async fn a_response_from_the_cache_sets_no_cookie() {
    let text = "[pools.app]\ncommand = \"node memory.cjs\"\nworkers = 2\nsticky = \"cookie\"\nqueue.timeout = \"1h\"\ncwd = \"APPS\"\n\
                [[routes]]\nmatch = \"*\"\npool = \"app\"\ncache = \"standard\"\n";
    let apps = super::site::repository().join("crates/hostler/tests/node/apps");
    let site = configured(&text.replace("APPS", apps.to_str().unwrap())).started().await;
    let first = site.get("/cached").await;
    assert!(first.field("set-cookie").is_some());
    let second = site.get("/cached").await;
    second.assert_no_field("set-cookie");
    assert_eq!(first.json()["pid"], second.json()["pid"]);
    site.stop().await;
}
