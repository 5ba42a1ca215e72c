//! When the system has no more descriptors or threads, or lets no file grow: connected clients are served, and new ones are refused at once
//! or served.

use std::os::unix::net::UnixDatagram;

use hostler_testkit::{Client, Step, UpstreamPlan, eventually, ok, upstream};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::http2::{get, talk, whole};
use crate::{in_front_of, site};

/// How many further descriptors the program may open.
const ROOM: u64 = 5;

/// The open descriptors of a process.
pub(crate) fn descriptors(pid: u32) -> Vec<u64> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[tokio::test]
async fn without_descriptors_new_clients_get_a_refusal_and_are_served_when_others_have_left() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut early = site.connect().await;
    early.get("/early").await.assert_ok("ok");

    let limit = descriptors(site.pid()).into_iter().max().unwrap() + 1 + ROOM;
    let process = Pid::from_raw(site.pid() as i32);
    prlimit(process, Resource::Nofile, Rlimit { current: Some(limit), maximum: Some(limit) }).unwrap();
    let mut crowd: Vec<Client> = Vec::new();
    eventually("no descriptor to be left", async || {
        crowd.push(site.connect().await);
        (descriptors(site.pid()).len() as u64 == limit).then_some(())
    })
    .await;

    let mut late = site.connect().await;
    late.answer().await.assert_refused(503, "too_many_connections").assert_field("connection", "close");
    late.assert_closed().await;
    early.get("/still").await.assert_ok("ok");
    assert_eq!(app.targets(), ["/early", "/still"]);
    drop(crowd);
    eventually("room for a client", async || {
        let mut late = site.connect().await;
        late.send("GET /late HTTP/1.1\r\nHost: a\r\n\r\n").await;
        (late.answer().await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn without_descriptors_the_service_manager_hears_that_hostler_lives() {
    let folder = tempfile::tempdir().unwrap();
    let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    manager.set_nonblocking(true).unwrap();
    let plan = site("[[routes]]\nmatch = '*'\nrespond = { status = 204 }");
    let plan = plan.env("NOTIFY_SOCKET", folder.path().join("notify")).env("WATCHDOG_USEC", "400000");
    let site = plan.start().await;
    let limit = descriptors(site.pid()).into_iter().max().unwrap() + 1 + ROOM;
    let process = Pid::from_raw(site.pid() as i32);
    prlimit(process, Resource::Nofile, Rlimit { current: Some(limit), maximum: Some(limit) }).unwrap();
    let mut crowd = Vec::new();
    eventually("no descriptor to be left", async || {
        crowd.push(site.connect().await);
        (descriptors(site.pid()).len() as u64 == limit).then_some(())
    })
    .await;
    let mut said = [0; 100];
    // What came before.
    while manager.recv(&mut said).is_ok() {}
    for _ in 0..3 {
        let length = eventually("a sign of life", async || manager.recv(&mut said).ok()).await;
        assert_eq!(&said[..length], b"WATCHDOG=1");
    }
}

#[tokio::test]
async fn with_few_descriptors_each_client_is_served_or_refused() {
    for limit in [64, 128, 256] {
        let app = upstream().start().await;
        let site = site("").with("app", &app).with_open_files(limit, limit).start().await;
        let mut crowd = Vec::new();
        for _ in 0..400 {
            crowd.push(site.connect().await);
        }
        let mut served = 0;
        for client in &mut crowd {
            client.send_some(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let answer = client.answer().await;
            match answer.status {
                200 => served += 1,
                _ => drop(answer.assert_refused(503, "too_many_connections")),
            }
        }
        assert!(served >= 8, "{served} of {limit}");
        let open = descriptors(site.pid()).len() as u64;
        assert!(open + 10 < limit, "{open} of {limit}: nothing is left for workers");
        drop(crowd);
        eventually("room again", async || (site.status().await["connections"]["open"] == 0).then_some(()))
            .await;
        site.get("/").await.assert_ok("ok");
    }
}

#[tokio::test]
async fn a_limit_above_the_descriptors_is_reported_at_the_start_and_by_check() {
    let app = upstream().start().await;
    let plan = site("server.max_connections = 5000").with("app", &app).with_open_files(100, 1024);
    let site = plan.start().await;
    let warning = eventually("the warning", async || site.complaints().into_iter().next()).await;
    assert!(warning.contains("server.max_connections: lowered from 5000 to"), "{warning}");
    assert!(warning.contains("1024 file descriptors"), "the hard limit counts: {warning}");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", site.pid())).unwrap();
    let limits = limits.lines().find(|line| line.starts_with("Max open files")).unwrap().to_owned();
    assert_eq!(limits.split_whitespace().nth(3), Some("1024"), "{limits}");

    let plan = crate::site("server.max_connections = 5000").with("app", &app).with_open_files(100, 1024);
    let folder = plan.folder().to_owned();
    let check = plan.invoked(&folder, vec!["check".into()]).ended().await;
    check.assert_exit(0).assert_complains("server.max_connections: lowered from 5000 to");
}

/// How many threads do blocking work.
fn blocking_threads(pid: u32) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.starts_with("tokio-")).count()
}

#[tokio::test]
async fn a_body_is_stored_in_a_file_although_the_system_refuses_more_threads() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.threads = 1\nserver.body_memory = '1 KiB'").await;
    // The memory that an upload needs is there before memory is limited.
    for _ in 0..3 {
        site.post("/early", vec![b'x'; 50_000]).await.assert_ok("ok");
    }
    eventually("a thread for blocking work of each runtime", async || {
        (blocking_threads(site.pid()) >= 2).then_some(())
    })
    .await;
    // No room for the stack of another thread. At `pids.max` the system gives the same error.
    let status = std::fs::read_to_string(format!("/proc/{}/status", site.pid())).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let size: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
    let limit = Some(size * 1024 + (1 << 20));
    let process = Pid::from_raw(site.pid() as i32);
    prlimit(process, Resource::As, Rlimit { current: limit, maximum: limit }).unwrap();
    for _ in 0..3 {
        site.post("/upload", vec![b'x'; 50_000]).await.assert_ok("ok");
    }
    assert_eq!(app.requests().len(), 6);
    assert!(!site.complaints().iter().any(|line| line.contains("panicked")), "{:?}", site.complaints());
}

#[tokio::test]
async fn a_file_that_may_not_grow_fails_its_request_and_does_not_end_the_program() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.body_memory = '1 KiB'").await;
    let limit = Some(10_000);
    let process = Pid::from_raw(site.pid() as i32);
    prlimit(process, Resource::Fsize, Rlimit { current: limit, maximum: limit }).unwrap();
    site.post("/upload", vec![b'x'; 50_000]).await.assert_refused(500, "storage");
    site.get("/later").await.assert_ok("ok");
    assert_eq!(app.targets(), ["/later"]);
}

