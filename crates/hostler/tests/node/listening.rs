//! Which process is the app and where it listens, in unusual cases, and when it stops listening.

use hostler_testkit::eventually;
use serde_json::json;

use super::proc;
use super::site::{Plan, Site, fixture, repository, source};

/// This fixture's app as a child of another Node process.
fn behind_another(name: &str) -> Plan {
    let folder = repository().join("packages/worker/test/apps").join(name);
    let text = format!(
        "process.chdir({folder:?}); require('child_process').spawn(process.execPath, ['server.mjs'], {{ stdio: 'inherit' }});"
    );
    source(&text)
}

async fn is_left_in_peace(site: Site) {
    let pid = site.pid_of(1).await;
    for _ in 0..3 {
        assert_eq!(site.get("/").await.assert_status(200).json()["connected"], false);
    }
    assert_eq!((site.pid_of(1).await, &site.workers().await[0]["restarts"]), (pid, &json!(0)));
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_probes_its_port_first_answers_on_its_final_port() {
    let site = source(
        "const http = require('http');
        const probe = http.createServer((req, res) => res.end('probe')).listen(3000, () => {
            probe.close(() => http.createServer((req, res) => res.end('app')).listen(3000));
        });",
    );
    let site = site.started().await;
    for _ in 0..5 {
        site.get("/").await.assert_ok("app");
    }
    assert_eq!(site.workers().await[0]["restarts"], 0);
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_closes_its_server_and_opens_it_again_goes_on() {
    let site = fixture("reopen").runs("node server.mjs").started().await;
    for path in ["/", "/reopen", "/", "/reopen", "/"] {
        site.get(path).await.assert_status(200);
    }
    assert_eq!(site.workers().await[0]["restarts"], 0);
    site.stop().await;
}

#[tokio::test]
async fn a_cluster_whose_only_process_died_goes_on() {
    let site = fixture("cluster").runs("node server.cjs 1").started().await;
    site.get("/crash").await;
    eventually("the cluster has replaced it", async || (site.get("/").await.status == 200).then_some(()))
        .await;
    assert_eq!(site.workers().await[0]["restarts"], 0, "its primary lives");
    site.stop().await;
}

#[tokio::test]
async fn the_channel_is_open_until_the_worker_has_ended() {
    let site = source(
        "require('http').createServer().listen(3000);
        process.on('disconnect', () => console.log('disconnected'));
        process.on('message', (message) => {
            const start = Date.now();
            const look = setInterval(() => {
                if (Date.now() - start < 500) return;
                console.log(message, process.connected);
                process.exit(0);
            }, 5);
        });",
    );
    let mut site = site.started().await;
    site.terminate();
    assert_eq!(site.exit().await, 0);
    site.printed("shutdown true").await;
    assert!(site.log().iter().all(|line| line["text"] != "disconnected"));
}

#[tokio::test]
async fn an_app_may_disconnect() {
    is_left_in_peace(fixture("disconnects").runs("node server.mjs").started().await).await;
}

#[tokio::test]
async fn an_app_behind_another_process_may_disconnect() {
    is_left_in_peace(behind_another("disconnects").started().await).await;
}

#[tokio::test]
async fn a_helper_that_listens_first_is_not_the_app() {
    // The helper is started before the app listens, so it could take the place of an app behind npm.
    let site = source(
        "const http = require('http');
        const server = (name) => http.createServer((req, res) => res.end(name + process.pid));
        if (process.argv[2] === 'helper') {
            server('helper').listen(3000, () => process.send('listening'));
        } else {
            const helper = require('child_process').fork(__filename, ['helper']);
            helper.on('message', () => server('app').listen(3000, () => helper.kill('SIGKILL')));
        }",
    );
    let site = site.start().await;
    let answer = eventually("the app answers", async || {
        let answer = site.get("/").await;
        (answer.status == 200 && answer.text().starts_with("app")).then_some(answer.text())
    })
    .await;
    assert_eq!(answer, format!("app{}", site.pid_of(1).await));
    site.get("/").await.assert_status(200);
    assert_eq!(site.workers().await[0]["restarts"], 0, "the helper's end is not the app's");
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_dies_behind_a_living_parent_is_replaced() {
    let text = "process.on('SIGTERM', () => {});
        require('child_process').spawn(process.execPath, ['-e', `
            require('http').createServer((req, res) => res.end(String(process.pid))).listen(3000)`],
            { stdio: 'inherit' });
        setInterval(() => {}, 1000);";
    let site = source(text).option("pools.app.stop_timeout=1s").started().await;
    let app = site.pid_of(1).await;
    let crowd = proc::group_of(app);
    assert_eq!(site.get("/").await.text(), app.to_string());
    proc::kill(app);
    let successor = site.get("/").await.assert_status(200).text();
    assert_ne!(successor, app.to_string());
    eventually("its parent is gone as well", async || {
        (!crowd.iter().any(|&pid| proc::is_alive(pid))).then_some(())
    })
    .await;
    site.logged(&format!("the app (pid {app}) is gone")).await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_was_replaced_leaves_no_files() {
    let site = fixture("plain-http").runs("node server.mjs").started().await;
    let run = site.run_directory().remove(0);
    let files = || std::fs::read_dir(&run).unwrap().count();
    let before = files();
    for _ in 0..3 {
        proc::kill(site.pid_of(1).await);
        site.get("/").await.assert_status(200);
    }
    eventually("the files of the dead are gone", async || (files() == before).then_some(())).await;
    site.stop().await;
}
