//! How a worker's process is started: its command, environment and descriptors (protocol/README.md). Knows nothing of
//! what happens to it later.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use command_fds::{CommandFdExt, FdMapping};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::compile_cache::CacheChoice;
use super::context::{Port, StartPaths, SupervisorContext};
use super::own_children::OwnChild;
use super::process::Process;
use super::runtime_folder::{RuntimeFolder, at};
use super::settings::{Bind, WorkerSettings};

const LISTEN_FD: i32 = 3;
const CHANNEL_FD: i32 = 4;

/// The input for one start of one worker, besides the settings.
pub(super) struct Spawn<'a> {
    pub settings: &'a WorkerSettings,
    pub context: &'a SupervisorContext,
    pub folder: &'a Arc<RuntimeFolder>,
    pub pool: &'a str,
    pub index: usize,
    pub generation: u64,
    pub compile_cache: &'a CacheChoice,
    /// The app gets the channel that the variables of Node name.
    pub keeps_channel: bool,
}

/// A started process and Hostler's ends of its pipes and channels.
pub(super) struct Spawned {
    pub process: Process,
    pub channel: UnixStream,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    pub binding: AppBinding,
}

/// How the app listens, with the resources that must live as long as the process.
pub(super) enum AppBinding {
    Socket {
        inherited: PathBuf,
        own: PathBuf,
        control: Option<UnixListener>,
        /// The PORT that Hostler has set. None: the operator has set it, or the pool has a port.
        given: Option<Port>,
        _paths: StartPaths,
    },
    Port(Port),
}

