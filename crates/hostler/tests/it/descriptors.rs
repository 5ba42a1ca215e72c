//! When the system gives no more descriptors: who is connected is served, the others wait until there is room.

use hostler_testkit::{Client, eventually, upstream};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::in_front_of;

/// How many descriptors the program may open besides those that it has.
const ROOM: u64 = 5;

/// The numbers of a process's descriptors.
fn descriptors(pid: u32) -> Vec<u64> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[tokio::test]
async fn without_descriptors_newcomers_wait_and_are_served_when_others_have_left() {
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

    let mut late = site.begin("/late").await;
    early.get("/still").await.assert_ok("ok");
    assert_eq!(app.targets(), ["/early", "/still"]);
    drop(crowd);
    late.answer().await.assert_ok("ok");
}
