//! Makes the answer for a file: conditions, ranges and fields. Knows no client protocol.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hostler_coding::EncodingDecision;
use hostler_config::{StaticFiles, media_type_of};
use hostler_wire::{ResponseHead, content_range};

use super::body::{FileBody, at_hand};
use super::choose::{Chosen, FileRole, Miss, choose, own_coding};
use super::conditions::{ConditionOutcome, FileValidators};
use super::open::{Blocking, Folder};
use super::request::FileRequest;
use super::served::{NotServed, ServedFile};

/// Caches may keep the file for a year without validation.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// The year 2001. Tools that make the same file each time give all files one date before it: 1970, 1980 (zip), 1985 (`npm pack`), 2000 (Bazel).
/// The inode's change time is better then.
const FIRST_DATE: i64 = 978_307_200;

pub(super) enum FileLookup {
    Answer(ServedFile),
    /// The path is a folder without a slash at the end: relative links in its pages would point elsewhere.
    FolderWithoutSlash,
}

/// Answers a request. It blocks only if the folder may.
pub(super) fn serve(
    settings: &StaticFiles,
    folder: &Folder<'_>,
    asked: &FileRequest,
) -> Result<FileLookup, Miss> {
    let blocking = folder.blocking();
    match choose(folder, settings, asked)? {
        Some(chosen) if chosen.role == FileRole::NotFound => not_found(chosen, settings, asked, blocking),
        Some(chosen) => answer(chosen, settings, asked, blocking),
        None => return Ok(FileLookup::FolderWithoutSlash),
    }
    .map(FileLookup::Answer)
    .map_err(Miss::NotServed)
}

fn answer(
    chosen: Chosen,
    settings: &StaticFiles,
    asked: &FileRequest,
    blocking: Blocking,
) -> Result<ServedFile, NotServed> {
    let now = SystemTime::now();
    let (length, there) = (chosen.about.len(), validators_of(&chosen, now));
    let (mut head, part) = match asked.conditions.judge(&there, length, asked.wants_body, now) {
        ConditionOutcome::Failed => return Err(NotServed::Precondition),
        ConditionOutcome::OutOfRange => return Err(NotServed::Range(length)),
        ConditionOutcome::NotModified => {
            let mut head = ResponseHead::with_status(304);
            write_validators(&mut head, &there);
            write_caching(&mut head, &chosen, settings);
            return Ok(ServedFile::bare(head));
        }
        ConditionOutcome::Part(part) if !is_of_other_form(&chosen, settings, asked) => {
            let mut head = ResponseHead::with_status(206);
            head.fields.add(b"Content-Range", content_range(&part, length).as_bytes());
            (head, part)
        }
        ConditionOutcome::Whole | ConditionOutcome::Part(_) => (ResponseHead::with_status(200), 0..length),
    };
    describe_content(&mut head, &chosen);
    head.fields.add(b"Accept-Ranges", b"bytes");
    write_validators(&mut head, &there);
    write_caching(&mut head, &chosen, settings);
    begin(head, chosen, part, (settings, asked), blocking)
}

/// Whether the client's partial copy may be of the encoded form. A part of the file must not be joined to such a copy.
fn is_of_other_form(chosen: &Chosen, settings: &StaticFiles, asked: &FileRequest) -> bool {
    let Some((plan, fields)) = asked.encoding.as_deref() else { return false };
    let mut whole = ResponseHead::with_status(200);
    describe_content(&mut whole, chosen);
    write_caching(&mut whole, chosen, settings);
    matches!(plan.verdict(fields, &whole, Some(chosen.about.len())), EncodingDecision::Encode(_))
}

/// The page for a missing file. It has no validators: they would be the page's and not those of the requested file.
fn not_found(
    chosen: Chosen,
    settings: &StaticFiles,
    asked: &FileRequest,
    blocking: Blocking,
) -> Result<ServedFile, NotServed> {
    let mut head = ResponseHead::with_status(404);
    describe_content(&mut head, &chosen);
    write_caching(&mut head, &chosen, settings);
    let whole = 0..chosen.about.len();
    begin(head, chosen, whole, (settings, asked), blocking)
}

/// Begins the answer with a part of the file. HEAD reads no bytes of it.
fn begin(
    head: ResponseHead,
    chosen: Chosen,
    part: Range<u64>,
    (settings, asked): (&StaticFiles, &FileRequest),
    blocking: Blocking,
) -> Result<ServedFile, NotServed> {
    let length = part.end - part.start;
    let read = if asked.wants_body { length } else { 0 };
    // The file need not stay open, so it takes no place among the open files, which all threads share.
    if let Some(body) = at_hand(&chosen.file, part.start, read) {
        return Ok(ServedFile { head, length, body: Box::new(body) });
    }
    let file = chosen.into_handle(&settings.dir, blocking);
    let body = FileBody::begin(file, part.start, read, blocking).map_err(NotServed::Unreadable)?;
    Ok(ServedFile { head, length, body: Box::new(body) })
}

fn describe_content(head: &mut ResponseHead, chosen: &Chosen) {
    head.fields.add(b"Content-Type", content_type(&chosen.path).as_bytes());
    if let Some(coding) = chosen.coding.map(|coding| coding.name()).or_else(|| own_coding(&chosen.path)) {
        head.fields.add(b"Content-Encoding", coding.as_bytes());
    }
}

fn write_validators(head: &mut ResponseHead, there: &FileValidators) {
    head.fields.add(b"ETag", there.etag.as_bytes());
    if let Some(modified) = there.modified {
        head.fields.add(b"Last-Modified", httpdate::fmt_http_date(modified).as_bytes());
    }
}

/// The fields that a 304 needs as well as a 200 (RFC 9110 section 15.4.5).
fn write_caching(head: &mut ResponseHead, chosen: &Chosen, settings: &StaticFiles) {
    let caching = match chosen.role {
        FileRole::Itself | FileRole::AppPage => &settings.cache_control,
        FileRole::Immutable => FOR_EVER,
        // The file may exist at the next request.
        FileRole::NotFound => "no-store",
    };
    if !caching.is_empty() {
        head.fields.add(b"Cache-Control", caching.as_bytes());
    }
    if chosen.role == FileRole::AppPage {
        head.fields.add(b"Vary", b"Accept");
    }
    if settings.precompressed {
        head.fields.add(b"Vary", b"Accept-Encoding");
    }
}

/// Made from size and time in nanoseconds, so that two changes within one second give two tags. The compressed forms of a file have
/// different tags, even at the same size.
fn validators_of(chosen: &Chosen, now: SystemTime) -> FileValidators {
    let about = &chosen.about;
    let is_dated = about.mtime() >= FIRST_DATE;
    let (seconds, nanoseconds) = match is_dated {
        true => (about.mtime(), about.mtime_nsec()),
        false => (about.ctime(), about.ctime_nsec()),
    };
    let form = chosen.coding.map_or(String::new(), |coding| format!("-{}", coding.name()));
    let etag = format!("\"{seconds:x}.{nanoseconds:x}-{:x}{form}\"", about.len());
    let modified = u64::try_from(seconds).ok().filter(|_| is_dated);
    let modified = modified.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    // A date in the future must not be sent (RFC 9110 section 8.8.2.1).
    FileValidators { etag, modified: modified.filter(|modified| *modified <= now) }
}

/// By the extension. Text is sent as UTF-8.
fn content_type(path: &Path) -> String {
    let kind = media_type_of(path).unwrap_or("application/octet-stream");
    let is_text = kind.starts_with("text/") || kind == "image/svg+xml";
    if is_text { format!("{kind}; charset=utf-8") } else { kind.into() }
}
