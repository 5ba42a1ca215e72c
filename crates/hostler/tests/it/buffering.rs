//! Request bodies are read as a whole before they take a slot, into memory or an unnamed file, unless the route streams them.

use hostler_testkit::{Step, chunked, eventually, request, text, upstream};

use crate::{http2, in_front_of, site};

/// Bytes that show if a piece is in the wrong place.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes / 4 + 1).flat_map(|n| (n as u32).to_be_bytes()).take(bytes).collect()
}

const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn no_slot_is_taken_while_a_body_is_not_complete() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut slow = site.connect().await;
    slow.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345").await;
    for _ in 0..20 {
        site.get("/quick").await.assert_ok("ok");
    }
    let pool = site.pool("app").await;
    assert_eq!((&pool["in_use"], &pool["queue_length"]), (&0.into(), &0.into()));
    assert_eq!(app.connections(), 1);
    slow.send("67890").await;
    slow.answer().await.assert_ok("ok");
    assert_eq!(app.requests().last().unwrap().body, b"1234567890");
}

#[tokio::test]
async fn bodies_of_any_size_arrive_intact() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    // Sizes around the limits: what fits into one write with the head, one piece, and the memory limit.
    let sizes = [1, 16 << 10, (16 << 10) + 1, 64 << 10, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 5 << 20];
    let mut client = site.connect().await;
    for size in sizes {
        client.post("/", pattern(size)).await.assert_ok("ok");
        client.send([CHUNKED, &chunked(pattern(size).chunks(8 * 1024 - 1))].concat()).await;
        client.answer().await.assert_ok("ok");
    }
    for (at, seen) in app.requests().iter().enumerate() {
        let size = sizes[at / 2];
        assert!(seen.body == pattern(size), "{size} bytes");
        assert_eq!(seen.field("content-length"), Some(size.to_string()));
        assert_eq!(seen.field("transfer-encoding"), None);
    }
}

#[tokio::test]
async fn a_body_may_go_to_a_file_from_its_first_byte() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.body_memory = 0").await;
    let mut client = site.connect().await;
    for piece in [1, 7, 1000, 100_000] {
        let body = pattern(150_000);
        client.send([CHUNKED, &chunked(body.chunks(piece))].concat()).await;
        client.answer().await.assert_ok("ok");
        assert!(app.requests().last().unwrap().body == body, "in chunks of {piece}");
    }
    client.post("/", pattern(150_000)).await.assert_ok("ok");
    assert!(app.requests().last().unwrap().body == pattern(150_000));
}

#[tokio::test]
async fn a_small_body_memory_keeps_the_order_of_bytes_read_ahead() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.body_memory = 3").await;
    let body = format!("4;{}\r\nabcd\r\n4\r\nefgh\r\n0\r\n\r\n", "e".repeat(500));
    site.send([CHUNKED, body.as_bytes()].concat()).await.assert_ok("ok");
    assert_eq!(app.only_request().body, b"abcdefgh");
}

