//! `hostler status`: asks a running Hostler for its status. Does not know what the response means.

use std::process::ExitCode;

use super::StatusArgs;
use super::admin::Admin;
use crate::admin::table;

/// Prints the status and exits with 0. Exits with 1 if no Hostler answers, and with 2 if the configuration is wrong.
pub fn status(args: &StatusArgs) -> ExitCode {
    let admin = match Admin::find("status", &args.ask) {
        Ok(admin) => admin,
        Err(code) => return code,
    };
    admin.show("/status", "a status", args.json, table)
}
