//! What can be said on the command line, and how it becomes an [`Invocation`]. Knows no key but those with a
//! flag of their own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use hostler_config::{Given, Invocation, Setting, Surroundings};

const DEFAULT_FILE: &str = "hostler.toml";
/// The one key whose name has no dot: all other keys are in a section.
const ROUTES: &str = "--routes";

const KEYS_ARE_FLAGS: &str = "\
Every key of the configuration is also a flag and an environment variable (flag > variable > file):
  --server.header-timeout 5s    HOSTLER_SERVER_HEADER_TIMEOUT=5s
  --pools.web.workers 4         HOSTLER_POOLS_WEB_WORKERS=4
All keys: docs/reference/config.md";

const RUN_EXAMPLE: &str = "\
Example: hostler run --workers 2 -- node server.js

More settings: --server.KEY, --pools.app.KEY; docs/reference/config.md";

/// An application server for Node.js.
///
/// One process between the internet and Node services: it listens, routes, buffers, queues, supervises the
/// workers, and hands a request to a worker only when that worker can start on it at once.
#[derive(Debug, Parser)]
#[command(name = "hostler", version, after_help = KEYS_ARE_FLAGS)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one Node app behind Hostler; needs no file.
    ///
    /// Starts workers of the given command and sends every request to them: a configuration with one pool,
    /// named `app`.
    Run(Run),
    /// Run what a configuration file says.
    ///
    /// Serves until SIGTERM or SIGINT, then finishes what was accepted and stops the workers; a second signal
    /// stops at once.
    Start(Start),
    /// Check a configuration file: say what it means, or what is wrong with it.
    ///
    /// Prints a summary and exits with 0, or prints each error with file, line and key and exits with 2.
    Check(Check),
    /// Ask a running Hostler how it is.
    ///
    /// Finds the admin address as `hostler start` does: in the file, in HOSTLER_SERVER_ADMIN, or at the
    /// default.
    Status(StatusArgs),
    /// Ask a running Hostler for its routes: where each leads, and who serves it.
    ///
    /// Those of the configuration first, then those that registered themselves, with the age of each registration and
    /// the time without another one after which it goes.
    Routes(RoutesArgs),
    /// Replace the workers of a pool, or of all pools, without losing a request.
    ///
    /// One by one, each new worker boots, is ready and warm, and takes over from an old one, which finishes what it has.
    /// If a new one does not get ready, the restart ends there and the old ones stay. Returns when all is done.
    Restart(Restart),
    /// Apply the configuration as it is now, without losing a request.
    ///
    /// What is equal stays untouched; routes change all at once. A configuration with errors changes nothing. Says what
    /// only `hostler upgrade` can apply. The same as SIGHUP.
    Reload(Ask),
    /// Hold the requests of a pool, for a migration.
    ///
    /// They wait in its queue, as many as fit there, until `hostler resume`, or until the timeout has passed. Those that
    /// a worker has already are finished.
    Pause(PauseArgs),
    /// Let the requests of a paused pool go on.
    Resume(Resume),
    /// Forget stored answers, here and in memcached, so that the next request for them is fetched anew.
    ///
    /// By URL, as a client asks for it (with all variants of it), by the beginning of a URL, by a tag that answers have in
    /// Cache-Tag or Surrogate-Key, or all. Other Hostlers at the same memcached follow within half a second.
    Purge(PurgeArgs),
    /// Hand over to the program as it is now, without losing a request.
    ///
    /// Starts the binary that lies where this one was started from, with the same arguments, and gives it the listening
    /// sockets. Once all its workers are ready, it accepts, and the old process leaves when its clients have gone. If it
    /// does not get ready in server.upgrade_timeout, nothing has happened. The same as SIGUSR2.
    Upgrade(Ask),
    /// Make files of postal codes into one that is mapped instead of read.
    ///
    /// With it a Hostler starts at once however many codes there are, and several share its memory. It takes the place of an older
    /// one by a rename, which a running Hostler sees.
    Pack(Pack),
    /// Outlives Hostler and ends its workers; started by Hostler itself.
    #[command(name = "__guard", hide = true)]
    Guard {
        /// Between Hostler and its guard.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Write the generated part of the reference.
    #[command(name = "__reference", hide = true)]
    Reference {
        /// Where to.
        folder: PathBuf,
    },
}

