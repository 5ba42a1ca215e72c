//! `hostler start` and `hostler run`: load the configuration and start the server. Knows no sockets.

use std::process::ExitCode;

use hostler_config::{self as config, Invocation, LoadContext};
use hostler_engine::journal::ErrorOutput;

use super::Run;
use crate::server::{self, Foundation, GivenListeners, Predecessor, RunOptions};

/// `hostler run`: a configuration without a file, and what helps to develop an app.
pub fn run(args: &Run, load_context: LoadContext) -> ExitCode {
    match args.development.options() {
        Ok(options) => start(args.invocation(load_context), options),
        Err(error) => {
            ErrorOutput::open().say(format_args!("hostler: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Runs until a stop, and exits with 0. Exits with 1 if the start failed, and with 2 if the configuration is wrong. With `run`, exits with
/// the app's code if the app was never ready.
pub fn start(mut invocation: Invocation, options: RunOptions) -> ExitCode {
    // A slow reader of standard error must not delay the start, or the old process during an upgrade.
    let complaints = ErrorOutput::open();
    complaints.take_panics();
    let given = match GivenListeners::take(&mut invocation.load_context.environment) {
        Ok(given) => given,
        Err(error) => {
            complaints.say(format_args!("hostler: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let predecessor = match Predecessor::find(&mut invocation.load_context) {
        Ok(predecessor) => predecessor,
        Err(error) => {
            complaints.say(format_args!("hostler: cannot communicate with the old process: {error}"));
            return ExitCode::FAILURE;
        }
    };
    // During an upgrade, the old process continues and logs the error, too.
    let refuse = |why: &dyn std::fmt::Display| {
        if let Some(predecessor) = &predecessor {
            predecessor.refuse(&why.to_string());
        }
    };
    let foundation = match Foundation::new() {
        Ok(foundation) => foundation,
        Err(error) => {
            complaints.say(format_args!("hostler: cannot start: {error}"));
            refuse(&error);
            return ExitCode::FAILURE;
        }
    };
    let config = match config::load_to_run(&invocation) {
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
    match server::run(foundation, config, invocation, options, given, predecessor.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complaints.say(format_args!("hostler: {error}"));
            refuse(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
