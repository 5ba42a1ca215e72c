//! Which file answers, and which form of it. Knows no conditions and no heads.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use hostler_coding::Coding;
use hostler_config::StaticFiles;
use rustix::io::Errno;

use super::NotServed;
use super::open::{Folder, Opened};
use super::serve::FileRequest;

/// A file that is to be sent.
pub(super) struct Chosen {
    /// The name that was asked for; the file may be a compressed form of it.
    pub path: PathBuf,
    pub file: File,
    pub about: Metadata,
    pub coding: Option<Coding>,
    pub role: FileRole,
}

/// What a file is to those who get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileRole {
    /// What they asked for.
    Itself,
    /// The same, under a name that will never mean anything else.
    Immutable,
    /// A page about there being none.
    NotFound,
}

/// Why nothing is chosen.
pub(super) enum Miss {
    /// Only somebody who can wait for a disk may look.
    WouldWait,
    /// There is nothing.
    NotServed(NotServed),
}

/// The file for a place; none for a folder whose name came without its slash.
pub(super) fn choose(
    folder: &Folder,
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

fn at_place(folder: &Folder, settings: &StaticFiles, asked: &FileRequest) -> Result<Option<Chosen>, Miss> {
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

/// For those who ask for a page: the page of an app that finds its way in the browser, or one that says that there is none. What has
/// the extension of a known kind is an asset, and the app's page in its place would only be a riddle.
fn page_instead(
    folder: &Folder,
    settings: &StaticFiles,
    asked: &FileRequest,
) -> Result<Option<Chosen>, Miss> {
    if !asked.takes_page {
        return Ok(None);
    }
    let is_asset =
        mime_guess::from_path(&asked.place.path).first_raw().is_some() && !asked.place.ends_in_slash;
    let app = settings.fallback.as_ref().filter(|_| !is_asset).map(|page| (page, FileRole::Itself));
    let pages = app.into_iter().chain(settings.not_found.as_ref().map(|page| (page, FileRole::NotFound)));
    for (page, role) in pages {
        if let Some(found) = find(folder, page)? {
            return best_form(folder, page, found, &asked.codings, role).map(Some);
        }
    }
    Ok(None)
}

/// The first of the forms that lies beside it, or it itself.
fn best_form(
    folder: &Folder,
    path: &Path,
    (file, about): (File, Metadata),
    codings: &[Coding],
    role: FileRole,
) -> Result<Chosen, Miss> {
    let path = path.to_path_buf();
    for &coding in codings {
        let mut beside = path.clone().into_os_string();
        beside.push(suffix(coding));
        if let Some((file, about)) = find(folder, Path::new(&beside))? {
            return Ok(Chosen { path, file, about, coding: Some(coding), role });
        }
    }
    Ok(Chosen { path, file, about, coding: None, role })
}

/// What the name of a compressed form ends in, after that of the file itself.
fn suffix(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => ".br",
        Coding::Zstd => ".zst",
        Coding::Gzip => ".gz",
    }
}

/// A regular file, if there is one.
fn find(folder: &Folder, path: &Path) -> Result<Option<(File, Metadata)>, Miss> {
    match look(folder, path) {
        Ok(Opened::File(file, about)) => Ok(Some((file, about))),
        Ok(Opened::Folder) | Err(Miss::NotServed(NotServed::Missing(_))) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Not there, not ours to give, or out of reach, which to a client is all the same; what else goes wrong is not.
fn look(folder: &Folder, path: &Path) -> Result<Opened, Miss> {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied, WouldBlock};
    folder.open(path).map_err(|error| {
        let known = |why: &dyn std::fmt::Display| nothing(Some(format!("{}: {why}", path.display())));
        match (error.kind(), Errno::from_io_error(&error)) {
            (WouldBlock, _) => Miss::WouldWait,
            (NotFound | NotADirectory | InvalidFilename, _) => nothing(None),
            (_, Some(Errno::XDEV)) => known(&"a symbolic link leads out of the folder"),
            (PermissionDenied, _) | (_, Some(Errno::LOOP | Errno::NXIO)) => known(&error),
            _ => Miss::NotServed(NotServed::Unreadable(error)),
        }
    })
}

fn nothing(detail: Option<String>) -> Miss {
    Miss::NotServed(NotServed::Missing(detail))
}
