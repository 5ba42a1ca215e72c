//! `hostler start` and `hostler run`: load, then hand over to the server. Knows no socket.

use std::process::ExitCode;

use crate::config::{self, Invocation};
use crate::server;

/// Runs until told to stop. Exits with 0 then, with 1 if it could not start, with 2 if the configuration is wrong.
pub fn start(invocation: &Invocation) -> ExitCode {
    let config = match config::load(invocation) {
        Ok(config) => config,
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::from(2);
        }
    };
    for warning in &config.warnings {
        eprintln!("warning: {warning}");
    }
    match server::run(&config, &invocation.surroundings.environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hostler: {error}");
            ExitCode::FAILURE
        }
    }
}
