//! The arguments of the command line, and how they become an [`Invocation`]. Knows no keys except those with a flag of their own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use clap_complete::Shell;

use hostler_config::{Given, Invocation, LoadContext, Setting};

use super::admin_args::{
    Ask, DEFAULT_FILE, DrainArgs, HeapArgs, PauseArgs, ProfileArgs, PurgeArgs, Restart, Resume, RoutesArgs,
    StatusArgs, TopArgs, UndrainArgs, flag,
};
use super::development::DevelopmentArgs;
use super::init::Init;
use super::key_flags::{SET, key_flags, setting};

const KEYS_ARE_FLAGS: &str = "\
Each key of the configuration is also a flag and an environment variable.
A flag takes precedence over a variable, and a variable over the file:
  --server.header-timeout 5s    HOSTLER_SERVER_HEADER_TIMEOUT=5s
  --pools.web.workers 4         HOSTLER_POOLS_WEB_WORKERS=4
All keys: docs/reference/config.md, or http://127.0.0.1:8081/docs/ while Hostler runs";

const RUN_EXAMPLE: &str = "\
Example: hostler run --workers 2 -- node server.js

More settings: --server.KEY, --pools.app.KEY
All keys: docs/reference/config.md, or http://127.0.0.1:8081/docs/ while Hostler runs";

