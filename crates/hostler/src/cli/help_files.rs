//! `hostler completions` and the man pages: files that are generated from the arguments. Knows no command.

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Args, print};

/// Prints the script with which a shell completes commands and flags.
pub fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "hostler", &mut script);
    print(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}

/// Writes one man page for Hostler and one for each command: hostler.1, hostler-run.1.
pub fn man_pages(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // Without the hidden commands, and without `help`, whose pages would repeat the others.
    let command = Args::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder)
}