/// `hostler run`
#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLE)]
pub struct Run {
    /// Where clients connect; can be repeated [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Where `hostler status` is answered, or `off` [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// How many workers [default: one a core]
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Requests that one worker is given at once; `auto` goes by how busy it is [default: 1]
    #[arg(long, value_name = "N|auto")]
    concurrency: Option<String>,
    /// How a worker gets its address: `socket` for any app, `port` if it reads PORT [default: socket]
    #[arg(long, value_name = "socket|port")]
    bind: Option<String>,
    /// The port on which the app listens, if it opens others before
    #[arg(long, value_name = "N")]
    port: Option<String>,
    #[command(flatten)]
    common: Common,
    /// The app: a program and its arguments, run without a shell
    #[arg(last = true, required = true, value_name = "COMMAND")]
    app: Vec<String>,
}

/// `hostler start`
#[derive(Debug, clap::Args)]
#[command(after_help = KEYS_ARE_FLAGS)]
pub struct Start {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    common: Common,
}

/// `hostler check`
#[derive(Debug, clap::Args)]
#[command(after_help = KEYS_ARE_FLAGS)]
pub struct Check {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    common: Common,
}

/// `hostler status`
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Print the whole snapshot as JSON
    #[arg(long)]
    pub json: bool,
    /// Which running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler routes`
#[derive(Debug, clap::Args)]
pub struct RoutesArgs {
    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,
    /// Which running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler restart`
#[derive(Debug, clap::Args)]
pub struct Restart {
    /// Only this pool
    #[arg(value_name = "POOL")]
    pub pool: Option<String>,
    /// Which running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler pause`
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// Which pool
    #[arg(value_name = "POOL")]
    pub pool: String,
    /// When it goes on by itself; at most 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    pub timeout: std::time::Duration,
    /// Which running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler resume`
#[derive(Debug, clap::Args)]
pub struct Resume {
    /// Which pool
    #[arg(value_name = "POOL")]
    pub pool: String,
    /// Which running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler purge`
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true)))]
pub struct PurgeArgs {
    /// URLs, such as https://www.example.com/page?id=7
    #[arg(value_name = "URL", group = "what")]
    pub urls: Vec<String>,
    /// All URLs that begin so; can be repeated
    #[arg(long, value_name = "URL", group = "what")]
    pub prefix: Vec<String>,
    /// All answers with this tag; can be repeated
    #[arg(long, value_name = "TAG", group = "what")]
    pub tag: Vec<String>,
    /// Everything
    #[arg(long, group = "what")]
    pub all: bool,
    /// Which running Hostler.
    #[command(flatten)]
    pub ask: Ask,
}

/// `hostler pack`
#[derive(Debug, clap::Args)]
pub struct Pack {
    /// Files of GeoNames, such as US.txt
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The pack
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Which running Hostler.
#[derive(Debug, clap::Args)]
pub struct Ask {
    /// The configuration file that names the admin address [default: hostler.toml, if there is one]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The admin address, instead of the file's
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
}

#[derive(Debug, clap::Args)]
struct FileArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Form of the access log: `json`, `pretty` for people, or `off` [default: json]
    #[arg(long, value_name = "json|pretty|off")]
    log: Option<String>,
    /// Set a key of the configuration, as in `--set server.idle_timeout=2m`; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, allow_hyphen_values = true)]
    set: Vec<Setting>,
}

impl Args {
    /// Those of this process; a usage error ends it with exit code 2, as `--help` does with 0.
    pub fn of_process() -> Self {
        Self::parse_from(key_flags(std::env::args_os()))
    }

    /// Those given, the program's name first.
    pub fn parse_given<I: IntoIterator<Item = T>, T: Into<OsString>>(given: I) -> Result<Self, clap::Error> {
        Self::try_parse_from(key_flags(given.into_iter().map(Into::into)))
    }
}