#[tokio::test]
async fn a_spilled_body_has_no_name_in_the_file_system() {
    let app = upstream().start().await;
    let plan = site("server.temp_dir = 'spill'").with("app", &app);
    let folder = plan.folder().join("spill");
    std::fs::create_dir(&folder).unwrap();
    let site = plan.start().await;
    let mut client = site.connect().await;
    let bytes = request("POST /", "", &pattern(2 << 20));
    client.send(&bytes[..1 << 20]).await;
    // The file is in that folder and is already deleted.
    let open = format!("/proc/{}/fd", site.pid());
    let (kind, file) = eventually("an open file", async || {
        let links =
            std::fs::read_dir(&open).unwrap().filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        links
            .map(|link| link.display().to_string())
            .find(|link| link.contains("/spill/"))
            .map(|link| ("spilled", link))
    })
    .await;
    assert!(file.ends_with("(deleted)"), "{kind} to {file}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    client.send(&bytes[1 << 20..]).await;
    client.answer().await.assert_ok("ok");
    assert!(app.only_request().body == pattern(2 << 20));
}

#[tokio::test]
async fn an_unwritable_spool_folder_gives_a_500_and_no_crash() {
    let app = upstream().start().await;
    let plan = site("server.temp_dir = 'spill'\nserver.body_memory = 10").with("app", &app);
    let folder = plan.folder().join("spill");
    std::fs::create_dir(&folder).unwrap();
    let site = plan.start().await;
    std::fs::remove_dir(&folder).unwrap();
    let answer = site.post("/", pattern(1000)).await;
    answer.assert_refused(500, "storage");
    assert!(!answer.text().contains("spill"), "paths are for the log: {answer:?}");
    site.post("/", "small").await.assert_ok("ok");
}

#[tokio::test]
async fn a_streamed_body_reaches_the_member_as_it_comes() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'").await;
    let arrived = async |bytes: &[u8]| {
        let what = String::from_utf8_lossy(bytes).into_owned();
        eventually(what, async || (app.requests().last()?.body == bytes).then_some(())).await;
    };
    let mut client = site.connect().await;
    client.send("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc").await;
    arrived(b"abc").await;
    client.send("def").await;
    client.answer().await.assert_ok("ok");
    assert_eq!(app.requests()[0].field("content-length").as_deref(), Some("6"));

    client.send("POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
    arrived(b"abc").await;
    client.send("1\r\nd\r\n").await;
    arrived(b"abcd").await;
    client.send("0\r\nX-Sum: 4\r\n\r\n").await;
    client.answer().await.assert_ok("ok");
    let seen = app.requests().remove(1);
    assert_eq!(
        (seen.field("transfer-encoding").as_deref(), seen.trailers),
        (Some("chunked"), vec!["X-Sum: 4".to_owned()])
    );
}

#[tokio::test]
async fn a_large_streamed_body_arrives_intact() {
    let app = upstream().start().await;
    let config = "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'\nmax_body_size = '64 MiB'";
    let site = in_front_of(&app, config).await;
    let body = pattern(20 << 20);
    site.post("/", &body).await.assert_ok("ok");
    site.send([CHUNKED, &chunked(body.chunks(300_001))].concat()).await.assert_ok("ok");
    for seen in app.requests() {
        assert!(seen.body == body, "{} bytes", seen.body.len());
    }
}

#[tokio::test]
async fn a_truncated_streamed_body_is_truncated_at_the_member_too() {
    let app = upstream().start().await;
    let config = "server.body_timeout = '200ms'\n[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'";
    let site = in_front_of(&app, config).await;
    for body in ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"] {
        // The client leaves, stalls, or violates the coding.
        let mut client = site.connect().await;
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{body}")).await;
        drop(client);
        let mut client = site.connect().await;
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{body}")).await;
        client.answer().await.assert_refused(408, "body_timeout");
    }
    let bytes = [CHUNKED, b"4\r\nhalf\r\nx"].concat();
    site.send(bytes).await.assert_refused(400, "bad_body");
    site.settles("app", 0, 0).await;
    app.has_seen(5).await;
    assert!(app.requests().iter().all(|seen| !seen.is_whole));
    eventually("the member's connections to end", async || (app.open() == 0).then_some(())).await;
}

