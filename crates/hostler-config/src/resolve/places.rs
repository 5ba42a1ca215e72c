//! Checks the places where Hostler makes files: the log, the socket of the admin listener and the folder for temporary files. Makes none.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use hostler_worker::can_hold_sockets;

use super::Resolver;
use crate::access;
use crate::document::KeyPath;
use crate::resolved::{Config, Pool, PoolMembers};
use crate::value::ListenAddress;

impl Resolver<'_> {
    /// Refuses places where this process could not make the file. What [`Resolver::config`] has refused is not refused again.
    pub fn check_places(&mut self, config: &Config) {
        if let Some(file) = config.log.file.as_deref().filter(|file| !file.is_dir() && has_folder(file))
            && let Err(why) = access::writable(file)
        {
            self.refuse(&KeyPath::of("log.file"), why);
        }
        if let Some(ListenAddress::Unix(socket)) = &config.server.admin
            && let Err(why) = replaceable(socket)
        {
            self.refuse(&KeyPath::of("server.admin"), why);
        }
        self.check_temp_dir(config);
    }

    /// A start makes the sockets of workers in `XDG_RUNTIME_DIR`, or else in `temp_dir`. What else goes to `temp_dir` is not needed before a
    /// request comes.
    fn check_temp_dir(&mut self, config: &Config) {
        let (key, folder) = (KeyPath::of("server.temp_dir"), &config.server.temp_dir);
        let was_told = self.document.is_written(&key) && access::folder(folder).is_err();
        let runtime = self.load_context.environment.get("XDG_RUNTIME_DIR").map(Path::new);
        let has_runtime = runtime.is_some_and(|folder| {
            folder.is_absolute() && unusable(folder).is_none() && can_hold_sockets(folder)
        });
        let is_of_workers = |pool: &Pool| matches!(pool.source, PoolMembers::Workers(_));
        let is_for_sockets = !has_runtime && config.pools.iter().any(is_of_workers);
        let too_long = format!("{} is too long for the path of a socket of a worker", folder.display());
        let too_long = Some(too_long).filter(|_| is_for_sockets && !can_hold_sockets(folder));
        let Some(why) = unusable(folder).or(too_long).filter(|_| !was_told) else { return };
        if is_for_sockets {
            return self.refuse(&key, why);
        }
        let later = "a request with a body over server.body_memory will get 500 (storage)";
        self.report.warn(self.document.place_of_value(&key), format!("{key}: {why}; {later}"));
    }
}

/// Why no file can be made in this folder.
fn unusable(folder: &Path) -> Option<String> {
    access::makeable(&folder.join("file")).err()
}

fn has_folder(file: &Path) -> bool {
    file.parent().is_none_or(|folder| access::folder(folder).is_ok())
}

/// A start replaces a socket file that a killed process has left, and nothing else.
fn replaceable(socket: &Path) -> Result<(), String> {
    match socket.symlink_metadata() {
        Ok(about) if !about.file_type().is_socket() => {
            Err(format!("{} is not a socket; remove it, or use another path", socket.display()))
        }
        _ => access::makeable(socket),
    }
}
