//! `hostler status`: asks a running Hostler through its admin listener. Knows not what the answer means.

use std::process::ExitCode;
use std::time::Duration;

use super::Status;
use super::admin::Admin;
use crate::admin::table;
use crate::proxy::ask;

const PATIENCE: Duration = Duration::from_secs(5);

/// Prints the status and exits with 0; with 1 if nobody answers, with 2 if the configuration is wrong.
pub fn status(args: &Status) -> ExitCode {
    let admin = match Admin::find("status", &args.ask) {
        Ok(admin) => admin,
        Err(code) => return code,
    };
    match fetch(&admin).and_then(|json| render(&admin, json, args.json)) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => admin.failed(&why),
    }
}

fn fetch(admin: &Admin) -> Result<String, String> {
    admin.ask(async {
        let asked = ask(&admin.address(), "/status", PATIENCE).await?;
        match asked.status {
            200 => String::from_utf8(asked.body).map_err(|error| error.to_string()),
            other => Err(format!("status {other}")),
        }
    })
}

fn render(admin: &Admin, json: String, as_json: bool) -> Result<String, String> {
    if as_json {
        return Ok(json.trim_end().to_owned() + "\n");
    }
    let status = serde_json::from_str(&json).map_err(|error| admin.nonsense("a status", &error))?;
    Ok(table(&status))
}
