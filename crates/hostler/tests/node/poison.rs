//! Requests that kill workers: sent to two of them, refused, and kept off the pool. Other requests are not kept off.

use hostler_testkit::{ReceivedAnswer, client_from, client_with_window, eventually, request};
use serde_json::Value;

use super::proc;
use super::site::{Plan, Site, app, configured, repository, source};

fn workers(count: usize) -> Plan {
    with_time_limits(app("diary.cjs").workers(count))
}

fn with_time_limits(plan: Plan) -> Plan {
    plan.option("pools.app.concurrency=1")
        .option("pools.app.queue.timeout=60s")
        .option("pools.app.request_timeout=60s")
}

/// The requests that workers have received, those with this path.
fn sent(site: &Site, path: &str) -> Vec<Value> {
    let is_it = |entry: &Value| entry["url"].as_str().is_some_and(|url| url.starts_with(path));
    site.diary().into_iter().filter(is_it).collect()
}

/// Kills the worker that has the request with this path, once it was sent this many times.
async fn kill_holder(site: &Site, path: &str, sends: usize) {
    let entry = eventually("the send", async || sent(site, path).get(sends - 1).cloned());
    proc::kill(entry.await["pid"].as_u64().unwrap() as u32);
}

#[tokio::test]
async fn a_request_that_has_killed_two_workers_is_refused_and_kept_off_the_pool() {
    let site = workers(3).started().await;
    site.get("/exit?x=1").await.assert_refused(502, "poison").assert_says("have made the application crash");
    let pids: Vec<_> = sent(&site, "/exit").iter().map(|entry| entry["pid"].clone()).collect();
    assert!(pids.len() == 2 && pids[0] != pids[1], "two sends, to two processes: {pids:?}");
    let detail = site.access("/exit?x=1").await["detail"].as_str().unwrap().to_owned();
    assert!(pids.iter().all(|pid| detail.contains(&pid.to_string())), "the log names the workers: {detail}");
    site.logged("poison request GET ").await;

    for _ in 0..5 {
        site.get("/exit?x=1").await.assert_refused(502, "poison");
    }
    let lines = eventually("six refusals", async || {
        let lines = site.access_lines();
        (lines.iter().filter(|line| line["refusal"] == "poison").count() == 6).then_some(lines)
    });
    let last = lines.await.pop().unwrap();
    assert_eq!((&last["attempts"], last.get("member")), (&0.into(), None), "no worker was asked: {last}");
    assert_eq!(sent(&site, "/exit").len(), 2);
    // Another query makes another URL.
    site.get("/?x=1").await.assert_status(200);
    site.is_ready().await;
    site.stop().await;
}

#[tokio::test]
async fn the_url_of_a_convicted_request_is_shown_without_secrets() {
    let site = workers(3).option("log.redact=['invite']").started().await;
    site.get("/exit?x=1&Invite=hidden-1&token=hidden-2").await.assert_refused(502, "poison");
    let line = site.logged("poison request GET ").await;
    assert!(line.contains("/exit?x=1&Invite=[redacted]&token=[redacted]"), "{line}");
    let told = site.status().await.to_string() + &site.lines().join("\n");
    assert!(told.contains("Invite=[redacted]") && !told.contains("hidden-"), "{told}");
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_dies_behind_a_living_parent_counts_as_a_death() {
    let diary = repository().join("crates/hostler/tests/node/apps/diary.cjs");
    let parent = format!(
        "require('node:child_process').spawn('node', [{diary:?}], {{ stdio: 'inherit' }});
        setInterval(() => {{}}, 1e6);"
    );
    let site = with_time_limits(source(&parent).workers(2)).started().await;
    site.get("/exit").await.assert_refused(502, "poison");
    // The exit status is not reported, so one more death is needed.
    assert_eq!(sent(&site, "/exit").len(), 3);
    site.stop().await;
}

#[tokio::test]
async fn waiting_requests_with_the_same_url_are_refused_too() {
    let site = workers(2).started().await;
    let asked: Vec<_> = (0..10).map(|_| site.ask("/exit")).collect();
    for answer in asked {
        answer.await.unwrap().assert_refused(502, "poison");
    }
    // Both workers died at once, which may have been a kill from outside. Then the request was sent to three: two workers and a spare.
    assert!(sent(&site, "/exit").len() <= 5, "{:?}", site.diary());
    site.stop().await;
}

#[tokio::test]
async fn after_two_posts_that_killed_workers_the_third_is_refused() {
    let site = workers(2).started().await;
    site.post("/exit", "a").await.assert_refused(502, "worker_lost");
    site.post("/exit", "b").await.assert_refused(502, "poison");
    site.post("/exit", "c").await.assert_refused(502, "poison");
    assert_eq!(sent(&site, "/exit").len(), 2, "each was sent once, the third to no worker");
    site.stop().await;
}

#[tokio::test]
async fn a_client_whose_posts_kill_workers_closes_their_url_for_no_other_client() {
    let text = "require('http').createServer((request, response) => request.on('data', (body) => {
        if (String(body) === 'kill') process.exit(1);
        response.end('ok');
    })).listen(3000);";
    let site = with_time_limits(source(text).workers(2)).started().await;
    let address = site.address();
    let kills = async || client_from([127, 0, 0, 2].into(), address).await.post("/graphql", "kill").await;
    kills().await.assert_refused(502, "worker_lost");
    kills().await.assert_refused(502, "poison");
    kills().await.assert_refused(502, "poison");
    for _ in 0..2 {
        site.post("/graphql", "query").await.assert_ok("ok");
    }
    kills().await.assert_refused(502, "poison");
    site.stop().await;
}

