//! The entry point: parses the arguments, runs one command and returns its exit code. Knows nothing of what a command does.

use std::process::ExitCode;

use hostler::cli::{self, Args, Command};
use hostler::server::RunOptions;
use hostler_config::Surroundings;
use hostler_worker::guard;
use tikv_jemallocator::Jemalloc;

/// Gives the memory of closed connections back to the system within seconds. The system's own allocator keeps most of it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    match Args::of_process().command {
        Command::Run(args) => cli::run(&args, Surroundings::of_process()),
        Command::Start(args) => {
            cli::start(args.invocation(Surroundings::of_process()), RunOptions::default())
        }
        Command::Init(args) => cli::init(&args),
        Command::Check(args) => cli::check(&args),
        Command::Schema => cli::schema(),
        Command::Status(args) => cli::status(&args),
        Command::Routes(args) => cli::routes(&args),
        Command::Restart(args) => cli::restart(&args),
        Command::Purge(args) => cli::purge(&args),
        Command::Reload(ask) => cli::reload(&ask),
        Command::Pause(args) => cli::pause(&args),
        Command::Resume(args) => cli::resume(&args),
        Command::Upgrade(ask) => cli::upgrade(&ask),
        Command::Profile(args) => cli::profile(&args),
        Command::Heap(args) => cli::heap(&args),
        Command::Pack(args) => cli::pack(&args),
        Command::Guard { .. } => guard::run(),
        Command::Reference { folder } => match cli::reference::write(&folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}: {error}", folder.display());
                ExitCode::FAILURE
            }
        },
    }
}
