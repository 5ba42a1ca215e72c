//! Runs programs to their end and reads their output. Knows nothing of what they do.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::eventually::within;

/// The result of a program.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit code. `None` if a signal ended it.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

impl Output {
    /// Asserts the exit code.
    #[track_caller]
    pub fn assert_exit(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Asserts that the standard error contains this text.
    #[track_caller]
    pub fn assert_complains(&self, part: &str) -> &Self {
        assert!(self.stderr.contains(part), "expected {part:?} in {self:#?}");
        self
    }
}

/// Runs a program in a folder to its end.
pub async fn run(program: &str, arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    outcome((program, arguments), command.spawn().unwrap()).await
}

/// Waits for the end of a program that was started with pipes.
pub(crate) async fn outcome(what: impl std::fmt::Debug, child: Child) -> Output {
    let running = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = within(what, running).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}
