//! The program file and arguments of this process, to start a new version. Does not know why it is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hostler_config::LoadContext;

#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The path as it was called. A symbolic link to the current version is followed again at each start.
    pub path: PathBuf,
    /// All arguments; the program's name is the first.
    pub arguments: Vec<OsString>,
    /// The folder in which it was started, by the name that it had then. A link in it is followed again, too.
    pub folder: PathBuf,
}

impl Program {
    /// Must be called at the start: once the file is replaced, the system reports its path with "(deleted)".
    pub fn of_process(load_context: &LoadContext) -> std::io::Result<Self> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let called = arguments.first().map(Path::new).and_then(|name| called(name, load_context));
        let path = match called {
            Some(path) => path,
            None => std::env::current_exe()?,
        };
        Ok(Self { path, arguments, folder: load_context.folder.clone() })
    }
}

/// What a shell would run under this name.
fn called(name: &Path, load_context: &LoadContext) -> Option<PathBuf> {
    if name.components().count() > 1 || name.is_absolute() {
        return Some(load_context.folder.join(name)).filter(|path| path.is_file());
    }
    let folders = load_context.environment.get("PATH")?;
    std::env::split_paths(folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_owned();
        std::fs::create_dir(here.join("bin")).unwrap();
        std::fs::write(here.join("bin/hostler"), "").unwrap();
        let path = format!("/nowhere:{}", here.join("bin").display());
        let load_context = LoadContext {
            environment: [("PATH".into(), path)].into(),
            folder: here.clone(),
            temp_dir: here.clone(),
            cores: 1,
            cpus: None,
            open_files: None,
            soft_open_files: None,
            memory: None,
            has_ipv6: true,
            workers_before: Default::default(),
        };
        let expected = Some(here.join("bin/hostler"));
        for name in ["bin/hostler", "./bin/hostler", "hostler"] {
            assert_eq!(called(Path::new(name), &load_context), expected, "{name}");
        }
        assert_eq!(called(&here.join("bin/hostler"), &load_context), expected);
        assert_eq!(called(Path::new("./hostler"), &load_context), None);
        assert_eq!(called(Path::new("bin"), &load_context), None);
    }
}
