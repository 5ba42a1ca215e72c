//! Chooses the file that answers a request, and its compressed form. Knows no conditions and no heads.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hostler_coding::Coding;
use hostler_config::{StaticFiles, names_a_file};
use rustix::io::Errno;

use super::open::{Blocking, Folder, NotOpened, Opened};
use super::request::FileRequest;
use super::served::NotServed;
use super::shared::FileHandle;

/// A file to send.
pub(super) struct Chosen {
    /// The path of the uncompressed file. The file itself may be a compressed form.
    pub path: PathBuf,
    pub file: Arc<File>,
    pub about: Metadata,
    pub coding: Option<Coding>,
    pub role: FileRole,
}

impl Chosen {
    /// The file, to read from it. `blocking`: how it was opened.
    pub fn into_handle(self, folder: &Path, blocking: Blocking) -> FileHandle {
        let path = match self.coding {
            Some(coding) => compressed(&self.path, coding),
            None => self.path,
        };
        FileHandle::new(self.file, &self.about, folder, path, blocking)
    }
}

/// Why a file is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileRole {
    /// The request names it.
    Itself,
    /// The request names it, and the content under this name never changes.
    Immutable,
    /// The page of a single-page app. Only a request that accepts a page gets it.
    AppPage,
    /// The page for a missing file.
    NotFound,
}

/// Why no file is chosen.
pub(super) enum Miss {
    /// The answer needs the disk, and the caller may not block.
    WouldWait,
    NotServed(NotServed),
}

/// The file for a path. None for a folder that was requested without a slash at the end.
pub(super) fn choose(
    folder: &Folder<'_>,
    settings: &StaticFiles,
    asked: &FileRequest,
) -> Result<Option<Chosen>, Miss> {
    match at_place(folder, settings, asked) {
        Err(Miss::NotServed(NotServed::Missing(detail))) => match page_instead(folder, settings, asked)? {
            Some(page) => Ok(Some(page)),
            None => Err(Miss::NotServed(NotServed::Missing(detail))),
        },
        other => other,
    }
}

fn at_place(
    folder: &Folder<'_>,
    settings: &StaticFiles,
    asked: &FileRequest,
) -> Result<Option<Chosen>, Miss> {
    if asked.place.is_no_file {
        return Err(nothing(None));
    }
    let (path, slash) = (&asked.place.path, asked.place.ends_in_slash);
    let is_folder = match look(folder, path)? {
        Opened::File(file, about) if !slash => {
            let role = if settings.is_immutable(path) { FileRole::Immutable } else { FileRole::Itself };
            return best_form(folder, path, (file, about), &asked.codings, role).map(Some);
        }
        Opened::File(..) => return Err(nothing(None)),
        Opened::Folder => "it is a folder",
    };
    let Some(index) = &settings.index else { return Err(nothing(Some(is_folder.into()))) };
    let index = path.join(index);
    match find(folder, &index)? {
        Some(found) if slash => best_form(folder, &index, found, &asked.codings, FileRole::Itself).map(Some),
        Some(_) => Ok(None),
        None => Err(nothing(Some(format!("{is_folder} without {}", index.display())))),
    }
}

/// The page for a request of a page that does not exist: the page of a single-page app, or the 404 page. A path with the extension of a
/// known asset type gets no page, because HTML in place of an asset would only cause confusing errors.
fn page_instead(
    folder: &Folder<'_>,
    settings: &StaticFiles,
    asked: &FileRequest,
) -> Result<Option<Chosen>, Miss> {
    if !asked.takes_page {
        return Ok(None);
    }
    let is_asset = names_a_file(&asked.place.path) && !asked.place.ends_in_slash;
    let app = settings.fallback.as_ref().filter(|_| !is_asset).map(|page| (page, FileRole::AppPage));
    let pages = app.into_iter().chain(settings.not_found.as_ref().map(|page| (page, FileRole::NotFound)));
    for (page, role) in pages {
        if let Some(found) = find(folder, page)? {
            return best_form(folder, page, found, &asked.codings, role).map(Some);
        }
    }
    Ok(None)
}

/// The first compressed form that exists, or the file itself. A file that is compressed itself has no other form: a client would have to undo
/// two codings, and gets the name of one.
fn best_form(
    folder: &Folder<'_>,
    path: &Path,
    (file, about): (Arc<File>, Metadata),
    codings: &[Coding],
    role: FileRole,
) -> Result<Chosen, Miss> {
    let path = path.to_path_buf();
    let codings: &[Coding] = if own_coding(&path).is_some() { &[] } else { codings };
    for &coding in codings {
        if let Some((file, about)) = find(folder, &compressed(&path, coding))? {
            return Ok(Chosen { path, file, about, coding: Some(coding), role });
        }
    }
    Ok(Chosen { path, file, about, coding: None, role })
}

/// An SVG that was compressed when it was made. It has the media type of an SVG, so only this tells a browser.
pub(super) fn own_coding(path: &Path) -> Option<&'static str> {
    path.extension()?.eq_ignore_ascii_case("svgz").then_some("gzip")
}

/// The path of a compressed form.
fn compressed(path: &Path, coding: Coding) -> PathBuf {
    let mut beside = path.to_path_buf().into_os_string();
    beside.push(suffix(coding));
    beside.into()
}

/// The suffix that build tools append for this coding.
fn suffix(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => ".br",
        Coding::Zstd => ".zst",
        Coding::Gzip => ".gz",
    }
}

/// A regular file, or none.
fn find(folder: &Folder<'_>, path: &Path) -> Result<Option<(Arc<File>, Metadata)>, Miss> {
    match look(folder, path) {
        Ok(Opened::File(file, about)) => Ok(Some((file, about))),
        Ok(Opened::Folder) | Err(Miss::NotServed(NotServed::Missing(_))) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Missing, forbidden and unreachable files look the same to a client. Other errors do not.
fn look(folder: &Folder<'_>, path: &Path) -> Result<Opened, Miss> {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied, WouldBlock};
    let error = match folder.open(path) {
        Ok(opened) => return Ok(opened),
        Err(NotOpened::Folder(error)) if error.kind() != WouldBlock => {
            return Err(Miss::NotServed(NotServed::Unreadable(error)));
        }
        Err(NotOpened::Folder(error) | NotOpened::Below(error)) => error,
    };
    let known = |why: &dyn std::fmt::Display| nothing(Some(format!("{}: {why}", path.display())));
    Err(match (error.kind(), Errno::from_io_error(&error)) {
        (WouldBlock, _) => Miss::WouldWait,
        (NotFound | NotADirectory | InvalidFilename, _) => nothing(None),
        (_, Some(Errno::XDEV)) => known(&"a symbolic link leads out of the folder"),
        (PermissionDenied, _) | (_, Some(Errno::LOOP | Errno::NXIO)) => known(&error),
        _ => Miss::NotServed(NotServed::Unreadable(error)),
    })
}

fn nothing(detail: Option<String>) -> Miss {
    Miss::NotServed(NotServed::Missing(detail))
}
