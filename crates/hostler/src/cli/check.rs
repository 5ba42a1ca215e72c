//! `hostler check`: shows what a configuration means, in a few lines. Knows no running parts.

use std::fmt::Write;
use std::process::ExitCode;

use hostler_config::{
    self as config, Body, Config, LoadContext, MemberProtocol, Members, Period, Policy, Pool, PoolMembers,
    Priority, Route, ShowSize, Target, Tls,
};
use hostler_engine::journal::{Allowed, printable_lines};
use hostler_lookup::Mapping;
use hostler_lookup::geo::verify;
use hostler_lookup::postal::PostalFile;
use hostler_worker::{Slots, WorkerSettings};

use super::{FileArgs, complain, print};

/// Prints a summary and exits with 0, or prints the errors and exits with 2.
pub fn check(args: &FileArgs) -> ExitCode {
    match config::load_to_check(&args.invocation(LoadContext::of_process())) {
        Ok(config) => {
            for warning in &config.warnings {
                complain(format_args!("warning: {warning}"));
            }
            match data(&config) {
                // A text in TOML may have control characters.
                ExitCode::SUCCESS => print(&printable_lines(&summary(&config), Allowed::Text)),
                // The summary begins with the words that the file is valid.
                wrong => wrong,
            }
        }
        Err(errors) => {
            complain(&errors);
            ExitCode::from(2)
        }
    }
}

/// Checks all of the data. A start checks only a part of it, because it must be fast.
fn data(config: &Config) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    match config.geo.as_ref().map(|geo| verify(&geo.databases, Mapping::InPlace)) {
        Some(Err(error)) => {
            complain(format_args!("geo.databases: {error}"));
            code = ExitCode::from(2);
        }
        Some(Ok(verified)) => {
            verified.warnings.iter().for_each(|warning| complain(format_args!("warning: {warning}")))
        }
        None => {}
    }
    if let Some(Err(error)) =
        config.postal.as_ref().map(|postal| PostalFile::open(&postal.data, Mapping::InPlace))
    {
        complain(format_args!("postal.data: {error}"));
        code = ExitCode::from(2);
    }
    code
}

/// The summary. Writing to a String cannot fail, so the results are ignored.
pub fn summary(config: &Config) -> String {
    let mut text = String::new();
    if let Some(path) = &config.path {
        let _ = writeln!(text, "{} is valid", path.display());
    }
    let server = &config.server;
    let token = if server.admin_token.is_some() { ", with a token" } else { "" };
    let admin = server.admin.as_ref().map_or("off".to_string(), |address| format!("{address}{token}"));
    let _ = writeln!(text, "\nlisten   {}, threads {}", join(&server.listen), server.threads);
    if let Some(tls) = &config.tls {
        let _ = writeln!(text, "tls      {}, {}", join(&tls.listen), of_tls(tls));
    }
    let _ = writeln!(text, "admin    {admin}");
    let _ = writeln!(text, "trusted proxies  {}", trust(config));
    for pool in &config.pools {
        let _ = writeln!(text, "\npool {}\n{}", pool.name, of_pool(pool));
    }
    let routes: Vec<_> =
        config.routes.iter().map(|route| (route.pattern.to_string(), route, leads_to(route))).collect();
    let width = routes.iter().map(|(pattern, ..)| pattern.len()).max().unwrap_or_default();
    let _ = writeln!(text, "\nroutes");
    for (pattern, route, target) in routes {
        let _ = writeln!(text, "  {pattern:width$}  {target}");
        if let Some(when) = &route.when {
            let _ = writeln!(text, "  {:width$}    when {when:#}", "");
        }
        if let Some(by) = &route.fair {
            let _ = writeln!(text, "  {:width$}    shares its pool fairly by {}", "", join(by));
        }
        if let Some(limit) = &route.rate_limit {
            let _ = writeln!(text, "  {:width$}    rate limit {limit}", "");
        }
    }
    text
}

fn of_tls(tls: &Tls) -> String {
    let shown = tls.certificates.iter().map(|files| files.cert.display().to_string()).collect::<Vec<_>>();
    let redirect = if tls.redirect_http { "; redirects requests without TLS" } else { "" };
    format!("certificates {}{redirect}", shown.join(", "))
}

