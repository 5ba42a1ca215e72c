//! `hostler start` and `hostler run`: load, then hand over to the server. Knows no socket.

use std::process::ExitCode;

use crate::config::{self, Invocation};
use crate::server::{self, Predecessor};

/// Runs until told to stop. Exits with 0 then, with 1 if it could not start, with 2 if the configuration is wrong.
pub fn start(mut invocation: Invocation) -> ExitCode {
    let predecessor = match Predecessor::find(&mut invocation.surroundings.environment) {
        Ok(predecessor) => predecessor,
        Err(error) => {
            eprintln!("hostler: no talking to the predecessor: {error}");
            return ExitCode::FAILURE;
        }
    };
    // What keeps us from taking over is for whoever goes on instead, too.
    let refuse = |why: &dyn std::fmt::Display| {
        if let Some(predecessor) = &predecessor {
            predecessor.refuse(&why.to_string());
        }
    };
    let config = match config::load(&invocation) {
        Ok(config) => config,
        Err(errors) => {
            eprintln!("{errors}");
            refuse(&errors);
            return ExitCode::from(2);
        }
    };
    for warning in &config.warnings {
        eprintln!("warning: {warning}");
    }
    match server::run(config, invocation, predecessor.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hostler: {error}");
            refuse(&error);
            ExitCode::FAILURE
        }
    }
}
