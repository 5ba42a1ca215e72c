//! The file behind a route's `fallback` or `respond.file`, read while loading: a request never waits for a disk. Knows no
//! routes.

use std::io::Read;
use std::path::Path;

use super::Resolver;
use crate::config::document::KeyPath;
use crate::config::resolved::Fallback;
use crate::config::value::ShowSize;

/// It is held in memory for as long as Hostler runs.
const LARGEST: u64 = 1 << 20;

impl Resolver<'_> {
    /// The file as it is now; reports what is wrong with it.
    pub(super) fn fallback(&mut self, path: &KeyPath, written: &str) -> Option<Fallback> {
        let file = self.folder.join(written);
        read(&file).map_err(|why| self.refuse(path, format!("{} {why}", file.display()))).ok()
    }
}

fn read(path: &Path) -> Result<Fallback, String> {
    let unread = |error: std::io::Error| format!("cannot be read: {error}");
    let kind = std::fs::metadata(path).map_err(unread)?;
    if kind.is_dir() {
        return Err("is a folder, not a file".into());
    }
    // A pipe would make us wait for whoever writes into it.
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
        content_type(path, &body).ok_or("has no extension that tells what it is, such as .html")?;
    Ok(Fallback { path: path.to_path_buf(), content_type, body })
}

/// Text is said to be UTF-8 only where it is.
fn content_type(path: &Path, body: &[u8]) -> Option<String> {
    let kind = mime_guess::from_path(path).first_raw()?;
    let is_utf8 = kind.starts_with("text/") && std::str::from_utf8(body).is_ok();
    Some(if is_utf8 { format!("{kind}; charset=utf-8") } else { kind.into() })
}
