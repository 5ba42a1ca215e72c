//! Opening what lies below a folder, and nothing else, whatever links say. Knows no HTTP. All of it may block.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// What is there.
pub(super) enum Opened {
    /// A regular file.
    File(File, Metadata),
    /// A folder.
    Folder,
}

/// Opens a folder, to look for something below it. By its path, each time: a deploy may put another in its place.
pub(super) fn folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Opens what lies at `path` below the folder. A symbolic link is followed as long as it stays below: the kernel sees to it, so that
/// nobody can change one between a look and the opening.
pub(super) fn below(folder: &OwnedFd, path: &Path) -> io::Result<Opened> {
    // A pipe would keep whoever opens it until somebody writes.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let stays_below = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let opened = match openat2(folder, path, flags, Mode::empty(), stays_below) {
        // An old kernel, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(folder, path, flags),
        opened => opened,
    };
    let file = File::from(opened?);
    let about = file.metadata()?;
    match about.file_type() {
        kind if kind.is_file() => Ok(Opened::File(file, about)),
        kind if kind.is_dir() => Ok(Opened::Folder),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Without help from the kernel no link is followed at all.
fn step_by_step(folder: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut here: Option<OwnedFd> = None;
    let mut steps = path.components().filter(|step| matches!(step, Component::Normal(_))).peekable();
    while let Some(step) = steps.next() {
        let flags = match steps.peek() {
            Some(_) => OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            None => flags,
        };
        here = Some(openat(
            here.as_ref().unwrap_or(folder),
            step.as_os_str(),
            flags | OFlags::NOFOLLOW,
            Mode::empty(),
        )?);
    }
    match here {
        Some(found) => Ok(found),
        None => openat(folder, ".", flags, Mode::empty()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_below_the_folder_and_not_out_of_it() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let inside = tempfile::tempdir().unwrap();
        let at = |name: &str| inside.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("sub/file"), "f").unwrap();
        symlink("sub/file", at("near")).unwrap();
        symlink("../sub/file", at("sub/round")).unwrap();
        symlink(outside.path(), at("far")).unwrap();
        symlink(outside.path().join("secret"), at("leak")).unwrap();
        symlink(
            format!("../{}/secret", outside.path().file_name().unwrap().to_str().unwrap()),
            at("relative"),
        )
        .unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("/proc/self/fd/0", at("magic")).unwrap();

        let folder = folder(inside.path()).unwrap();
        for name in ["sub/file", "near", "sub/round"] {
            assert!(matches!(below(&folder, Path::new(name)), Ok(Opened::File(..))), "{name}");
        }
        for name in ["", "sub"] {
            assert!(matches!(below(&folder, Path::new(name)), Ok(Opened::Folder)), "{name}");
        }
        for name in ["far/secret", "leak", "relative", "loop", "magic", "sub/file/x", "none", "../x"] {
            assert!(below(&folder, Path::new(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn without_the_kernels_help_links_are_not_followed() {
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir(inside.path().join("sub")).unwrap();
        std::fs::write(inside.path().join("sub/file"), "f").unwrap();
        symlink("sub", inside.path().join("link")).unwrap();
        let folder = folder(inside.path()).unwrap();
        for (name, opens) in [
            ("sub/file", true),
            ("sub", true),
            (".", true),
            ("link/file", false),
            ("link", false),
            ("none", false),
        ] {
            assert_eq!(step_by_step(&folder, Path::new(name), OFlags::RDONLY).is_ok(), opens, "{name}");
        }
    }

    #[test]
    fn what_is_neither_file_nor_folder_is_not_there_and_keeps_nobody_waiting() {
        let inside = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(CWD, inside.path().join("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        let folder = folder(inside.path()).unwrap();
        assert!(below(&folder, Path::new("pipe")).is_err());
    }
}