fn trust(config: &Config) -> String {
    let trusted = &config.server.trusted_proxies;
    let header = config.server.client_ip_header.name();
    match (config.server.trusted_hops, trusted.is_empty()) {
        (Some(hops), _) => format!("{header} of all clients, entry {hops} from the right"),
        (None, true) => "none".into(),
        (None, false) => format!("{header} from {}", join(trusted)),
    }
}

fn of_pool(pool: &Pool) -> String {
    let queue = &pool.queue;
    let who = match &pool.source {
        PoolMembers::Workers(workers) => of_workers(workers),
        PoolMembers::Members(members) => format!("  members  {}", of_members(members)),
    };
    let slots = match pool.slots() {
        Slots::Fixed(slots) => format!("{slots} each"),
        Slots::Auto { most } => format!("auto, at most {most} each"),
    };
    let order = match (queue.short_first, queue.policy) {
        (Some(delay), _) => format!(", short requests first with a delay of at most {}", Period(delay)),
        (None, Policy::Adaptive) => String::new(),
        (None, Policy::Fifo) => ", without early refusals (fifo)".into(),
    };
    let fair = match &*queue.fair {
        [] => String::new(),
        by => format!(", shared fairly by {}", join(by)),
    };
    let low = match &*queue.low {
        [] => String::new(),
        low => format!(", low priority for {}", join(low)),
    };
    let limit = pool.rate_limit.as_ref().map_or(String::new(), |limit| format!("\n  limit    {limit}"));
    let (wait, times) = (Period(queue.timeout), format!("response within {}", Period(pool.request_timeout)));
    format!(
        "{who}\n  slots    {slots}; queue of {} requests, up to {wait}{order}{fair}{low}; {times}{limit}",
        queue.limit
    )
}

fn of_members(members: &Members) -> String {
    let protocol = match members.protocol {
        MemberProtocol::Http1 => "",
        MemberProtocol::Http2 => ", with HTTP/2",
    };
    format!("{}{protocol}", join(&members.endpoints))
}

fn of_workers(workers: &WorkerSettings) -> String {
    let limits = workers.recycling;
    let command = shell_words::join(&workers.command);
    let replaced = [
        limits.max_requests.map(|count| format!("after {count} requests")),
        limits.max_age.map(|age| format!("after {}", Period(age))),
        limits.max_memory.map(|size| format!("over {}", ShowSize(size))),
    ];
    let replaced: Vec<_> = replaced.into_iter().flatten().collect();
    let replaced = match replaced.is_empty() {
        true => String::new(),
        false => format!("\n  replaced {}", replaced.join(", ")),
    };
    let least = workers.least.map_or(String::new(), |least| format!("{least} to "));
    format!("  workers  {least}{} x `{command}` in {}{replaced}", workers.count, workers.cwd.display())
}

fn leads_to(route: &Route) -> String {
    match &route.target {
        Target::Respond(respond) => {
            let from = match &respond.body {
                Body::Text(_) => String::new(),
                Body::File(file) => format!("with {} ", file.path.display()),
            };
            format!("responds {} {from}({} bytes)", respond.status.as_u16(), respond.body.bytes().len())
        }
        Target::Static(files) => {
            let fallback = files.fallback.as_ref();
            let fallback =
                fallback.map_or(String::new(), |file| format!(" (missing pages: {})", file.display()));
            format!("files in {}{fallback}", files.dir.display())
        }
        Target::Redirect(redirect) => format!("redirects with {redirect}"),
        Target::Native { geo: true, postal: true } => "lookups of IP addresses and postal codes".into(),
        Target::Native { geo: true, .. } => "lookups of IP addresses".into(),
        Target::Native { .. } => "lookups of postal codes".into(),
        Target::Pool { name, request_timeout } => {
            let (timeout, size) = (Period(*request_timeout), ShowSize(route.max_body_size));
            let priority = match route.priority {
                Priority::High => ", high priority",
                Priority::Normal => "",
                Priority::Low => ", low priority",
            };
            let fallback = route.fallback.as_ref();
            let fallback = fallback.map_or(String::new(), |fallback| format!(", fallback {fallback}"));
            let hints = if route.early_hints.is_some() { ", Early Hints" } else { "" };
            let first = route.files_first.as_ref();
            let first =
                first.map_or(String::new(), |files| format!("files in {}, else ", files.dir.display()));
            format!(
                "{first}pool {name} (response within {timeout}, body up to {size}{priority}{fallback}{hints})"
            )
        }
    }
}

fn join<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
