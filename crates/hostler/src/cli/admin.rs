//! Where a running Hostler is asked. Knows not what.

use std::net::SocketAddr;
use std::process::ExitCode;

use hostler_wire::Address;

use super::Ask;
use crate::config::{self, Surroundings};

/// The admin listener of a running Hostler, and how to complain about it.
pub(super) struct Admin {
    command: &'static str,
    address: SocketAddr,
}

impl Admin {
    /// Finds it; exit code 2 if the configuration is wrong.
    pub fn find(command: &'static str, ask: &Ask) -> Result<Self, ExitCode> {
        let server = config::load_server(&ask.invocation(Surroundings::of_process())).map_err(|errors| {
            eprintln!("{errors}");
            ExitCode::from(2)
        })?;
        server.admin.map(|address| Self { command, address }).ok_or_else(|| {
            eprintln!("hostler {command}: server.admin is \"off\"; name the address with --admin");
            ExitCode::from(2)
        })
    }

    pub fn address(&self) -> Address {
        Address::Tcp(self.address.ip().to_string(), self.address.port())
    }

    /// Asks, on a runtime of its own.
    pub fn ask<T>(&self, asking: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let answered = runtime.map_err(|error| error.to_string())?.block_on(asking);
        answered.map_err(|error| format!("no Hostler answers on {}: {error}", self.address))
    }

    pub fn nonsense(&self, what: &str, error: &dyn std::fmt::Display) -> String {
        format!("{} answered something else than {what}: {error}", self.address)
    }

    /// Says why not; exit code 1.
    pub fn failed(&self, why: &str) -> ExitCode {
        eprintln!("hostler {}: {why}", self.command);
        ExitCode::FAILURE
    }
}
