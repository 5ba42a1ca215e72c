//! What the files of `resolve` share: the places in the file, the machine, and the report. Knows no section.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::access;
use crate::document::{Document, KeyPath};
use crate::error::Report;
use crate::invocation::LoadContext;
use crate::resolved::Config;

/// The path of a Unix socket must fit into `sun_path`, with its closing NUL: 108 bytes on Linux, 104 elsewhere.
const LONGEST_SOCKET_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// What resolving reads, and where it reports to.
pub struct Resolver<'a> {
    /// The places in the file.
    pub document: &'a Document,
    /// The machine, and the folder in which Hostler was started.
    pub load_context: &'a LoadContext,
    /// The folder of the file. Relative paths start here.
    pub folder: &'a Path,
    /// This process serves requests meanwhile, so nothing may end it.
    pub serves: bool,
    /// With which configuration, if it is known.
    pub current: Option<&'a Config>,
    /// The start may use another admin port than the default one, which may be one for clients then.
    pub may_move_admin: bool,
    /// Where errors go. After an error, returned values are never used.
    pub report: &'a mut Report,
}

impl Resolver<'_> {
    /// Reports an error about the value at this key.
    pub(super) fn refuse(&mut self, path: &KeyPath, why: impl Display) {
        let written = self.document.original(path);
        self.report.error(self.document.place_of_value(path), format!("{written}: {why}"));
    }

    /// The folder at this key. Refuses it if it does not exist or may not be read.
    pub(super) fn folder_at(&mut self, path: &KeyPath, written: &str) -> PathBuf {
        let folder = self.folder.join(written);
        // `.` and `..` stay as they are. Removing them from the text would be wrong behind symbolic links.
        let folder = if written == "." { self.folder.to_path_buf() } else { folder };
        if written.is_empty() {
            // Perhaps a variable without a value. It must not publish the folder with the configuration.
            self.refuse(path, "is empty; for the folder of the configuration file write \".\"");
        } else if let Err(why) = access::folder(&folder) {
            self.refuse(path, why);
        }
        folder
    }

    /// The path of a Unix socket at this key.
    pub(super) fn socket_at(&mut self, path: &KeyPath, written: &Path) -> PathBuf {
        let socket = self.folder.join(written);
        if socket.as_os_str().len() > LONGEST_SOCKET_PATH {
            self.refuse(path, format!("the path of a Unix socket may have {LONGEST_SOCKET_PATH} bytes"));
        }
        socket
    }
}
