//! What the log has and what it never shows: levels, sampling, redaction, and a file that is opened again.

use std::path::Path;
use std::process::{Command, Stdio};

use hostler_testkit::{Site, eventually, held_port, run, text, try_client, upstream};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{in_front_of, site};

const WHY: &str = "cannot be opened: it is a named pipe that no program reads";
/// A route that needs no member.
const OTHER: &str = "[[routes]]\nmatch = '/other/*'\nrespond = 'ok'\n[[routes]]\nmatch = '*'\npool = 'app'\n";

async fn get_with(site: &Site, target: &str, fields: &str) {
    let mut client = site.connect().await;
    client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    client.answer().await;
}

/// Waits for this text in a file, and returns the whole.
async fn has(file: &Path, text: &str) -> String {
    eventually(format!("{text} in {}", file.display()), async || {
        std::fs::read_to_string(file).ok().filter(|lines| lines.contains(text))
    })
    .await
}

/// Makes a named pipe without a reader, which cannot be opened as a log.
fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn secrets_in_urls_and_headers_never_reach_the_log() {
    let app = upstream().start().await;
    for form in ["json", "pretty", "gorouter"] {
        let config = format!("server.access_log = '{form}'\nlog.redact = ['invite']\n[platform]\n");
        let site = site(&config).with("app", &app).start().await;
        let fields =
            "Authorization: Bearer secret-1\r\nCookie: sid=secret-2\r\nReferer: http://b/?token=secret-3\r\n";
        get_with(&site, "/x?page=7&access_token=secret-4&Invite=secret-5&p%61ssword=secret-6", fields).await;
        let line = site.says("page=7").await;
        assert!(line.contains("access_token=[redacted]&Invite=[redacted]&p%61ssword=[redacted]"), "{line}");
        let status = site.status().await.to_string();
        let told = site.lines().join("\n") + &status;
        assert!(!told.contains("secret-"), "{told}");
    }
    // The member gets all of it.
    assert!(app.requests().iter().all(|seen| seen.target().contains("secret-4")));
}

#[tokio::test]
async fn a_password_in_a_refused_target_or_host_never_reaches_the_log() {
    for form in ["json", "pretty", "gorouter"] {
        let app = upstream().start().await;
        let config = format!("server.access_log = '{form}'\n[platform]\n");
        let site = site(&config).with("app", &app).start().await;
        for (line, host) in [
            ("GET http://me:secret-1@a.test/1", "a.test"),
            ("GET http://me:sec/secret-2@a.test/2", "a.test"),
            ("CONNECT me:secret-3@a.test:443", "a.test"),
            ("GET /4", "me:secret-4@a.test"),
            ("GET http://me:secret-5@a.test/5", "me:secret-5@a.test"),
        ] {
            let request =
                format!("{line} HTTP/1.1\r\nHost: {host}\r\nReferer: https://me:secret-6@a.test/\r\n\r\n");
            let refused = site.send(request).await;
            assert!(refused.status >= 400 && !refused.text().contains("secret-"), "{}", refused.text());
        }
        site.says("[redacted]@a.test/1").await;
        eventually("the last line", async || {
            (site.lines().iter().filter(|line| line.contains("[redacted]@a.test")).count() >= 5).then_some(())
        })
        .await;
        let told = site.lines().join("\n") + &site.status().await.to_string();
        assert!(!told.contains("secret-"), "{told}");
    }
}

#[tokio::test]
async fn a_sampled_log_has_all_refusals_errors_and_slow_requests() {
    let app = upstream()
        .script(|seen| text(format!("HTTP/1.1 {} X\r\nContent-Length: 0\r\n\r\n", &seen.target()[1..])))
        .start()
        .await;
    let config = "log.sample = 1000000\nlog.slow = '1h'\nserver.max_body_size = 10";
    let site = in_front_of(&app, config).await;
    for _ in 0..50 {
        site.get("/200").await;
    }
    site.get("/404").await;
    site.post("/200", [b'x'; 11]).await.assert_refused(413, "body_too_large");
    site.get("/500").await;
    site.access("/500").await;
    let statuses = |site: &Site| -> Vec<Value> {
        site.access_lines().iter().map(|line| line["status"].clone()).collect()
    };
    // With one in a million, a line of the 50 would be a very rare chance: it would say what it stands for.
    let lines = site.access_lines();
    assert!(lines.iter().all(|line| line["sample"].is_null() || line["sample"] == 1_000_000), "{lines:?}");
    let all = statuses(&site);
    assert!(
        all.len() <= 5 && [404, 413, 500].iter().all(|status| all.contains(&Value::from(*status))),
        "{all:?}"
    );

    // Each request is slow.
    site.rewrite(&format!("log.sample = 2\nlog.slow = '0s'\npools.app.members = ['{}']", app.address()));
    site.command(&["reload"]).await.assert_exit(0);
    for _ in 0..20 {
        site.get("/201").await;
    }
    eventually("20 lines", async || {
        (statuses(&site).iter().filter(|status| **status == 201).count() == 20).then_some(())
    })
    .await;
    // One in two, and each line says so.
    site.rewrite(&format!("log.sample = 2\nlog.slow = '1h'\npools.app.members = ['{}']", app.address()));
    site.command(&["reload"]).await.assert_exit(0);
    for _ in 0..64 {
        site.get("/202").await;
    }
    site.get("/599").await;
    site.access("/599").await;
    let sampled = site.access_lines().into_iter().filter(|line| line["status"] == 202).collect::<Vec<_>>();
    assert!(!sampled.is_empty() && sampled.len() < 64, "{} of 64", sampled.len());
    assert!(sampled.iter().all(|line| line["sample"] == 2), "{sampled:?}");
}

