//! Helpers for the tests with real Node processes: `test_pool("app source").count(2).start().await`, then send requests,
//! kill and check.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hostler_dispatch::{Claim, MemberId, Pool, PoolSettings};
use hostler_worker::{
    GuardCommand, LogEntry, Probe, Probing, Slots, Spares, Supervisor, SupervisorContext,
    SupervisorContextSettings, WorkerAddress, WorkerRecord, WorkerSettings, WorkerSnapshot, WorkerState,
};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

/// Under the load of the whole test run, a Node process may take seconds to boot.
pub const TIME_LIMIT: Duration = Duration::from_secs(120);

/// A plain app on a hard-coded port that answers with its process id.
pub const PLAIN: &str = "require('http').createServer((req, res) => res.end(`${process.pid}`)).listen(3000);";

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().with_file_name("examples").join(name);
    assert!(path.exists(), "run: cargo build -p hostler-worker --examples");
    path
}

/// Workers with an app in its own directory, not started yet.
pub struct Plan {
    pub settings: WorkerSettings,
    directory: TempDir,
}

pub fn test_pool(app: &str) -> Plan {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("app.js"), app).unwrap();
    let settings = WorkerSettings {
        command: vec!["node".into(), "app.js".into()],
        cwd: directory.path().to_owned(),
        env: std::env::vars().collect(),
        count: 1,
        spares: Spares::Fixed(0),
        boot_cpu: 1.0,
        slots: Slots::Fixed(1),
        start_timeout: TIME_LIMIT,
        stop_timeout: TIME_LIMIT,
        hang_timeout: Duration::from_secs(60),
        ..WorkerSettings::default()
    };
    Plan { settings, directory }
}

impl Plan {
    pub fn with(mut self, change: impl FnOnce(&mut WorkerSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    pub fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.directory.path().join(name), text).unwrap();
        self
    }

    pub fn command<const N: usize>(self, command: [&str; N]) -> Self {
        self.with(|settings| settings.command = command.map(Into::into).into())
    }

    pub fn start(self) -> TestPool {
        self.start_in(&std::env::temp_dir())
    }

    pub fn start_in(self, parent: &Path) -> TestPool {
        let (context, records) = context_in(parent, None);
        self.start_on(context, records)
    }

    /// Starts it in a context that it may share with other pools.
    pub fn start_on(self, context: SupervisorContext, records: Records) -> TestPool {
        let runtime_directory = context.directory();
        let pool = Pool::new("web", PoolSettings::default());
        let workers = Supervisor::start(
            self.settings.clone(),
            pool.clone(),
            |address, _| address,
            Arc::new(Get),
            context,
        );
        TestPool {
            workers,
            pool,
            records,
            runtime_directory,
            directory: self.directory,
            settings: self.settings,
        }
    }

    pub async fn started(self) -> TestPool {
        let test_pool = self.start();
        test_pool.is_ready().await;
        test_pool
    }
}

pub type Records = Arc<Mutex<Vec<WorkerRecord>>>;

/// A context whose pools have so many bytes of memory for their workers, and its log.
pub fn context_in(parent: &Path, worker_memory: Option<u64>) -> (SupervisorContext, Records) {
    let preload = repository().join("packages/worker/preload.cjs");
    let records = Records::default();
    let sink = Arc::clone(&records);
    let context = SupervisorContext::new(SupervisorContextSettings {
        parents: vec![parent.to_owned()],
        preload: std::fs::read_to_string(preload).unwrap().into(),
        guard: GuardCommand { program: example("guard"), args: vec![] },
        log: Arc::new(move |record| sink.lock().unwrap().push(record)),
        cores: 2,
        open_files: None,
        worker_memory,
        workers_before: Default::default(),
    })
    .unwrap();
    (context, records)
}

/// A running pool of workers.
pub struct TestPool {
    pub workers: Supervisor,
    pub pool: Pool<WorkerAddress>,
    pub runtime_directory: PathBuf,
    records: Records,
    directory: TempDir,
    pub settings: WorkerSettings,
}

impl TestPool {
    pub async fn is_ready(&self) {
        let ready = timeout(TIME_LIMIT, self.workers.all_ready()).await;
        assert_eq!(ready, Ok(true), "not ready; log:\n{}", self.log());
    }

