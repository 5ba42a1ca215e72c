//! `hostler status`: asks a running Hostler through its admin listener. Knows where to ask, not what it means.

use std::process::ExitCode;
use std::time::Duration;

use hostler_wire::Address;

use super::Status;
use crate::admin::table;
use crate::config::{self, Surroundings};
use crate::proxy::ask;

const PATIENCE: Duration = Duration::from_secs(5);

/// Prints the status and exits with 0; with 1 if nobody answers, with 2 if the configuration is wrong.
pub fn status(args: &Status) -> ExitCode {
    let server = match config::load_server(&args.invocation(Surroundings::of_process())) {
        Ok(server) => server,
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::from(2);
        }
    };
    let Some(admin) = server.admin else {
        eprintln!("hostler status: server.admin is \"off\"; name the address with --admin");
        return ExitCode::from(2);
    };
    let address = Address::Tcp(admin.ip().to_string(), admin.port());
    match fetch(&address) {
        Ok(json) if args.json => println!("{}", json.trim_end()),
        Ok(json) => match serde_json::from_str(&json) {
            Ok(status) => print!("{}", table(&status)),
            Err(error) => return failed(&format!("{admin} answered something else than a status: {error}")),
        },
        Err(error) => return failed(&format!("no Hostler answers on {admin}: {error}")),
    }
    ExitCode::SUCCESS
}

fn fetch(address: &Address) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let asked = runtime.block_on(ask(address, "/status", PATIENCE))?;
    match asked.status {
        200 => String::from_utf8(asked.body).map_err(|error| error.to_string()),
        other => Err(format!("status {other}")),
    }
}

fn failed(text: &str) -> ExitCode {
    eprintln!("hostler status: {text}");
    ExitCode::FAILURE
}
