//! Upgrades in front of members: what happens to connections, addresses and streams.

use std::net::SocketAddr;
use std::os::unix::fs::symlink;

use hostler_testkit::{ReceivedAnswer, Site, Step, client, eventually, text, try_client, upstream};
use rustix::process::Signal;

use crate::cache_hits::{numbered, with_cache};
use crate::{in_front_of, signal};

async fn upgrade(site: &Site) {
    site.command(&["upgrade"]).await.assert_exit(0);
}

/// The addresses on which the successor says that it listens. Two processes write the log: the line of the old one that it is replaced may
/// come before these.
async fn addresses(site: &Site, begin: usize) -> [SocketAddr; 2] {
    eventually("the successor says where it listens", async || {
        let lines = site.lines().split_off(begin);
        let told =
            lines.iter().filter_map(|line| line.split_once("listening on http://")?.1.split('"').next());
        let told: Vec<SocketAddr> = told.map(|address| address.parse().unwrap()).collect();
        told.try_into().ok()
    })
    .await
}

#[tokio::test]
async fn an_upgrade_changes_listen_addresses_and_never_closes_those_that_stay() {
    let app = upstream().start().await;
    let mut site = in_front_of(&app, "server.listen = ['127.0.0.1:0', '127.0.0.2:0']").await;
    let [goes, stays] = [site.addresses()[0], site.addresses()[1]];
    let begin = site.lines().len();
    let pool = format!("[pools.app]\nmembers = ['{}']\n", app.address());
    site.rewrite(&format!("server.listen = ['127.0.0.2:0', '127.0.0.3:0']\n{pool}"));
    upgrade(&site).await;
    client(stays).await.get("/").await.assert_ok("ok");
    let [first, second] = addresses(&site, begin).await;
    assert_eq!(first, stays);
    client(second).await.get("/").await.assert_ok("ok");
    assert_eq!(site.exit().await, 0);
    assert!(try_client(goes).await.is_none(), "it was closed");
    client(stays).await.get("/").await.assert_ok("ok");
}

/// A shell keeps the name of a link in PWD. The system knows only the folder that it led to.
#[tokio::test]
async fn a_hostler_that_was_started_in_a_link_to_a_release_follows_the_link() {
    let plan = crate::site("[[routes]]\nmatch = '*'\nstatic = 'public'");
    let folder = plan.folder().to_owned();
    for release in ["1", "2"] {
        let public = folder.join("releases").join(release).join("public");
        std::fs::create_dir_all(&public).unwrap();
        std::fs::write(public.join("v.txt"), release).unwrap();
        symlink("../../hostler.toml", public.with_file_name("hostler.toml")).unwrap();
    }
    let link = folder.join("current");
    symlink("releases/1", &link).unwrap();
    let site = plan.invoked(&link, vec!["start".into()]).env("PWD", link.clone()).start().await;
    site.get("/v.txt").await.assert_ok("1");
    symlink("releases/2", folder.join("next")).unwrap();
    std::fs::rename(folder.join("next"), &link).unwrap();
    site.get("/v.txt").await.assert_ok("2");
    upgrade(&site).await;
    site.get("/v.txt").await.assert_ok("2");
}

