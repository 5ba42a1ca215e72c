//! The meaning of a route's `fallback`, and files of responses (`respond.file`). They are read while the configuration is loaded, so that
//! a request never waits for a disk. Knows no routes.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Resolver;
use crate::access;
use crate::document::KeyPath;
use crate::error::nearest;
use crate::file::Buffer;
use crate::media_type::media_type_of;
use crate::resolved::{Fallback, LoadedFile};
use crate::value::{Period, ShowSize};

/// The word for a response that Hostler makes. A file cannot have this name, because it needs an extension.
const HYPERNOVA: &str = "hypernova";
/// A file stays in memory as long as Hostler runs.
const LARGEST: u64 = 1 << 20;

impl Resolver<'_> {
    /// The file as it is now, or Hypernova's fallback. Reports errors.
    pub(super) fn fallback(&mut self, path: &KeyPath, written: &str, buffer: Buffer) -> Option<Fallback> {
        if written == HYPERNOVA {
            if buffer == Buffer::None {
                let why = "needs the whole batch, and does not work with buffer = \"none\"";
                self.refuse(path, format!("\"{HYPERNOVA}\" {why}"));
            }
            return Some(Fallback::Hypernova);
        }
        let is_near = nearest(&written.to_lowercase(), [HYPERNOVA]).is_some();
        let help = if is_near { "; did you mean \"hypernova\"?" } else { "" };
        self.file_or(help, path, written).map(|file| Fallback::File(Arc::new(file)))
    }

    /// A warning only, because an app may be slow on purpose. But a page should not come after the time of an API.
    pub(super) fn warn_of_a_late_fallback(&mut self, route: &KeyPath, pool: &str, time_limit: Duration) {
        let of_pool = KeyPath::of("pools").key(pool).key("request_timeout");
        if self.document.is_written(&route.key("request_timeout")) || self.document.is_written(&of_pool) {
            return;
        }
        let path = route.key("fallback");
        let place = self.document.place_of_key(&path);
        let help = "set request_timeout of the route, such as \"1s\"";
        self.report.warn(
            place,
            format!(
                "{path}: if a worker is slow, the fallback comes only after {}; {help}",
                Period(time_limit)
            ),
        );
    }

    /// The file as it is now. Reports errors.
    pub(super) fn loaded_file(&mut self, path: &KeyPath, written: &str) -> Option<LoadedFile> {
        self.file_or("", path, written)
    }

    fn file_or(&mut self, help: &str, path: &KeyPath, written: &str) -> Option<LoadedFile> {
        let file = self.folder.join(written);
        read(&file).map_err(|why| self.refuse(path, format!("{} {why}{help}", file.display()))).ok()
    }
}

fn read(path: &Path) -> Result<LoadedFile, String> {
    let unread = |error: std::io::Error| access::unreadable(&error);
    let kind = std::fs::metadata(path).map_err(unread)?;
    if kind.is_dir() {
        return Err("is a folder, not a file".into());
    }
    // Reading a pipe would wait for its writer.
    if !kind.is_file() {
        return Err("is not a regular file".into());
    }
    let mut body = Vec::new();
    let file = std::fs::File::open(path).map_err(unread)?;
    file.take(LARGEST + 1).read_to_end(&mut body).map_err(unread)?;
    match body.len() as u64 {
        0 => return Err("is empty".into()),
        size if size > LARGEST => return Err(format!("is larger than {}", ShowSize(LARGEST))),
        _ => {}
    }
    let content_type =
        content_type(path, &body).ok_or("has no extension with a known type, such as .html")?;
    Ok(LoadedFile { path: path.to_path_buf(), content_type, body: body.into() })
}

/// Adds the charset only if the text is UTF-8.
fn content_type(path: &Path, body: &[u8]) -> Option<String> {
    let kind = media_type_of(path)?;
    let is_utf8 = kind.starts_with("text/") && std::str::from_utf8(body).is_ok();
    Some(if is_utf8 { format!("{kind}; charset=utf-8") } else { kind.into() })
}