impl Spawn<'_> {
    /// Starts the process: without a shell, in its own process group, and with only the descriptors named here.
    pub fn spawn(&self) -> io::Result<Spawned> {
        let (program, args) =
            self.settings.command.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut descriptors = vec![FdMapping { parent_fd: theirs.into(), child_fd: CHANNEL_FD }];
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.settings.cwd).env_clear();
        command.envs(self.settings.env.iter().filter(|(name, _)| !is_ours(name)));
        command.envs(self.compile_cache.variables());
        if self.keeps_channel {
            command.env("NODE_CHANNEL_FD", CHANNEL_FD.to_string());
            command.env("NODE_CHANNEL_SERIALIZATION_MODE", "json");
        }
        command.env("HOSTLER_POOL", self.pool).env("HOSTLER_WORKER", self.index.to_string());
        command.env("HOSTLER_GENERATION", self.generation.to_string());
        // An app with files such as production-eu.json (node-config) takes this variable for the name of one, so the pool may set it.
        if !self.settings.env.contains_key("NODE_APP_INSTANCE") {
            command.env("NODE_APP_INSTANCE", (self.index - 1).to_string());
        }
        if !self.has_pwd() {
            command.env("PWD", &self.settings.cwd);
        }
        let binding = match self.settings.bind {
            Bind::Socket => {
                let (binding, listener) = self.socket(&mut command)?;
                descriptors.push(FdMapping { parent_fd: listener, child_fd: LISTEN_FD });
                binding
            }
            Bind::Port => self.port(&mut command)?,
        };
        command.fd_mappings(descriptors).map_err(io::Error::other)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        // Dropping `command` closes our copies of the descriptors, so the socket of a dead worker refuses connections at
        // once.
        let (mut child, own) = OwnChild::start(|| command.spawn(), Child::id)
            .map_err(|error| explain(error, program, &self.settings.cwd))?;
        drop(command);
        if let Some(pid) = child.id() {
            self.context.limit_open_files(pid);
        }

        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let process = Process::new((child, own), self.context)?;
        Ok(Spawned { process, channel: ours, stdout, stderr, binding })
    }

    /// Whether PWD names the working directory, perhaps by a symbolic link. A shell sets it, and some apps read it.
    fn has_pwd(&self) -> bool {
        let named = self.settings.env.get("PWD").map(Path::new).filter(|named| named.is_absolute());
        named.is_some_and(|named| named.canonicalize().ok() == self.settings.cwd.canonicalize().ok())
    }

    fn socket(&self, command: &mut Command) -> io::Result<(AppBinding, OwnedFd)> {
        let start_paths = self.context.start_paths(self.folder, self.pool, self.index);
        let (inherited, own, control) =
            (start_paths.path("fd"), start_paths.path("app"), start_paths.path("ctl"));
        let bind =
            |path: &Path| UnixListener::bind(path).map_err(|error| at(path, "make the socket", &error));
        let listener = bind(&inherited)?;
        let inode = rustix::fs::fstat(listener.as_fd())?.st_ino;
        let control_listener = bind(&control)?;
        command
            .env("HOSTLER_LISTEN_FD", LISTEN_FD.to_string())
            .env("HOSTLER_LISTEN_FD_PATH", &inherited)
            .env("HOSTLER_LISTEN_INODE", inode.to_string());
        command.env("HOSTLER_LISTEN_PATH", &own).env("HOSTLER_CONTROL_PATH", &control);
        let given = self.given_port(command)?;
        let before = self.settings.env.get("NODE_OPTIONS").map_or("", String::as_str);
        let before = format!("{before}{}", self.settings.development.node_options());
        let before = with_secret_inspector(before.trim_start(), &self.settings.command);
        command.env("NODE_OPTIONS", with_preload(&before, &self.folder.preload()));
        let control = Some(control_listener);
        let binding = AppBinding::Socket { inherited, own, control, given, _paths: start_paths };
        Ok((binding, listener.into()))
    }

    /// Sets PORT, because some apps do not start without it. The app listens on Hostler's socket, not on this port. If Hostler chooses the
    /// number, the port is free, so that a process without the preload can listen there.
    fn given_port(&self, command: &mut Command) -> io::Result<Option<Port>> {
        if let Some(port) = self.settings.port {
            command.env("HOSTLER_APP_PORT", port.to_string());
            if !self.settings.env.contains_key("PORT") {
                command.env("PORT", port.to_string());
            }
            return Ok(None);
        }
        if self.settings.env.get("PORT").is_some_and(|port| !port.is_empty()) {
            return Ok(None);
        }
        let port = self.context.free_port()?;
        let number = port.address.port().to_string();
        command.env("PORT", &number).env("HOSTLER_GIVEN_PORT", &number);
        Ok(Some(port))
    }

    fn port(&self, command: &mut Command) -> io::Result<AppBinding> {
        let port = self.context.free_port()?;
        let options = self.settings.development.node_options();
        if !options.is_empty() {
            let before = self.settings.env.get("NODE_OPTIONS").map_or("", String::as_str);
            command.env("NODE_OPTIONS", format!("{before}{options}").trim_start());
        }
        command.env("PORT", port.address.port().to_string());
        command.env("HOST", "127.0.0.1").env("HOSTNAME", "127.0.0.1");
        Ok(AppBinding::Port(port))
    }
}

/// Variables that must not be inherited from another Hostler around this one.
fn is_ours(name: &str) -> bool {
    name.starts_with("HOSTLER_LISTEN_")
        || name == "HOSTLER_CONTROL_PATH"
        || name == "HOSTLER_APP_PORT"
        || name == "HOSTLER_GIVEN_PORT"
        || name == "HOSTLER_ANCESTORS"
        || name.starts_with("NODE_CHANNEL_")
}

/// An inspector that a signal opens does not tell its address over HTTP. So only Hostler, which reads the worker's output, can use it: its
/// URL has a random part. Directly before our `--require`, because the preload removes both. Unless the operator has options for the inspector,
/// here or in the command: `chrome://inspect` and editors ask an inspector over HTTP.
fn with_secret_inspector(before: &str, command: &[String]) -> String {
    let is_chosen = before.contains("--inspect") || command.iter().any(|arg| arg.contains("--inspect"));
    match (is_chosen, before) {
        (true, _) => before.to_owned(),
        (false, "") => "--inspect-publish-uid=stderr".to_owned(),
        (false, _) => format!("{before} --inspect-publish-uid=stderr"),
    }
}

/// `NODE_OPTIONS` with our `--require` at the end, quoted as Node reads it: `"` and `\` get a `\` before them.
pub(super) fn with_preload(before: &str, preload: &Path) -> String {
    let path = preload.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    let space = if before.is_empty() { "" } else { " " };
    format!("{before}{space}--require \"{path}\"")
}

