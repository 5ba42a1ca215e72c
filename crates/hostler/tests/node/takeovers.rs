//! Orders that come while a successor starts or takes over: none is lost.

use hostler_testkit::{Output, eventually};
use rustix::process::Signal;

use super::proc;
use super::site::{Site, app, source};
use super::upgrades::{HOSTLER, linked, replace, upgraded};

/// A successor that does not tell that it serves, once it may begin. It writes its process id down then. The channel is its standard input.
const SUCCESSOR: &str = r#"
const { readSync, writeFileSync, writeSync } = require('node:fs');
const message = Buffer.alloc(65536);
const hears = (word) => {
  while (JSON.parse(message.toString('utf8', 0, readSync(0, message))).word !== word);
};
hears('no_more');
writeSync(0, '{"word":"ready"}');
hears('begin');
writeFileSync(`${process.env.TEST_FOLDER}/begins`, `${process.pid}\n`);
setInterval(() => {}, 1000);
"#;

/// A site whose next upgrade stays in the moment of the takeover.
async fn prepared() -> Site {
    let (plan, program) = linked(app("diary.cjs"));
    let site = plan.started().await;
    std::fs::write(site.file("successor.cjs"), SUCCESSOR).unwrap();
    replace(&program, &format!("exec node '{}'", site.file("successor.cjs").display()));
    site
}

/// Begins an upgrade, and returns the process id of the successor that takes over.
async fn taking_over(site: &Site) -> u32 {
    site.ask_for_upgrade();
    eventually("the successor to begin", async || {
        let pid = std::fs::read_to_string(site.file("begins")).ok()?;
        pid.strip_suffix('\n')?.parse().ok()
    })
    .await
}

#[tokio::test]
async fn a_stop_in_the_moment_of_a_takeover_stops_both_processes() {
    let mut site = prepared().await;
    let successor = taking_over(&site).await;
    site.terminate();
    site.logged(&format!("SIGTERM: passed on to pid {successor}")).await;
    assert_eq!(site.exit().await, 0);
    assert!(!proc::is_alive(successor), "it would go on serving");
}

#[tokio::test]
async fn orders_in_the_moment_of_a_takeover_are_refused_and_not_lost() {
    let site = prepared().await;
    let successor = taking_over(&site).await;
    for order in [["pause", "app"], ["restart", "app"]] {
        let output = site.command_of(HOSTLER, &order).await;
        output.assert_exit(1).assert_complains(&format!("pid {successor} is taking over"));
    }
    assert_eq!(site.pool("app").await["paused"], false);
    proc::kill(successor);
    let told = site.logged("upgrade: the new process ended").await;
    assert!(told.ends_with("; its standard error or the log says why"), "{told}");
    site.command_of(HOSTLER, &["restart", "app"]).await.assert_exit(0);
    site.get("/").await.assert_status(200);
}

/// The outcome of an upgrade during whose start `order` is carried out.
async fn upgrade_with(order: impl AsyncFnOnce(&Site)) -> (Site, Output) {
    let (plan, program) = linked(app("diary.cjs"));
    let (begun, go) = (plan.folder().join("begun"), plan.folder().join("go"));
    let site = plan.started().await;
    let waits = format!("touch '{}'; until [ -e '{}' ]; do sleep 0.05; done", begun.display(), go.display());
    replace(&program, &format!("{waits}; exec '{HOSTLER}' \"$@\""));
    let upgrade = site.command_of(HOSTLER, &["upgrade"]);
    let ordering = async {
        eventually("the new program to start", async || begun.exists().then_some(())).await;
        order(&site).await;
        std::fs::write(&go, "").unwrap();
    };
    let (upgrade, ()) = tokio::join!(upgrade, ordering);
    (site, upgrade)
}

#[tokio::test]
async fn an_upgrade_does_not_bring_back_workers_from_before_a_restart() {
    let (site, upgrade) = upgrade_with(async |site: &Site| {
        site.command_of(HOSTLER, &["restart", "app"]).await.assert_exit(0);
    })
    .await;
    upgrade.assert_exit(1).assert_complains("workers were restarted meanwhile");
    site.command_of(HOSTLER, &["upgrade"]).await.assert_exit(0);
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn an_upgrade_does_not_end_the_drain_before_a_stop() {
    let (site, upgrade) = upgrade_with(async |site: &Site| {
        site.ask_to_drain();
        site.logged("SIGUSR1: health checks fail").await;
    })
    .await;
    upgrade.assert_exit(1).assert_complains("told to drain and stop (SIGUSR1)");
    let output = site.command_of(HOSTLER, &["upgrade"]).await;
    output.assert_exit(1).assert_complains("told to drain and stop (SIGUSR1)");
}

#[tokio::test]
async fn a_reload_by_a_signal_that_waits_for_an_upgrade_reaches_the_successor() {
    let (site, upgrade) = upgrade_with(async |site: &Site| {
        site.hang_up();
        site.logged("SIGHUP: reload").await;
    })
    .await;
    upgrade.assert_exit(0);
    site.logged("SIGHUP: passed on to pid ").await;
    site.logged("reload: nothing").await;
    assert!(!site.lines().iter().any(|line| line.contains("repeat the command")), "{:?}", site.lines());
}

/// systemd kills what is left of a service when its main process has ended.
#[tokio::test]
async fn a_successor_that_is_stopped_stops_its_predecessor_and_waits_for_its_last_requests() {
    let mut site = app("diary.cjs").option("server.drain_timeout=1m").started().await;
    let mut silent = site.connect().await;
    silent.get("/").await.assert_status(200);
    let mut running = site.begin("/wait?until=released").await;
    site.settles_at(1, 0).await;
    let successor = upgraded(&site).await;
    proc::signal(successor, Signal::TERM);
    silent.assert_closed().await;
    site.logged("the old process still finishes requests; this process waits").await;
    assert!(proc::is_alive(successor));
    site.touch("released");
    running.answer().await.assert_status(200);
    assert_eq!(site.exit().await, 0);
    eventually("the successor to end", async || (!proc::is_alive(successor)).then_some(())).await;
}

#[tokio::test]
async fn a_second_signal_that_kills_the_workers_of_a_successor_ends_its_wait_for_its_predecessor_too() {
    let text =
        "require('http').createServer((req, res) => { if (req.url !== '/never') res.end(); }).listen(3000);
        process.on('SIGTERM', () => console.log('SIGTERM, but it stays'));";
    let plan = source(text).option("pools.app.stop_timeout=1h").option("server.drain_timeout=1h");
    let mut site = plan.started().await;
    let _running = site.begin("/never").await;
    site.settles_at(1, 0).await;
    let successor = upgraded(&site).await;
    proc::signal(successor, Signal::TERM);
    site.printed("SIGTERM, but it stays").await;
    eventually("it to be told a second time, and not by an echo of the first", async || {
        proc::signal(successor, Signal::TERM);
        site.lines()
            .iter()
            .any(|line| line.contains("Hostler kills the workers that have not ended yet"))
            .then_some(())
    })
    .await;
    eventually("the successor to end", async || (!proc::is_alive(successor)).then_some(())).await;
    assert!(proc::is_alive(site.pid()), "its predecessor has a request");
    site.terminate();
    assert_eq!(site.exit().await, 0);
}
