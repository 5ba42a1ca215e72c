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
async fn a_worker_whose_app_has_closed_its_server_is_replaced() {
    let site = source(
        "const fs = require('fs');
        const server = require('http').createServer((req, res) => {
            const answer = () => res.end(String(process.pid));
            if (req.url === '/close') server.close();
            if (req.url !== '/held') return answer();
            const look = () => fs.existsSync(`${process.env.TEST_FOLDER}/go`) ? answer() : setTimeout(look, 20);
            look();
        }).listen(3000);
        setInterval(() => {}, 1000);",
    );
    let site = site.option("pools.app.start_timeout=5s").started().await;
    let old = site.pid_of(1).await;
    let held = site.ask("/held");
    site.settles_at(1, 0).await;
    site.get("/close").await.assert_ok(&old.to_string());
    site.logged("app/1: does not listen any more").await;
    eventually("its successor answers", async || {
        let answer = site.get("/").await;
        (answer.status == 200 && answer.body != old.to_string().as_bytes()).then_some(())
    })
    .await;
    site.touch("go");
    held.await.unwrap().assert_ok(&old.to_string());
    site.logged("app/1: ends (pid").await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_without_the_preload_that_has_closed_its_port_is_replaced() {
    let site = source(
        // The first request comes when the worker is ready, however long that takes on a busy machine, and however many boots.
        "const fs = require('fs');
        const answer = (req, res) => {
            res.end(process.env.HOSTLER_GENERATION);
            if (fs.existsSync(`${process.env.TEST_FOLDER}/closed`)) return;
            fs.writeFileSync(`${process.env.TEST_FOLDER}/closed`, '');
            res.once('close', close);
        };
        const server = require('http').createServer(answer).listen(process.env.PORT);
        const close = () => [server.close(), server.closeAllConnections()];
        setInterval(() => {}, 1000);",
    );
    let site = site.option("pools.app.bind=port").option("pools.app.start_timeout=10s").started().await;
    let first = site.get("/").await;
    first.assert_status(200);
    eventually("its successor answers", async || {
        let answer = site.get("/").await;
        (answer.status == 200 && answer.body != first.body).then_some(())
    })
    .await;
    site.logged("app/1: does not listen any more").await;
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_opens_its_own_server_long_after_another_goes_on() {
    let site = source(
        "const http = require('http');
        const other = http.createServer((req, res) => res.end('boots')).listen(3000);
        setTimeout(() => other.close(), 1500);
        setTimeout(() => http.createServer((req, res) => res.end('app')).listen(3000), 6000);",
    );
    let site = site.started().await;
    eventually("the app answers", async || (site.get("/").await.body == b"app").then_some(())).await;
    assert!(site.log().iter().all(|line| !line["text"].as_str().unwrap_or("").contains("does not listen")));
    assert_eq!(site.workers().await[0]["restarts"], 0);
    site.stop().await;
}

#[tokio::test]
async fn a_process_that_was_given_the_server_serves_in_place_of_the_worker() {
    let site = source(
        "const { spawn } = require('child_process');
        const http = require('http');
        if (process.argv[2] === 'child') {
            http.createServer((req, res) => res.end('child')).listen({ fd: 3 }, () => console.log('serves'));
        } else {
            const server = http.createServer((req, res) => res.end('parent')).listen(3000, () => {
                const stdio = ['ignore', 'pipe', 'inherit', server._handle.fd];
                const child = spawn(process.execPath, [__filename, 'child'], { stdio, env: {} });
                child.stdout.once('data', () => server.close());
                process.once('exit', () => child.kill());
            });
        }",
    );
    let site = site.option("pools.app.start_timeout=5s").started().await;
    eventually("the child answers", async || (site.get("/").await.body == b"child").then_some(())).await;
    // Longer than a server that is closed for good would be borne.
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(9);
    while tokio::time::Instant::now() < end {
        site.get("/").await.assert_ok("child");
    }
    assert_eq!(site.workers().await[0]["restarts"], 0);
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_listens_long_after_a_port_probe_is_given_its_start_timeout() {
    let site = source(
        "const http = require('http');
        const probe = http.createServer().listen(3000, () => probe.close());
        setTimeout(() => http.createServer((req, res) => res.end('app')).listen(3000), 3000);",
    );
    let site = site.started().await;
    eventually("the app answers", async || (site.get("/").await.status == 200).then_some(())).await;
    assert!(site.log().iter().all(|line| !line["text"].as_str().unwrap_or("").contains("does not listen")));
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

/// An app of this source that a script starts.
fn behind_a_script(script: &str, app: &str) -> Plan {
    let plan = source(app);
    std::fs::write(plan.folder().join("start.sh"), script).unwrap();
    plan.runs("sh start.sh")
}

#[tokio::test]
async fn an_app_that_insists_on_port_gets_one_that_it_accepts() {
    let site = source(
        "const port = parseInt(process.env.PORT, 10);
        if (!(port > 0 && port < 65536) || String(port) !== process.env.PORT) throw new Error('PORT');
        const server = require('http').createServer((req, res) => res.end(String(server.address().port === port)));
        server.listen(port);",
    );
    let site = site.started().await;
    site.get("/").await.assert_ok("true");
    assert_eq!(proc::tcp_ports(&proc::group_of(site.pid_of(1).await)), [0; 0]);
    site.stop().await;
}

#[tokio::test]
async fn a_metrics_server_that_listens_first_is_not_the_app_if_the_app_reads_port() {
    let port = hostler_testkit::held_port();
    let metrics = port.address().port();
    let site = fixture("metrics-first").runs("node server.mjs").env("METRICS_PORT", &metrics.to_string());
    let site = site.started().await;
    site.logged(&format!("app/1: the app listens on *:{metrics} directly, not through Hostler")).await;
    assert_eq!(site.get("/").await.assert_status(200).json()["app"], "metrics-first");
    assert_eq!(proc::tcp_ports(&proc::group_of(site.pid_of(1).await)), [metrics]);
    site.stop().await;
}

#[tokio::test]
async fn an_app_behind_a_script_that_has_closed_its_server_is_replaced() {
    // The shell stays, with all descriptors that the worker was started with.
    let app = "const server = require('http').createServer((req, res) => {
            if (req.url === '/close') server.close();
            res.end(String(process.pid));
        }).listen(3000);
        setInterval(() => {}, 1000);";
    let site =
        behind_a_script("node app.cjs; exit 0", app).option("pools.app.start_timeout=5s").started().await;
    let old = site.pid_of(1).await.to_string();
    site.get("/close").await.assert_ok(&old);
    site.logged("app/1: does not listen any more").await;
    eventually("its successor answers", async || {
        let answer = site.get("/").await;
        (answer.status == 200 && answer.body != old.as_bytes()).then_some(())
    })
    .await;
    site.stop().await;
}

const ON_PORT: &str =
    "require('http').createServer((req, res) => res.end('served')).listen(process.env.PORT)";

#[tokio::test]
async fn an_app_whose_node_options_were_replaced_is_served_on_its_port_and_named() {
    let script = "NODE_OPTIONS=--max-old-space-size=256 exec node app.cjs";
    let site = behind_a_script(script, ON_PORT).started().await;
    site.get("/").await.assert_ok("served");
    let told = site.logged("(node) listens on *:").await;
    assert!(told.contains("Hostler's NODE_OPTIONS are missing there: a script"), "{told}");
    assert!(
        told.contains("Hostler sends requests to this port") && told.contains("Other machines can reach it")
    );
    let pid = site.pid_of(1).await;
    proc::kill(pid);
    site.get("/").await.assert_ok("served");
    assert_ne!(site.pid_of(1).await, pid);
    site.stop().await;
}

#[tokio::test]
async fn an_app_without_the_preload_on_another_port_is_named_and_not_served() {
    let port = hostler_testkit::held_port();
    let number = port.address().port();
    let text = format!("require('http').createServer().listen({number}, '127.0.0.1')");
    let plan =
        behind_a_script("unset NODE_OPTIONS; node app.cjs", &text).option("pools.app.start_timeout=2s");
    let site = plan.start().await;
    let told = site.logged(&format!("(node) listens on 127.0.0.1:{number} without Hostler.")).await;
    assert!(told.contains("Hostler does not use this port.") && !told.contains("Other machines"), "{told}");
    let killed =
        site.logged("Hostler found no HTTP server of the app within its start_timeout (2 s); process").await;
    assert!(killed.contains("Keep them (NODE_OPTIONS=\"$NODE_OPTIONS --your-option\")"), "{killed}");
}

#[tokio::test]
async fn an_app_in_a_worker_thread_is_served_and_restarted() {
    let site = source(
        "new (require('worker_threads').Worker)(`
            require('http').createServer((req, res) => res.end('thread')).listen(process.env.PORT)`, { eval: true });",
    );
    let site = site.started().await;
    for _ in 0..3 {
        site.get("/").await.assert_ok("thread");
    }
    proc::kill(site.pid_of(1).await);
    site.get("/").await.assert_ok("thread");
    site.stop().await;
}

#[tokio::test]
async fn with_bind_port_an_app_on_all_addresses_is_named() {
    let site = source("require('http').createServer((req, res) => res.end()).listen(process.env.PORT)");
    let site = site.option("pools.app.bind=port").started().await;
    site.logged("not on its HOST. Other machines can reach it: let it listen on 127.0.0.1.").await;
    site.stop().await;
}
