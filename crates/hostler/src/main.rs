//! The table of contents: arguments, configuration, server, exit code.

use std::process::ExitCode;

use hostler::cli::{self, Args, Command};

fn main() -> ExitCode {
    match Args::of_process().command {
        Command::Check(args) => cli::check(&args),
        Command::Reference { folder } => match cli::reference::write(&folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}: {error}", folder.display());
                ExitCode::FAILURE
            }
        },
        Command::Run(_) | Command::Start(_) | Command::Status(_) | Command::Guard { .. } => ExitCode::FAILURE,
    }
}
