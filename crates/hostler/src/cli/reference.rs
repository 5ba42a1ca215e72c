//! The generated part of `docs/reference`: names and contents of the files. A test checks that the files are up to date.

use std::io;
use std::path::Path;

use clap::CommandFactory;
use hostler_config::reference;

use super::{Args, advice, metrics, refusals};

const INTRODUCTION: &str = "\
<!-- Generated from crates/hostler/src/cli/args.rs; refresh with: UPDATE=1 cargo test --workspace --test reference -->

# Command line

This page shows the help of every command. `hostler help COMMAND` prints it, too.

Exit codes: 0 after success, 1 after a failure, 2 for wrong arguments or a wrong configuration. `hostler run` ends with the exit code of an app that was never ready.
";

/// Every generated file.
pub fn files() -> [(&'static str, String); 6] {
    [
        ("config.md", reference::markdown()),
        ("hostler.schema.json", reference::json_schema()),
        ("cli.md", commands()),
        ("refusals.md", refusals::markdown()),
        ("metrics.md", metrics::markdown()),
        ("advice.md", advice::markdown()),
    ]
}

/// Writes every generated file.
pub fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    files().iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}

fn commands() -> String {
    // A fixed width, because the text must not depend on a terminal.
    let mut root = Args::command().term_width(100);
    root.build();
    let mut text = format!("{INTRODUCTION}\n```\n{}\n```\n", trimmed(root.render_long_help()));
    for command in
        root.get_subcommands_mut().filter(|command| !command.is_hide_set() && command.get_name() != "help")
    {
        let name = command.get_name().to_string();
        text.push_str(&format!("\n## hostler {name}\n\n```\n{}\n```\n", trimmed(command.render_long_help())));
    }
    text
}

fn trimmed(help: impl ToString) -> String {
    let lines: Vec<_> = help.to_string().lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n").trim().to_string()
}