/// An app that holds the requests for `/held`.
fn holds_some() -> UpstreamPlan {
    upstream().script(|seen| {
        let held = seen.target() == "/held";
        [if held { vec![Step::Hold] } else { vec![] }, ok("ok")].concat()
    })
}

#[tokio::test]
async fn without_descriptors_for_members_the_refusal_says_so_and_no_member_is_put_out() {
    const FEW: u64 = 256;
    let app = holds_some().start().await;
    let pool = "pools.app = { concurrency = 1000, queue = { timeout = '300ms' }, connect_timeout = '10s', request_timeout = '2m' }";
    let site = site(pool).with("app", &app).with_open_files(FEW, FEW).start().await;
    // An HTTP/2 client takes one descriptor for many requests.
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = talk(&site).await;
        for _ in 0..80 {
            held.push(client.begin(get("/held"), true).await.0);
        }
    }
    let refusal = eventually("a request without a connection", async || site.access_lines().pop()).await;
    assert_eq!(
        (&refusal["status"], &refusal["refusal"]),
        (&503.into(), &"no_descriptor".into()),
        "{refusal}"
    );
    let answer = site.get("/late").await;
    answer
        .assert_status(503)
        .assert_field("hostler-refusal", "no_descriptor")
        .assert_field("retry-after", "1");
    app.release_all();
    // The member was never at fault, so it gets the next request at once.
    eventually("a free connection", async || (site.get("/").await.status == 200).then_some(())).await;
    let unreachable = site.access_lines().into_iter().find(|line| line["refusal"] == "unreachable");
    assert_eq!(unreachable, None);
}

#[tokio::test]
async fn idle_connections_to_many_members_make_room_for_others() {
    const FEW: u64 = 256;
    let app = upstream().start().await;
    // Each pool keeps its own connection to the member.
    let pool = |number: usize| {
        let member = app.address();
        format!(
            "[pools.p{number}]\nmembers = ['{member}']\nconcurrency = 1\n[[routes]]\nmatch = '/{number}'\npool = 'p{number}'\n"
        )
    };
    let config: String = (0..FEW as usize).map(pool).collect();
    let site = site(&config).with_open_files(FEW, FEW).start().await;
    let mut client = site.connect().await;
    for number in 0..FEW {
        client.get(&format!("/{number}")).await.assert_ok("ok");
    }
}

#[tokio::test]
async fn requests_that_wait_in_members_leave_descriptors_for_others() {
    const FEW: u64 = 256;
    const HELD: usize = 120;
    let app = holds_some().start().await;
    let config = "pools.app = { concurrency = 1000, queue = { timeout = '60s' }, connect_timeout = '60s', request_timeout = '2m' }";
    let site = site(config).with("app", &app).with_open_files(FEW, FEW).start().await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let mut client = talk(&site).await;
        for _ in 0..HELD {
            answers.push(client.begin(get("/held"), true).await.0);
        }
    }
    eventually("as many requests in the member as it may have connections", async || {
        (app.running() as u64 > FEW / 2).then_some(())
    })
    .await;
    // The admin listener answers, and a new client is accepted. Its request waits for a connection to the member.
    site.status().await;
    let mut late = site.begin("/late").await;
    app.release_all();
    late.answer().await.assert_ok("ok");
    for answer in answers {
        assert_eq!(whole(answer).await.0.status(), 200);
    }
}

#[tokio::test]
async fn a_start_at_the_limit_of_threads_fails_with_a_reason() {
    // No address space is that large, so the system refuses each thread. At `pids.max` it gives the same error.
    let plan = site("routes = [{ match = '*', respond = 'ok' }]").env("RUST_MIN_STACK", "200000000000000");
    plan.ended().await.assert_exit(1).assert_complains("hostler: cannot start: ");
}
