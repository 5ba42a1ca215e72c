//! `hostler start` and `hostler run`: load, then hand over to the server. Knows no socket.

use std::process::ExitCode;

use hostler_config::{self as config, Invocation};
use hostler_engine::journal::Complaints;

use crate::server::{self, GivenListeners, Predecessor};

/// Runs until told to stop. Exits with 0 then, with 1 if it could not start, with 2 if the configuration is wrong.
pub fn start(mut invocation: Invocation) -> ExitCode {
    // Nobody may have to wait for the reader of our standard error, a predecessor least of all.
    let complaints = Complaints::open();
    complaints.take_panics();
    let given = match GivenListeners::take(&mut invocation.surroundings.environment) {
        Ok(given) => given,
        Err(error) => {
            complaints.say(format_args!("hostler: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let predecessor = match Predecessor::find(&mut invocation.surroundings) {
        Ok(predecessor) => predecessor,
        Err(error) => {
            complaints.say(format_args!("hostler: no talking to the predecessor: {error}"));
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
            complaints.say(&errors);
            refuse(&errors);
            return ExitCode::from(2);
        }
    };
    for warning in config.warnings.iter().chain(&given.warning) {
        complaints.say(format_args!("warning: {warning}"));
    }
    match server::run(config, invocation, given, predecessor.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complaints.say(format_args!("hostler: {error}"));
            refuse(&error);
            ExitCode::FAILURE
        }
    }
}
