//! `hostler schema`: prints the JSON schema of the configuration file, for editors.

use std::process::ExitCode;

use hostler_config::reference;

use super::print;

/// Prints the schema and exits with 0.
pub fn schema() -> ExitCode {
    print(&reference::json_schema())
}
