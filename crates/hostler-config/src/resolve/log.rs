//! The meaning of `[log]`. Opens no file.

use super::Resolver;
use crate::access;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::Log;

impl Resolver<'_> {
    /// The meaning of `[log]`, also if the section is not written.
    pub(super) fn log(&mut self, written: &file::Log) -> Log {
        let section = KeyPath::of("log");
        let file = written.file.as_ref().map(|file| self.folder.join(file));
        if let Some(folder) = file.as_deref().and_then(std::path::Path::parent)
            && let Err(why) = access::folder(folder)
        {
            self.refuse(&section.key("file"), why);
        }
        if let Some(folder) = file.as_deref().filter(|file| file.is_dir()) {
            self.refuse(&section.key("file"), access::folder_for_file(folder));
        }
        for (index, _) in written.redact.iter().enumerate().filter(|(_, name)| name.trim().is_empty()) {
            self.refuse(&section.key("redact").index(index), "is empty; write the name of a query parameter");
        }
        Log {
            level: written.level,
            sample: u32::try_from(written.sample.get()).unwrap_or(u32::MAX),
            slow: written.slow.0,
            redact: written.redact.clone(),
            file,
        }
    }
}
