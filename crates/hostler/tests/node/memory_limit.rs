//! Hostler in a control group with a limit of memory, as in a container.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use hostler_testkit::say_skipped;

use super::proc;
use super::site::source;

const LIMIT: &str = "314572800"; // 300 MiB

const APP: &str = "const hoard = [];
    require('http').createServer((request, response) => {
      if (request.url === '/eat') for (;;) hoard.push(Buffer.alloc(16 << 20, 1));
      response.end();
    }).listen(3000);";

/// A control group of this test. Dropping it removes it, if it is empty.
struct Group(PathBuf);

impl Group {
    /// In version 1 or 2. An error: this system does not allow it.
    fn make() -> io::Result<Self> {
        let top = Path::new("/sys/fs/cgroup");
        let name = format!("hostler-test-{}", std::process::id());
        let is_old = top.join("memory/memory.limit_in_bytes").exists();
        let group = Self(if is_old { top.join("memory").join(name) } else { top.join(name) });
        fs::create_dir(&group.0)?;
        let (limit, swap) = match is_old {
            true => ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", LIMIT)),
            false => ("memory.max", ("memory.swap.max", "0")),
        };
        fs::write(group.0.join(limit), LIMIT)?;
        // Without swap there is no such file.
        let _ = fs::write(group.0.join(swap.0), swap.1);
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[tokio::test]
async fn a_worker_that_the_kernel_kills_for_want_of_memory_is_told_from_one_that_an_operator_kills() {
    let group = match Group::make() {
        Ok(group) => group,
        Err(error) => {
            return say_skipped(&format!("this system lets the test make no control group ({error})"));
        }
    };
    let plan = source(APP);
    let inside = plan.folder().join("inside");
    let (procs, hostler) = (group.0.join("cgroup.procs"), env!("CARGO_BIN_EXE_hostler"));
    let script = format!("#!/bin/sh\necho $$ > {} && exec {hostler} \"$@\"\n", procs.display());
    fs::write(&inside, script).unwrap();
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).unwrap();
    let site = plan.called(&inside).started().await;
    assert_eq!(site.status().await["machine"]["memory_limit"], 314_572_800);
    let first = site.pid_of(1).await;
    site.get("/eat").await;
    let died = site.logged(&format!("app/1: died (pid {first}): ")).await;
    let expected = "signal 9 (SIGKILL): the kernel has killed it because no memory was left (limit 300 MiB)";
    assert!(died.starts_with(expected), "{died}");
    site.is_ready().await;
    let second = site.pid_of(1).await;
    proc::kill(second);
    let died = site.logged(&format!("app/1: died (pid {second}): ")).await;
    assert!(died.starts_with("signal 9 (SIGKILL); "), "{died}");
    site.stop().await;
}
