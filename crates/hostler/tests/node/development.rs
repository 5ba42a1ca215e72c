//! `hostler run` for developers: it ends if the app never starts, and restarts workers when files change.

use hostler_testkit::{ReceivedAnswer, eventually};
use serde_json::json;

use super::site::{Plan, Site, source};

/// An app whose answers name the version.
fn version(name: &str) -> String {
    format!("require('http').createServer((req, res) => res.end('{name}')).listen(3000);")
}

const BROKEN: &str = "console.error('it connects');\nthrow new TypeError('no <database>');";

fn watched(text: &str) -> Plan {
    source(text).flag("--watch")
}

fn edit(site: &Site, text: &str) {
    std::fs::write(site.file("app.cjs"), text).unwrap();
}

/// The answer to a browser that asks for a page.
async fn page(site: &Site) -> ReceivedAnswer {
    let request =
        "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html,*/*;q=0.8\r\nSec-Fetch-Mode: navigate\r\n\r\n";
    site.send(request).await
}

/// Waits until a page has this text.
async fn page_says(site: &Site, text: &str) {
    eventually(format!("a page with {text:?}"), async || {
        page(site).await.text().contains(text).then_some(())
    })
    .await;
}

#[tokio::test]
async fn run_ends_with_the_exit_code_and_the_last_words_of_an_app_that_is_never_ready() {
    let text = "console.error('no database\\nat 127.0.0.1:5432\\x1b[2J'); process.exit(3);";
    let output = source(text).ended().await;
    output.assert_exit(3).assert_complains("the app was never ready, after 3 tries");
    output.assert_complains(
        "exit code 3 before it was ready; the app printed last:\nno database\nat 127.0.0.1:5432\\x1b[2J\n",
    );
    assert!(output.stdout.contains("\"level\":\"error\",\"text\":\"the app was never ready"), "{output:?}");

    source("console.log('done')")
        .ended()
        .await
        .assert_exit(1)
        .assert_complains("exit code 0")
        .assert_complains("\ndone");
    source("process.kill(process.pid, 'SIGKILL')")
        .ended()
        .await
        .assert_exit(137)
        .assert_complains("signal 9 (SIGKILL)");
    // It removes itself, so the next boot does not find it.
    let gone = source("");
    let program = gone.folder().join("short-lived");
    std::fs::write(&program, "#!/bin/sh\nrm \"$0\"\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = gone.runs(&format!("{} x", program.display())).ended().await;
    output.assert_exit(127).assert_complains("there is no program");
    let output = source("setInterval(() => {}, 1000)").option("pools.app.start_timeout=300ms").ended().await;
    output.assert_exit(1).assert_complains("start_timeout (0.3 s)");
}

#[tokio::test]
async fn run_names_the_server_that_it_does_not_use_as_the_cause_of_an_app_that_is_never_ready() {
    let port = hostler_testkit::held_port();
    let listen = format!("require('http2').createServer().listen({});", port.address().port());
    let cause = "tries: the app listens on port ";
    // The second worker dies because the first one has the port.
    let two = source(&listen).option("pools.app.workers=2").ended().await;
    two.assert_exit(1).assert_complains(cause).assert_complains("EADDRINUSE");
    let grandchild = format!(
        "require('child_process').spawn(process.execPath, ['-e', {listen:?}], {{ stdio: 'inherit' }});"
    );
    for app in [&listen, &grandchild] {
        let output = source(app).option("pools.app.start_timeout=4s").ended().await;
        output.assert_exit(1).assert_complains(cause).assert_complains("HTTP/2 only");
        output.assert_complains("Hostler found no HTTP server of the app within its start_timeout (4 s)");
    }
    let path = source("require('http').createServer().listen('app.sock');");
    let output = path.option("pools.app.start_timeout=4s").ended().await;
    output
        .assert_exit(1)
        .assert_complains("tries: the app listens on the path app.sock; let it listen on a port");
}

#[tokio::test]
async fn run_does_not_end_when_an_app_that_has_worked_does_not_boot_any_more() {
    let text = "const fs = require('fs'), bad = process.env.TEST_FOLDER + '/bad';
        if (fs.existsSync(bad)) process.exit(3);
        require('http').createServer((req, res) => { res.end('ok'); fs.writeFileSync(bad, ''); setTimeout(process.exit, 50, 4); }).listen(3000);";
    let site = source(text).started().await;
    site.get("/").await.assert_status(200);
    site.logged("(crash loop: 3 in a row)").await;
    std::fs::remove_file(site.file("bad")).unwrap();
    site.is_ready().await;
    site.stop().await;
}

#[tokio::test]
async fn a_broken_change_leaves_the_old_worker_and_shows_the_error_until_it_is_mended() {
    let site = watched(&version("one")).started().await;
    let old = site.pid_of(1).await;
    assert_eq!(page(&site).await.assert_status(200).text(), "one");

    edit(&site, BROKEN);
    site.logged("watch: the app does not start: exit code 1 before it was ready: TypeError: no <database>")
        .await;
    let answer = page(&site).await;
    answer
        .assert_status(503)
        .assert_field("cache-control", "no-store")
        .assert_field("hostler-development", "broken 1");
    for text in ["Development", "TypeError: no &lt;database&gt;", "it connects", "app.cjs:2"] {
        answer.assert_says(text);
    }
    // Every other request goes to the old worker.
    assert_eq!(site.get("/").await.assert_status(200).text(), "one");
    assert_eq!(site.post("/", "x").await.assert_status(200).text(), "one");
    let script = "GET / HTTP/1.1\r\nHost: a\r\nSec-Fetch-Mode: cors\r\nHostler-Development: broken 1\r\n\r\n";
    site.send(script).await.assert_status(204).assert_field("hostler-development", "broken 1");
    assert_eq!(site.pid_of(1).await, old);

    edit(&site, &version("two"));
    site.logged("restart: 1 worker replaced").await;
    assert_eq!(page(&site).await.assert_status(200).text(), "two");
    site.send(script).await.assert_status(204).assert_field("hostler-development", "serving");
    assert!(
        !site.access_lines().iter().any(|line| line["status"] == 204),
        "the script's requests are not logged"
    );
    site.stop().await;
}

#[tokio::test]
async fn a_page_that_is_asked_for_after_a_change_comes_from_the_new_code() {
    let site = watched(&version("one")).started().await;
    edit(&site, &format!("const end = Date.now() + 500; while (Date.now() < end);{}", version("two")));
    site.logged("app.cjs has changed: workers restart").await;
    assert_eq!(page(&site).await.assert_status(200).text(), "two");
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_is_broken_from_the_start_is_shown_and_mended() {
    let site = watched(BROKEN).start().await;
    site.logged("no worker serves until a file changes").await;
    site.logged("restarts when a file changes").await;
    page(&site).await.assert_status(503).assert_says("TypeError: no &lt;database&gt;");
    edit(&site, "throw new RangeError('still');");
    page_says(&site, "RangeError: still").await;
    edit(&site, &version("mended"));
    page_says(&site, "mended").await;
    assert_eq!(site.get("/").await.assert_status(200).text(), "mended");
    site.stop().await;
}

#[tokio::test]
async fn the_last_of_several_changes_wins() {
    let site = watched(&version("one")).started().await;
    // It would boot for ever.
    edit(&site, "setInterval(() => {}, 1000); console.log('two boots');");
    site.printed("two boots").await;
    edit(&site, BROKEN);
    site.logged("watch: the app does not start").await;
    edit(&site, "console.log('three boots'); setInterval(() => {}, 1000);");
    site.printed("three boots").await;
    edit(&site, &version("four"));
    page_says(&site, "four").await;
    site.logged("restart: 1 worker replaced").await;
    assert_eq!(site.pids().await.len(), 1);
    site.stop().await;
}

#[tokio::test]
async fn changes_are_found_however_they_are_made_and_other_files_do_not_count() {
    let plan = watched(&version("one")).flag("--watch-ignore").flag("data/");
    let outside = tempfile::tempdir().unwrap();
    for folder in ["node_modules/a", "data", ".cache", "lib"] {
        std::fs::create_dir_all(plan.folder().join(folder)).unwrap();
    }
    std::os::unix::fs::symlink(outside.path(), plan.folder().join("linked")).unwrap();
    std::fs::write(plan.folder().join("lib/old.js"), "").unwrap();
    let site = plan.started().await;
    let write = |name: &str| std::fs::write(site.file(name), "{}").unwrap();
    // None of these counts: the next change names only its own file.
    for name in ["node_modules/a/index.js", "data/orders.json", ".cache/a.js", "photo.png", "app.cjs~"] {
        write(name);
    }
    write("lib/new.js");
    site.logged("watch: lib/new.js has changed").await;
    // As editors save: another file is renamed.
    write("lib/new.js.tmp");
    std::fs::rename(site.file("lib/new.js.tmp"), site.file("lib/saved.js")).unwrap();
    site.logged("watch: lib/saved.js has changed").await;
    std::fs::remove_file(site.file("lib/old.js")).unwrap();
    site.logged("watch: lib/old.js has changed").await;
    write("linked/far.ts");
    site.logged("watch: linked/far.ts has changed").await;
    std::fs::create_dir_all(site.file("src/deep")).unwrap();
    write("src/deep/a.ts");
    site.logged("watch: src/deep/a.ts has changed").await;
    write("src/deep/b.ts");
    site.logged("watch: src/deep/b.ts has changed").await;
    for number in 0..200 {
        write(&format!("src/many{number}.js"));
    }
    let rest = site.logged("watch: src/many0.js, src/many1.js, src/many10.js and ").await;
    assert!(rest.ends_with("more have changed: workers restart"), "{rest}");
    site.is_ready().await;
    site.stop().await;
}

#[tokio::test]
async fn a_watched_path_must_exist() {
    let output = source("").flag("--watch-path").flag("nowhere").ended().await;
    output.assert_exit(1).assert_complains("cannot watch").assert_complains("nowhere");
}

#[tokio::test]
async fn stack_traces_name_the_source_files_in_watch_mode_only() {
    // Line 1 of app.cjs is line 1 of app.ts.
    let map = json!({ "version": 3, "sources": ["app.ts"], "names": [], "mappings": "AAAA" });
    let text = "require('http').createServer((req, res) => res.end(new Error(process.env.NODE_OPTIONS).stack)).listen(3000);
        //# sourceMappingURL=app.cjs.map";
    let mapped = |plan: Plan| {
        std::fs::write(plan.folder().join("app.cjs.map"), map.to_string()).unwrap();
        plan
    };
    let site = mapped(watched(text)).env("NODE_OPTIONS", "--no-deprecation").started().await;
    site.get("/").await.assert_says("app.ts:1").assert_says("--no-deprecation");
    site.stop().await;
    let site = mapped(source(text)).started().await;
    let stack = site.get("/").await.text();
    assert!(stack.contains("app.cjs:1") && !stack.contains("app.ts"), "{stack}");
    site.stop().await;
}
