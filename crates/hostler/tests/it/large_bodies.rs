//! Large bodies: files that are sent by the kernel, answers and uploads that come fast, and what is left when one side ends early.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use hostler_testkit::{Client, Site, Step, client_with_window, eventually, ok, text, upstream};

use crate::slow_clients::{MIB, patterned};
use crate::{in_front_of, site};

/// A site with files of these sizes, named after them.
async fn files(sizes: &[usize], config: &str) -> (Site, PathBuf) {
    let plan = site(&format!("[[routes]]\nmatch = '*'\nstatic = 'public'\n{config}"));
    let folder = plan.folder().join("public");
    std::fs::create_dir(&folder).unwrap();
    for size in sizes {
        std::fs::write(folder.join(size.to_string()), patterned(*size)).unwrap();
    }
    (plan.start().await, folder)
}

async fn get(client: &mut Client, path: &str, fields: &str) -> Vec<u8> {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    client.answer().await.body
}

/// Reads so many pieces of 16 KiB, ten in a second, and then the rest at once.
async fn read_slowly(client: &mut Client, bytes: usize, pieces: usize) -> Vec<u8> {
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let mut read = Vec::new();
    for _ in 0..pieces {
        ticks.tick().await;
        read.extend(client.read_exactly(16_384).await);
    }
    read.extend(client.read_exactly(bytes - read.len()).await);
    read
}

#[tokio::test]
async fn files_of_all_sizes_arrive_as_they_are_on_one_connection() {
    let sizes =
        [0, 1, 16_383, 16_384, 16_385, 32_767, 32_768, 65_536, 65_537, 131_072, 147_456, 147_457, 3 * MIB];
    let (site, _) = files(&sizes, "").await;
    let mut client = site.connect().await;
    for size in sizes {
        assert!(get(&mut client, &format!("/{size}"), "").await == patterned(size), "{size}");
        assert_eq!(site.access(&format!("/{size}")).await["bytes_out"], size);
    }
}

