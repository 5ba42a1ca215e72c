//! Health checks with real workers: not ready before the first worker is, not ready once none is left, alive all the time.

use hostler_testkit::{ReceivedAnswer, eventually};
use rustix::process::{Pid, Signal, kill_process};

use super::site::{Site, source};

/// Listens as soon as the test allows it.
const SLOW: &str = "
const fs = require('node:fs');
const app = require('node:http').createServer((request, response) => response.end('app'));
const timer = setInterval(() => {
    if (!fs.existsSync(process.env.TEST_FOLDER + '/go')) return;
    clearInterval(timer);
    app.listen(3000);
}, 5);
";

async fn asked(site: &Site, path: &str) -> ReceivedAnswer {
    site.get(path).await
}

#[tokio::test]
async fn without_a_ready_worker_hostler_is_not_ready_and_says_which_pool_is_missing() {
    let plan = source(SLOW).option("server.health_path=/healthz").option("pools.app.start_timeout=1h");
    let site = plan.start().await;
    for path in ["/healthz", "/healthz/ready", "/healthz/startup", "/healthz/ready/app"] {
        let answer = asked(&site, path).await;
        assert_eq!((answer.status, answer.text()), (503, "pool app: no worker is ready\n".into()), "{path}");
    }
    asked(&site, "/healthz/live").await.assert_ok("ok\n");
    site.touch("go");
    site.is_ready().await;
    for path in ["/healthz", "/healthz/startup"] {
        asked(&site, path).await.assert_ok("ok\n");
    }
    std::fs::remove_file(site.file("go")).unwrap();
    kill_process(Pid::from_raw(site.pid_of(1).await as i32).unwrap(), Signal::KILL).unwrap();
    eventually("it to be not ready", async || (asked(&site, "/healthz").await.status == 503).then_some(()))
        .await;
    // A startup probe has done its work, and a restart of the process would not help.
    for path in ["/healthz/startup", "/healthz/live"] {
        asked(&site, path).await.assert_ok("ok\n");
    }
    site.touch("go");
    eventually("it to be ready again", async || (asked(&site, "/healthz").await.status == 200).then_some(()))
        .await;
    site.stop().await;
}
