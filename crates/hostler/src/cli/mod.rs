//! The command line: its arguments, and the commands that need no server. Knows the configuration, and no running parts.

mod admin;
mod admin_args;
mod advice;
mod args;
mod check;
mod development;
mod help_files;
mod init;
mod inspect;
mod key_flags;
mod metrics;
mod order;
mod pack;
pub mod reference;
mod refusals;
mod routes;
mod schema;
mod start;
mod status;
mod top;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use hostler_engine::journal::{Allowed, printable_lines};

pub use admin_args::{
    Ask, DrainArgs, HeapArgs, PauseArgs, ProfileArgs, PurgeArgs, Restart, Resume, RoutesArgs, StatusArgs,
    TopArgs, UndrainArgs,
};
pub use args::{Args, Command, FileArgs, Pack, Run};
pub use check::{check, summary};
pub use help_files::{completions, man_pages};
pub use init::{Init, init};
pub use inspect::{heap, profile};
pub use order::{drain, pause, purge, reload, restart, resume, undrain, upgrade};
pub use pack::pack;
pub use routes::routes;
pub use schema::schema;
pub use start::{run, start};
pub use status::status;
pub use top::top;

/// Prints the output of a command. Unlike `print!` it does not panic if the reader closes the pipe (`| head`), which is no failure. The exit code is 1 if the
/// output could not be written, for example to a full disk.
#[must_use = "a command whose output is lost has failed"]
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("hostler: standard output cannot be written: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints a line on standard error. Unlike `eprintln!` it does not panic if the reader closes the pipe (`2>&1 | head`): the exit code counts.
/// The line may contain what an app has printed, such as the error of a worker that did not boot.
fn complain(line: impl Display) {
    let line = printable_lines(&line.to_string(), Allowed::on_standard_error());
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests;
