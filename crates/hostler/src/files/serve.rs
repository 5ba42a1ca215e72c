//! From a place to an answer: which file, which form of it, which part. All of it may block.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hostler_wire::ResponseHead;
use rustix::fd::OwnedFd;

use super::body::FileBody;
use super::conditions::{Conditions, Validators, Verdict};
use super::open::{self, Opened};
use super::place::Place;
use super::variant::Coding;
use super::{NotServed, Served};
use crate::config::StaticFiles;

/// Who may keep it for a year without asking.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// What a request says that matters to a file.
pub(super) struct Asked {
    pub place: Place,
    /// GET, not HEAD.
    pub wants_body: bool,
    pub conditions: Conditions,
    /// The best first.
    pub codings: Vec<Coding>,
    pub takes_page: bool,
}

/// What there is.
pub(super) enum Found {
    Answer(Served),
    /// The place is a folder, and its name came without a slash: what its pages refer to would be looked for elsewhere.
    FolderWithoutSlash,
}

/// A file that is to be sent.
struct Chosen {
    /// The name that was asked for; the file may be a compressed form of it.
    path: PathBuf,
    file: File,
    about: Metadata,
    coding: Option<Coding>,
    /// Its name says that it never changes.
    immutable: bool,
}

/// Answers.
pub(super) fn serve(settings: &StaticFiles, asked: &Asked) -> Result<Found, NotServed> {
    let folder = open::folder(&settings.dir).map_err(NotServed::Unreadable)?;
    match choose(&folder, settings, asked) {
        Ok(Some(chosen)) => answer(chosen, settings, asked),
        Ok(None) => return Ok(Found::FolderWithoutSlash),
        Err(NotServed::Missing(detail)) => match page_instead(&folder, settings, asked) {
            Some(chosen) => answer(chosen, settings, asked),
            None => Err(NotServed::Missing(detail)),
        },
        Err(other) => Err(other),
    }
    .map(Found::Answer)
}

/// The file at the place; none for a folder without its slash.
fn choose(folder: &OwnedFd, settings: &StaticFiles, asked: &Asked) -> Result<Option<Chosen>, NotServed> {
    let Place { path, ends_in_slash } = &asked.place;
    let path = match (open::below(folder, path).map_err(|error| missing(path, error))?, ends_in_slash) {
        (Opened::File(file, about), false) => {
            return Ok(Some(best_form(
                folder,
                path.clone(),
                (file, about),
                asked,
                settings.is_immutable(path),
            )));
        }
        (Opened::File(..), true) => return Err(NotServed::Missing(None)),
        (Opened::Folder, ends_in_slash) => match &settings.index {
            None => return Err(NotServed::Missing(Some("it is a folder".into()))),
            Some(index) if *ends_in_slash => path.join(index),
            Some(index) => match open::below(folder, &path.join(index)) {
                Ok(Opened::File(..)) => return Ok(None),
                _ => return Err(NotServed::Missing(Some(format!("it is a folder without {index}")))),
            },
        },
    };
    match open::below(folder, &path) {
        Ok(Opened::File(file, about)) => Ok(Some(best_form(folder, path, (file, about), asked, false))),
        Ok(Opened::Folder) => Err(NotServed::Missing(None)),
        Err(error) => Err(missing(&path, error)),
    }
}

/// The page of an app that finds its way in the browser, for those who ask for a page: what has the extension of a known kind is an
/// asset, and an HTML page in its place would only be a riddle.
fn page_instead(folder: &OwnedFd, settings: &StaticFiles, asked: &Asked) -> Option<Chosen> {
    let fallback = settings.fallback.as_ref()?;
    let is_asset =
        mime_guess::from_path(&asked.place.path).first_raw().is_some() && !asked.place.ends_in_slash;
    if is_asset || !asked.takes_page {
        return None;
    }
    match open::below(folder, fallback) {
        Ok(Opened::File(file, about)) => {
            Some(best_form(folder, fallback.clone(), (file, about), asked, false))
        }
        _ => None,
    }
}

/// The first of the forms that lies beside it, or it itself.
fn best_form(
    folder: &OwnedFd,
    path: PathBuf,
    (file, about): (File, Metadata),
    asked: &Asked,
    immutable: bool,
) -> Chosen {
    for &coding in &asked.codings {
        let mut beside = path.clone().into_os_string();
        beside.push(".");
        beside.push(coding.suffix);
        if let Ok(Opened::File(file, about)) = open::below(folder, Path::new(&beside)) {
            return Chosen { path, file, about, coding: Some(coding), immutable };
        }
    }
    Chosen { path, file, about, coding: None, immutable }
}

