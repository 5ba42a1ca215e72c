//! `hostler status`: asks a running Hostler for its status. Does not know what the response means.

use std::process::ExitCode;

use super::StatusArgs;
use super::admin::{Admin, AdminQuestion};
use crate::admin::table;

pub(super) const STATUS: AdminQuestion =
    AdminQuestion { path: "/status", what: "a status", list: "pools", as_text: table };

/// Prints the status and exits with 0. Exits with 1 if no Hostler answers, and with 2 if the configuration is wrong.
pub fn status(args: &StatusArgs) -> ExitCode {
    let admin = match Admin::find("status", &args.ask) {
        Ok(admin) => admin,
        Err(code) => return code,
    };
    admin.show(&STATUS, args.json)
}
