//! What targets that need no pool mean, and what routes change: plain data in which everything has been checked.

use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::LoadedFile;
use crate::pattern::PathPattern;

/// An answer that needs no worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Respond {
    /// 200 to 599.
    pub status: StatusCode,
    /// No field that frames the message: those are for the server to set.
    pub headers: HeaderMap,
    /// Empty where the status allows no body.
    pub body: Body,
}

/// The body of an answer that needs no worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// As written.
    Text(String),
    /// A file, as it was when the configuration was loaded.
    File(LoadedFile),
}

impl Body {
    /// What is sent.
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
            Self::File(file) => file.body.clone(),
        }
    }
}

/// A folder whose files are answers.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticFiles {
    /// Was a folder when the configuration was loaded.
    pub dir: PathBuf,
    /// A plain name.
    pub index: Option<String>,
    /// Relative to the folder; was a file in it when the configuration was loaded.
    pub fallback: Option<PathBuf>,
    /// As `fallback`.
    pub not_found: Option<PathBuf>,
    /// The value of a field, or empty.
    pub cache_control: String,
    /// Below the folder, from a slash on.
    pub immutable: Vec<PathPattern>,
    /// Compressed forms lie beside the files.
    pub precompressed: bool,
    /// Names that begin with a dot may be seen.
    pub dotfiles: bool,
}

impl StaticFiles {
    /// Whether a file, by its path in the folder, never changes.
    pub fn is_immutable(&self, file: &Path) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let path = [b"/", file.as_os_str().as_bytes()].concat();
        self.immutable.iter().any(|pattern| pattern.matches(&path))
    }
}

/// Where requests are sent elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: StatusCode,
    /// What `Location` is made of. However a request fills it, it names the host that is written here.
    pub to: Vec<Piece>,
    /// What [`Piece::Rest`] comes after: the route's prefix, decoded.
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
    /// What follows the route's prefix, without a slash in front.
    Rest,
    /// The request's query with its `?`, or nothing.
    Query,
}

/// What a route changes on the way through.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Of the head that its member gets.
    pub request: Vec<HeaderChange>,
    /// Of the head that its client gets.
    pub answer: Vec<HeaderChange>,
    /// Of the target.
    pub rewrite: Option<Rewrite>,
    /// The member reads where the client is; only where there is a `[geo]`.
    pub geo_headers: bool,
}

/// A change of a header field. Its name is one that may be changed, and no other change has it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is its key")]
pub enum HeaderChange {
    Set(String, String),
    Add(String, String),
    Default(String, String),
    Remove(String),
}

/// What becomes of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewrite {
    /// Decoded; every path that the route takes begins with it. No slash at its end; empty for nothing.
    pub strip: String,
    /// As it stands in a URL. No slash at its end; empty for nothing.
    pub add: String,
}
