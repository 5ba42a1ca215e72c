//! What happens to the workers when Hostler dies without a word.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::support::*;

#[tokio::test]
async fn if_hostler_is_killed_even_a_worker_in_an_infinite_loop_and_its_children_end() {
    let directory = tempfile::tempdir().unwrap();
    let app = "const child = require('child_process').spawn('sleep', ['600']);
        require('http').createServer(() => {}).listen(3000, () => {
            console.log('pids', process.pid, child.pid);
            setTimeout(() => { for (;;); }, 100);
        });";
    std::fs::write(directory.path().join("app.js"), app).unwrap();
    let mut hostler = Command::new(example("supervise"))
        .args(["node", "app.js"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(hostler.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut says = |word: &str| {
        let mut lines = output.by_ref();
        lines.find_map(|line| line.split_once(word).map(|(_, rest)| rest.trim().to_owned())).unwrap()
    };
    let runtime_directory = std::path::PathBuf::from(says("directory "));
    let pids: Vec<u32> = says("pids ").split(' ').map(|pid| pid.parse().unwrap()).collect();
    says("address ");
    assert!(runtime_directory.exists() && pids.iter().all(|&pid| is_alive(pid)));

    hostler.kill().unwrap();
    hostler.wait().unwrap();
    eventually("its workers are gone", || !pids.iter().any(|&pid| is_alive(pid))).await;
    eventually("its directory is gone", || !runtime_directory.exists()).await;
}