impl Run {
    /// No file, one pool.
    pub fn invocation(&self, surroundings: Surroundings) -> Invocation {
        let mut settings = self.common.settings();
        if !self.listen.is_empty() {
            let given = Given::List(self.listen.clone());
            settings.push(Setting { key: "server.listen".into(), given, name: "--listen".into() });
        }
        settings.extend(flag("--admin", "server.admin", self.admin.as_ref()));
        settings.extend(flag("--workers", "pools.app.workers", self.workers.as_ref()));
        settings.extend(flag("--concurrency", "pools.app.concurrency", self.concurrency.as_ref()));
        settings.extend(flag("--bind", "pools.app.bind", self.bind.as_ref()));
        settings.extend(flag("--port", "pools.app.port", self.port.as_ref()));
        let given = Given::List(self.app.clone());
        settings.push(Setting { key: "pools.app.command".into(), given, name: "-- COMMAND".into() });
        Invocation { file: None, settings, surroundings }
    }
}

impl Start {
    /// The file, with flags laid over it.
    pub fn invocation(&self, surroundings: Surroundings) -> Invocation {
        Invocation { file: Some(self.file.config.clone()), settings: self.common.settings(), surroundings }
    }
}

impl Check {
    /// The file, with flags laid over it.
    pub fn invocation(&self, surroundings: Surroundings) -> Invocation {
        Invocation { file: Some(self.file.config.clone()), settings: self.common.settings(), surroundings }
    }
}

impl Ask {
    /// For [`hostler_config::load_server`]: no file at all if the flag says everything.
    pub fn invocation(&self, surroundings: Surroundings) -> Invocation {
        let is_there = |file: &PathBuf| surroundings.folder.join(file).exists();
        let default = Some(PathBuf::from(DEFAULT_FILE)).filter(is_there);
        let file = self.config.clone().or(default).filter(|_| self.admin.is_none());
        let settings = flag("--admin", "server.admin", self.admin.as_ref()).into_iter().collect();
        Invocation { file, settings, surroundings }
    }
}

impl Common {
    fn settings(&self) -> Vec<Setting> {
        self.set.iter().cloned().chain(flag("--log", "server.access_log", self.log.as_ref())).collect()
    }
}

fn flag(name: &str, key: &str, value: Option<&String>) -> Option<Setting> {
    value.map(|text| Setting { key: key.into(), given: Given::Text(text.clone()), name: name.into() })
}

fn setting(text: &str) -> Result<Setting, String> {
    let (key, value) = text.split_once('=').ok_or_else(|| match text.strip_prefix("--") {
        Some(_) => format!("{text} needs a value"),
        None => "write it as KEY=VALUE".to_string(),
    })?;
    let (key, name) = match key.strip_prefix("--") {
        Some(bare) => (bare, key.to_string()),
        None => (key, format!("--set {key}")),
    };
    Ok(Setting { key: key.into(), given: Given::Text(value.into()), name })
}

/// Rewrites `--server.idle-timeout 2m` to `--set --server.idle-timeout=2m`. Keys contain the names of pools,
/// so clap cannot know them beforehand; a dot in a flag is what tells them from clap's own, and only `--routes` has none.
fn key_flags(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args = args.peekable();
    let mut rewritten = Vec::new();
    while let Some(arg) = args.next() {
        let Some(text) = arg.to_str().filter(|text| *text != "--") else {
            // Behind a bare `--` comes the app's own command line.
            let ends = arg == "--";
            rewritten.push(arg);
            if ends {
                break;
            }
            continue;
        };
        let name = text.split('=').next().unwrap_or_default();
        if name != ROUTES && !(name.starts_with("--") && name.contains('.')) {
            rewritten.push(arg);
            continue;
        }
        let mut whole = arg.clone();
        if !text.contains('=')
            && let Some(value) = args.next_if(|next| !next.to_string_lossy().starts_with("--"))
        {
            whole.push("=");
            whole.push(value);
        }
        rewritten.extend(["--set".into(), whole]);
    }
    rewritten.extend(args);
    rewritten
}
