//! Advice and `hostler top`, with the running program.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use hostler_testkit::{eventually, run, upstream};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::in_front_of;

/// `hostler top` in a terminal of 80 columns and 24 lines.
struct Terminal {
    top: Child,
    keyboard: File,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    fn open(admin: &str) -> Self {
        Self::of(start(admin))
    }

    fn of((top, master): (Child, OwnedFd)) -> Self {
        let keyboard = File::from(master.try_clone().unwrap());
        let shown = Arc::<Mutex<String>>::default();
        let writing = shown.clone();
        std::thread::spawn(move || {
            let (mut master, mut buffer) = (File::from(master), [0; 4096]);
            while let Ok(read @ 1..) = master.read(&mut buffer) {
                writing.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        Self { top, keyboard, shown }
    }

    async fn shows(&self, part: &str) {
        eventually(part, async || self.shown.lock().unwrap().contains(part).then_some(())).await;
    }

    /// The exit code, after the terminal was put back: the alternate screen is left, and the cursor is shown.
    async fn ends(&mut self) -> Option<i32> {
        let status = eventually("top ends", async || self.top.try_wait().unwrap()).await;
        self.shows("\u{1b}[?1049l").await;
        self.shows("\u{1b}[?25h").await;
        status.code()
    }
}

/// Starts `hostler top`, and returns the other end of its terminal.
fn start(admin: &str) -> (Child, OwnedFd) {
    start_in("xterm-256color", admin)
}

fn start_in(kind: &str, admin: &str) -> (Child, OwnedFd) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hostler"));
    command.args(["top", "--admin", admin]);
    spawn_in(kind, command)
}

/// As in a script or a loop of a shell that reads a list: the terminal is there, and standard input is another file.
fn start_without_input(admin: &str) -> (Child, OwnedFd) {
    // A terminal that is no standard input is found as the controlling one.
    let mut command = Command::new("setsid");
    let script = "exec \"$0\" top --admin \"$1\" < /dev/null";
    command.args(["--ctty", "sh", "-c", script, env!("CARGO_BIN_EXE_hostler"), admin]);
    spawn_in("xterm-256color", command)
}

fn spawn_in(kind: &str, mut command: Command) -> (Child, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let name = name.to_str().unwrap();
    let sized = Command::new("stty").args(["-F", name, "rows", "24", "cols", "80"]).status().unwrap();
    assert!(sized.success());
    let slave = File::options().read(true).write(true).open(name).unwrap();
    let side = || Stdio::from(slave.try_clone().unwrap());
    command.env_remove("NO_COLOR").env("TERM", kind);
    let top = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
    (top, master)
}

#[tokio::test]
async fn top_shows_the_status_in_a_terminal_until_q() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.get("/").await.assert_ok("ok");
    let mut terminal = Terminal::open(&site.admin().to_string());
    terminal.shows(&format!("pid {}", site.pid())).await;
    terminal.shows(app.address()).await;
    terminal.keyboard.write_all(b"?").unwrap();
    // One word: where the screen was blank before, the program sends no spaces.
    terminal.shows("figures").await;
    terminal.keyboard.write_all(b"q").unwrap();
    assert_eq!(terminal.ends().await, Some(0));
}

#[tokio::test]
async fn top_stays_while_hostler_is_away_and_puts_the_terminal_back_after_sigterm() {
    let site = in_front_of(&upstream().start().await, "").await;
    let mut terminal = Terminal::open(&site.admin().to_string());
    terminal.shows(&format!("pid {}", site.pid())).await;
    drop(site);
    terminal.shows("no Hostler answers on").await;
    let pid = Pid::from_child(&terminal.top);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(terminal.ends().await, Some(0));
}

#[tokio::test]
async fn top_puts_the_terminal_back_after_a_sigint_from_another_program() {
    let site = in_front_of(&upstream().start().await, "").await;
    let mut terminal = Terminal::open(&site.admin().to_string());
    terminal.shows(&format!("pid {}", site.pid())).await;
    kill_process(Pid::from_child(&terminal.top), Signal::INT).unwrap();
    assert_eq!(terminal.ends().await, Some(0));
}

#[tokio::test]
async fn top_puts_the_terminal_back_also_if_standard_input_is_another_file() {
    let site = in_front_of(&upstream().start().await, "").await;
    let mut terminal = Terminal::of(start_without_input(&site.admin().to_string()));
    terminal.shows(&format!("pid {}", site.pid())).await;
    kill_process(Pid::from_child(&terminal.top), Signal::INT).unwrap();
    assert_eq!(terminal.ends().await, Some(0));
}

#[tokio::test]
async fn top_tells_a_hostler_that_wants_its_token_and_another_program_from_one_that_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let complains = async |answer: &str, complaint: &str| {
        let other = upstream().answers(answer).start().await;
        let arguments = ["top", "--once", "--admin", other.address()];
        let once = run(env!("CARGO_BIN_EXE_hostler"), &arguments, folder.path()).await;
        once.assert_exit(1).assert_complains(complaint);
        assert!(!once.stderr.contains("no Hostler answers"), "{}", once.stderr);
    };
    let wants = "hostler top: this Hostler needs its admin token: set HOSTLER_ADMIN_TOKEN";
    complains("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", wants).await;
    let is_none = "answered, but not with a status; is it server.admin?";
    complains("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}", is_none).await;
}