#[tokio::test]
async fn an_address_in_use_fails_the_upgrade_and_changes_nothing() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let taken = upstream().start().await;
    site.rewrite(&format!(
        "server.listen = '{}'\n[pools.app]\nmembers = ['{}']\n",
        taken.address(),
        app.address()
    ));
    let refused = format!("cannot listen on {} (server.listen)", taken.address());
    site.command(&["upgrade"]).await.assert_exit(1).assert_complains(&refused);
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_stream_continues_at_the_old_process() {
    let steps = [
        text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"),
        vec![Step::Hold],
        text("1\r\nb\r\n0\r\n\r\n"),
    ];
    let app = upstream().does(steps.concat()).start().await;
    let mut site = in_front_of(&app, "server.drain_timeout = '60s'").await;
    let mut streaming = site.begin("/").await;
    streaming.read_until("a\r\n").await;
    let mut sending = site.connect().await;
    sending.send("GET / HTTP/1.1\r\nHo").await;
    // The thread that answers this has read the other request before.
    site.send("GET / HTTP/1.1\r\n\r\n").await.assert_status(400);
    upgrade(&site).await;
    app.release_all();
    assert!(streaming.read_until("0\r\n\r\n").await.contains("b\r\n"));
    sending.send("st: a\r\nConnection: close\r\n\r\n").await;
    sending.answer().await.assert_status(200);
    sending.assert_closed().await;
    drop(streaming);
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn an_upgrade_waits_for_an_idle_connection_at_most_the_drain_timeout() {
    let app = upstream().start().await;
    let mut site = in_front_of(&app, "server.drain_timeout = '200ms'").await;
    let mut silent = site.connect().await;
    silent.get("/").await.assert_ok("ok");
    upgrade(&site).await;
    silent.assert_closed().await;
    assert_eq!(site.exit().await, 0);
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_stop_after_two_upgrades_ends_the_first_process_too() {
    let app = upstream().start().await;
    let mut site = in_front_of(&app, "").await;
    let mut silent = site.connect().await;
    silent.get("/").await.assert_ok("ok");
    upgrade(&site).await;
    // The old process may still take a command, and refuses it.
    let said = eventually("the second upgrade", async || {
        let output = site.command(&["upgrade"]).await;
        (output.code == Some(0)).then_some(output.stdout)
    })
    .await;
    let last = said.split_once("pid ").unwrap().1.split(' ').next().unwrap();
    signal(last.parse().unwrap(), Signal::TERM);
    silent.assert_closed().await;
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_stopping_hostler_refuses_admin_commands() {
    let app = upstream().holds_requests().start().await;
    let mut site = in_front_of(&app, "server.drain_timeout = '60s'").await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    site.terminate();
    site.says("stopping").await;
    for order in ["upgrade", "reload"] {
        let output = site.command(&[order]).await;
        output.assert_exit(1).assert_complains("this Hostler is stopping");
    }
    site.hang_up();
    site.says("SIGHUP: ignored, this Hostler is stopping").await;
    app.release_all();
    running.answer().await.assert_ok("/running");
    assert_eq!(site.exit().await, 0);
    eventually("no process listens", async || try_client(site.address()).await.is_none().then_some(())).await;
}

#[tokio::test]
async fn a_purge_after_an_upgrade_reaches_the_last_connections_of_the_old_process() {
    let app = upstream().script(numbered(|_, _| "Cache-Control: max-age=1000\r\n".into())).start().await;
    let site = with_cache(&app).await;
    let mut kept = Vec::new();
    for _ in 0..50 {
        let mut client = site.connect().await;
        client.get("/").await.assert_ok("1");
        kept.push(client);
    }
    upgrade(&site).await;
    // The old process may still take a command, and refuses it.
    eventually("the new one to purge", async || {
        (site.command(&["purge", "--all"]).await.code == Some(0)).then_some(())
    })
    .await;
    // The old one answers one more request on each of its connections.
    eventually("an answer from after the purge", async || {
        let answer = kept.pop().expect("a connection is left").get("/").await;
        (answer.body == b"2").then_some(())
    })
    .await;
}

/// The old process closes each connection after its next answer.
fn is_of_the_new_one(answer: &ReceivedAnswer) -> bool {
    answer.field("connection").is_none()
}

#[tokio::test]
async fn an_unsafe_method_after_an_upgrade_reaches_the_last_connections_of_the_old_process() {
    let app = upstream().script(numbered(|_, _| "Cache-Control: max-age=1000\r\n".into())).start().await;
    let site = with_cache(&app).await;
    let mut kept = Vec::new();
    for _ in 0..50 {
        let mut client = site.connect().await;
        client.get("/").await.assert_ok("1");
        kept.push(client);
    }
    upgrade(&site).await;
    eventually("the new one to get a POST", async || {
        // Not for the page itself: the old one may still accept a connection.
        is_of_the_new_one(&site.post("/other", "new").await).then_some(())
    })
    .await;
    site.post("/", "new").await.assert_status(200);
    eventually("an answer from after the POST", async || {
        let answer = kept.pop().expect("a connection is left").get("/").await;
        (answer.body != b"1").then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_unsafe_method_of_the_old_process_reaches_the_new_one() {
    let app = upstream().script(numbered(|_, _| "Cache-Control: max-age=1000\r\n".into())).start().await;
    let site = with_cache(&app).await;
    let mut kept = site.connect().await;
    kept.get("/other").await.assert_ok("1");
    upgrade(&site).await;
    let before = eventually("an answer that the new one has stored", async || {
        let (first, second) = (site.get("/").await, site.get("/").await);
        let is_stored = is_of_the_new_one(&first) && first.body == second.body;
        (is_stored && is_of_the_new_one(&second)).then_some(second.body)
    })
    .await;
    let answer = kept.post("/", "new").await;
    assert!(!is_of_the_new_one(answer.assert_status(200)));
    eventually("an answer from after the POST", async || (site.get("/").await.body != before).then_some(()))
        .await;
}
