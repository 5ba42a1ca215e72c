//! Watches a booting worker for processes that listen on TCP without the preload: a script has replaced NODE_OPTIONS, or the program is
//! not Node. Knows no states of workers.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::health::accepting;
use super::news::{NewsSender, WorkerNews};
use super::port_owner::{TcpListen, listens_of};
use super::process_files::is_node;

/// How often the port that Hostler has set as PORT is tried. A try costs some microseconds.
const TRY: Duration = Duration::from_millis(50);
/// The first look at all ports of the worker, which costs some milliseconds. Most workers have listened before. The pause then doubles.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// About a port on all addresses.
pub(super) const EXPOSED: &str = " Other machines can reach it: let it listen on 127.0.0.1.";

/// What the watch needs to know about a worker.
pub(super) struct ForeignWatch {
    /// The process group.
    pub group: u32,
    /// The free port that Hostler has set as PORT. A process without the preload that listens there is the app.
    pub given: Option<SocketAddr>,
    /// What NODE_OPTIONS contains if it loads the preload.
    pub option: Arc<str>,
}

/// Reports each such port once, until the app is found or the task is dropped.
pub(super) async fn watch(watched: ForeignWatch, news_sender: NewsSender) {
    let (mut told, mut pause) = (HashSet::new(), FIRST_LOOK);
    let mut tried = watched.given;
    loop {
        let accepted = async {
            match tried {
                Some(port) => accepts(port).await,
                None => std::future::pending().await,
            }
        };
        match timeout(pause, accepted).await {
            // If it is not foreign, it has the preload and is not the app. Then there is nothing more to try.
            Ok(()) => tried = None,
            Err(_) => pause = LONGEST_PAUSE.min(pause * 2),
        }
        let (group, option) = (watched.group, Arc::clone(&watched.option));
        let found = spawn_blocking(move || foreign_processes(group, &option)).await.unwrap_or_default();
        let mut has_app = false;
        for (listen, foreign_process) in found {
            if told.insert(listen) {
                let is_given = watched.given.is_some_and(|given| given.port() == listen.port);
                let address = match watched.given {
                    Some(given) if is_given => Some(accepting(given).await.unwrap_or(given)),
                    _ => None,
                };
                let owner = address.map(|address| (listen.pid, address));
                news_sender
                    .send(WorkerNews::ForeignProcess {
                        text: foreign_process.told(listen, owner.is_some()),
                        owner,
                    })
                    .await;
                has_app |= is_given;
            }
        }
        if has_app {
            return;
        }
    }
}

async fn accepts(port: SocketAddr) {
    while accepting(port).await.is_none() {
        sleep(TRY).await;
    }
}

/// A process without the preload.
struct ForeignProcess {
    program: String,
    is_node: bool,
}

fn foreign_processes(group: u32, option: &str) -> Vec<(TcpListen, ForeignProcess)> {
    let with = |listen: TcpListen| Some((listen, foreign_process(listen.pid, option)?));
    listens_of(group).into_iter().filter_map(with).collect()
}

/// `None` for a process that has the preload, which reports its other ports itself, and for one that has ended.
fn foreign_process(pid: u32, option: &str) -> Option<ForeignProcess> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let is_node = is_node(&program);
    // The environment with which the process was started. What it has changed later is not there.
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|&byte| byte == 0);
    let has_option = variables.any(|variable| {
        variable
            .strip_prefix(b"NODE_OPTIONS=")
            .is_some_and(|value| memchr::memmem::find(value, option.as_bytes()).is_some())
    });
    let name = program.file_name().map(Path::new).unwrap_or(&program).display().to_string();
    (!(is_node && has_option)).then_some(ForeignProcess { program: name, is_node })
}

impl ForeignProcess {
    fn told(&self, listen: TcpListen, is_app: bool) -> String {
        let TcpListen { pid, port, is_open } = listen;
        let place = if is_open { "*" } else { "127.0.0.1" };
        let why = if self.is_node {
            "Hostler's NODE_OPTIONS are missing there: a script or program before it has replaced them. Keep them \
             (NODE_OPTIONS=\"$NODE_OPTIONS --your-option\"), or set bind = \"port\"."
        } else {
            "It is not Node. Set bind = \"port\"."
        };
        let use_of_it = match is_app {
            true => {
                "Until then Hostler sends requests to this port, because it is the PORT that Hostler has set."
            }
            false => "Hostler does not use this port.",
        };
        let name = &self.program;
        let exposed = if is_open { EXPOSED } else { "" };
        format!(
            "process {pid} ({name}) listens on {place}:{port} without Hostler. {why} {use_of_it}{exposed}"
        )
    }
}
