//! Answers requests with files below a folder. Knows no routes, no refusals and no client protocol.

mod body;
mod choose;
mod conditions;
mod disk;
mod kept;
mod open;
mod place;
mod request;
mod serve;
mod served;
mod shared;
mod system;

use std::io;
use std::path::Path;
use std::sync::Arc;

use hostler_coding::{self as coding, Coding};
use hostler_config::StaticFiles;
use hostler_wire::{Fields, Name, ResponseHead, media_type, tokens, weight};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use self::choose::Miss;
use self::conditions::Conditions;
use self::disk::on_blocking_thread;
use self::kept::FilesKeptOpen;
use self::open::{Blocking, Folder};
use self::place::{PlaceError, ends_in_slash, place};
use self::request::FileRequest;
use self::serve::FileLookup;
use crate::exchange::Exchange;

pub use self::served::{NotServed, ServedFile};
pub use self::shared::limit_open_files;

/// A folder that is served.
#[derive(Debug)]
pub struct Files {
    /// The folder need not exist: each request looks for it again.
    pub settings: Arc<StaticFiles>,
    /// The route matches all paths below its own, so a request for a folder reaches it with the slash too.
    pub takes_below: bool,
    /// What is no file goes to an app.
    pub is_before_app: bool,
    kept: Arc<FilesKeptOpen>,
}

impl Files {
    pub fn new(settings: Arc<StaticFiles>, takes_below: bool, is_before_app: bool) -> Self {
        Self { settings, takes_below, is_before_app, kept: Arc::default() }
    }

    pub fn folder(&self) -> &Path {
        &self.settings.dir
    }

    /// Answers a GET or HEAD request.
    pub async fn answer(&self, exchange: &Exchange) -> Result<ServedFile, NotServed> {
        let target = exchange.target();
        let path = &target[..memchr::memchr(b'?', target).unwrap_or(target.len())];
        let mut place = match place(path, self.settings.dotfiles) {
            Ok(place) => place,
            // An app may have such paths, for example with a URL in them.
            Err(PlaceError::DoubledSlash) if self.is_before_app => return Err(NotServed::Missing(None)),
            Err(PlaceError::DoubledSlash) => return Ok(redirect(&single_slashes(exchange))),
            Err(PlaceError::Never) => return Err(NotServed::Missing(None)),
        };
        if exchange.rewritten.is_some() && self.takes_below {
            // Without the route's prefix, the path of the folder itself is "/". The slash in the client's path decides.
            place.ends_in_slash = ends_in_slash(exchange.path());
        }
        let fields = &exchange.head.fields;
        let conditions = Conditions::of(fields);
        let plan = exchange.compress.as_ref().filter(|_| conditions.compares_date_of_part());
        let asked = FileRequest {
            place,
            wants_body: !exchange.is_head_request(),
            conditions,
            codings: if self.settings.precompressed { codings(fields) } else { Vec::new() },
            takes_page: takes_page(exchange),
            encoding: plan.map(|plan| Box::new((plan.clone(), fields.clone()))),
        };
        // On a local disk, files in the page cache are read on the request's thread.
        let at_once = self
            .settings
            .is_local
            .then(|| serve::serve(&self.settings, &Folder::keeping(self.folder(), &self.kept), &asked));
        let found = match at_once {
            None | Some(Err(Miss::WouldWait)) => {
                let settings = self.settings.clone();
                let look =
                    move || Ok(serve::serve(&settings, &Folder::at(&settings.dir, Blocking::Any), &asked));
                on_blocking_thread(look).await.map_err(NotServed::Unreadable)?
            }
            Some(found) => found,
        };
        match found {
            Ok(FileLookup::Answer(served)) => Ok(served),
            Ok(FileLookup::FolderWithoutSlash) => Ok(redirect(&with_slash(exchange))),
            // Some builds remove the folder and make it again.
            Err(Miss::NotServed(NotServed::Unreadable(error)))
                if self.is_before_app && error.kind() == io::ErrorKind::NotFound =>
            {
                Err(NotServed::Missing(None))
            }
            Err(Miss::NotServed(why)) => Err(why),
            Err(Miss::WouldWait) => Err(NotServed::Unreadable(io::ErrorKind::WouldBlock.into())),
        }
    }
}

/// True if `Accept` contains HTML or `*/*` with a weight above 0, or is missing.
fn takes_page(exchange: &Exchange) -> bool {
    let mut ranges = exchange.head.fields.all(Name::Accept).flat_map(tokens).peekable();
    ranges.peek().is_none()
        || ranges.any(|range| {
            let kind = media_type(range);
            let mut parameters = range.split(|&byte| byte == b';').skip(1).map(<[u8]>::trim_ascii);
            [&b"text/html"[..], b"text/*", b"*/*"].iter().any(|page| kind.eq_ignore_ascii_case(page))
                && !parameters.any(|parameter| weight(parameter) == Some(0))
        })
}

/// The codings that the request accepts, in order of preference.
fn codings(fields: &Fields) -> Vec<Coding> {
    // The codings of common build tools; the first one mostly gives the smallest file.
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

/// Characters that a field value must not contain, or that browsers read as a slash.
const ODD: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\');

/// The folder with a slash, relative to the request's path: this stays right behind proxies that remove a prefix.
fn with_slash(exchange: &Exchange) -> String {
    let (path, query) = exchange.head.target().split_at(exchange.path().len());
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    format!("./{}/{}", percent_encode(name, ODD), percent_encode(query, ODD))
}

/// The request's target with repeated slashes replaced by one.
fn single_slashes(exchange: &Exchange) -> String {
    let (path, query) = exchange.head.target().split_at(exchange.path().len());
    let mut single = path.to_vec();
    single.dedup_by(|next, before| *next == b'/' && *before == b'/');
    format!("{}{}", percent_encode(&single, ODD), percent_encode(query, ODD))
}
