//! What only the kernel can do when a file is opened and read: on Linux, and what stands in for it on other systems. Knows no HTTP.

pub(super) use self::kernel::{FOLDER, folder_at_hand, open_below, open_below_at_hand, read_cached};

#[cfg(target_os = "linux")]
mod kernel {
    use std::fs::File;
    use std::io::IoSliceMut;
    use std::path::Path;

    use rustix::fd::OwnedFd;
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::{ReadWriteFlags, Result, preadv2};

    /// How a folder is opened: only as a place in the tree, which needs no right to list it.
    pub const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

    /// Opens a folder without waiting for the disk.
    pub fn folder_at_hand(path: &Path) -> Result<OwnedFd> {
        openat2(CWD, path, FOLDER, Mode::empty(), ResolveFlags::CACHED)
    }

    /// Opens a path. The kernel follows a symbolic link only if it stays below the folder.
    pub fn open_below(folder: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
        openat2(folder, path, flags, Mode::empty(), BELOW)
    }

    /// The same without waiting for the disk.
    pub fn open_below_at_hand(folder: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
        // Another file system may be a network file system.
        let here = BELOW | ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
        openat2(folder, path, flags, Mode::empty(), here)
    }

    /// Reads what is in the page cache.
    pub fn read_cached(file: &File, place: &mut [u8], at: u64) -> Result<usize> {
        preadv2(file, &mut [IoSliceMut::new(place)], at, ReadWriteFlags::NOWAIT)
    }
}

/// No system but Linux can promise not to wait, or to stay below a folder. So all files are opened step by step, on blocking threads.
#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::fs::File;
    use std::path::Path;

    use rustix::fd::OwnedFd;
    use rustix::fs::OFlags;
    use rustix::io::{Errno, Result};

    pub const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    pub fn folder_at_hand(_: &Path) -> Result<OwnedFd> {
        Err(Errno::NOSYS)
    }

    pub fn open_below(_: &OwnedFd, _: &Path, _: OFlags) -> Result<OwnedFd> {
        Err(Errno::NOSYS)
    }

    pub fn open_below_at_hand(_: &OwnedFd, _: &Path, _: OFlags) -> Result<OwnedFd> {
        Err(Errno::NOSYS)
    }

    pub fn read_cached(_: &File, _: &mut [u8], _: u64) -> Result<usize> {
        Err(Errno::NOSYS)
    }
}
