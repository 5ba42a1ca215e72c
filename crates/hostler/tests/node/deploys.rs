//! Restarts and reloads under load: no client notices.

use hostler_testkit::{Output, ReceivedAnswer, client, eventually};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::load::Load;
use super::proc;
use super::site::{Plan, Site, app, configured, repository, source};

/// A pool of two workers, and further lines of the file.
fn file(more: &str) -> String {
    pool("app", 2) + more
}

fn pool(name: &str, workers: usize) -> String {
    let cwd = repository().join("crates/hostler/tests/node/apps");
    let cwd = cwd.display();
    format!("[pools.{name}]\ncommand = 'node diary.cjs'\nworkers = {workers}\ncwd = '{cwd}'\n")
}

fn two_workers() -> Plan {
    app("diary.cjs").workers(2)
}

#[tokio::test]
async fn restarts_one_after_another_lose_no_request() {
    let site = two_workers().started().await;
    let load = Load::on(site.address());
    let mut before = site.pids().await;
    for _ in 0..3 {
        let said = site.command(&["restart", "app"]).await.assert_exit(0).stdout.clone();
        assert!(said.contains("pool app: 2 workers replaced"), "{said}");
        site.is_ready().await;
        let now = site.pids().await;
        assert!(now.iter().all(|pid| !before.contains(pid)), "{before:?} {now:?}");
        before = now;
        load.goes_on_for(20).await;
    }
    load.stop().await;
    site.stop().await;
}

#[tokio::test]
async fn while_a_worker_is_replaced_the_metrics_have_each_series_once() {
    let text = "const fs = require('fs');
        require('http').createServer((request, response) => {
          if (request.url !== '/held') return response.end();
          setInterval(() => { if (fs.existsSync(process.env.TEST_FOLDER + '/go')) response.end(); }, 20);
        }).listen(3000);";
    let site = source(text).started().await;
    site.is_ready().await;
    let held = site.ask("/held");
    site.settles_at(1, 0).await;
    let seen = async {
        eventually("the new worker beside the old one", async || {
            let workers = site.workers().await;
            (workers.len() == 2 && workers.iter().any(|worker| worker["state"] == "retiring")).then_some(())
        })
        .await;
        let metrics = site.ask_admin("/metrics").await.text();
        site.touch("go");
        metrics
    };
    let (restarted, metrics) = tokio::join!(site.command(&["restart"]), seen);
    restarted.assert_exit(0);
    held.await.unwrap().assert_status(200);
    let mut series = std::collections::HashSet::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (name, _) = line.rsplit_once(' ').unwrap();
        assert!(series.insert(name), "{name} is there twice: {metrics}");
    }
    for line in [
        "hostler_worker_restarts_total{pool=\"app\",worker=\"1\"} 1.0",
        "hostler_worker_deaths_total{pool=\"app\"} 0.0",
        "hostler_slots_in_use{pool=\"app\"} 1.0",
    ] {
        assert!(metrics.contains(&format!("\n{line}\n")), "{line}: {metrics}");
    }
    site.stop().await;
}

#[tokio::test]
async fn a_generation_that_does_not_boot_is_reported_and_the_old_one_stays() {
    let text =
        "if (require('fs').existsSync(process.env.TEST_FOLDER + '/broken')) throw new Error('no database\\x1b[2J');
        require('http').createServer((req, res) => res.end()).listen(3000);";
    let site = source(text).started().await;
    let before = site.pids().await;
    site.touch("broken");
    let output = site.command(&["restart"]).await;
    output.assert_exit(1).assert_complains("pool app: the new worker 1");
    // What an app prints cannot clear the operator's terminal.
    output.assert_complains("no database\\x1b[2J");
    assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
    let status = site.command(&["status"]).await.stdout;
    assert!(status.contains("restart failed") && status.contains("no database"), "{status}");
    site.get("/").await.assert_status(200);
    assert!(site.pids().await.contains(&before[0]));
    site.stop().await;
}

