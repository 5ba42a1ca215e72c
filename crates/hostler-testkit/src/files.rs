//! Files of a test in a folder. Knows nothing of the programs that read them.

use std::path::Path;

use tempfile::TempDir;

/// A new folder with these files: the path of each one in it, and its text.
///
/// # Panics
/// If a file cannot be written.
pub fn folder_of(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), files);
    folder
}

/// Writes these files, and makes the folders that are missing.
///
/// # Panics
/// If a file cannot be written.
pub fn write_files(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}
