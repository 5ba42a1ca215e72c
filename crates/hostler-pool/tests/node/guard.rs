//! What happens to the workers when Hostler dies without a word.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::support::*;

const STUCK: &str = "const child = require('child_process').spawn('sleep', ['600']);
    process.on('SIGTERM', () => {});
    require('http').createServer(() => {}).listen(3000, () => {
        console.log('pids', process.pid, child.pid);
        setTimeout(() => { for (;;); }, 100);
    });";

#[tokio::test]
async fn if_hostler_is_killed_even_a_worker_in_an_infinite_loop_and_its_children_end() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("app.js"), STUCK).unwrap();
    let mut hostler = Command::new(example("supervise"))
        .args(["node", "app.js"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BTreeMap::new();
    for line in BufReader::new(hostler.stdout.take().unwrap()).lines().map_while(Result::ok) {
        for word in ["directory ", "pids ", "address "] {
            said.extend(line.split_once(word).map(|(_, rest)| (word, rest.to_owned())));
        }
        if said.len() == 3 {
            break;
        }
    }
    let runtime_directory = Path::new(&said["directory "]);
    let pids: Vec<u32> = said["pids "].split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(runtime_directory.exists() && pids.iter().all(|&pid| is_alive(pid)));

    hostler.kill().unwrap();
    hostler.wait().unwrap();
    eventually("its workers are gone", || !pids.iter().any(|&pid| is_alive(pid))).await;
    eventually("its directory is gone", || !runtime_directory.exists()).await;
}