#[tokio::test]
async fn reloads_under_load_lose_no_request() {
    let site = configured(&file("")).started().await;
    let load = Load::on(site.address());
    let before = site.pids().await;
    // Only routes and the queue change: the workers stay.
    site.configure(&file("queue.limit = 50\n[[routes]]\nmatch = '*'\npool = 'app'\n[[routes]]\nmatch = '/fixed'\nrespond = { status = 204 }\n"));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/fixed").await.assert_status(204);
    assert_eq!(site.pids().await, before);
    load.goes_on_for(20).await;
    // The environment changes: workers are replaced one by one.
    site.configure(&file("env = { NAME = 'v2' }\n"));
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("pool app: changed, all its workers replaced"), "{said}");
    eventually("two new workers", async || {
        let pids = site.pids().await;
        (pids.len() == 2 && pids.iter().all(|pid| !before.contains(pid))).then_some(())
    })
    .await;
    site.get("/fixed").await.assert_status(200);
    // A pool replaces another.
    load.goes_on_for(20).await;
    let other = pool("other", 1).replace("node diary.cjs", "node -e process.exit(3)");
    site.configure(&file(&format!("{other}[[routes]]\nmatch = '*'\npool = 'other'\n")));
    let failed = site.command(&["reload"]).await;
    failed.assert_exit(1).assert_complains("pool other: ").assert_complains("nothing has changed");
    load.goes_on_for(20).await;
    load.stop().await;
    site.stop().await;
}

#[tokio::test]
async fn a_new_pool_serves_before_routes_lead_to_it_and_an_old_one_leaves_after() {
    let site = configured(&file("")).started().await;
    let load = Load::on(site.address());
    let old = site.pids().await;
    site.configure(&format!("{}[[routes]]\nmatch = '*'\npool = 'other'\n", pool("other", 1)));
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("pool other: added") && said.contains("pool app: removed"), "{said}");
    load.goes_on_for(20).await;
    eventually("the old workers to be gone", async || {
        (!old.iter().any(|&pid| proc::is_alive(pid))).then_some(())
    })
    .await;
    load.stop().await;
    site.stop().await;
}

#[tokio::test]
async fn new_settings_with_which_workers_do_not_boot_change_nothing() {
    let site = configured(&file("")).started().await;
    let before = site.pids().await;
    site.configure(&file("env = { NODE_OPTIONS = '--no-such-option' }\n[[routes]]\nmatch = '*'\nrespond = { status = 204 }\n[[routes]]\nmatch = '/app/*'\npool = 'app'\n"));
    let output = site.command(&["reload"]).await;
    output
        .assert_exit(1)
        .assert_complains("pool app: the new worker 1")
        .assert_complains("nothing else has changed");
    site.get("/").await.assert_status(200);
    // Workers that boot from now on use the old settings too.
    proc::kill(before[0]);
    eventually("a worker in its place", async || {
        let pids = site.pids().await;
        (pids.len() == 2 && !pids.contains(&before[0])).then_some(())
    })
    .await;
    site.is_ready().await;
    site.stop().await;
}

/// An app whose answers name its settings. With `V=v2`, no third worker boots.
const TWO_OF_THREE: &str =
    "if (process.env.V === 'v2' && process.env.HOSTLER_WORKER === '3') throw new Error('no room');
    require('http').createServer((req, res) => res.end(process.env.V)).listen(3000);";

fn of_version(name: &str, app: &str, workers: usize, version: &str) -> String {
    let command = serde_json::to_string(&["node", "-e", app]).unwrap();
    format!("[pools.{name}]\ncommand = {command}\nworkers = {workers}\nenv = {{ V = '{version}' }}\n")
}

