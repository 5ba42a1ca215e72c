//! Options in a file that `command` gives to Node, such as `--env-file=.env`. Starts nothing.

use std::path::Path;

use hostler_worker::WorkerSettings;

use super::Resolver;
use super::script::script;
use crate::document::KeyPath;
use crate::resolved::{Config, PoolMembers};

const VARIABLE: &str = "NODE_OPTIONS";

impl Resolver<'_> {
    /// Node prefers the variable of its environment, which Hostler sets, so the options of the file would be missing without a word.
    pub(super) fn warn_of_lost_node_options(&mut self, config: &Config) {
        for pool in &config.pools {
            let PoolMembers::Workers(workers) = &pool.source else { continue };
            let own = [&workers.env, &self.load_context.environment];
            if own.iter().any(|env| env.get(VARIABLE).is_some_and(|options| !options.is_empty())) {
                continue;
            }
            let path = KeyPath::of("pools").key(&pool.name);
            let (command, env) = (path.key("command"), path.key("env"));
            for file in env_files(workers) {
                if text_of(&workers.cwd.join(file)).lines().any(sets_options) {
                    let place = self.document.place_of_value(&command);
                    self.report.warn(
                        place,
                        format!(
                            "{command}: {VARIABLE} in {file} has no effect, because Hostler sets this variable, and Node prefers \
                             that; write it in {env}, and Hostler adds its own options"
                        ),
                    );
                }
            }
        }
    }
}

/// Empty for what is no ordinary file: to read a named pipe could wait for ever.
fn text_of(file: &Path) -> String {
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_file { std::fs::read_to_string(file).unwrap_or_default() } else { String::new() }
}

/// The files whose variables Node reads before it runs the script.
fn env_files(workers: &WorkerSettings) -> Vec<&str> {
    let Some((program, arguments)) = workers.command.split_first() else { return Vec::new() };
    if !["node", "nodejs"].contains(&program.rsplit('/').next().unwrap_or_default()) {
        return Vec::new();
    }
    let script = script(program, arguments);
    let mut words = arguments.iter().map(String::as_str).take_while(|word| Some(*word) != script);
    let mut files = Vec::new();
    while let Some(word) = words.next() {
        let (option, value) =
            word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
        if ["--env-file", "--env-file-if-exists"].contains(&option) {
            files.extend(value.or_else(|| words.next()));
        }
    }
    files
}

/// Whether a line of such a file sets options.
fn sets_options(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line);
    line.split_once('=').is_some_and(|(name, value)| name.trim() == VARIABLE && !value.trim().is_empty())
}
