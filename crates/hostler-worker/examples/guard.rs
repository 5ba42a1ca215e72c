//! The guard process for programs that have no binary of their own to re-execute, such as this crate's tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    hostler_worker::guard::run()
}
