//! Checks that workers can start: program, script and folder are there, and this process may use them. Starts nothing.

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
            if let Err(why) = outcome {
                self.refuse(&KeyPath::of("pools").key(&pool.name).key("command"), why);
            }
        }
    }

    /// The PATH of the pool's workers.
    fn search_path<'a>(&'a self, workers: &'a WorkerSettings) -> Option<&'a str> {
        let own = self.load_context.environment.get("PATH");
        workers.env.get("PATH").or(own).map(String::as_str)
    }
}
