//! Maps a data file into memory: the file itself, or a copy that no other program can change. Knows no format.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use filebuffer::FileBuffer;

/// How many bytes are copied at a time.
const PIECE: usize = 256 * 1024;

/// What is mapped.
#[derive(Debug, Clone, Copy)]
pub enum Mapping<'a> {
    /// The file itself, for a short look at it. What other programs write into the file appears in the map. If one of them makes the file
    /// shorter, the next look at a byte that is gone ends this process (SIGBUS).
    InPlace,
    /// A copy in this folder, without a name. It needs as much room there as the file has bytes, as long as it is mapped.
    Copy(&'a Path),
    /// The same, but one copy for several looks: what was checked is what is used.
    Kept(&'a DataCopies<'a>),
}

/// Copies in a folder, each made at the first look at its file. Later looks see the same bytes, whatever the file has by then.
#[derive(Debug)]
pub struct DataCopies<'a> {
    folder: &'a Path,
    made: RefCell<Vec<(PathBuf, File)>>,
}

impl<'a> DataCopies<'a> {
    /// No copies yet.
    pub fn new(folder: &'a Path) -> Self {
        Self { folder, made: RefCell::default() }
    }

    /// The outer error: the file cannot be read. The inner one: it cannot be copied.
    fn map(&self, path: &Path) -> io::Result<io::Result<FileBuffer>> {
        let mut made = self.made.borrow_mut();
        if let Some((_, copy)) = made.iter().find(|(of, _)| of == path) {
            return Ok(map(copy));
        }
        let copied = copy(path, self.folder)?;
        Ok(copied.and_then(|copy| {
            let bytes = map(&copy)?;
            made.push((path.to_owned(), copy));
            Ok(bytes)
        }))
    }
}

/// A mapped file.
pub(crate) struct MappedFile {
    pub bytes: FileBuffer,
    /// Why the file itself is mapped, although a copy was wanted. One sentence.
    pub remark: Option<String>,
}

impl MappedFile {
    /// Maps a file. Without room or permission for a copy, it maps the file itself.
    pub fn open(path: &Path, mapping: Mapping<'_>) -> io::Result<Self> {
        let (copied, folder) = match mapping {
            Mapping::InPlace => return Ok(Self { bytes: FileBuffer::open(path)?, remark: None }),
            Mapping::Copy(folder) => (copy(path, folder)?.and_then(|copy| map(&copy)), folder),
            Mapping::Kept(copies) => (copies.map(path)?, copies.folder),
        };
        match copied {
            Ok(bytes) => Ok(Self { bytes, remark: None }),
            Err(error) => {
                let remark = format!(
                    "{}: cannot be copied to {} ({error}), so the file itself is used: a program that writes into it ends Hostler; replace \
                     it only by a rename",
                    path.display(),
                    folder.display()
                );
                Ok(Self { bytes: FileBuffer::open(path)?, remark: Some(remark) })
            }
        }
    }
}

/// The copy has no name, so the kernel removes it with its last map, also if this process is killed. The outer error: the file cannot be
/// read, and a look at its map would end this process (SIGBUS). The inner one: there is no room or no permission for the copy.
fn copy(path: &Path, folder: &Path) -> io::Result<io::Result<File>> {
    let mut source = File::open(path)?;
    let mut copy = match tempfile::tempfile_in(folder) {
        Ok(copy) => copy,
        Err(error) => return Ok(Err(error)),
    };
    let mut piece = vec![0; PIECE];
    loop {
        let length = match source.read(&mut piece) {
            Ok(0) => return Ok(Ok(copy)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if let Err(error) = copy.write_all(&piece[..length]) {
            return Ok(Err(error));
        }
    }
}

fn map(copy: &File) -> io::Result<FileBuffer> {
    let files = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    FileBuffer::open(format!("{files}/{}", copy.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stays_as_it_was_and_leaves_no_file() {
        let (folder, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = folder.path().join("data");
        let before = vec![7; 300_000];
        std::fs::write(&path, &before).unwrap();
        let mapped = MappedFile::open(&path, Mapping::Copy(copies.path())).unwrap();
        // The file is empty for a moment, and then has other bytes.
        std::fs::write(&path, "new").unwrap();
        assert_eq!((&mapped.bytes[..], mapped.remark), (&before[..], None));
        assert_eq!(std::fs::read_dir(copies.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_kept_copy_stays_as_it_was_at_the_first_look() {
        let (folder, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = folder.path().join("data");
        std::fs::write(&path, "checked").unwrap();
        let kept = DataCopies::new(copies.path());
        let look = || MappedFile::open(&path, Mapping::Kept(&kept)).unwrap();
        let first = look();
        std::fs::write(&path, "damaged").unwrap();
        assert_eq!((&first.bytes[..], &look().bytes[..]), (&b"checked"[..], &b"checked"[..]));
        drop(kept);
        assert_eq!(&first.bytes[..], b"checked", "a map outlives the list of copies");
        assert_eq!(std::fs::read_dir(copies.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_a_folder_for_copies_the_file_itself_is_mapped_with_a_remark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, "data").unwrap();
        let mapped = MappedFile::open(&path, Mapping::Copy(&folder.path().join("none"))).unwrap();
        let remark = mapped.remark.unwrap();
        assert!(
            remark.contains("data: cannot be copied to ") && remark.contains("none (No such file"),
            "{remark}"
        );
        assert_eq!(&mapped.bytes[..], b"data");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_cannot_be_read_is_an_error_and_is_not_mapped_itself() {
        let copies = tempfile::tempdir().unwrap();
        // A read at its beginning fails with EIO.
        let error = MappedFile::open(Path::new("/proc/self/mem"), Mapping::Copy(copies.path())).err();
        assert_eq!(error.and_then(|error| error.raw_os_error()), Some(5));
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = MappedFile::open(&folder.path().join("none"), Mapping::Copy(folder.path())).err();
        assert_eq!(error.map(|error| error.kind()), Some(io::ErrorKind::NotFound));
    }
}