#[tokio::test]
async fn a_refused_url_is_admitted_again_after_keep_off() {
    let site = workers(2).option("pools.app.poison.keep_off=1s").started().await;
    site.get("/exit").await.assert_refused(502, "poison");
    eventually("it reaches a worker again", async || {
        site.get("/exit").await.assert_status(502);
        (sent(&site, "/exit").len() > 2).then_some(())
    })
    .await;
    site.stop().await;
}

#[tokio::test]
async fn a_reload_that_changes_the_number_of_slots_keeps_a_conviction() {
    let cwd = repository().join("crates/hostler/tests/node/apps");
    let file = |slots: usize| {
        let cwd = cwd.display();
        format!(
            "[pools.app]\ncommand = 'node diary.cjs'\nworkers = 2\ncwd = '{cwd}'\nconcurrency = {slots}\n"
        )
    };
    let site = configured(&file(2)).started().await;
    site.get("/exit").await.assert_refused(502, "poison");
    let sends = sent(&site, "/exit").len();
    site.configure(&file(3));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/exit").await.assert_refused(502, "poison");
    assert_eq!(sent(&site, "/exit").len(), sends);
    site.stop().await;
}

#[tokio::test]
async fn without_poison_a_request_is_sent_three_times_and_never_refused() {
    let site = workers(2).option("pools.app.poison.kills=0").started().await;
    site.get("/exit").await.assert_refused(502, "worker_lost");
    assert_eq!(sent(&site, "/exit").len(), 3);
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_closes_the_connection_and_lives_has_not_died() {
    let site = workers(2).started().await;
    for sends in [3, 6] {
        site.get("/destroy").await.assert_refused(502, "worker_lost");
        assert_eq!(sent(&site, "/destroy").len(), sends);
    }
    let workers = site.workers().await;
    assert!(workers.iter().all(|worker| worker["restarts"] == 0), "{workers:?}");
    site.stop().await;
}

#[tokio::test]
async fn a_request_that_makes_workers_hang_is_poison_as_well() {
    let plan = workers(1).option("pools.app.request_timeout=1s").option("pools.app.hang_timeout=1s");
    let site = plan.started().await;
    for hung in 1..=2 {
        site.get("/spin?until=never").await.assert_refused(504, "answer_timeout");
        assert_eq!(sent(&site, "/spin").len(), hung);
        eventually("its successor", async || {
            let worker = site.workers().await.remove(0);
            (worker["restarts"] == hung && worker["state"] == "ready").then_some(())
        })
        .await;
    }
    site.logged("poison request GET ").await;
    site.get("/spin?until=never").await.assert_refused(502, "poison");
    assert_eq!(sent(&site, "/spin").len(), 2);
    site.stop().await;
}

#[tokio::test]
async fn a_batch_that_blocks_its_worker_does_not_keep_other_batches_from_a_free_one() {
    let cwd = repository().join("crates/hostler/tests/node/apps");
    let file = format!(
        "[pools.app]\ncommand = 'node diary.cjs'\nworkers = 2\ncwd = '{}'\nconcurrency = 1\n\
         request_timeout = '2s'\nhang_timeout = '1h'\n\
         [[routes]]\nmatch = '*'\npool = 'app'\nfallback = 'hypernova'\n",
        cwd.display()
    );
    let site = configured(&file).started().await;
    let jobs = br#"{"0":{"name":"A","data":{}}}"#;
    let batch = |url: &str| request(&format!("POST {url}"), "Content-Type: application/json\r\n", jobs);
    let hung = site.send(batch("/spin?until=released")).await;
    hung.assert_status(200).assert_field("hostler-fallback", "answer_timeout");
    let rendered = eventually("another batch is rendered", async || {
        let answer = site.send(batch("/spin?ms=1")).await;
        answer.field("hostler-fallback").is_none().then_some(answer)
    })
    .await;
    assert_ne!(rendered.assert_status(200).json()["pid"], sent(&site, "/spin")[0]["pid"]);
    let workers = site.workers().await;
    assert!(workers.iter().all(|worker| worker["restarts"] == 0), "it hangs all the time: {workers:?}");
    site.touch("released");
    site.stop().await;
}

#[tokio::test]
async fn a_request_that_blocks_its_worker_without_its_client_closes_no_path_that_is_answered() {
    let site = app("diary.cjs")
        .workers(2)
        .option("pools.app.request_timeout=8s")
        .option("pools.app.hang_timeout=1h")
        .option("pools.app.queue.timeout=1s")
        .started()
        .await;
    let client = site.begin("/spin?until=released").await;
    eventually("a worker has it", async || (!sent(&site, "/spin").is_empty()).then_some(())).await;
    drop(client);
    // Longer than a quarter of `request_timeout`, after which it counts as holding its worker.
    for _ in 0..60 {
        site.get("/spin?ms=100").await.assert_status(200);
    }
    site.touch("released");
    site.settles_at(0, 0).await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_is_blocked_with_several_requests_closes_no_client() {
    // It blocks when it has two requests.
    let text = "let waiting = 0;
        require('http').createServer((request, response) => {
            if (request.url === '/') return response.end('ok');
            waiting += 1;
            const released = process.env.TEST_FOLDER + '/released';
            if (waiting === 2) setTimeout(() => { while (!require('fs').existsSync(released)); }, 100);
        }).listen(3000);";
    let plan = source(text).workers(2).option("pools.app.request_timeout=4s");
    let site = plan.option("pools.app.hang_timeout=1h").started().await;
    let address = site.address();
    let client = move |number: u8| client_from([127, 0, 0, number].into(), address);
    // With three requests, one worker has two.
    let late = [2, 3, 4].map(|number| tokio::spawn(async move { client(number).await.get("/waits").await }));
    for answer in late {
        answer.await.unwrap().assert_refused(504, "answer_timeout");
    }
    for number in [2, 3, 4] {
        client(number).await.get("/").await.assert_ok("ok");
    }
    site.touch("released");
    site.settles_at(0, 0).await;
    site.stop().await;
}

#[tokio::test]
async fn two_workers_killed_together_make_no_request_poison() {
    let site = workers(2).started().await;
    let asked = [site.ask("/wait?until=released"), site.ask("/wait?until=released")];
    eventually("both workers are at it", async || (sent(&site, "/wait").len() == 2).then_some(())).await;
    for entry in sent(&site, "/wait") {
        proc::kill(entry["pid"].as_u64().unwrap() as u32);
    }
    eventually("both were sent again", async || (sent(&site, "/wait").len() == 4).then_some(())).await;
    site.touch("released");
    for answer in asked {
        answer.await.unwrap().assert_status(200);
    }
    site.stop().await;
}

#[tokio::test]
async fn two_outside_kills_in_a_row_make_no_request_poison_and_a_third_does() {
    let site = workers(2).started().await;
    let unlucky = site.ask("/wait?until=released");
    for sends in 1..=2 {
        kill_holder(&site, "/wait?until=released", sends).await;
    }
    eventually("the third send", async || (sent(&site, "/wait").len() == 3).then_some(())).await;
    site.touch("released");
    unlucky.await.unwrap().assert_status(200);

    let guilty = site.ask("/wait?until=never");
    for sends in 1..=3 {
        kill_holder(&site, "/wait?until=never", sends).await;
    }
    guilty.await.unwrap().assert_refused(502, "poison");
    assert_eq!(sent(&site, "/wait?until=never").len(), 3);
    site.stop().await;
}

#[tokio::test]
async fn an_answered_request_is_no_longer_a_suspect() {
    let site = workers(2).started().await;
    for turn in 0..4 {
        let asked = site.ask("/wait?until=released");
        kill_holder(&site, "/wait", 2 * turn + 1).await;
        eventually("it was sent again", async || (sent(&site, "/wait").len() == 2 * turn + 2).then_some(()))
            .await;
        site.touch("released");
        asked.await.unwrap().assert_status(200);
        std::fs::remove_file(site.file("released")).unwrap();
        site.is_ready().await;
    }
    site.stop().await;
}

#[tokio::test]
async fn of_many_requests_in_a_worker_only_the_killing_one_becomes_poison() {
    let site = workers(2).option("pools.app.concurrency=4").started().await;
    let neighbours: Vec<_> = (0..4).map(|n| site.ask(&format!("/wait?until=released&n={n}"))).collect();
    site.settles_at(4, 0).await;
    let killer = site.ask("/exit");
    eventually("the first death", async || (!sent(&site, "/exit").is_empty()).then_some(())).await;
    site.touch("released");
    killer.await.unwrap().assert_refused(502, "poison");
    for neighbour in neighbours {
        neighbour.await.unwrap().assert_status(200);
    }
    // If a neighbour has left a moment ago, it may have caused the death: one more is needed.
    assert!((2..=3).contains(&sent(&site, "/exit").len()), "{:?}", sent(&site, "/exit"));
    let answer: ReceivedAnswer = site.get("/wait?until=released&n=0").await;
    answer.assert_status(200);
    site.stop().await;
}

#[tokio::test]
async fn a_death_in_the_middle_of_an_answer_truncates_it_visibly_and_counts() {
    let site = workers(2).started().await;
    for sends in 1..=2 {
        site.get("/half").await.assert_broken();
        assert_eq!(sent(&site, "/half").len(), sends, "what has begun is not sent again");
    }
    let lines = site.exchanges(2).await;
    assert!(lines.iter().all(|line| line["status"] == 200 && line["aborted"] == "worker"), "{lines:?}");
    site.logged("poison request GET ").await;
    site.get("/half").await.assert_refused(502, "poison");
    site.stop().await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_keeps_no_other_request_from_its_trial() {
    let site = workers(2).started().await;
    // The path after the first death; the route and the client after the second.
    for (death, gated) in [(1, 1_u64), (2, 3)] {
        site.get(&format!("/half?{death}")).await.assert_broken();
        eventually("similar requests are tried one at a time", async || {
            (site.pool("app").await["suspects"]["one_at_a_time"] == gated).then_some(())
        })
        .await;
    }
    // More than the kernel takes of it.
    let mut slow = client_with_window(4096, site.address()).await;
    slow.send("GET /wait?size=8000000 HTTP/1.1\r\nHost: site.test\r\n\r\n").await;
    eventually("the trial begins", async || sent(&site, "/wait").pop()).await;
    site.get("/").await.assert_status(200);
    drop(slow);
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_answers_a_client_that_has_left_ends_the_suspicion() {
    let site = workers(2).started().await;
    let one_at_a_time = async |count: u64| {
        eventually("so many are tried one at a time", async || {
            (site.pool("app").await["suspects"]["one_at_a_time"] == count).then_some(())
        })
        .await;
    };
    // The path after the first death; the route and the client after the second.
    for (death, count) in [(1, 1), (2, 3)] {
        site.get(&format!("/half?{death}")).await.assert_broken();
        one_at_a_time(count).await;
    }
    let client = site.begin("/wait?until=released").await;
    eventually("the trial begins", async || sent(&site, "/wait").pop()).await;
    drop(client);
    site.touch("released");
    one_at_a_time(1).await;
    site.stop().await;
}