#[tokio::test]
async fn a_slow_client_that_has_finished_sending_gets_all_of_a_file() {
    let size = 4 * MIB;
    let (site, _) = files(&[size], "").await;
    let mut client = client_with_window(16_384, site.address()).await;
    client.send(format!("GET /{size} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    client.finish_sending().await;
    client.next_head().await.unwrap();
    // Longer than an answer may pause for a client that may have left.
    let mut ticks = tokio::time::interval(Duration::from_secs(2));
    let mut read = Vec::new();
    for _ in 0..3 {
        ticks.tick().await;
        read.extend(client.read_exactly(16_384).await);
    }
    read.extend(client.read_exactly(size - read.len()).await);
    assert!(read == patterned(size), "it is another one");
}

#[tokio::test]
async fn ranges_and_heads_of_large_files_are_exact_and_the_next_request_follows() {
    let (site, _) = files(&[MIB], "").await;
    let whole = patterned(MIB);
    let mut client = site.connect().await;
    for range in [0..MIB, 1..MIB, 100_000..300_000, MIB - 40_000..MIB, 5..6] {
        let field = format!("Range: bytes={}-{}\r\n", range.start, range.end - 1);
        let part = get(&mut client, &format!("/{MIB}"), &field).await;
        assert!(part == whole[range.clone()], "{range:?}");
        client.send(format!("HEAD /{MIB} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let head = client.answer_to("HEAD").await;
        head.assert_status(200).assert_field("content-length", &MIB.to_string());
    }
}

#[tokio::test]
async fn pipelined_requests_for_files_are_answered_in_order() {
    let (site, _) = files(&[MIB, 100], "").await;
    let mut client = site.connect().await;
    client
        .send(format!("GET /{MIB} HTTP/1.1\r\nHost: a\r\n\r\nGET /100 HTTP/1.1\r\nHost: a\r\n\r\n").repeat(5))
        .await;
    for _ in 0..5 {
        assert!(client.answer().await.body == patterned(MIB));
        assert!(client.answer().await.body == patterned(100));
    }
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_a_large_file_and_then_the_end_of_the_connection() {
    let (site, _) = files(&[MIB], "").await;
    let mut client = site.connect().await;
    client.send(format!("GET /{MIB} HTTP/1.0\r\nHost: a\r\n\r\n")).await;
    assert!(client.answer().await.body == patterned(MIB));
    client.assert_closed().await;
}

#[tokio::test]
async fn a_slow_client_gets_all_of_a_large_file_and_one_that_reads_nothing_is_cut_off() {
    let (site, _) = files(&[8 * MIB], "[server]\nsend_timeout = '4s'").await;
    let path = format!("/{}", 8 * MIB);
    let mut slow = client_with_window(4096, site.address()).await;
    slow.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    slow.next_head().await.unwrap();
    assert!(read_slowly(&mut slow, 8 * MIB, 60).await == patterned(8 * MIB));
    assert_eq!(site.access(&path).await["bytes_out"], 8 * MIB);
    let mut idle = client_with_window(4096, site.address()).await;
    idle.send(format!("GET {path}?idle HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    idle.next_head().await.unwrap();
    let line = site.access(&format!("{path}?idle")).await;
    assert_eq!(line["aborted"], "client stalled", "{line}");
    assert!(line["bytes_out"].as_u64().unwrap() < 8 * MIB as u64, "{line}");
}

/// Its connection is older than all settings of the listener, as with systemd's socket activation.
#[tokio::test]
async fn a_slow_client_that_came_before_hostler_is_not_taken_for_stalled() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let plan = site(&format!(
        "[server]\nlisten = '{address}'\nsend_timeout = '2s'\n[[routes]]\nmatch = '*'\nstatic = 'public'"
    ))
    .given([socket], "hostler.socket");
    let folder = plan.folder().join("public");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file"), patterned(8 * MIB)).unwrap();
    let mut slow = client_with_window(4096, address).await;
    slow.send("GET /file HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let site = plan.start().await;
    slow.next_head().await.unwrap();
    assert!(read_slowly(&mut slow, 8 * MIB, 30).await == patterned(8 * MIB));
    assert_eq!(site.access("/file").await["bytes_out"], 8 * MIB);
}

#[tokio::test]
async fn a_file_that_becomes_shorter_while_it_is_sent_breaks_the_answer_off() {
    let (site, folder) = files(&[32 * MIB], "").await;
    let path = format!("/{}", 32 * MIB);
    let mut client = client_with_window(4096, site.address()).await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    client.next_head().await.unwrap();
    let file = std::fs::File::options().write(true).open(folder.join(path.trim_start_matches('/')));
    file.unwrap().set_len(1000).unwrap();
    assert!(client.rest().await.0.len() < 32 * MIB);
    assert_eq!(site.access(&path).await["aborted"], "file_system");
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_a_file_is_noted() {
    let (site, _) = files(&[32 * MIB], "").await;
    let path = format!("/{}", 32 * MIB);
    let mut client = client_with_window(4096, site.address()).await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    client.read_exactly(100_000).await;
    client.reset();
    let line = site.access(&path).await;
    assert_eq!(line["aborted"], "client", "{line}");
    assert!(line["bytes_out"].as_u64().unwrap() < 32 * MIB as u64, "{line}");
}

#[tokio::test]
async fn answers_of_known_length_arrive_as_they_are_and_the_next_request_follows() {
    let sizes = [0, 1, 16_384, 65_536, 65_537, 200_000, 5 * MIB];
    let app = upstream().in_turn(sizes.iter().map(|size| ok(patterned(*size)))).start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut client = site.connect().await;
    client
        .send((0..sizes.len()).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n")).collect::<String>())
        .await;
    for (n, size) in sizes.iter().enumerate() {
        assert!(client.answer().await.body == patterned(*size), "{size}");
        assert_eq!(site.access(&format!("/{n}")).await["bytes_out"], *size);
    }
    assert_eq!(app.connections(), 1);
}

#[tokio::test]
async fn bytes_behind_a_large_answer_are_never_a_part_of_it_or_of_the_next_one() {
    let large = [ok(patterned(MIB)), text("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")].concat();
    let app = upstream().in_turn([large, ok("good")]).start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut client = site.connect().await;
    assert!(get(&mut client, "/large", "").await == patterned(MIB));
    client.get("/next").await.assert_ok("good");
    assert_eq!(app.connections(), 2);
}

#[tokio::test]
async fn a_member_that_breaks_off_in_the_middle_of_a_large_answer_breaks_it_off_for_the_client() {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 4 * MIB);
    let steps = [text(head), text(patterned(2 * MIB)), vec![Step::Close]].concat();
    let app = upstream().does(steps).start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut client = site.connect().await;
    client.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = client.answer().await;
    answer.assert_broken();
    let line = site.access("/cut").await;
    assert_eq!((&line["aborted"], &line["bytes_out"]), (&"worker".into(), &(2 * MIB).into()), "{line}");
    assert!(patterned(2 * MIB).starts_with(&answer.body));
}

#[tokio::test]
async fn a_large_upload_reaches_the_member_as_it_was_and_the_next_request_is_its_own() {
    for config in ["", "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'"] {
        let app = upstream().start().await;
        let site = in_front_of(&app, config).await;
        let mut client = site.connect().await;
        for size in [0, 65_536, 300_000, 5 * MIB] {
            let body = patterned(size);
            let request = hostler_testkit::request("POST /up", "", &body);
            client.send([&request[..], b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"].concat()).await;
            client.answer().await.assert_ok("ok");
            client.answer().await.assert_ok("ok");
            let requests = app.requests();
            let [.., upload, next] = &requests[..] else { panic!("two requests") };
            assert!(upload.is_whole && upload.body == body, "{size}");
            assert_eq!(next.target(), "/next");
        }
    }
}

#[tokio::test]
async fn small_requests_are_answered_while_large_answers_are_on_their_way() {
    let app = upstream().script(|seen| match seen.target().starts_with("/large") {
        true => ok(patterned(64 * MIB)),
        false => ok("ok"),
    });
    let app = app.start().await;
    let site = in_front_of(&app, "pools.app.concurrency = 64").await;
    let mut large = Vec::new();
    for n in 0..4 {
        let mut client = site.begin(&format!("/large/{n}")).await;
        large.push(tokio::spawn(async move { client.answer().await.body.len() }));
    }
    let mut small = site.connect().await;
    for _ in 0..100 {
        small.get("/small").await.assert_ok("ok");
    }
    for one in large {
        assert_eq!(one.await.unwrap(), 64 * MIB);
    }
    eventually("no request to run", async || (app.running() == 0).then_some(())).await;
}
