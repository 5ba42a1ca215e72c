//! Descriptors that Hostler was started with: neither its guard nor its workers get them.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use crate::proc::children_of;
use crate::site::source;

const APP: &str = "require('http').createServer((_, answer) => {
    const ours = Object.keys(process.env).filter((name) => name.startsWith('LISTEN_'));
    answer.end(`variables: ${ours}`);
}).listen(3000);";

/// The open descriptors of a process, as the kernel shows them.
fn open_files(pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}

fn has(pid: u32, file: &Path) -> bool {
    open_files(pid).iter().any(|open| open == file)
}

#[tokio::test]
async fn inherited_descriptors_reach_neither_the_guard_nor_the_workers() {
    let plan = source(APP).workers(2);
    let lock = plan.folder().canonicalize().unwrap().join("lock");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let plan = plan.option(&format!("server.listen={address}")).given(socket, "hostler.socket");
    let site = plan.descriptor(7, File::create(&lock).unwrap()).started().await;

    assert!(has(site.pid(), &lock), "Hostler itself keeps it");
    // Two workers and the guard.
    let children = children_of(site.pid());
    assert_eq!(children.len(), 3, "{children:?}");
    let given = fs::read_link(format!("/proc/{}/fd/3", site.pid())).unwrap();
    let errors = fs::read_link(format!("/proc/{}/fd/2", site.pid())).unwrap();
    for child in children {
        for file in [&lock, &given, &errors] {
            assert!(!has(child, file), "{child} has {}: {:?}", file.display(), open_files(child));
        }
    }
    assert_eq!(site.address(), address);
    site.get("/").await.assert_ok("variables: ");
}
