//! `hostler completions` and the man pages: files that are generated from the arguments. Knows no command.

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{Args, print};

/// Prints the script with which a shell completes commands and flags.
pub fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "hostler", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes one man page for Hostler and one for each command: hostler.1, hostler-run.1.
pub fn man_pages(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // Without the hidden commands, and without `help`, whose pages would repeat the others.
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_page(below, folder)?;
    }
    write_page(&command, folder)
}

fn write_page(command: &Command, folder: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(folder.join(format!("{name}.1")), man_page(command)?)
}

fn man_page(command: &Command) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_uppercase();
    let after = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    // clap_mangen would fill the lines of the examples, and call the section EXTRA.
    let command = command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let man = Man::new(command)
        .title(name)
        .source(concat!("hostler ", env!("CARGO_PKG_VERSION")))
        .manual("Hostler");
    let mut page = Vec::new();
    man.render(&mut page)?;
    for part in after.iter().flat_map(|after| after.trim().split("\n\n")) {
        let (section, lines) = match part.strip_prefix("Example:") {
            Some(example) => ("EXAMPLES", example.trim_start()),
            None => ("NOTES", part),
        };
        page.extend_from_slice(format!(".SH {section}\n.nf\n").as_bytes());
        for line in lines.lines() {
            // A full stop or a quotation mark at the beginning would make a command of the line.
            page.extend_from_slice(
                format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-")).as_bytes(),
            );
        }
        page.extend_from_slice(b".fi\n");
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str) -> String {
        let mut command = Args::command();
        command.build();
        let named = if name == "hostler" { &command } else { command.find_subcommand(name).unwrap() };
        String::from_utf8(man_page(named).unwrap()).unwrap()
    }

    #[test]
    fn a_man_page_has_its_version_and_keeps_the_lines_of_its_examples() {
        let run = page("run");
        let title = concat!(".TH HOSTLER-RUN 1  \"hostler ", env!("CARGO_PKG_VERSION"), "\" Hostler\n");
        assert!(run.contains(title), "{run}");
        let example = ".SH EXAMPLES\n.nf\n\\&hostler run \\-\\-workers 2 \\-\\- node server.js\n.fi\n";
        assert!(run.contains(example), "{run}");
        let hostler = page("hostler");
        assert!(hostler.contains(".SH NOTES\n.nf\n\\&Each key"), "{hostler}");
        assert!(hostler.contains("\n\\&  \\-\\-server.header"), "{hostler}");
        assert!(!hostler.contains("EXTRA"), "{hostler}");
    }
}
