//! Opens files below a folder, and never outside it, also through symbolic links. Knows no HTTP.

use std::cell::OnceCell;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::kept::FilesKeptOpen;
use super::system::{FOLDER, folder_at_hand, open_below, open_below_at_hand};

pub(super) enum Opened {
    File(Arc<File>, Metadata),
    Folder,
}

/// Why a path could not be opened.
#[derive(Debug)]
pub(super) enum NotOpened {
    /// The folder that is served could not be opened.
    Folder(io::Error),
    /// The path below it could not.
    Below(io::Error),
}

impl From<NotOpened> for io::Error {
    fn from(error: NotOpened) -> Self {
        match error {
            NotOpened::Folder(error) | NotOpened::Below(error) => error,
        }
    }
}

/// Whether a caller may wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocking {
    /// It may not: a file that is not in the kernel's caches gives `WouldBlock`.
    None,
    /// It may: it runs on a blocking thread.
    Any,
}

/// A folder whose files can be opened, for one request.
pub(super) struct Folder<'a> {
    path: &'a Path,
    /// Opened by its path for each request that needs it: a deployment may have replaced it.
    fd: OnceCell<OwnedFd>,
    blocking: Blocking,
    kept: Option<&'a Arc<FilesKeptOpen>>,
}

impl<'a> Folder<'a> {
    pub fn at(path: &'a Path, blocking: Blocking) -> Self {
        Self { path, fd: OnceCell::new(), blocking, kept: None }
    }

    /// For a request that does not wait for the disk: files that it opens stay open for the next ones.
    pub fn keeping(path: &'a Path, kept: &'a Arc<FilesKeptOpen>) -> Self {
        Self { kept: Some(kept), ..Self::at(path, Blocking::None) }
    }

    pub fn blocking(&self) -> Blocking {
        self.blocking
    }

    /// Opens a path below the folder.
    pub fn open(&self, path: &Path) -> Result<Opened, NotOpened> {
        if let Some((file, about)) = self.kept.and_then(|kept| kept.find(path)) {
            return Ok(Opened::File(file, about));
        }
        let folder = self.fd().map_err(NotOpened::Folder)?;
        // It was just opened as a folder.
        if path.as_os_str().is_empty() {
            return Ok(Opened::Folder);
        }
        let opened = self.open_below(folder, path).map_err(NotOpened::Below)?;
        if let (Some(kept), Opened::File(file, about)) = (self.kept, &opened) {
            kept.keep(self.path, path, file, about);
        }
        Ok(opened)
    }

    fn fd(&self) -> io::Result<&OwnedFd> {
        if let Some(opened) = self.fd.get() {
            return Ok(opened);
        }
        let opened = match self.blocking {
            Blocking::None => at_hand(folder_at_hand(self.path))?,
            Blocking::Any => openat(CWD, self.path, FOLDER, Mode::empty())?,
        };
        Ok(self.fd.get_or_init(|| opened))
    }

