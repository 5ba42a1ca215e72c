//! Whether the app gets Node's channel from the command of a worker. Reads the files that the command names; starts nothing.

use std::ffi::OsStr;
use std::path::Path;

use super::settings::WorkerSettings;

/// A longer file in the command is no shell script.
const LONGEST_SCRIPT: u64 = 64 * 1024;

/// What Bun and `node --run` start for a script of a package (and Bun for a program of one) does not get the descriptors from number 3 on,
/// but the variable: Node would take one of its own descriptors for the channel. A file is run by Bun itself. Either may stand behind
/// another program, such as `env` or `sh -c`, and in a shell script.
pub(super) fn is_kept(settings: &WorkerSettings) -> bool {
    let (command, cwd) = (&settings.command, settings.cwd.as_path());
    let scripts = command.iter().map(|arg| shell_script(&cwd.join(arg)));
    std::iter::once(command.join(" ")).chain(scripts).all(|text| is_passed_on(&text, cwd))
}

fn is_passed_on(text: &str, cwd: &Path) -> bool {
    let words: Vec<_> = text.split_whitespace().collect();
    let runs = |arg: &str| arg == "--run" || arg.starts_with("--run=");
    words.iter().enumerate().all(|(at, program)| {
        let mut args = words[at + 1..].iter().copied();
        match Path::new(program).file_name().and_then(OsStr::to_str) {
            Some("bun" | "bunx") => args.any(|arg| cwd.join(arg).is_file()),
            Some("node" | "nodejs") => !args.take_while(|arg| arg.starts_with('-')).any(runs),
            _ => true,
        }
    })
}

/// The text of a shell script. Empty for any other file.
fn shell_script(path: &Path) -> String {
    let is_small = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= LONGEST_SCRIPT);
    let text = if is_small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    let shell = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    let is_shell = shell.is_some_and(|shell| shell.split_whitespace().any(|word| word.ends_with("sh")));
    if is_shell { text } else { String::new() }
}
