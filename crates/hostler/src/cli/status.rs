//! `hostler status`: asks a running Hostler through its admin listener. Knows not what the answer means.

use std::process::ExitCode;

use super::StatusArgs;
use super::admin::Admin;
use crate::admin::table;

/// Prints the status and exits with 0; with 1 if nobody answers, with 2 if the configuration is wrong.
pub fn status(args: &StatusArgs) -> ExitCode {
    let admin = match Admin::find("status", &args.ask) {
        Ok(admin) => admin,
        Err(code) => return code,
    };
    admin.show("/status", "a status", args.json, table)
}