#[tokio::test]
async fn a_member_may_answer_before_it_has_the_whole_body() {
    let early = text("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    let app = upstream().at_head().does(early).start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'").await;
    let mut client = site.connect().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nsome").await;
    client.answer().await.assert_status(403).assert_says("no").assert_field("connection", "close");
    client.assert_closed().await;
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn a_streamed_body_and_its_answer_may_overlap() {
    let steps = [
        text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n"),
        vec![Step::ReadBody],
        text("5\r\nended\r\n0\r\n\r\n"),
    ];
    let app = upstream().at_head().does(steps.concat()).start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'").await;
    for _ in 0..2 {
        let mut client = site.connect().await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nsome").await;
        let head = client.read_until("begun\r\n").await;
        assert!(head.contains("\r\nConnection: close\r\n"), "the body may never be read whole: {head}");
        client.send(vec![b'x'; 100_000 - 4]).await;
        assert!(client.read_until("0\r\n\r\n").await.contains("ended"));
        client.assert_closed().await;
    }
    assert!(app.requests().iter().all(|seen| seen.is_whole && seen.body.len() == 100_000));
    assert_eq!(app.connections(), 1);
}

#[tokio::test]
async fn an_http2_upload_that_waits_for_a_slot_stops_no_other_body_of_its_connection() {
    let app = upstream().holds_requests().start().await;
    let routes = "[[routes]]\nmatch = \"/form\"\nrespond = \"taken\"\n[[routes]]\nmatch = \"*\"\npool = \"app\"\nbuffer = \"none\"\n";
    let site = in_front_of(&app, &format!("pools.app.concurrency = 1\n{routes}")).await;
    let mut talk = http2::talk(&site).await;
    let (first, _) = talk.begin(http2::get("/first"), true).await;
    site.settles("app", 1, 0).await;
    let post = |path: &str| http::Request::post(format!("http://site.test{path}")).body(()).unwrap();
    // More than the 64 KiB with which the window of a connection begins.
    let (upload, mut sent) = talk.begin(post("/upload"), false).await;
    sent.send_data(vec![b'x'; 200_000].into(), true).unwrap();
    site.settles("app", 1, 1).await;
    let (form, mut sent) = talk.begin(post("/form"), false).await;
    sent.send_data("a=1".into(), true).unwrap();
    assert_eq!(http2::whole(form).await.1, b"taken");
    app.release_all();
    assert_eq!(http2::whole(first).await.1, b"/first");
    assert_eq!(http2::whole(upload).await.1, b"/upload");
    assert_eq!(app.requests()[1].body.len(), 200_000);
}

#[tokio::test]
async fn http2_uploads_that_wait_for_a_slot_leave_room_for_the_one_that_has_it() {
    let app = upstream().start().await;
    let route = "[[routes]]\nmatch = \"*\"\npool = \"app\"\nbuffer = \"none\"\n";
    let site = in_front_of(&app, &format!("pools.app.concurrency = 1\n{route}")).await;
    let mut talk = http2::talk(&site).await;
    let post = |path: &str| http::Request::post(format!("http://site.test{path}")).body(()).unwrap();
    let (first, mut sent) = talk.begin(post("/first"), false).await;
    site.settles("app", 1, 0).await;
    let mut waiting = Vec::new();
    // More than the window of the connection, with 256 KiB for each stream.
    for n in 0..6 {
        let (upload, mut sent) = talk.begin(post(&format!("/{n}")), false).await;
        sent.send_data(vec![b'x'; 300_000].into(), true).unwrap();
        waiting.push(upload);
    }
    site.settles("app", 1, 6).await;
    sent.send_data(vec![b'y'; 200_000].into(), true).unwrap();
    assert_eq!(http2::whole(first).await.1, b"ok");
    for upload in waiting {
        assert_eq!(http2::whole(upload).await.1, b"ok");
    }
    assert_eq!(app.requests()[0].body.len(), 200_000);
    assert!(app.requests()[1..].iter().all(|seen| seen.body.len() == 300_000));
}

#[tokio::test]
async fn a_member_that_waits_for_a_slow_client_is_told_to_stop_and_not_ejected() {
    let app = upstream().start().await;
    let pool = "[pools.app]\nconcurrency = 1\nrequest_timeout = '200ms'\nejection.timeouts = 1\n";
    let route = "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'\n";
    let site = in_front_of(&app, &format!("{pool}{route}")).await;
    let mut client = site.connect().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf").await;
    let answer = client.answer().await;
    answer.assert_refused(504, "answer_timeout").assert_says("the response did not begin in time");
    site.settles("app", 0, 0).await;
    assert!(!app.only_request().is_whole);
    let counters = &site.pool("app").await["counters"];
    assert_eq!(counters["member_timeouts"], 0, "{counters}");
    assert_eq!(counters["ejections"], 0, "{counters}");
}