/// The system's error does not say whether it is about the program or the working directory.
fn explain(error: io::Error, program: &str, cwd: &Path) -> io::Error {
    let what = match error.kind() {
        io::ErrorKind::NotFound if !cwd.is_dir() => {
            format!("the folder (cwd) {} does not exist", cwd.display())
        }
        io::ErrorKind::NotADirectory if !cwd.is_dir() => {
            format!("{} (cwd) is not a folder", cwd.display())
        }
        io::ErrorKind::PermissionDenied if access(cwd, Access::EXEC_OK).is_err() => {
            format!("the user of Hostler may not enter the folder (cwd) {}", cwd.display())
        }
        // As a script for bash in an image without it, or a program for another C library.
        io::ErrorKind::NotFound if program.contains('/') && cwd.join(program).exists() => {
            format!(
                "{program:?} is there, but not the interpreter that its first line (#!) or its format names"
            )
        }
        io::ErrorKind::NotFound => format!("there is no program {program:?}"),
        _ if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
            format!("{program:?} is no program: a script needs a first line such as #!/bin/sh")
        }
        _ => format!("{program:?}: {error}"),
    };
    io::Error::new(error.kind(), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preload_is_added_to_node_options_quoted_as_node_reads_it() {
        let cases = [
            ("", "/run/a/preload.cjs", r#"--require "/run/a/preload.cjs""#),
            ("--max-old-space-size=64", "/a b/p.cjs", r#"--max-old-space-size=64 --require "/a b/p.cjs""#),
            ("", r#"/a"b\c"#, r#"--require "/a\"b\\c""#),
        ];
        for (before, path, expected) in cases {
            assert_eq!(with_preload(before, Path::new(path)), expected);
        }
    }

    #[test]
    fn an_inspector_of_the_operator_tells_its_address_over_http() {
        for (before, command, is_secret) in [
            ("", "node app.js", true),
            ("--max-old-space-size=64", "node app.js", true),
            ("--inspect=0", "node app.js", false),
            ("", "node --inspect app.js", false),
            ("", "npx tsx --inspect-brk=9230 app.ts", false),
        ] {
            let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
            let options = with_secret_inspector(before, &words);
            assert_eq!(options.contains("--inspect-publish-uid=stderr"), is_secret, "{before} {command}");
        }
    }

    #[test]
    fn a_working_folder_that_cannot_be_entered_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (file, closed) = (folder.path().join("file"), folder.path().join("closed"));
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&closed).unwrap();
        rustix::fs::chmod(&closed, rustix::fs::Mode::empty()).unwrap();
        let why = |error: Errno, cwd: &Path| explain(error.into(), "node", cwd).to_string();
        assert_eq!(why(Errno::NOTDIR, &file), format!("{} (cwd) is not a folder", file.display()));
        let refused = why(Errno::ACCESS, &closed);
        // It may enter every folder.
        let is_superuser = rustix::process::geteuid().is_root();
        assert_eq!(refused.contains("may not enter the folder (cwd)"), !is_superuser, "{refused}");
        assert_eq!(why(Errno::ACCESS, folder.path()), "\"node\": Permission denied (os error 13)");
    }

    #[test]
    fn a_script_that_the_system_cannot_start_is_not_said_to_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("start.sh"), "#!/no/bash\n").unwrap();
        let why = |error: Errno, program| explain(error.into(), program, folder.path()).to_string();
        assert!(why(Errno::NOENT, "./start.sh").contains("not the interpreter that its first line"));
        assert!(why(Errno::NOEXEC, "./start.sh").contains("a script needs a first line"));
        assert_eq!(why(Errno::NOENT, "./other.sh"), "there is no program \"./other.sh\"");
        assert_eq!(why(Errno::NOENT, "node"), "there is no program \"node\"");
    }

    #[test]
    fn variables_of_an_outer_hostler_are_not_passed_on() {
        for name in ["HOSTLER_LISTEN_FD", "HOSTLER_CONTROL_PATH", "NODE_CHANNEL_FD", "HOSTLER_APP_PORT"] {
            assert!(is_ours(name), "{name}");
        }
        for name in ["NODE_OPTIONS", "PATH", "HOSTLER_LOG"] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
