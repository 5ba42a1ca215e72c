//! Tests of the gate with files as the kernel writes them, and a clock that stands still.

use std::fs;

use tempfile::TempDir;
use tokio::time::advance;

use super::*;

/// A machine with two cores.
struct Machine {
    folder: TempDir,
    gate: BootGate,
    /// Ticks of 10 ms that both cores together have worked and been idle.
    ticks: (u64, u64),
}

impl Machine {
    fn new() -> Self {
        Self::limited(None)
    }

    /// With a limit in the control group above Hostler's own.
    fn limited(limit: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("proc/self")).unwrap();
        fs::write(path("proc/self/cgroup"), "0::/pod/hostler\n").unwrap();
        fs::create_dir_all(path("cgroups/pod/hostler")).unwrap();
        fs::write(path("cgroups/pod/hostler/cpu.max"), "max 100000\n").unwrap();
        if let Some(limit) = limit {
            fs::write(path("cgroups/pod/cpu.max"), limit).unwrap();
            fs::write(path("cgroups/pod/cpu.stat"), "usage_usec 0\nuser_usec 0\n").unwrap();
        }
        let gate = BootGate::new(2, &path("proc"), &path("cgroups"));
        let machine = Self { folder, gate, ticks: (1000, 1000) };
        machine.write_stat(1);
        machine
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn write_stat(&self, running: usize) {
        let (busy, idle) = self.ticks;
        let usable = rustix::thread::sched_getaffinity(None).unwrap();
        let core = (0..1024).find(|&core| usable.is_set(core)).unwrap();
        // The first line is the sum of all lines. A core that Hostler may not use does not count.
        let text = format!(
            "cpu  1 0 0 1 0 0 0 0 0 0\ncpu{core} {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu99999 0 0 0 {} 0 0\nprocs_running {running}\n",
            idle * 9
        );
        self.write("proc/stat", &text);
    }

    /// A tenth of a second in which so many cores work.
    async fn works(&mut self, cores: f64) {
        advance(Duration::from_millis(100)).await;
        let busy = (cores * 10.0) as u64;
        self.ticks = (self.ticks.0 + busy, self.ticks.1 + 20 - busy);
        self.write_stat(1);
    }

    /// The main thread of this process has run, and has waited for a core, for so long. It has these children.
    fn process(&self, pid: u32, cpu: Duration, delay: Duration, children: &str) {
        let folder = format!("proc/{pid}/task/{pid}");
        fs::create_dir_all(self.folder.path().join(&folder)).unwrap();
        self.write(&format!("{folder}/children"), children);
        self.write(&format!("proc/{pid}/schedstat"), &format!("{} {} 7\n", cpu.as_nanos(), delay.as_nanos()));
    }

    fn begins(&self, kind: Turns) -> Option<BootTurn> {
        let number = self.gate.0.boots().begin(kind, Instant::now())?;
        Some(BootTurn { gate: Arc::clone(&self.gate.0), number })
    }

    fn starts(&self) -> Option<BootTurn> {
        self.begins(Turns::Starts)
    }
}

