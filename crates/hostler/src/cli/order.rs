//! The commands that give an order to a running Hostler. Does not know how Hostler carries it out.

use std::process::ExitCode;
use std::time::Duration;

use super::admin::{Admin, BAD_REQUEST};
use super::inspect::target;
use super::{Ask, DrainArgs, PauseArgs, PurgeArgs, Restart, Resume, UndrainArgs, complain, print};
use crate::admin::Answered;

/// A restart waits for one worker after the other, so an order may take long. Ctrl-C ends the waiting, not the order.
const TIME_LIMIT: Duration = Duration::from_secs(3600);
/// The admin listener reads a request line of 64 KB at most. What `xargs hostler purge` gives may have more.
const LONGEST_QUERY: usize = 32 * 1024;

/// `hostler restart`
pub fn restart(args: &Restart) -> ExitCode {
    match &args.pool {
        Some(pool) => order("restart", &args.ask, &of_pool(pool, "restart")),
        None => order("restart", &args.ask, "/restart"),
    }
}

/// `hostler reload`
pub fn reload(ask: &Ask) -> ExitCode {
    order("reload", ask, "/reload")
}

/// `hostler pause`
pub fn pause(args: &PauseArgs) -> ExitCode {
    let path = format!("{}?timeout={}ms", of_pool(&args.pool, "pause"), args.timeout.as_millis());
    order("pause", &args.ask, &path)
}

/// `hostler resume`
pub fn resume(args: &Resume) -> ExitCode {
    order("resume", &args.ask, &of_pool(&args.pool, "resume"))
}

/// `hostler drain`
pub fn drain(args: &DrainArgs) -> ExitCode {
    let length = args.length.map_or(String::new(), |length| format!("for={}ms&", length.as_millis()));
    rotate("drain", &args.ask, &args.worker, &format!("drain?{length}force={}", args.force))
}

/// `hostler undrain`
pub fn undrain(args: &UndrainArgs) -> ExitCode {
    rotate("undrain", &args.ask, &args.worker, "undrain")
}

fn rotate(command: &'static str, ask: &Ask, worker: &str, what: &str) -> ExitCode {
    let (pool, number) = match target(worker) {
        Ok((pool, Some(number))) => (pool, number),
        Ok((pool, None)) => {
            complain(format_args!("hostler {command}: name the worker, such as {pool}/1"));
            return ExitCode::from(2);
        }
        Err(why) => {
            complain(format_args!("hostler {command}: {why}"));
            return ExitCode::from(2);
        }
    };
    order(command, ask, &of_pool(pool, &format!("workers/{number}/{what}")))
}

/// `hostler purge`
pub fn purge(args: &PurgeArgs) -> ExitCode {
    let encode = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let named = |name, values: &[String]| {
        values.iter().map(|value| format!("{name}={}", encode(value))).collect::<Vec<_>>()
    };
    let mut query = named("url", &args.urls);
    query.extend(named("prefix", &args.prefix));
    query.extend(named("tag", &args.tag));
    query.extend(args.all.then(|| "all=true".to_owned()));
    orders("purge", &args.ask, &purges(&query))
}

/// As few requests as have room for all of it.
fn purges(query: &[String]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for part in query {
        match paths.last_mut() {
            Some(path) if path.len() + part.len() < LONGEST_QUERY => path.extend(["&", part]),
            _ => paths.push(format!("/purge?{part}")),
        }
    }
    paths
}

/// `hostler upgrade`
pub fn upgrade(ask: &Ask) -> ExitCode {
    order("upgrade", ask, "/upgrade")
}

fn of_pool(name: &str, what: &str) -> String {
    let name = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
    format!("/pools/{name}/{what}")
}

/// Prints what Hostler did and exits with 0. Exits with 1 if the order failed, and with 2 if the arguments or the admin address are wrong.
fn order(command: &'static str, ask: &Ask, path: &str) -> ExitCode {
    orders(command, ask, &[path.to_owned()])
}

/// One order after the other, until one fails.
fn orders(command: &'static str, ask: &Ask, paths: &[String]) -> ExitCode {
    let admin = match Admin::find(command, ask) {
        Ok(admin) => admin,
        Err(code) => return code,
    };
    let mut code = ExitCode::SUCCESS;
    for path in paths {
        code = give(&admin, path);
        if code != ExitCode::SUCCESS {
            break;
        }
    }
    code
}

fn give(admin: &Admin, path: &str) -> ExitCode {
    let asked = match admin.post(path, TIME_LIMIT) {
        Ok(asked) => asked,
        Err(why) => return admin.failed(&why),
    };
    let answered = serde_json::from_slice(&asked.body).map_err(|_| admin.complaint(&asked));
    let answered = answered.and_then(|answered: Answered| match answered.error {
        Some(error) => Err(error),
        None => Ok(answered),
    });
    let answered = match answered {
        Ok(answered) => answered,
        Err(why) if asked.status == BAD_REQUEST => return admin.misused(&why),
        Err(why) => return admin.failed(&why),
    };
    let took = humantime::format_duration(Duration::from_millis(answered.took_ms));
    let lines = answered.done.iter().map(|line| format!("{line}\n")).collect::<String>();
    print(&format!("{lines}done in {took}\n"))
}
