//! The entry point: parses the arguments, runs one command and returns its exit code. Knows nothing of what a command does.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use hostler::cli::{self, Args, Command};
use hostler::server::RunOptions;
use hostler_config::LoadContext;
use hostler_worker::guard;
use tikv_jemallocator::Jemalloc;

/// Gives the memory of closed connections back to the system within seconds. The system's own allocator keeps most of it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    match Args::of_process().command {
        Command::Run(args) => cli::run(&args, LoadContext::of_process()),
        Command::Start(args) => cli::start(args.invocation(LoadContext::of_process()), RunOptions::default()),
        Command::Init(args) => cli::init(&args),
        Command::Check(args) => cli::check(&args),
        Command::Schema => cli::schema(),
        Command::Status(args) => cli::status(&args),
        Command::Top(args) => cli::top(&args),
        Command::Routes(args) => cli::routes(&args),
        Command::Restart(args) => cli::restart(&args),
        Command::Purge(args) => cli::purge(&args),
        Command::Reload(ask) => cli::reload(&ask),
        Command::Pause(args) => cli::pause(&args),
        Command::Resume(args) => cli::resume(&args),
        Command::Drain(args) => cli::drain(&args),
        Command::Undrain(args) => cli::undrain(&args),
        Command::Upgrade(ask) => cli::upgrade(&ask),
        Command::Profile(args) => cli::profile(&args),
        Command::Heap(args) => cli::heap(&args),
        Command::Pack(args) => cli::pack(&args),
        Command::Completions { shell } => cli::completions(shell),
        Command::Guard { .. } => guard::run(),
        Command::Reference { folder } => written(&folder, cli::reference::write(&folder)),
        Command::Man { folder } => written(&folder, cli::man_pages(&folder)),
    }
}

/// The exit code of a command that writes files into a folder.
fn written(folder: &Path, result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}
