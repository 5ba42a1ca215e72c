//! Files below a folder as answers to requests. Knows no routes, no refusals and no client protocol.

mod body;
mod choose;
mod conditions;
mod open;
mod place;
mod serve;

use std::io;
use std::path::Path;
use std::sync::Arc;

use choose::Miss;
use conditions::Conditions;
use hostler_coding::{self as coding, Coding};
use hostler_config::StaticFiles;
use hostler_wire::{Fields, Name, ResponseHead, tokens};
use open::Blocking;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use place::{NoPlace, ends_in_slash, place};
use serve::{FileLookup, FileRequest};
use tokio::task::spawn_blocking;

use crate::exchange::{BodySource, Exchange};

/// A folder whose files are answers.
#[derive(Debug)]
pub struct Files {
    settings: Arc<StaticFiles>,
    /// Its route takes whatever lies below a path, so that a folder's name leads here with a slash as well.
    takes_below: bool,
    /// What the kernel has at hand is given at once.
    is_local: bool,
}

/// What a request gets: a file or a part of it, 304, or a redirect to where the file is.
pub struct ServedFile {
    /// The answer's head, without fields that frame the message.
    pub head: ResponseHead,
    /// How long the body is; with an answer to HEAD, how long it would be.
    pub length: u64,
    /// It.
    pub body: Box<dyn BodySource>,
}

impl ServedFile {
    fn bare(head: ResponseHead) -> Self {
        Self { head, length: 0, body: Box::new(io::empty()) }
    }
}

/// Why it gets no file.
#[derive(Debug)]
pub enum NotServed {
    /// There is none, or none for everybody. With what the operator should know.
    Missing(Option<String>),
    /// `If-Match` or `If-Unmodified-Since` do not hold.
    Precondition,
    /// The part that is wanted lies behind its end: so many bytes there are.
    Range(u64),
    /// It is there, and the system does not give it.
    Unreadable(io::Error),
}

impl Files {
    /// What these settings say, for a route that takes one path or all that lies below it. Whether anything is there is asked at
    /// each request.
    pub fn new(settings: StaticFiles, takes_below: bool) -> Self {
        let is_local = open::is_local(&settings.dir);
        Self { settings: Arc::new(settings), takes_below, is_local }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.settings.dir
    }

    /// Answers a GET or a HEAD.
    pub async fn answer(&self, exchange: &Exchange) -> Result<ServedFile, NotServed> {
        let target = exchange.target();
        let path = &target[..memchr::memchr(b'?', target).unwrap_or(target.len())];
        let mut place = match place(path, self.settings.dotfiles) {
            Ok(place) => place,
            Err(NoPlace::DoubledSlash) => return Ok(redirect(&single_slashes(exchange))),
            Err(NoPlace::Never) => return Err(NotServed::Missing(None)),
        };
        if exchange.rewritten.is_some() && self.takes_below {
            // What is left of a prefix by itself is "/", a slash that its client has not seen.
            place.ends_in_slash = ends_in_slash(exchange.path());
        }
        let fields = &exchange.head.fields;
        let asked = FileRequest {
            place,
            wants_body: !exchange.is_head_request(),
            conditions: Conditions::of(fields),
            codings: if self.settings.precompressed { codings(fields) } else { Vec::new() },
            takes_page: takes_page(exchange),
        };
        let found = match self.is_local.then(|| serve::serve(&self.settings, &asked, Blocking::None)) {
            None | Some(Err(Miss::WouldWait)) => {
                let settings = self.settings.clone();
                let looking = spawn_blocking(move || serve::serve(&settings, &asked, Blocking::Any));
                looking.await.map_err(|error| NotServed::Unreadable(io::Error::other(error)))?
            }
            Some(found) => found,
        };
        match found {
            Ok(FileLookup::Answer(served)) => Ok(served),
            Ok(FileLookup::FolderWithoutSlash) => Ok(redirect(&with_slash(exchange))),
            Err(Miss::NotServed(why)) => Err(why),
            Err(Miss::WouldWait) => Err(NotServed::Unreadable(io::ErrorKind::WouldBlock.into())),
        }
    }
}

/// `Accept` names HTML, or takes anything, as it does by its absence.
fn takes_page(exchange: &Exchange) -> bool {
    let lines = exchange.head.fields.iter().filter(|(_, name, _)| name.eq_ignore_ascii_case(b"accept"));
    let mut ranges = lines.flat_map(|(_, _, value)| tokens(value)).peekable();
    ranges.peek().is_none()
        || ranges.any(|range| {
            let kind = range.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
            [&b"text/html"[..], b"text/*", b"*/*"].iter().any(|page| kind.eq_ignore_ascii_case(page))
        })
}

/// Those that a request takes, the one that it wants most first.
fn codings(fields: &Fields) -> Vec<Coding> {
    // What build tools make; mostly the first is the smallest.
    let mut left = vec![Coding::Brotli, Coding::Zstd, Coding::Gzip];
    let next = || {
        let next = coding::choose(fields.all(Name::AcceptEncoding), &left)?;
        left.retain(|coding| *coding != next);
        Some(next)
    };
    std::iter::from_fn(next).collect()
}

fn redirect(location: &str) -> ServedFile {
    let mut head = ResponseHead::with_status(308);
    head.fields.add(b"Location", location.as_bytes());
    ServedFile::bare(head)
}

/// What cannot stand in a field, or what browsers take for a slash.
const ODD: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\');

/// The folder itself, seen from its name: that is right also behind proxies that have taken away a part of the path.
fn with_slash(exchange: &Exchange) -> String {
    let (path, query) = exchange.head.target().split_at(exchange.path().len());
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    format!("./{}/{}", percent_encode(name, ODD), percent_encode(query, ODD))
}

/// The request's target with one slash for several.
fn single_slashes(exchange: &Exchange) -> String {
    let (path, query) = exchange.head.target().split_at(exchange.path().len());
    let mut single = path.to_vec();
    single.dedup_by(|next, before| *next == b'/' && *before == b'/');
    format!("{}{}", percent_encode(&single, ODD), percent_encode(query, ODD))
}
