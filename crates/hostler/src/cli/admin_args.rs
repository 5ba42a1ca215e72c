//! The arguments of the commands that speak to a running Hostler, and where it is. Knows no other commands.

use std::path::PathBuf;
use std::time::Duration;

use hostler_config::{Delay, Given, Invocation, LoadContext, Period, Setting};

pub(super) const DEFAULT_FILE: &str = "hostler.toml";

/// A duration, as in the configuration.
fn period(text: &str) -> Result<Duration, String> {
    text.parse::<Period>().map(|period| period.0)
}

fn delay(text: &str) -> Result<Duration, String> {
    text.parse::<Delay>().map(|delay| delay.0)
}

/// `hostler status`
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Print the whole status as JSON
    #[arg(long)]
    pub json: bool,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler top`
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// Print one snapshot as text, measured over a second
    #[arg(long)]
    pub once: bool,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler routes`
#[derive(Debug, clap::Args)]
pub struct RoutesArgs {
    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler restart`
#[derive(Debug, clap::Args)]
pub struct Restart {
    /// Replace the workers of this pool only
    #[arg(value_name = "POOL")]
    pub pool: Option<String>,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler pause`
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// Name of the pool
    #[arg(value_name = "POOL")]
    pub pool: String,
    /// Time after which the pool continues by itself; at most 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = period)]
    pub timeout: Duration,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler resume`
#[derive(Debug, clap::Args)]
pub struct Resume {
    /// Name of the pool
    #[arg(value_name = "POOL")]
    pub pool: String,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler drain`
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hostler drain web/2 --for 10m")]
pub struct DrainArgs {
    /// Pool and number of the worker, such as web/2
    #[arg(value_name = "POOL/N")]
    pub worker: String,
    /// Time after which the worker gets requests again; at most 7d [default: until `hostler undrain`]
    #[arg(long = "for", value_name = "TIME", value_parser = period)]
    pub length: Option<Duration>,
    /// Drain the worker even if no other worker of the pool is ready. New requests then wait
    #[arg(long)]
    pub force: bool,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler undrain`
#[derive(Debug, clap::Args)]
pub struct UndrainArgs {
    /// Pool and number of the worker, such as web/2
    #[arg(value_name = "POOL/N")]
    pub worker: String,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler purge`
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true)))]
pub struct PurgeArgs {
    /// URL, such as https://www.example.com/page?id=7; can be repeated
    #[arg(value_name = "URL", group = "what")]
    pub urls: Vec<String>,
    /// Beginning of URLs, such as https://www.example.com/products/; can be repeated
    #[arg(long, value_name = "URL", group = "what")]
    pub prefix: Vec<String>,
    /// Tag of responses; can be repeated
    #[arg(long, value_name = "TAG", group = "what")]
    pub tag: Vec<String>,
    /// Remove all responses
    #[arg(long, group = "what")]
    pub all: bool,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler profile`
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hostler profile web/2 --seconds 10")]
pub struct ProfileArgs {
    /// Pool and number of the worker, such as web/2; without a number, the busiest worker
    #[arg(value_name = "POOL[/N]")]
    pub worker: String,
    /// Length of the profile in seconds; at most 60
    #[arg(long, value_name = "N", default_value = "5")]
    pub seconds: f64,
    /// Time between two samples in microseconds, from 100 to 1000000. A shorter time shows short functions, and costs the worker more
    #[arg(long, value_name = "MICROSECONDS", default_value = "1000")]
    pub interval: u64,
    /// Folder for the files
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler heap`
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hostler heap web/2 --out /var/tmp")]
pub struct HeapArgs {
    /// Pool and number of the worker, such as web/2
    #[arg(value_name = "POOL/N")]
    pub worker: String,
    /// Folder for the file
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Time that the requests of the worker have to end
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = delay)]
    pub wait: Duration,
    /// Take the snapshot even if no other worker of the pool is ready. New requests then wait
    #[arg(long)]
    pub force: bool,
    /// Replace the worker afterwards, because a snapshot leaves it with more memory than before
    #[arg(long)]
    pub replace: bool,
    /// The running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// The running Hostler.
#[derive(Debug, clap::Args)]
pub struct Ask {
    /// Configuration file with the admin address [default: hostler.toml, if it exists]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Admin address, in place of the one in the file; such as 127.0.0.1:8081 or unix:/run/hostler/admin.sock
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// File with the admin token, in place of the one in the file; HOSTLER_ADMIN_TOKEN takes precedence
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<String>,
}

impl Ask {
    /// Whether no flag, file or variable has the admin address.
    pub fn names_no_address(&self, load_context: &LoadContext) -> bool {
        self.config.is_none()
            && default_file(load_context).is_none()
            && self.only_a_file_names_it(load_context)
    }

    /// Whether no flag and no variable has the admin address.
    pub fn only_a_file_names_it(&self, load_context: &LoadContext) -> bool {
        self.admin.is_none() && !load_context.environment.contains_key("HOSTLER_SERVER_ADMIN")
    }

    /// For [`hostler_config::load_admin`]. Without a file if the flag has the address.
    pub fn invocation(&self, load_context: LoadContext) -> Invocation {
        let file = self.config.clone().or(default_file(&load_context)).filter(|_| self.admin.is_none());
        let address = flag("--admin", "server.admin", self.admin.as_ref());
        // It is an argument of a command, so it starts where the operator is, and not at the folder of the configuration file.
        let token_file = self.admin_token_file.as_ref().map(|file| load_context.folder.join(file));
        let token_file = token_file.map(|file| file.display().to_string());
        let token = flag("--admin-token-file", "server.admin_token_file", token_file.as_ref());
        let settings = address.into_iter().chain(token).collect();
        Invocation { file, settings, load_context }
    }
}

/// `hostler.toml` in this folder, if it exists.
fn default_file(load_context: &LoadContext) -> Option<PathBuf> {
    let is_there = |file: &PathBuf| load_context.folder.join(file).exists();
    Some(PathBuf::from(DEFAULT_FILE)).filter(is_there)
}

/// The setting of a key by a flag.
pub(super) fn flag(name: &str, key: &str, value: Option<&String>) -> Option<Setting> {
    value.map(|text| Setting { key: key.into(), given: Given::Text(text.clone()), name: name.into() })
}