async fn serves_again(site: &Site, version: &str) {
    eventually("workers with the settings from before", async || {
        (site.get("/").await.text() == version).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_reload_that_fails_half_way_gives_all_workers_the_old_settings() {
    let file = |version: &str| of_version("app", TWO_OF_THREE, 3, version) + "choice = 'round_robin'\n";
    let site = configured(&file("v1")).started().await;
    site.configure(&file("v2"));
    let output = site.command(&["reload"]).await;
    output
        .assert_exit(1)
        .assert_complains(
            "no room; 2 of 3 workers were replaced, the others stay; nothing else has changed; ",
        )
        .assert_complains("are being replaced by ones with the old settings: app");
    site.logged("app: restart: 3 workers replaced").await;
    for _ in 0..6 {
        site.get("/").await.assert_ok("v1");
    }
    site.stop().await;
}

#[tokio::test]
async fn a_pool_that_was_renewed_before_a_reload_failed_gets_its_old_settings_back() {
    let serves = "require('http').createServer((req, res) => res.end(process.env.V)).listen(3000);";
    let file = |version: &str, limit: usize, other: &str| {
        let routes = "[[routes]]\nmatch = '/other'\npool = 'other'\n[[routes]]\nmatch = '*'\npool = 'app'\n";
        let (app, other) = (of_version("app", serves, 1, version), of_version("other", other, 1, "v1"));
        format!("{app}queue.limit = {limit}\n{other}{routes}")
    };
    let site = configured(&file("v1", 11, serves)).started().await;
    site.configure(&file("v2", 22, "process.exit(3)"));
    let output = site.command(&["reload"]).await;
    output.assert_exit(1).assert_complains("are being replaced by ones with the old settings: app");
    serves_again(&site, "v1").await;
    assert_eq!(site.pool("app").await["queue_limit"], 11);
    site.configure(&file("v2", 22, serves));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/").await.assert_ok("v2");
    assert_eq!(site.pool("app").await["queue_limit"], 22);
    site.stop().await;
}

#[tokio::test]
async fn a_reload_that_fails_leaves_the_workers_of_other_pools_alone() {
    let serves = "require('http').createServer((req, res) => res.end(process.env.V)).listen(3000);";
    let file = |workers: usize, other: &str| {
        let routes = "[[routes]]\nmatch = '/other'\npool = 'other'\n[[routes]]\nmatch = '*'\npool = 'app'\n";
        let (app, other) = (of_version("app", serves, workers, "v1"), of_version("other", other, 1, "v1"));
        format!("{app}{other}{routes}")
    };
    let site = configured(&file(2, serves)).started().await;
    site.is_ready().await;
    let before = site.pids().await;
    site.configure(&file(1, "process.exit(3)"));
    let output = site.command(&["reload"]).await;
    output.assert_exit(1).assert_complains("pool other: ").assert_complains("nothing else has changed");
    assert_eq!(site.pids().await, before);
    site.stop().await;
}

#[tokio::test]
async fn a_reload_names_pools_whose_workers_are_replaced_because_of_a_key_of_the_server() {
    let site = configured(&file("")).started().await;
    site.configure(&format!("server.max_header_size = '32 KiB'\n{}", file("")));
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("server: max_header_size") && said.contains("pool app: all its workers"), "{said}");
    site.stop().await;
}

/// A worker that is booted after the file `restarted` exists ends at POSTs, up to this many in all.
fn of_the_version_on_disk(crashes: usize) -> String {
    format!(
        "const fs = require('node:fs'), folder = process.env.TEST_FOLDER;
        const isNew = fs.existsSync(folder + '/restarted');
        const dies = () => {{
            for (let n = 0; n < {crashes}; n += 1)
                try {{ fs.writeFileSync(folder + '/crash-' + n, '', {{ flag: 'wx' }}); return true; }} catch {{}}
            return false;
        }};
        require('node:http').createServer((req, res) => {{
            if (isNew && req.method === 'POST' && dies()) process.exit(1);
            res.end();
        }}).listen(3000);"
    )
}

/// Two workers, which get requests in turn: a new one does not wait for its first. No request is kept off.
async fn old_version(app: &str) -> Site {
    let plan = source(app).workers(2).option("pools.app.choice=round_robin");
    plan.option("pools.app.poison.kills=0").started().await
}

/// Sends POSTs one after the other on four connections while the command runs.
async fn while_asked(site: &Site, command: &[&str]) -> (Output, Vec<ReceivedAnswer>) {
    let address = site.address();
    let mut users = JoinSet::new();
    let (over, is_over) = watch::channel(false);
    for _ in 0..4 {
        let is_over = is_over.clone();
        users.spawn(async move {
            let mut answers = Vec::new();
            while !*is_over.borrow() {
                answers.push(client(address).await.post("/", "x").await);
            }
            answers
        });
    }
    let output = site.command(command).await;
    over.send_replace(true);
    (output, users.join_all().await.concat())
}

async fn a_restart_goes_on_over_crashes(app: &str) {
    let site = old_version(app).await;
    site.touch("restarted");
    let before = site.pids().await;
    let (restart, answers) = while_asked(&site, &["restart"]).await;
    restart.assert_exit(0);
    assert!(site.pids().await.iter().all(|pid| !before.contains(pid)));
    let lost = answers.iter().filter(|answer| answer.status == 502).count();
    assert_eq!(lost, 3, "as many as have crashed a worker");
    assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 502)), "{answers:?}");
    site.stop().await;
}