/// An application server for Node.js.
///
/// One process between the internet and Node services. It accepts connections, routes, buffers and queues requests, and starts
/// and watches the workers. A worker gets a request only when it can start on it at once.
#[derive(Debug, Parser)]
#[command(name = "hostler", version, after_help = KEYS_ARE_FLAGS)]
pub struct Args {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a configuration file for the app in a folder.
    ///
    /// Reads package.json, the lock file, the configuration of the framework, the ecosystem file of PM2 and the Procfile,
    /// and writes hostler.toml with comments. If PM2's file is a program, Node runs it. Never replaces a file, unless
    /// --force is given.
    Init(Init),
    /// Run one Node app behind Hostler, without a configuration file.
    ///
    /// Starts workers with the given command and sends all requests to them. It is a configuration with one pool, named
    /// `app`.
    Run(Run),
    /// Start Hostler with a configuration file.
    ///
    /// Serves until SIGTERM, SIGINT or SIGQUIT. Then it finishes the accepted requests and stops the workers. A second signal
    /// stops at once.
    Start(FileArgs),
    /// Check a configuration file, and show what it means or what is wrong with it.
    ///
    /// Prints a summary and exits with 0. Warns about what is probably a mistake, such as a key that changes nothing. If the
    /// file has errors, prints each error with file, line and key, and exits with 2.
    Check(FileArgs),
    /// Print the JSON schema of the configuration file.
    ///
    /// Editors with taplo or Even Better TOML complete and explain keys by it: run `hostler schema > hostler.schema.json`,
    /// and make `#:schema ./hostler.schema.json` the first line of hostler.toml.
    Schema,
    /// Show the status of a running Hostler.
    ///
    /// Finds the admin address as `hostler start` does: in the file, or in HOSTLER_SERVER_ADMIN. Without both, finds the
    /// Hostler that was started in this folder, or else the only one of this user.
    Status(StatusArgs),
    /// Watch the status of a running Hostler in the terminal.
    ///
    /// Shows pools, workers, queues, rates, refusals and advice, again each second. The key `?` shows the keys. The
    /// variable NO_COLOR switches the colours off.
    Top(TopArgs),
    /// Show the routes of a running Hostler, with their targets and members.
    ///
    /// Shows the routes of the configuration first. Then it shows the registered routes, with the age of each
    /// registration and the time after which it expires.
    Routes(RoutesArgs),
    /// Replace the workers of a pool, or of all pools, without losing a request.
    ///
    /// Hostler replaces one worker at a time. The new worker boots until it is ready and warm. Then it takes over, and
    /// the old worker finishes its requests and ends. If a new worker does not get ready, the restart stops, and the
    /// old workers stay. The command returns when the restart has ended.
    Restart(Restart),
    /// Apply the changed configuration file, without losing a request.
    ///
    /// What has not changed stays as it is. All routes change at the same moment. A configuration with errors changes
    /// nothing. The command names the changes that need `hostler upgrade`. SIGHUP does the same.
    Reload(Ask),
    /// Hold the requests of a pool, for example during a migration.
    ///
    /// The requests wait in the queue of the pool, up to its limit, until `hostler resume` or until the timeout is
    /// over. A request waits for queue.timeout and request_timeout together at most, 35 s by default, and then gets 503.
    /// Workers finish the requests that they already have.
    Pause(PauseArgs),
    /// Let the requests of a paused pool continue.
    Resume(Resume),
    /// Take a worker out of rotation, for example to look into it.
    ///
    /// The worker gets no more requests, and finishes those that it has. Its process stays. Requests go to the other workers. A worker that
    /// dies, or that a restart replaces, is in rotation again.
    Drain(DrainArgs),
    /// Put a drained worker back into rotation.
    ///
    /// If the worker still has requests, it first finishes them, for at most one second.
    Undrain(UndrainArgs),
    /// Remove stored responses from the cache, in memory and in memcached.
    ///
    /// Removes responses by URL (with all their variants), by the beginning of the URL, by a tag in Cache-Tag or
    /// Surrogate-Key, or all. The next request fetches the response again. Other Hostlers with the same memcached
    /// follow within half a second.
    Purge(PurgeArgs),
    /// Hand over to a new Hostler process, without losing a request.
    ///
    /// Starts the program that is now at the path of the running one, with the same arguments, and passes the listening
    /// sockets to it. When all its workers are ready, the new process accepts the clients. The old process ends when
    /// its clients have left. If the new process is not ready within server.upgrade_timeout, nothing changes. SIGUSR2
    /// does the same.
    Upgrade(Ask),
    /// Take a CPU profile of a running worker, while it serves requests.
    ///
    /// Writes two files: `.cpuprofile` for the developer tools of Chrome, VS Code or speedscope, and a page with a flame graph. Prints
    /// the ten functions with the most CPU time. The app needs no change. It also works while the worker hangs in an endless loop.
    Profile(ProfileArgs),
    /// Take a heap snapshot of a running worker.
    ///
    /// Takes the worker out of rotation, waits until its requests have ended, and writes a `.heapsnapshot` for the developer tools of
    /// Chrome. Then the worker gets requests again. The file has all strings in the worker's memory, secrets too.
    Heap(HeapArgs),
    /// Convert files of postal codes into one pack, which Hostler maps into memory.
    ///
    /// With a pack Hostler starts at once, and several processes share its memory. The command replaces an older pack
    /// by a rename, which a running Hostler sees.
    Pack(Pack),
    /// Print the completions of commands and flags for a shell.
    ///
    /// Example: hostler completions bash > ~/.local/share/bash-completion/completions/hostler
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Writes the man pages.
    #[command(name = "__man", hide = true)]
    Man {
        /// The folder.
        folder: PathBuf,
    },
    /// Ends the workers if Hostler dies. Hostler starts it.
    #[command(name = "__guard", hide = true)]
    Guard {
        /// Arguments from Hostler to its guard.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Writes the generated part of the reference.
    #[command(name = "__reference", hide = true)]
    Reference {
        /// The folder.
        folder: PathBuf,
    },
}

/// `hostler run`
#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLE)]
pub struct Run {
    /// Address on which Hostler accepts clients; can be repeated [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Address for `hostler status` and the other commands, or `off` [default: 127.0.0.1:8081, or a free port if it is
    /// taken]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// Number of workers [default: one for each core]
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Concurrent requests of one worker; `auto`: as many as its event loop can begin at once [default: auto]
    #[arg(long, value_name = "N|auto")]
    concurrency: Option<String>,
    /// How a worker gets its address: `socket` for any app, `port` if it reads PORT [default: socket]
    #[arg(long, value_name = "socket|port")]
    bind: Option<String>,
    /// Port on which the app listens, if it opens another port first
    #[arg(long, value_name = "N")]
    port: Option<String>,
    #[command(flatten)]
    pub(super) development: DevelopmentArgs,
    #[command(flatten)]
    common: Common,
    /// The app: a program and its arguments, started without a shell
    #[arg(last = true, required = true, value_name = "COMMAND")]
    app: Vec<String>,
}

/// `hostler start` and `hostler check`
#[derive(Debug, clap::Args)]
#[command(after_help = KEYS_ARE_FLAGS)]
pub struct FileArgs {
    /// Configuration file
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
    #[command(flatten)]
    common: Common,
}

/// `hostler pack`
#[derive(Debug, clap::Args)]
pub struct Pack {
    /// File of GeoNames, such as US.txt; can be repeated
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Pack to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Format of the log: `json`, `pretty` for people to read, `auto` (`pretty` on a terminal, otherwise `json`), `gorouter`, or `off`
    /// [default: auto]
    #[arg(long, value_name = "auto|json|pretty|gorouter|off")]
    log: Option<String>,
    /// Key of the configuration and its value, such as `--set server.idle_timeout=2m`; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, allow_hyphen_values = true)]
    set: Vec<Setting>,
}

impl Args {
    /// The arguments of this process. A usage error ends the process with exit code 2, and `--help` with 0.
    pub fn of_process() -> Self {
        Self::parse_given(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Parses the given arguments. The first one is the name of the program.
    pub fn parse_given<I: IntoIterator<Item = T>, T: Into<OsString>>(given: I) -> Result<Self, clap::Error> {
        let given = key_flags(given.into_iter().map(Into::into));
        Self::try_parse_from(&given).map_err(|error| with_tip(error, &given))
    }
}

/// Says what stands in for commands of other process managers, and which commands take keys of the configuration.
fn with_tip(mut error: clap::Error, given: &[OsString]) -> clap::Error {
    let tip = match (error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::InvalidArg)) {
        (Some(ContextValue::String(name)), _) => of_other_manager(name),
        (_, Some(ContextValue::String(flag)))
            if flag == SET && error.kind() == ErrorKind::UnknownArgument =>
        {
            // The flag that was written: `--server.admin`.
            let set = given.iter().position(|word| word == SET).and_then(|at| given.get(at + 1));
            let key = set.map(|set| set.to_string_lossy()).filter(|key| key.starts_with("--"));
            let key = key.and_then(|key| key.split('=').next().map(str::to_owned));
            error.insert(ContextKind::InvalidArg, ContextValue::String(key.unwrap_or_else(|| SET.into())));
            Some(
                "only run, start and check take keys of the configuration; other commands find a running Hostler by --admin",
            )
        }
        // As in `pm2 reload web`.
        (_, Some(ContextValue::String(word))) if given.get(1).is_some_and(|command| command == "reload") => {
            let is_pool = !word.starts_with('-');
            is_pool.then_some(
                "hostler restart POOL replaces the workers of a pool; hostler reload applies the configuration file, and names no pool",
            )
        }
        // As in `nginx -t` and `nginx -s reload`.
        (_, Some(ContextValue::String(flag)))
            if given.get(1).is_some_and(|word| word.to_str() == Some(flag.as_str())) =>
        {
            match &**flag {
                "-t" => Some("hostler check looks for mistakes in the configuration file"),
                "-s" => Some("hostler reload applies the configuration file; SIGTERM stops Hostler"),
                _ => None,
            }
        }
        (_, Some(ContextValue::String(word)))
            if error.kind() == ErrorKind::UnknownArgument
                && error.get(ContextKind::SuggestedArg).is_none() =>
        {
            given.get(1).and_then(|command| of_argument(command.to_str()?, word))
        }
        _ => None,
    };
    let Some(tip) = tip else { return error };
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// What stands in for a command of PM2, nginx or Passenger.
fn of_other_manager(command: &str) -> Option<&'static str> {
    Some(match command {
        "logs" => "the log is on standard output; under systemd: journalctl -u hostler",
        "stop" | "kill" | "delete" => {
            "send SIGTERM to the process of Hostler; under systemd: systemctl stop hostler"
        }
        "list" | "ls" | "describe" | "show" => "hostler status shows all pools and workers",
        "monit" => "hostler top",
        "scale" => "write workers = N into the section of the pool, and then: hostler reload",
        "test" | "validate" | "configtest" => "hostler check looks for mistakes in the configuration file",
        "startup" | "save" => {
            "a unit of systemd starts Hostler with the machine; under systemd: systemctl enable hostler"
        }
        _ => return None,
    })
}

/// What stands in for an argument that `pm2 start server.js`, `pm2 start -i 4` and programs with a file as their argument take.
fn of_argument(command: &str, word: &str) -> Option<&'static str> {
    Some(match (command, word) {
        ("run", "-c" | "--config") => "hostler start -c FILE runs a configuration file",
        ("run", word) if !word.starts_with('-') => "the app follows `--`: hostler run -- node server.js",
        ("run", _) => "hostler run --help shows all flags; the app, with its own flags, follows `--`",
        ("start" | "check", "--listen" | "--admin") => {
            "the flags of these keys are --server.listen and --server.admin"
        }
        ("start" | "check", "--workers" | "--concurrency" | "--bind" | "--port") => {
            "a file may have several pools, so the flag has the name of one, such as --pools.web.workers"
        }
        ("start" | "check", word) if word.ends_with(".toml") => {
            "-c names the configuration file: hostler start -c FILE"
        }
        ("start" | "check", word) if !word.starts_with('-') => {
            "hostler start runs hostler.toml, which hostler init writes; without a file: hostler run -- node server.js"
        }
        _ => return None,
    })
}

impl Run {
    /// A configuration without a file, with one pool.
    pub fn invocation(&self, load_context: LoadContext) -> Invocation {
        let mut settings = self.development.settings(&load_context);
        settings.extend(self.common.settings());
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
        Invocation { file: None, settings, load_context }
    }
}

impl FileArgs {
    /// The file and the flags.
    pub fn invocation(&self, load_context: LoadContext) -> Invocation {
        Invocation { file: Some(self.config.clone()), settings: self.common.settings(), load_context }
    }
}

impl Common {
    fn settings(&self) -> Vec<Setting> {
        self.set.iter().cloned().chain(flag("--log", "server.access_log", self.log.as_ref())).collect()
    }
}