#[tokio::test]
async fn a_reload_changes_the_level_of_events() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "log.level = 'info'").await;
    let told = |site: &Site| site.lines().iter().filter(|line| line.contains("pause: pool app")).count();
    site.command(&["pause", "app"]).await.assert_exit(0);
    site.command(&["resume", "app"]).await.assert_exit(0);
    site.says("pause: pool app").await;
    let before = told(&site);
    site.rewrite(&format!("log.level = 'error'\npools.app.members = ['{}']", app.address()));
    site.command(&["reload"]).await.assert_exit(0);
    site.command(&["pause", "app"]).await.assert_exit(0);
    site.command(&["resume", "app"]).await.assert_exit(0);
    // A line of a request comes after all of these.
    site.get("/after").await.assert_ok("ok");
    site.access("/after").await;
    assert_eq!(told(&site), before);
}

#[tokio::test]
async fn a_renamed_log_file_is_opened_again_at_sighup() {
    let app = upstream().start().await;
    let site = in_front_of(&app, OTHER).await;
    let (file, old) = (site.folder().join("access.log"), site.folder().join("access.log.1"));
    let pool = format!("pools.app.members = ['{}']", app.address());
    site.rewrite(&format!("log.file = 'access.log'\n{pool}"));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/before").await.assert_ok("ok");
    has(&file, "/before").await;
    std::fs::rename(&file, &old).unwrap();
    // Also with a configuration that has an error.
    site.rewrite(&format!("log.file = 'access.log'\nlog.levle = 'info'\n{pool}"));
    site.hang_up();
    has(&file, "levle").await;
    site.get("/later").await.assert_ok("ok");
    let now = has(&file, "/later").await;
    assert!(!now.contains("/before"));
    assert!(!std::fs::read_to_string(&old).unwrap().contains("/later"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o007, 0, "other users cannot read it");
}

#[tokio::test]
async fn in_the_journal_of_systemd_a_gorouter_line_of_an_error_is_a_warning() {
    let (folder, ports) = (tempfile::tempdir().unwrap(), [held_port(), held_port()]);
    let [address, admin] = [ports[0].address(), ports[1].address()];
    let config = format!(
        "[server]\nlisten = '{address}'\nadmin = '{admin}'\nthreads = 1\naccess_log = 'gorouter'\n[platform]\n\
         [[routes]]\nmatch = '/bad'\nrespond = {{ status = 503, body = 'no' }}\n[[routes]]\nmatch = '*'\nrespond = 'ok'\n"
    );
    std::fs::write(folder.path().join("hostler.toml"), config).unwrap();
    let path = folder.path().join("journal");
    let journal = std::fs::File::create(&path).unwrap();
    let stat = rustix::fs::fstat(&journal).unwrap();
    let mut hostler = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .arg("start")
        .current_dir(folder.path())
        .env("JOURNAL_STREAM", format!("{}:{}", stat.st_dev, stat.st_ino))
        .stdin(Stdio::null())
        .stdout(journal)
        .spawn()
        .unwrap();
    let mut client = eventually("it to listen", async || try_client(address).await).await;
    client.get("/bad").await.assert_status(503);
    client.get("/good").await.assert_ok("ok");
    let text = has(&path, "/good").await;
    kill_process(Pid::from_child(&hostler), Signal::TERM).unwrap();
    hostler.wait().unwrap();
    for (target, priority) in [("/bad", "<4>"), ("/good", "<6>")] {
        let line = text.lines().find(|line| line.contains(target)).unwrap();
        assert!(line.starts_with(&format!("{priority}site.test - ")), "{line}");
    }
}

#[tokio::test]
async fn a_reload_that_cannot_open_the_log_file_again_fails() {
    let app = upstream().start().await;
    let site = in_front_of(&app, OTHER).await;
    let pool = format!("pools.app.members = ['{}']", app.address());
    site.rewrite(&format!("log.file = 'access.log'\n{pool}"));
    site.command(&["reload"]).await.assert_exit(0);
    let file = site.folder().join("access.log");
    let old = site.folder().join("access.log.1");
    std::fs::rename(&file, &old).unwrap();
    pipe(&file);
    site.command(&["reload"]).await.assert_exit(1).assert_complains(WHY);
    assert_eq!(site.status().await["last_reload"]["ok"], false);
    has(&old, WHY).await;
    site.rewrite(&format!("log.file = 'access.log'\nlog.levle = 'info'\n{pool}"));
    site.command(&["reload"]).await.assert_exit(1).assert_complains("levle").assert_complains(WHY);
}

#[tokio::test]
async fn a_hostler_that_is_stopping_opens_its_log_file_again_at_sighup() {
    let app = upstream().holds_requests().start().await;
    let mut site = in_front_of(&app, OTHER).await;
    let (file, old) = (site.folder().join("access.log"), site.folder().join("access.log.1"));
    let pool = format!("pools.app.members = ['{}']", app.address());
    site.rewrite(&format!("log.file = 'access.log'\nserver.drain_timeout = '60s'\n{pool}"));
    site.command(&["reload"]).await.assert_exit(0);
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    site.terminate();
    has(&file, "stopping: no new connections").await;
    std::fs::rename(&file, &old).unwrap();
    site.hang_up();
    has(&file, "only the log file is opened again").await;
    app.release_all();
    running.answer().await.assert_ok("/running");
    assert_eq!(site.exit().await, 0);
    let last = [r#""target":"/running""#, r#""text":"stopped""#];
    for (file, is_there) in [(&file, true), (&old, false)] {
        let lines = std::fs::read_to_string(file).unwrap();
        assert!(last.iter().all(|part| lines.contains(part) == is_there), "{lines}");
    }
}

#[tokio::test]
async fn a_log_file_that_cannot_be_opened_is_named() {
    let plan = site("log.file = 'missing/a.log'\npools.app.members = ['127.0.0.1:1']");
    plan.run(&["check"]).await.assert_exit(2).assert_complains("log.file").assert_complains("does not exist");
    let plan = site("log.file = '/'\npools.app.members = ['127.0.0.1:1']");
    plan.run(&["start"]).await.assert_exit(2).assert_complains("log.file: / is a folder, not a file");
    // No process can make a file there.
    let plan = site("log.file = '/proc/hostler.log'\npools.app.members = ['127.0.0.1:1']");
    let folder = plan.folder().to_owned();
    plan.run(&["check"]).await;
    let output = run(env!("CARGO_BIN_EXE_hostler"), &["start"], &folder).await;
    output.assert_exit(1).assert_complains("log.file: /proc/hostler.log cannot be opened");
    // As /dev/stdout is under systemd.
    let plan = site("log.file = 'a.sock'\npools.app.members = ['127.0.0.1:1']");
    let folder = plan.folder().to_owned();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("a.sock")).unwrap();
    plan.run(&["check"]).await;
    let output = run(env!("CARGO_BIN_EXE_hostler"), &["start"], &folder).await;
    output.assert_exit(1).assert_complains("a.sock cannot be opened: it is a socket; leave log.file out");
}

#[tokio::test]
async fn a_named_pipe_without_a_reader_as_log_holds_up_neither_a_start_nor_a_reload() {
    let plan = site("log.file = 'pipe'\npools.app.members = ['127.0.0.1:1']");
    let folder = plan.folder().to_owned();
    pipe(&folder.join("pipe"));
    plan.run(&["check"]).await;
    let output = run(env!("CARGO_BIN_EXE_hostler"), &["start"], &folder).await;
    output.assert_exit(1).assert_complains(WHY);

    let app = upstream().start().await;
    let mut site = in_front_of(&app, OTHER).await;
    pipe(&site.folder().join("pipe"));
    site.rewrite("log.file = 'pipe'\n[[routes]]\nmatch = '*'\nrespond = { status = 204 }\n");
    site.command(&["reload"]).await.assert_exit(1).assert_complains(WHY);
    site.says(WHY).await;
    site.get("/").await.assert_ok("ok");
    site.terminate();
    assert_eq!(site.exit().await, 0);
}