#[tokio::test]
async fn requests_that_crash_new_workers_do_not_end_a_restart() {
    a_restart_goes_on_over_crashes(&of_the_version_on_disk(3)).await;
}

#[tokio::test]
async fn requests_that_crash_new_workers_behind_a_living_parent_do_not_end_a_restart() {
    let app = format!(
        "if (process.argv[2] !== 'app') {{
            require('node:child_process').spawn('node', [__filename, 'app'], {{ stdio: 'inherit' }});
            setInterval(() => {{}}, 1e6);
        }} else {{ {} }}",
        of_the_version_on_disk(3)
    );
    a_restart_goes_on_over_crashes(&app).await;
}

#[tokio::test]
async fn a_version_that_every_request_crashes_is_not_rolled_out() {
    let site = old_version(&of_the_version_on_disk(1000)).await;
    let before = site.pids().await;
    site.touch("restarted");
    let (restart, _) = while_asked(&site, &["restart"]).await;
    restart.assert_exit(1).assert_complains("the new worker 1 keeps dying: exit code 1");
    assert_eq!(site.pids().await, before, "the old workers stay");
    site.post("/", "x").await.assert_status(200);
    site.stop().await;
}

#[tokio::test]
async fn a_pause_lets_a_migration_happen_between_two_requests() {
    let site = two_workers().started().await;
    let mut running = site.begin("/wait?until=migrated").await;
    site.settles_at(1, 0).await;
    site.command(&["pause", "app"]).await.assert_exit(0);
    let held: Vec<_> = (0..5).map(|n| site.ask(&format!("/held/{n}"))).collect();
    site.settles_at(1, 5).await;
    site.touch("migrated");
    running.answer().await.assert_status(200);
    site.command(&["restart", "app"]).await.assert_exit(0);
    assert!(site.diary().iter().all(|entry| !entry["url"].as_str().unwrap().starts_with("/held")));
    site.command(&["resume", "app"]).await.assert_exit(0);
    for request in held {
        request.await.unwrap().assert_status(200);
    }
    site.stop().await;
}

#[tokio::test]
async fn a_reload_keeps_a_pause_that_begins_during_its_restarts() {
    let app = "const fs = require('fs'), folder = process.env.TEST_FOLDER;
        const serve = () => require('http').createServer((req, res) => res.end(process.env.V)).listen(3000);
        const wait = setInterval(() => {
          if (process.env.V === 'v2' && !fs.existsSync(`${folder}/go`)) return fs.writeFileSync(`${folder}/boots`, '');
          clearInterval(wait);
          serve();
        }, 20);";
    let file = |version: &str, other: &str| {
        let routes = "[[routes]]\nmatch = '/other'\npool = 'other'\n[[routes]]\nmatch = '*'\npool = 'app'\n";
        let app = of_version("app", app, 1, version);
        format!("{app}[pools.other]\nmembers = ['127.0.0.1:9']\n{other}{routes}")
    };
    let site = configured(&file("v1", "")).started().await;
    site.configure(&file("v2", "protocol = 'http2'\n"));
    let reload = site.command(&["reload"]);
    let pause = async {
        eventually("a new worker to boot", async || site.file("boots").exists().then_some(())).await;
        site.command(&["pause", "other"]).await.assert_exit(0);
        site.touch("go");
    };
    let (reload, ()) = tokio::join!(reload, pause);
    let why = "pool other is paused and would start anew: resume it first; nothing else has changed; ";
    reload.assert_exit(1).assert_complains(why);
    assert_eq!(site.pool("other").await["paused"], true);
    serves_again(&site, "v1").await;
    site.stop().await;
}