fn answer(chosen: Chosen, settings: &StaticFiles, asked: &Asked) -> Result<Served, NotServed> {
    let now = SystemTime::now();
    let (length, there) = (chosen.about.len(), validators(&chosen, now));
    let verdict = asked.conditions.judge(&there, length, asked.wants_body, now);
    let (mut head, part) = match verdict {
        Verdict::Failed => return Err(NotServed::Precondition),
        Verdict::OutOfRange => return Err(NotServed::Range(length)),
        Verdict::NotModified => {
            let mut head = ResponseHead::new(304, "Not Modified");
            write_metadata(&mut head, &chosen, settings, &there);
            return Ok(Served::Bare(head));
        }
        Verdict::Whole => (ResponseHead::new(200, "OK"), 0..length),
        Verdict::Part(part) => {
            let mut head = ResponseHead::new(206, "Partial Content");
            let range = format!("bytes {}-{}/{length}", part.start, part.end - 1);
            head.fields.add(b"Content-Range", range.as_bytes());
            (head, part)
        }
    };
    head.fields.add(b"Content-Type", content_type(&chosen.path).as_bytes());
    if let Some(coding) = chosen.coding {
        head.fields.add(b"Content-Encoding", coding.name.as_bytes());
    }
    head.fields.add(b"Accept-Ranges", b"bytes");
    write_metadata(&mut head, &chosen, settings, &there);
    let length = part.end - part.start;
    // To HEAD nothing is read: that there is such a file is all it asks.
    let read = if asked.wants_body { length } else { 0 };
    let body = FileBody::begin(chosen.file, part.start, read).map_err(NotServed::Unreadable)?;
    Ok(Served::File { head, length, body: Box::new(body) })
}

/// What a 304 has as well as a 200 (RFC 9110 section 15.4.5).
fn write_metadata(head: &mut ResponseHead, chosen: &Chosen, settings: &StaticFiles, there: &Validators) {
    head.fields.add(b"ETag", there.etag.as_bytes());
    if let Some(modified) = there.modified {
        head.fields.add(b"Last-Modified", httpdate::fmt_http_date(modified).as_bytes());
    }
    let caching = if chosen.immutable { FOR_EVER } else { &settings.cache_control };
    if !caching.is_empty() {
        head.fields.add(b"Cache-Control", caching.as_bytes());
    }
    if settings.precompressed {
        head.fields.add(b"Vary", b"Accept-Encoding");
    }
}

/// From size and time, as file servers do it: the time in nanoseconds, so that two changes in one second are two. Forms of one file
/// have different tags, whatever their sizes.
fn validators(chosen: &Chosen, now: SystemTime) -> Validators {
    let about = &chosen.about;
    // Reproducible builds date every file to the beginning of time; when it came to lie here tells more.
    let is_dated = about.mtime() > 1;
    let (seconds, nanoseconds) = match is_dated {
        true => (about.mtime(), about.mtime_nsec()),
        false => (about.ctime(), about.ctime_nsec()),
    };
    let form = chosen.coding.map_or(String::new(), |coding| format!("-{}", coding.suffix));
    let etag = format!("\"{seconds:x}.{nanoseconds:x}-{:x}{form}\"", about.len());
    let modified = u64::try_from(seconds).ok().filter(|_| is_dated);
    let modified = modified.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    // A date to come would be none (RFC 9110 section 8.8.2.1).
    Validators { etag, modified: modified.filter(|modified| *modified <= now) }
}

/// By the extension. Text is taken for UTF-8, as everything is that is written today.
fn content_type(path: &Path) -> String {
    let kind = match path.extension().and_then(|extension| extension.to_str()) {
        // As the HTML standard has it; a source map is JSON.
        Some("mjs" | "cjs") => "text/javascript",
        Some("map") => "application/json",
        _ => mime_guess::from_path(path).first_raw().unwrap_or("application/octet-stream"),
    };
    let is_text = kind.starts_with("text/") || kind == "image/svg+xml";
    if is_text { format!("{kind}; charset=utf-8") } else { kind.into() }
}

/// Not there, not ours to give, or out of reach, which to a client is all the same; what else goes wrong is not.
fn missing(path: &Path, error: io::Error) -> NotServed {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied};
    use rustix::io::Errno;
    match (error.kind(), Errno::from_io_error(&error)) {
        (NotFound | NotADirectory | InvalidFilename, _) => NotServed::Missing(None),
        (PermissionDenied, _) => NotServed::Missing(Some(format!("{}: {error}", path.display()))),
        (_, Some(Errno::XDEV)) => {
            NotServed::Missing(Some(format!("{}: a symbolic link leads out of the folder", path.display())))
        }
        (_, Some(Errno::LOOP | Errno::NXIO)) => {
            NotServed::Missing(Some(format!("{}: {error}", path.display())))
        }
        _ => NotServed::Unreadable(error),
    }
}
