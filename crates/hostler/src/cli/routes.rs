//! `hostler routes`: asks a running Hostler for its routes. Does not know what the response means.

use std::process::ExitCode;

use super::RoutesArgs;
use super::admin::{Admin, AdminQuestion};
use crate::admin::as_text;

const TABLE: AdminQuestion =
    AdminQuestion { path: "/table", what: "a table of routes", list: "routes", as_text };

/// Prints the routes and exits with 0. Exits with 1 if no Hostler answers, and with 2 if the configuration is wrong.
pub fn routes(args: &RoutesArgs) -> ExitCode {
    let admin = match Admin::find("routes", &args.ask) {
        Ok(admin) => admin,
        Err(code) => return code,
    };
    admin.show(&TABLE, args.json)
}