#[tokio::test]
async fn top_ends_when_its_terminal_is_gone() {
    let site = in_front_of(&upstream().start().await, "").await;
    let admin = site.admin().to_string();
    // The kernel tells a process whose controlling terminal is gone.
    for (is_told, (mut top, master)) in
        [(false, start(&admin)), (true, start(&admin)), (true, start_without_input(&admin))]
    {
        let (mut terminal, mut shown, mut buffer) = (File::from(master), String::new(), [0; 4096]);
        while !shown.contains(&format!("pid {}", site.pid())) {
            let read = terminal.read(&mut buffer).unwrap();
            shown.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        if is_told {
            kill_process(Pid::from_child(&top), Signal::HUP).unwrap();
        }
        drop(terminal);
        let status = eventually("top ends", async || top.try_wait().unwrap()).await;
        // After a signal it may also end in the usual way.
        assert!(is_told || !status.success(), "{status}");
    }
}

#[tokio::test]
async fn top_without_a_terminal_prints_one_snapshot_or_says_why_not() {
    let site = in_front_of(&upstream().start().await, "").await;
    let refused = site.command(&["top"]).await;
    refused.assert_exit(2);
    assert!(refused.stderr.contains("hostler top --once"), "{}", refused.stderr);
    let once = site.command(&["top", "--once"]).await;
    once.assert_exit(0);
    assert!(once.stdout.contains("pool") && once.stdout.contains("app"), "{}", once.stdout);
    assert!(!once.stdout.contains('\u{1b}'), "{}", once.stdout);
}

#[tokio::test]
async fn top_sends_no_control_sequences_to_a_dumb_terminal() {
    let site = in_front_of(&upstream().start().await, "").await;
    let (mut top, master) = start_in("dumb", &site.admin().to_string());
    let status = eventually("top ends", async || top.try_wait().unwrap()).await;
    assert_eq!(status.code(), Some(2));
    let (mut terminal, mut buffer) = (File::from(master), [0; 4096]);
    let read = terminal.read(&mut buffer).unwrap();
    let shown = String::from_utf8_lossy(&buffer[..read]);
    assert!(shown.contains("hostler top --once") && !shown.contains('\u{1b}'), "{shown}");
}

#[tokio::test]
async fn a_failed_reload_raises_advice_in_the_status() {
    let site = in_front_of(&upstream().start().await, "").await;
    assert_eq!(site.status().await["advice"].as_array().map(Vec::len), Some(0));
    site.rewrite("[server]\nheader_timout = '1s'\n");
    site.command(&["reload"]).await;
    let advice =
        eventually("advice", async || site.status().await["advice"].as_array()?.first().cloned()).await;
    assert_eq!((&advice["id"], &advice["severity"]), (&"reload_failed".into(), &"warning".into()));
    let shown = site.command(&["status"]).await;
    assert!(shown.stdout.contains("warning: the last reload was not applied"), "{}", shown.stdout);
}