    /// The answer of the next worker in turn, over its own socket.
    pub async fn get(&self, path: &str) -> String {
        let lease = timeout(TIME_LIMIT, self.pool.acquire(Claim::default()))
            .await
            .expect("a free slot in time")
            .unwrap();
        let (status, body) = get(&lease, path).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Sends a request without waiting for the answer. The slot comes back when the worker hangs up.
    pub async fn ask(&self, path: &'static str) -> MemberId {
        let lease = timeout(TIME_LIMIT, self.pool.acquire(Claim::default()))
            .await
            .expect("a free slot in time")
            .unwrap();
        let member = lease.member();
        tokio::spawn(async move { get(&lease, path).await });
        member
    }

    /// Writes a file for the next boot.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    /// Starts clients that send one request after another without pause, and a task that counts the ready workers.
    pub fn under_load(&self, clients: usize) -> Load {
        let (end, ended) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for _ in 0..clients {
            let (pool, ended) = (self.pool.clone(), ended.clone());
            tasks.spawn(async move {
                let mut answers = Vec::new();
                while !*ended.borrow() {
                    let lease = pool.acquire(Claim::default()).await.expect("never refused");
                    let (status, body) = get(&lease, "/").await.expect("every request is answered");
                    assert_eq!(status, 200);
                    answers.push(body);
                }
                answers
            });
        }
        let pool = self.pool.clone();
        let fewest = tokio::spawn(async move {
            let mut fewest = usize::MAX;
            while !*ended.borrow() {
                fewest =
                    fewest.min(pool.snapshot().members.iter().filter(|member| !member.figures.left).count());
                sleep(Duration::from_millis(1)).await;
            }
            fewest
        });
        Load { end, tasks, fewest }
    }

    pub fn worker(&self) -> WorkerSnapshot {
        self.workers.snapshot().remove(0)
    }

    /// The log so far, as an operator reads it.
    pub fn log(&self) -> String {
        let records = self.records.lock().unwrap();
        let lines = records.iter().map(|WorkerRecord { pool, worker, entry }| match entry {
            LogEntry::Output { stream, line, .. } => format!("{pool} {worker} {stream:?}: {line}"),
            LogEntry::Event(event) => format!("{pool} {worker}: {event}"),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    pub fn assert_logged(&self, text: &str) {
        assert!(self.log().contains(text), "no {text:?} in the log:\n{}", self.log());
    }

    pub async fn stop(&self) {
        timeout(TIME_LIMIT, self.workers.stop()).await.expect("stopped in time");
        let is_stopped =
            |worker: &WorkerSnapshot| worker.state == WorkerState::Stopped && worker.pid.is_none();
        assert!(self.workers.snapshot().iter().all(is_stopped));
        // Leases that the test itself holds.
        let pool = self.pool.snapshot();
        assert_eq!(pool.slots, pool.in_use);
    }
}

/// Clients that send requests without pause.
pub struct Load {
    end: watch::Sender<bool>,
    tasks: JoinSet<Vec<String>>,
    fewest: JoinHandle<usize>,
}

impl Load {
    /// All answers, and the lowest number of ready workers. Panics if a request failed.
    pub async fn end(mut self) -> (Vec<String>, usize) {
        self.end.send(true).unwrap();
        let mut all = Vec::new();
        while let Some(answers) = self.tasks.join_next().await {
            all.extend(answers.unwrap());
        }
        (all, self.fewest.await.unwrap())
    }
}

/// Polls until `is_so` returns true. Panics after the time limit.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let end = Instant::now() + TIME_LIMIT;
    async move {
        while !is_so() {
            assert!(Instant::now() < end, "never: {what}");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Whether the process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with(['Z', 'X']))
}

pub fn children_of(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A GET without an HTTP library, enough for answers that end with the connection.
struct Get;

impl Probe for Get {
    fn get(&self, address: &WorkerAddress, path: &str, limit: Duration) -> Probing {
        let (address, path) = (address.clone(), path.to_owned());
        Box::pin(async move {
            let answer = timeout(limit, get(&address, &path)).await;
            answer.map_err(|_| "no answer".to_owned())?.map(|(status, _)| status)
        })
    }
}

pub async fn get(address: &WorkerAddress, path: &str) -> Result<(u16, String), String> {
    let answer = match address {
        WorkerAddress::Unix(socket) => exchange(UnixStream::connect(socket).await, path).await,
        WorkerAddress::Tcp(address) => exchange(TcpStream::connect(address).await, path).await,
    };
    let answer = answer.map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("no head: {answer:?}"))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(|| format!("no status: {head:?}"))?, body.to_owned()))
}

async fn exchange(
    stream: std::io::Result<impl AsyncRead + AsyncWrite + Unpin>,
    path: &str,
) -> std::io::Result<String> {
    let mut stream = stream?;
    // HTTP/1.0, so that the body has no chunks.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: test\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
