//! The meaning of targets without a pool, and of changes of routes: plain data that has been checked.

use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::pattern::PathPattern;

/// A fixed response.
#[derive(Clone, Debug, PartialEq)]
pub struct Respond {
    /// 200 to 599.
    pub status: StatusCode,
    /// No field that frames the message; the server sets those.
    pub headers: HeaderMap,
    /// Empty if the status allows no body.
    pub body: Body,
}

/// The body of a fixed response.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// As written.
    Text(String),
    /// A file, as it was when the configuration was loaded.
    File(LoadedFile),
}

impl Body {
    /// The bytes to send.
    #[inline] // requests call it: Cargo.toml
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
            Self::File(file) => file.body.clone(),
        }
    }
}

/// A file that is sent as a response, as it was when the configuration was loaded.
#[derive(Clone, PartialEq)]
pub struct LoadedFile {
    /// Absolute if the file's folder is.
    pub path: PathBuf,
    /// The content type, from its extension.
    pub content_type: String,
    /// Never empty.
    pub body: Bytes,
}

impl fmt::Debug for LoadedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, content_type, body } = self;
        let body = format_args!("{} bytes", body.len());
        f.debug_struct("LoadedFile")
            .field("path", path)
            .field("content_type", content_type)
            .field("body", &body)
            .finish()
    }
}

/// A folder whose files are responses.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticFiles {
    /// The folder. It existed when the configuration was loaded.
    pub dir: PathBuf,
    /// It is on a local disk. A network file system may not answer that question, so it is asked where the configuration is loaded: the
    /// control thread does not wait there.
    pub is_local: bool,
    /// A plain name.
    pub index: Option<String>,
    /// Relative to the folder. The file existed when the configuration was loaded.
    pub fallback: Option<PathBuf>,
    /// As `fallback`.
    pub not_found: Option<PathBuf>,
    /// The value of the header field, or empty.
    pub cache_control: String,
    /// Paths in the folder. They begin with a slash.
    pub immutable: Vec<PathPattern>,
    /// Whether there may be compressed files beside the files.
    pub precompressed: bool,
    /// Whether names that begin with a dot are served.
    pub dotfiles: bool,
}

impl StaticFiles {
    /// Whether a file, by its path in the folder, never changes.
    #[inline] // requests call it: Cargo.toml
    pub fn is_immutable(&self, file: &Path) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let path = [b"/", file.as_os_str().as_bytes()].concat();
        self.immutable.iter().any(|pattern| pattern.matches(&path))
    }
}

/// A redirect.
#[derive(Clone, Debug, PartialEq)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: StatusCode,
    /// The parts of `Location`. A request cannot change its host.
    pub to: Vec<Piece>,
    /// The route's prefix, decoded. [`Piece::Rest`] comes after it.
    pub prefix: String,
}

/// Status and URL, as written.
impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to ", self.status.as_u16())?;
        self.to.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Host => f.write_str("{host}"),
            Piece::Path => f.write_str("{path}"),
            Piece::Rest => f.write_str("{rest}"),
            Piece::Query => f.write_str("{query}"),
        })
    }
}

/// A piece of a URL.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// As written.
    Text(String),
    /// The request's host, without port.
    Host,
    /// The request's path.
    Path,
    /// What follows the route's prefix, without a slash at its beginning.
    Rest,
    /// The request's query with its `?`, or nothing.
    Query,
}

/// The changes that a route makes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Changes of the head that the member gets.
    pub request: Vec<HeaderChange>,
    /// Changes of the head that the client gets.
    pub answer: Vec<HeaderChange>,
    /// The change of the target.
    pub rewrite: Option<Rewrite>,
    /// Whether the member gets the client's location. Only with `[geo]`.
    pub geo_headers: bool,
}

/// A change of a header field. The name may be changed, and no other change has it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is its key")]
pub enum HeaderChange {
    Set(String, String),
    Add(String, String),
    Default(String, String),
    Remove(String),
}

/// The change of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewrite {
    /// The prefix to remove, decoded. Every path of the route begins with it. It has no slash at its end. Empty: none.
    pub strip: String,
    /// The prefix to add, as in a URL. It has no slash at its end. Empty: none.
    pub add: String,
}