#[tokio::test(start_paused = true)]
async fn a_boot_begins_only_while_most_of_a_core_is_free() {
    let mut machine = Machine::new();
    let first = machine.starts().unwrap();
    let second = machine.starts().expect("two cores are free");
    assert!(machine.starts().is_none(), "both are given away");
    machine.works(1.2).await;
    assert!(machine.starts().is_none(), "a core is free, but there are no more boots than cores");
    drop(first);
    let third = machine.starts().expect("0.8 cores are free");
    drop(third);
    machine.works(1.4).await;
    assert!(machine.starts().is_none(), "0.6 cores are free");
    machine.works(2.0).await;
    assert!(machine.starts().is_none());
    drop(second);
    let first = machine.starts().expect("no worker boots, so the next one does, on a busy machine too");
    assert!(machine.starts().is_none());
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn before_anything_is_measured_the_threads_that_run_now_count() {
    // The thread that asks is one of them.
    for (running, room) in [(1, true), (2, false), (40, false)] {
        let machine = Machine::new();
        machine.write_stat(running);
        let first = machine.starts().unwrap();
        assert_eq!(machine.starts().is_some(), room, "{running} run");
        drop(first);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_ready_does_not_wait_for_the_first_boots_of_others() {
    let mut machine = Machine::new();
    let start = machine.starts().unwrap();
    machine.works(2.0).await;
    assert!(machine.starts().is_none());
    let back = machine.begins(Turns::Returns).expect("no other worker of its kind boots");
    assert!(machine.begins(Turns::Returns).is_none());
    drop((start, back));
}

#[tokio::test(start_paused = true)]
async fn a_boot_that_only_waits_does_not_hold_up_the_next_one() {
    let mut machine = Machine::new();
    let (zero, tenth) = (Duration::ZERO, Duration::from_millis(100));
    let first = machine.starts().unwrap();
    first.is_of(7);
    machine.process(7, tenth, zero, "8 9 ");
    machine.process(8, zero, zero, "");
    for computes in [true, false] {
        machine.works(2.0).await;
        assert!(machine.starts().is_none(), "it is not known yet, or a child of it computes");
        let cpu = if computes { tenth / 2 } else { zero };
        machine.process(8, cpu, zero, "");
    }
    // It runs little because it gets no core: it does not wait for anything else.
    machine.process(8, tenth / 2, tenth, "");
    machine.works(2.0).await;
    assert!(machine.starts().is_none());
    machine.works(2.0).await;
    let second = machine.starts().expect("the first boot waits");
    second.is_of(10);
    assert!(machine.starts().is_none(), "the second does not");
    machine.process(7, tenth * 2, zero, "8 9 ");
    drop(second);
    machine.works(2.0).await;
    assert!(machine.starts().is_none(), "the first computes again");
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_control_group_counts_on_an_idle_machine() {
    let mut machine = Machine::limited(Some("150000 100000\n"));
    let first = machine.starts().unwrap();
    // It has used 0.1 s in 0.1 s: one core of 1.5.
    machine.write("cgroups/pod/cpu.stat", "usage_usec 100000\n");
    machine.works(1.0).await;
    assert!(machine.starts().is_none());
    machine.write("cgroups/pod/cpu.stat", "usage_usec 150000\n");
    machine.works(1.0).await;
    let second = machine.starts().expect("a whole core of the limit is free");
    drop((first, second));
}

#[tokio::test(start_paused = true)]
async fn without_files_of_the_kernel_there_are_as_many_boots_as_cores() {
    let empty = tempfile::tempdir().unwrap();
    let gate = BootGate::new(2, empty.path(), empty.path());
    let turns = [gate.turn(Turns::Starts).await, gate.turn(Turns::Starts).await];
    let mut third = asks(&gate);
    advance(Duration::from_secs(5)).await;
    assert!(!third.is_finished());
    drop(turns);
    (&mut third).await.unwrap();
}

fn asks(gate: &BootGate) -> tokio::task::JoinHandle<()> {
    let gate = gate.clone();
    tokio::spawn(async move { drop(gate.turn(Turns::Starts).await) })
}

#[tokio::test(start_paused = true)]
async fn boots_begin_in_the_order_in_which_they_were_asked_for() {
    let machine = Machine::new();
    let first = machine.gate.turn(Turns::Starts).await;
    machine.write_stat(40);
    let (sender, mut began) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..5 {
        let (gate, sender) = (machine.gate.clone(), sender.clone());
        tokio::spawn(async move {
            let turn = gate.turn(Turns::Starts).await;
            sender.send(number).unwrap();
            tokio::task::yield_now().await;
            drop(turn);
        });
        tokio::task::yield_now().await;
    }
    drop(first);
    for number in 0..5 {
        assert_eq!(began.recv().await, Some(number));
    }
}
