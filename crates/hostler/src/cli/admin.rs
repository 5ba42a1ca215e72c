//! The admin listener of a running Hostler, as a client. Does not know the commands.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use hostler_config::{self as config, Surroundings};
use hostler_engine::proxy::ask;
use hostler_wire::Address;
use serde_json::Value;

use super::{Ask, print};
use crate::admin::note;

/// The time limit of a question.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The admin listener of a running Hostler, for one command.
pub(super) struct Admin {
    command: &'static str,
    address: SocketAddr,
}

impl Admin {
    /// Finds the address; exit code 2 if the configuration is wrong.
    pub fn find(command: &'static str, ask: &Ask) -> Result<Self, ExitCode> {
        let surroundings = Surroundings::of_process();
        if ask.names_no_address(&surroundings)
            && let Some(address) = noted(command, &surroundings)?
        {
            return Ok(Self { command, address });
        }
        let server = config::load_server(&ask.invocation(surroundings)).map_err(|errors| {
            eprintln!("{errors}");
            ExitCode::from(2)
        })?;
        server.admin.map(|address| Self { command, address }).ok_or_else(|| {
            eprintln!("hostler {command}: server.admin is \"off\"; give the address with --admin");
            ExitCode::from(2)
        })
    }

    pub fn address(&self) -> Address {
        Address::Tcp(self.address.ip().to_string(), self.address.port())
    }

    /// Asks, in a separate runtime.
    pub fn ask<T>(&self, asking: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let answered = runtime.map_err(|error| error.to_string())?.block_on(asking);
        answered.map_err(|error| format!("no Hostler answers on {}: {error}", self.address))
    }

    /// Asks and prints the response, as JSON or as text. Exit code 0, or 1 without a useful response.
    pub fn show(&self, path: &str, what: &str, as_json: bool, as_text: fn(&Value) -> String) -> ExitCode {
        let shown = self.fetch(path).and_then(|json| match as_json {
            true => Ok(json.trim_end().to_owned() + "\n"),
            false => serde_json::from_str(&json)
                .map(|value| as_text(&value))
                .map_err(|error| format!("{} did not answer with {what}: {error}", self.address)),
        });
        match shown {
            Ok(text) => {
                print(&text);
                ExitCode::SUCCESS
            }
            Err(why) => self.failed(&why),
        }
    }

    fn fetch(&self, path: &str) -> Result<String, String> {
        self.ask(async {
            let asked = ask(&self.address(), path, TIME_LIMIT).await?;
            match asked.status {
                200 => String::from_utf8(asked.body).map_err(|error| error.to_string()),
                other => Err(format!("status {other}")),
            }
        })
    }

    /// Prints why the command failed; exit code 1.
    pub fn failed(&self, why: &str) -> ExitCode {
        eprintln!("hostler {}: {why}", self.command);
        ExitCode::FAILURE
    }
}

/// The Hostler that was started in this folder, or else the only one of this user. Exit code 2 if there are several.
fn noted(command: &str, surroundings: &Surroundings) -> Result<Option<SocketAddr>, ExitCode> {
    let all = note::read(surroundings);
    let here: Vec<_> = all.iter().filter(|noted| noted.folder == surroundings.folder).collect();
    match (&here[..], &all[..]) {
        ([only], _) => Ok(Some(only.admin)),
        ([], [only]) => Ok(Some(only.admin)),
        (_, []) => Ok(None),
        _ => {
            eprintln!("hostler {command}: several Hostlers run; name the one that you mean:");
            for noted in &all {
                eprintln!(
                    "  hostler {command} --admin {}    started in {}",
                    noted.admin,
                    noted.folder.display()
                );
            }
            Err(ExitCode::from(2))
        }
    }
}
