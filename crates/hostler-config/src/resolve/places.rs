//! Checks the places where a start makes files: the log and the socket of the admin listener. Makes none.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::Resolver;
use crate::access;
use crate::document::KeyPath;
use crate::resolved::Config;
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
    }
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
