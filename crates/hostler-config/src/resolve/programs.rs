//! Checks that workers can start: program, script and folder are there, and this process may use them. Starts nothing.

use std::path::PathBuf;

use hostler_worker::WorkerSettings;

use super::Resolver;
use super::script::script;
use crate::access;
use crate::document::KeyPath;
use crate::resolved::{Config, PoolMembers};

impl Resolver<'_> {
    /// Refuses commands whose program or script is not there.
    pub fn check_programs(&mut self, config: &Config) {
        self.warn_of_lost_node_options(config);
        for pool in &config.pools {
            let PoolMembers::Workers(workers) = &pool.source else { continue };
            // A missing folder is already reported.
            let Some((name, arguments)) = workers.command.split_first().filter(|_| workers.cwd.is_dir())
            else {
                continue;
            };
            let outcome = access::program(name, &workers.cwd, self.search_path(workers)).and_then(|()| {
                let script = script(name, arguments);
                script.map_or(Ok(()), |script| access::script(&workers.cwd.join(script)))
            });
            let path = KeyPath::of("pools").key(&pool.name).key("command");
            let before = self.current.and_then(|current| current.pool(&pool.name));
            match outcome {
                Ok(()) => {}
                Err(why) if before == Some(pool) => self.warn_of_what_is_gone(&path, &why),
                Err(why) => self.refuse(&path, why),
            }
        }
    }

    /// The folder of a pool's workers. Running workers keep theirs, also if it is gone.
    pub(super) fn folder_of_workers(&mut self, path: &KeyPath, pool: &str, written: &str) -> PathBuf {
        let folder = self.folder.join(written);
        let is_theirs = self.current.and_then(|current| current.pool(pool)).is_some_and(
            |before| matches!(&before.source, PoolMembers::Workers(workers) if workers.cwd == folder),
        );
        match access::folder(&folder) {
            Err(why) if is_theirs => {
                self.warn_of_what_is_gone(path, &why);
                folder
            }
            _ => self.folder_at(path, written),
        }
    }

    fn warn_of_what_is_gone(&mut self, path: &KeyPath, why: &str) {
        let place = self.document.place_of_value(path);
        self.report.warn(place, format!("{path}: {why}; running workers go on, and no other one can start"));
    }

    /// The PATH of the pool's workers.
    fn search_path<'a>(&'a self, workers: &'a WorkerSettings) -> Option<&'a str> {
        let own = self.load_context.environment.get("PATH");
        workers.env.get("PATH").or(own).map(String::as_str)
    }
}
