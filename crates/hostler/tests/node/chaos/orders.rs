//! Operators' commands in the chaos test: restarts, reloads, pauses, upgrades. Each must succeed under all other faults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hostler_testkit::within;
use tokio::process::Command;
use tokio::time::interval;

use super::load::Users;
use super::shape::Shape;
use crate::proc;

/// A kind of command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Restart(&'static str),
    /// With a changed file.
    Reload,
    /// With a wrong file: refused, and nothing changes.
    BadReload,
    /// Paused, and resumed soon after.
    Pause(&'static str),
    Upgrade,
}

pub struct Operator {
    users: Arc<Users>,
    file: PathBuf,
    shape: Mutex<Shape>,
}

impl Operator {
    pub fn new(users: Arc<Users>, file: PathBuf) -> Self {
        let shape = Shape::default();
        std::fs::write(&file, shape.text()).unwrap();
        Self { users, file, shape: Mutex::new(shape) }
    }

    pub fn shape(&self) -> Shape {
        *self.shape.lock().unwrap()
    }

    /// Gives a command and waits until it has been carried out.
    pub async fn give(&self, order: Order, chance: &mut fastrand::Rng) {
        match order {
            Order::Restart(pool) => self.succeeds(&["restart", pool]).await,
            Order::Reload => {
                let shape = self.shape().changed(chance);
                *self.shape.lock().unwrap() = shape;
                std::fs::write(&self.file, shape.text()).unwrap();
                self.succeeds(&["reload"]).await;
            }
            Order::BadReload => {
                std::fs::write(&self.file, self.shape().text().replace("workers", "wokers")).unwrap();
                let outcome = self.command(&["reload"]).await;
                assert!(outcome.is_err_and(|said| said.contains("wokers")), "a wrong file is refused");
                std::fs::write(&self.file, self.shape().text()).unwrap();
            }
            Order::Pause(pool) => {
                self.succeeds(&["pause", pool]).await;
                let mut pauses = interval(Duration::from_millis(100));
                for _ in 0..chance.u8(1..8) {
                    pauses.tick().await;
                }
                self.succeeds(&["resume", pool]).await;
            }
            Order::Upgrade => self.upgrade().await,
        }
    }

    async fn upgrade(&self) {
        let old = self.users.pid().await;
        self.users.upgrade_begins();
        self.succeeds(&["upgrade"]).await;
        within("the predecessor's end", end_of(old)).await;
        self.users.upgrade_ends();
        assert_ne!(self.users.pid().await, old);
    }

    /// A request that ends a new worker does not end a restart.
    async fn succeeds(&self, command: &[&str]) {
        if let Err(said) = self.command(command).await {
            panic!("hostler {}: {said}", command.join(" "));
        }
    }

    async fn command(&self, command: &[&str]) -> Result<(), String> {
        hostler(self.users.admin, command).await
    }
}

/// A command of Hostler as a command line.
pub async fn hostler(admin: SocketAddr, command: &[&str]) -> Result<(), String> {
    let mut hostler = Command::new(env!("CARGO_BIN_EXE_hostler"));
    hostler.args(command).arg("--admin").arg(admin.to_string());
    // It takes as long as workers need to boot on a busy machine, so the test waits longer than its clients do.
    let output = hostler.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}\n{}{}", output.status, said(&output.stdout), said(&output.stderr))),
    }
}

async fn end_of(pid: u32) {
    let mut looks = interval(Duration::from_millis(20));
    while proc::is_alive(pid) {
        looks.tick().await;
    }
}
