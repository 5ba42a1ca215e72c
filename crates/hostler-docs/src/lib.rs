//! The documentation as HTML pages inside the program. `build.rs` makes them of the pages in `docs/`. Knows no HTTP.

use std::io::Read as _;

use flate2::read::GzDecoder;

/// All files, in the order of their paths.
const FILES: &[DocsFile] = include!(concat!(env!("OUT_DIR"), "/index.rs"));

/// A page, a picture or the style sheet.
#[derive(Debug, Clone, Copy)]
pub struct DocsFile {
    path: &'static str,
    gzip: &'static [u8],
}

/// The file with this path below `docs/`, for example `guide/live.md`. The empty path is the list of all pages.
pub fn file(path: &str) -> Option<DocsFile> {
    FILES.binary_search_by_key(&path, |file| file.path).ok().map(|at| FILES[at])
}

impl DocsFile {
    /// Its `Content-Type`. A page is HTML, also if its path ends with `.md` as in the repository.
    pub fn media_type(self) -> &'static str {
        match self.path.rsplit_once('.') {
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        }
    }

    /// Its content, compressed by gzip.
    pub fn gzip(self) -> &'static [u8] {
        self.gzip
    }

    /// Its content.
    pub fn content(self) -> Vec<u8> {
        let mut content = Vec::new();
        // The compressed bytes are part of the program, so they are whole.
        let _ = GzDecoder::new(self.gzip).read_to_end(&mut content);
        content
    }
}

#[cfg(test)]
mod tests;
