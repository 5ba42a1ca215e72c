//! The log that people and programs read: on a real terminal, and elsewhere as JSON, with the lines of real loggers.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use hostler_testkit::{client, eventually};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use super::site::{Plan, fixture, repository, source};

/// What the terminal shows of one `hostler run`.
struct Terminal {
    hostler: Child,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    fn of(app: &[&str], variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let output = || Stdio::from(slave.as_fd().try_clone_to_owned().unwrap());
        let hostler = Command::new(env!("CARGO_BIN_EXE_hostler"))
            .args(["run", "--listen", "127.0.0.1:0", "--admin", "off", "--workers", "1"])
            .args(arguments)
            .arg("--")
            .args(app)
            .current_dir(repository().join("packages/worker/test/apps/loggers"))
            .env_remove("NO_COLOR")
            .env_remove("FORCE_COLOR")
            .env_remove("CLICOLOR")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("CI")
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied())
            .stdout(output())
            .stderr(output())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let shown = Arc::<Mutex<String>>::default();
        let writing = shown.clone();
        // Reading a terminal that nothing holds open any more is an error.
        std::thread::spawn(move || {
            let (mut master, mut buffer) = (File::from(master), [0; 4096]);
            while let Ok(count @ 1..) = master.read(&mut buffer) {
                writing.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        Self { hostler, shown }
    }

    /// Waits for a line with this text.
    async fn line(&self, text: &str) -> String {
        eventually(format!("the terminal shows {text:?}"), async || {
            let shown = self.shown.lock().unwrap().clone();
            shown.lines().find(|line| line.contains(text)).map(str::to_owned)
        })
        .await
    }

    async fn get(&self, path: &str) {
        let line = self.line("listening on ").await;
        let address = line.rsplit_once("http://").unwrap().1.trim_end();
        let address = address.split('\u{1b}').next().unwrap().parse().unwrap();
        client(address).await.get(path).await.assert_status(200);
    }

    async fn get_json(&self) {
        let line = self.line("listening on ").await;
        let line: Value = serde_json::from_str(line.trim_end()).unwrap();
        let address = line["text"].as_str().unwrap().rsplit_once("http://").unwrap().1.parse().unwrap();
        client(address).await.get("/").await.assert_status(200);
    }

    fn text(&self) -> String {
        self.shown.lock().unwrap().clone()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.hostler.id().cast_signed()).unwrap();
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.hostler.wait();
    }
}

#[tokio::test]
async fn on_a_terminal_the_log_is_coloured_text() {
    let terminal = Terminal::of(&["node", "server.cjs", "pino"], &[], &[]);
    terminal.get("/error").await;
    let line = terminal.line("GET").await;
    assert!(line.contains("\u{1b}[32m200\u{1b}[0m \u{1b}[1mGET\u{1b}[0m "), "{line:?}");
    let line = terminal.line("a request").await;
    assert!(line.contains("app/1") && line.contains("\u{1b}[32mINFO \u{1b}[0m a request"), "{line:?}");
    assert!(line.contains("\u{1b}[2murl=\u{1b}[0m/error"), "{line:?}");
    let line = terminal.line("no luck").await;
    assert!(line.contains("\u{1b}[1m\u{1b}[31mERROR\u{1b}[0m no luck"), "{line:?}");
    assert!(terminal.line("Error: it broke").await.contains("| "));
    assert!(!terminal.text().contains("{\""), "{}", terminal.text());
}

#[tokio::test]
async fn a_terminal_without_colours_gets_plain_text() {
    for variables in [("NO_COLOR", "1"), ("TERM", "dumb"), ("CLICOLOR", "0"), ("FORCE_COLOR", "0")] {
        let terminal = Terminal::of(&["node", "server.cjs", "winston"], &[variables], &[]);
        terminal.get("/error").await;
        let line = terminal.line("a request").await;
        assert!(line.contains(" | INFO  a request "), "{variables:?}: {line:?}");
        terminal.line("200 GET").await;
        assert!(!terminal.text().contains('\u{1b}'), "{variables:?}: {:?}", terminal.text());
    }
}

#[tokio::test]
async fn json_is_written_to_a_terminal_if_it_is_asked_for() {
    let terminal = Terminal::of(&["node", "server.cjs", "bunyan"], &[], &["--log", "json"]);
    terminal.get_json().await;
    assert!(terminal.line("a request").await.starts_with("{\"event\":\"worker\""));
    assert!(!terminal.text().contains('\u{1b}'));
}

#[tokio::test]
async fn nothing_that_an_app_prints_moves_the_cursor_of_a_terminal() {
    let script = r"console.log('\x1b[2Jwiped \x1b]0;title\x07 \x1b[35mpainted \r12:00:00.000 error: forged \u009b2J \u202etxt');
        require('http').createServer((req, res) => res.end()).listen(3000);";
    let terminal = Terminal::of(&["node", "-e", script], &[], &[]);
    let line = terminal.line("wiped").await;
    let expected = "\\x1b[2Jwiped \\x1b]0;title\\x07 \u{1b}[35mpainted \\x0d12:00:00.000 error: forged \\x9b2J \\u{202e}txt\u{1b}[0m";
    assert!(line.trim_end_matches('\r').ends_with(expected), "{line:?}");
}

#[tokio::test]
async fn a_pipe_gets_colours_only_if_they_are_forced() {
    let app = || source("require('http').createServer((req, res) => res.end()).listen(3000)");
    let pretty = app().option("server.access_log=pretty").env("CLICOLOR_FORCE", "1").start().await;
    assert!(pretty.says("app/1: ready").await.contains('\u{1b}'));
    let plain = app().option("server.access_log=pretty").env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert!(!plain.start().await.says("app/1: ready").await.contains('\u{1b}'));
}

/// The record of the line with this message.
async fn record(plan: Plan, path: &str, message: &str) -> Value {
    let site = plan.started().await;
    site.get(path).await.assert_status(200);
    let record = site.printed(message).await;
    assert_eq!(record["pid"].as_u64().map(|pid| pid as u32), Some(site.pid_of(1).await));
    assert_eq!((&record["pool"], &record["worker"]), (&json!("app"), &json!(1)));
    site.stop().await;
    record
}

#[tokio::test]
async fn lines_of_pino_winston_and_bunyan_are_passed_on_as_json() {
    for logger in ["pino", "winston", "bunyan"] {
        let app = || fixture("loggers").runs(&format!("node server.cjs {logger}"));
        let told = record(app(), "/error", "a request").await;
        assert_eq!((&told["level"], &told["text"]), (&json!("info"), &json!("a request")), "{told}");
        assert_eq!(told["app"]["url"], "/error", "{told}");
        let told = record(app(), "/error", "no luck").await;
        assert_eq!(told["level"], "error", "{told}");
        let stack = told["app"]["err"]["stack"].as_str().or(told["app"]["stack"].as_str());
        assert!(stack.unwrap().starts_with("Error: it broke\n"), "{told}");
    }
}

#[tokio::test]
async fn long_broken_and_odd_lines_lose_nothing_and_keep_their_order() {
    let app = r#"
        const lines = ['{"msg":"first"}', '{"msg":"half', '[1]', '{"a":1,"a":2,"n":12345678901234567890}',
            `{"msg":"long","big":"${'x'.repeat(200_000)}"}`, `{"msg":"overlong","big":"${'y'.repeat(300_000)}"}`, '{"msg":"last"}'];
        process.stdout.write(Buffer.concat([Buffer.from(lines[0] + '\n{"msg":"utf'), Buffer.from([0xff]), Buffer.from('"}\n')]));
        process.stdout.write(lines.slice(1).join('\n') + '\n');
        require('http').createServer((req, res) => res.end()).listen(3000);"#;
    let site = source(app).started().await;
    site.printed("last").await;
    let log = site.log();
    let lines: Vec<&Value> = log.iter().filter(|line| line["event"] == "worker").collect();
    let texts: Vec<&str> = lines.iter().map(|line| line["text"].as_str().unwrap_or_default()).collect();
    assert_eq!(texts[..6], ["first", "utf\u{fffd}", "{\"msg\":\"half", "[1]", "", "long"]);
    let raw = site.lines().into_iter().find(|line| line.contains("\"app\":{\"a\"")).unwrap();
    assert!(raw.ends_with(r#""app":{"a":1,"a":2,"n":12345678901234567890}}"#), "{raw}");
    assert_eq!(lines[5]["app"]["big"].as_str().map(str::len), Some(200_000));
    let (last, pieces) = texts[6..].split_last().unwrap();
    assert_eq!((*last, pieces.concat().len()), ("last", 300_000 + r#"{"msg":"overlong","big":""}"#.len()));
    assert!(lines[6..lines.len() - 1].iter().all(|line| line.get("app").is_none()));
    site.stop().await;
}

#[tokio::test]
async fn in_the_journal_of_systemd_each_line_has_its_priority() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let output = File::create(&path).unwrap();
    let stat = rustix::fs::fstat(&output).unwrap();
    let app = "console.log('plain'); console.error('on stderr'); console.log('{\"level\":50,\"msg\":\"of pino\"}'); \
               require('http').createServer((req, res) => res.end()).listen(3000)";
    let mut hostler = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["run", "--listen", "127.0.0.1:0", "--admin", "off", "--workers", "1", "--", "node", "-e", app])
        .env("JOURNAL_STREAM", format!("{}:{}", stat.st_dev, stat.st_ino))
        .current_dir(folder.path())
        .stdout(output)
        .spawn()
        .unwrap();
    let text = eventually("the worker to be ready", async || {
        let text = std::fs::read_to_string(&path).unwrap();
        (text.contains("ready (pid") && text.contains("of pino") && text.contains("on stderr"))
            .then_some(text)
    })
    .await;
    kill_process(Pid::from_child(&hostler), Signal::TERM).unwrap();
    hostler.wait().unwrap();
    for (words, priority) in [("ready (pid", '6'), ("plain", '6'), ("on stderr", '4'), ("of pino", '3')] {
        let line = text.lines().find(|line| line.contains(words)).unwrap();
        assert!(line.starts_with(&format!("<{priority}>{{")), "{line}");
    }
}