    /// The kernel follows a symbolic link only if it stays below the folder, so a link that changes between a check and the opening does no
    /// harm.
    fn open_below(&self, folder: &OwnedFd, path: &Path) -> io::Result<Opened> {
        // Without NONBLOCK, opening a named pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = match self.blocking {
            Blocking::None => at_hand(open_below_at_hand(folder, path, flags))?,
            Blocking::Any => match open_slowly(folder, path, flags) {
                // This process may enter a folder that it may not list.
                Err(Errno::ACCESS) if open_slowly(folder, path, FOLDER).is_ok() => return Ok(Opened::Folder),
                opened => opened?,
            },
        };
        let file = File::from(opened);
        let about = file.metadata()?;
        match about.file_type() {
            kind if kind.is_file() => Ok(Opened::File(Arc::new(file), about)),
            kind if kind.is_dir() => Ok(Opened::Folder),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn open_slowly(folder: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    match again_while_renamed(|| open_below(folder, path, flags)) {
        // An old kernel, another system, or a sandbox that blocks the call.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(folder, path, flags),
        opened => opened,
    }
}

/// How often a file is opened again. A rename on another CPU takes about as long as one attempt, so two or three are enough.
const ATTEMPTS: usize = 100;

/// Repeats an open that failed with EAGAIN. The kernel gives that error if anything on the machine is renamed while it follows a symbolic
/// link with `..`: then it does not know whether the path leads out of the folder.
fn again_while_renamed<T>(mut open: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut opened = open();
    for _ in 1..ATTEMPTS {
        if !matches!(opened, Err(Errno::AGAIN)) {
            break;
        }
        opened = open();
    }
    opened
}

/// The result of an open that must not wait for the disk. Any error but ENOENT may be due to that, so it becomes `WouldBlock`, and the
/// caller tries again on a blocking thread.
fn at_hand(opened: Result<OwnedFd, Errno>) -> io::Result<OwnedFd> {
    match opened {
        Err(Errno::NOENT) => Err(Errno::NOENT.into()),
        Err(_) => Err(io::ErrorKind::WouldBlock.into()),
        Ok(opened) => Ok(opened),
    }
}

/// Without the kernel's help no symbolic link is followed.
fn step_by_step(folder: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut here: Option<OwnedFd> = None;
    let mut steps = path.components().filter(|step| matches!(step, Component::Normal(_))).peekable();
    while let Some(step) = steps.next() {
        let flags = match steps.peek() {
            Some(_) => FOLDER,
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
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn symbolic_links_are_followed_inside_the_folder_only() {
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

        let folder = Folder::at(inside.path(), Blocking::Any);
        for name in ["sub/file", "near", "sub/round"] {
            assert!(matches!(folder.open(Path::new(name)), Ok(Opened::File(..))), "{name}");
        }
        for name in ["", "sub"] {
            assert!(matches!(folder.open(Path::new(name)), Ok(Opened::Folder)), "{name}");
        }
        for name in ["far/secret", "leak", "relative", "loop", "magic", "sub/file/x", "none", "../x"] {
            assert!(folder.open(Path::new(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_rename_elsewhere_does_not_hide_a_file_behind_a_link() {
        let (inside, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(inside.path().join("sub")).unwrap();
        std::fs::write(inside.path().join("file"), "f").unwrap();
        symlink("../file", inside.path().join("sub/link")).unwrap();
        let folder = Folder::at(inside.path(), Blocking::Any);
        let (one, other) = (elsewhere.path().join("one"), elsewhere.path().join("other"));
        std::fs::write(&one, "1").unwrap();
        let is_over = AtomicBool::new(false);
        let failure = std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::fs::rename(&one, &other).unwrap();
                    std::fs::rename(&other, &one).unwrap();
                }
            });
            let failure = (0..20_000).find_map(|_| folder.open(Path::new("sub/link")).err());
            is_over.store(true, Ordering::Relaxed);
            failure
        });
        assert!(failure.is_none(), "{failure:?}");
    }

    #[test]
    fn a_file_that_can_never_be_opened_is_given_up() {
        let mut attempts = 0;
        let opened = again_while_renamed(|| {
            attempts += 1;
            Err::<(), _>(Errno::AGAIN)
        });
        assert_eq!((opened, attempts), (Err(Errno::AGAIN), ATTEMPTS));
    }

    #[test]
    fn without_openat2_symbolic_links_are_not_followed() {
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir(inside.path().join("sub")).unwrap();
        std::fs::write(inside.path().join("sub/file"), "f").unwrap();
        symlink("sub", inside.path().join("link")).unwrap();
        let folder = Folder::at(inside.path(), Blocking::Any);
        for (name, opens) in [
            ("sub/file", true),
            ("sub", true),
            (".", true),
            ("link/file", false),
            ("link", false),
            ("none", false),
        ] {
            assert_eq!(
                step_by_step(folder.fd().unwrap(), Path::new(name), OFlags::RDONLY).is_ok(),
                opens,
                "{name}"
            );
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_may_be_entered_and_not_listed_is_a_folder() {
        use std::os::unix::fs::PermissionsExt;

        use rustix::process::Uid;

        let inside = tempfile::tempdir().unwrap();
        let path = inside.path();
        std::fs::create_dir(path.join("sub")).unwrap();
        std::fs::write(path.join("sub/index.html"), "i").unwrap();
        let set_modes = |mode: u32| {
            for folder in [path.to_path_buf(), path.join("sub")] {
                std::fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
            }
        };
        set_modes(0o311);
        let look = || {
            // Root may list every folder, so this thread becomes the user `nobody`.
            if rustix::process::geteuid().is_root() {
                let nobody = Uid::from_raw(65_534);
                rustix::thread::set_thread_res_uid(None::<Uid>, nobody, None::<Uid>).unwrap();
            }
            let folder = Folder::at(path, Blocking::Any);
            ["", "sub", "sub/index.html", "none"].map(|name| match folder.open(Path::new(name)) {
                Ok(Opened::Folder) => "folder",
                Ok(Opened::File(..)) => "file",
                Err(_) => "nothing",
            })
        };
        let found = std::thread::scope(|threads| threads.spawn(look).join().unwrap());
        set_modes(0o700);
        assert_eq!(found, ["folder", "folder", "file", "nothing"]);
    }

    #[test]
    fn a_fifo_or_device_does_not_exist_and_does_not_block() {
        let inside = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(CWD, inside.path().join("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        for (folder, name) in [(inside.path(), "pipe"), (Path::new("/dev"), "null")] {
            let opened = Folder::at(folder, Blocking::Any).open(Path::new(name));
            let why = opened.err().map(|error| io::Error::from(error).kind());
            assert_eq!(why, Some(io::ErrorKind::NotFound), "{name}");
        }
    }

    #[test]
    fn without_blocking_only_cached_files_are_opened() {
        let inside = tempfile::tempdir().unwrap();
        std::fs::write(inside.path().join("file"), "f").unwrap();
        let hurried = Folder::at(inside.path(), Blocking::None);
        // It has just been written, so the kernel has it in memory. If not, the kernel says that it would have to wait.
        match hurried.open(Path::new("file")) {
            Ok(opened) => assert!(matches!(opened, Opened::File(..))),
            Err(error) => assert_eq!(io::Error::from(error).kind(), io::ErrorKind::WouldBlock),
        }
        symlink("/etc/passwd", inside.path().join("leak")).unwrap();
        let refused = hurried.open(Path::new("leak")).err().unwrap();
        assert_eq!(
            io::Error::from(refused).kind(),
            io::ErrorKind::WouldBlock,
            "the caller that may block finds out why"
        );
        let elsewhere = Folder::at(Path::new("/"), Blocking::None);
        assert!(elsewhere.open(Path::new("proc/self/status")).is_err(), "another file system");
    }
}
