//! `hostler init`: writes a configuration for the app in a folder. Knows no running parts.

mod angular;
mod config_text;
mod ecosystem;
mod found;
mod framework;
mod next;
mod node_app;
mod package;
mod pm2;
mod pm2_keys;
mod pm2_serve;
mod procfile;
mod recognised;
mod script_line;
mod sites;
mod text;

use std::fs::Metadata;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hostler_config::{self as config, Invocation, LoadContext};
use hostler_engine::journal::{Allowed, printable_lines};

use self::found::FoundPool;
use self::package::NodePackage;
use super::{complain, print};

const FILE: &str = "hostler.toml";
const SCHEMA: &str = "hostler.schema.json";

/// `hostler init`
#[derive(Debug, clap::Args)]
pub struct Init {
    /// Folder of the app
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    /// Print the file, and write nothing
    #[arg(long)]
    pub print: bool,
    /// File to write, or `-` to print it [default: hostler.toml in the folder]
    #[arg(short, long, value_name = "FILE", conflicts_with = "print")]
    pub output: Option<PathBuf>,
}

/// Writes the file and shows the next steps; exits with 0. Exits with 1 if there is no app, or the file exists.
pub fn init(args: &Init) -> ExitCode {
    match run(args, &LoadContext::of_process()) {
        Ok(said) => print(&said),
        Err(why) => {
            complain(format_args!("hostler init: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Init, load_context: &LoadContext) -> Result<String, String> {
    let folder = load_context.folder.join(&args.folder);
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    if !folder.is_dir() {
        return Err(format!("{} is not a folder", folder.display()));
    }
    let is_printed = args.print || args.output.as_deref() == Some(Path::new("-"));
    let is_here = args.folder == Path::new(".");
    let default = if is_here { PathBuf::from(FILE) } else { args.folder.join(FILE) };
    let target = args.output.clone().unwrap_or(default);
    let path = load_context.folder.join(&target);
    if !is_printed && !args.force && path.symlink_metadata().is_ok() {
        return Err(exists(&target));
    }
    let mut pools = find(&folder, load_context)?;
    if !is_printed {
        start_elsewhere(&mut pools, &folder, &path);
    }
    let text = text::file(&pools, folder.join(SCHEMA).is_file());
    if is_printed {
        return Ok(text);
    }
    write(&path, &text, args.force).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(&target),
        _ => format!("{} cannot be written: {error}", target.display()),
    })?;
    Ok(next_steps(&pools, args, &target, load_context))
}

fn exists(target: &Path) -> String {
    format!("{} exists: --force replaces it, and --print shows what init would write", target.display())
}

/// Writes the file. After an error, such as that of a full disk, an old file is whole, and there is no part of a new one.
fn write(path: &Path, text: &str, replace: bool) -> std::io::Result<()> {
    match path.metadata().ok().filter(|_| replace) {
        None => create(path, text, replace),
        // A pipe or a device has no old text.
        Some(old) if !old.is_file() => std::fs::write(path, text),
        Some(old) => match exchange(path, &old, text) {
            // The file may be written, but its folder may not, or the file alone is mounted into a container. So it is written in its place.
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ResourceBusy) => {
                std::fs::write(path, text)
            }
            exchanged => exchanged,
        },
    }
}

/// Writes a new file. `replace`: a link to no file may be there, and its target is made.
fn create(path: &Path, text: &str, replace: bool) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).truncate(replace).create(replace).create_new(!replace).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        let made = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        // The first error says more.
        let _ = std::fs::remove_file(made);
    }
    written
}

/// Writes a file beside the old one first, and renames it.
fn exchange(path: &Path, old: &Metadata, text: &str) -> std::io::Result<()> {
    // The target of a link is replaced, and the link stays.
    let place = path.canonicalize()?;
    let folder = place.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    // Before there is a text, which may have secrets. Only root may give a file to another user. Else it belongs to the user of this command.
    let _ = fchown(file.as_file(), Some(old.uid()), Some(old.gid()));
    file.as_file().set_permissions(old.permissions())?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&place).map(drop).map_err(|error| error.error)
}

/// The pools for what is in the folder: PM2's file says most, then a Procfile, then `package.json`.
fn find(folder: &Path, load_context: &LoadContext) -> Result<Vec<FoundPool>, String> {
    let package = NodePackage::read(folder)?;
    if let Some(file) = ecosystem::find(folder) {
        let apps = ecosystem::apps(&file, &load_context.environment)?;
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let context = pm2::Pm2Context {
            folder,
            file: &name,
            environment: &load_context.environment,
            cores: load_context.cores,
        };
        let pools = pm2::pools(&apps, &context);
        if pools.is_empty() {
            return Err(format!("{name} has no app with a script"));
        }
        return Ok(with_files(pools, package.as_ref()));
    }
    let name = package.as_ref().and_then(NodePackage::name).unwrap_or("web").to_owned();
    if let Ok(text) = std::fs::read_to_string(folder.join("Procfile"))
        && let Some(pool) = procfile::pool(&text, &name, package.as_ref())
    {
        return Ok(with_files(vec![pool], package.as_ref()));
    }
    let Some(package) = package else {
        let pool = node_app::of_file(folder);
        return pool.map(|pool| vec![pool]).ok_or_else(|| nothing(folder));
    };
    let pool = node_app::of_package(&package);
    let has_script = node_app::start_script(&package).is_some();
    let is_root = !has_script && !pool.open.is_empty() || package.starts_workspace();
    if package.is_workspace() && is_root {
        return Err(format!(
            "{} is a workspace without a start script of its own; name the folder of one app: hostler init apps/web",
            folder.display()
        ));
    }
    Ok(vec![pool])
}

fn nothing(folder: &Path) -> String {
    let looked = "no package.json, no PM2 ecosystem file, no Procfile and no file such as server.js";
    format!("{} has no app that init knows: there is {looked}; name the folder of the app", folder.display())
}

/// Adds what the framework in the folder says about files, if there is one pool and it runs there.
fn with_files(mut pools: Vec<FoundPool>, package: Option<&NodePackage>) -> Vec<FoundPool> {
    if let ([pool], Some(package)) = (&mut pools[..], package)
        && pool.cwd.is_none()
    {
        let of_package = node_app::of_package(package);
        // Files in place of an app are for folders without a program of their own.
        if !of_package.command.is_empty() && !pool.command.is_empty() {
            pool.files = of_package.files;
        }
        pool.steps = of_package.steps;
    }
    pools
}

/// Paths in the file start at its own folder. If that is not the app's, they become absolute.
fn start_elsewhere(pools: &mut [FoundPool], folder: &Path, path: &Path) {
    let own = path.parent().and_then(|parent| parent.canonicalize().ok());
    if own.as_deref() == Some(folder) {
        return;
    }
    let absolute = |path: &str| folder.join(path).display().to_string();
    for pool in pools {
        pool.cwd = Some(pool.cwd.as_deref().map_or_else(|| folder.display().to_string(), absolute));
        pool.files.iter_mut().for_each(|files| files.dir = absolute(&files.dir));
    }
}

/// What the file is for: `is written for a Node app`, or `has the apps api and jobs of ecosystem.config.js`.
fn contents(pools: &[FoundPool]) -> String {
    let apps = pools.iter().map(|pool| pool.what.strip_prefix("the app \"")?.split_once("\" of "));
    match apps.collect::<Option<Vec<_>>>().as_deref() {
        Some([first @ .., last, (name, file)]) => {
            let names: Vec<_> = first.iter().chain([last]).map(|(name, _)| *name).collect();
            format!("has the apps {} and {name} of {file}", names.join(", "))
        }
        _ => {
            let what: Vec<_> = pools.iter().map(|pool| pool.what.as_str()).collect();
            format!("is written for {}", what.join(", "))
        }
    }
}

fn next_steps(pools: &[FoundPool], args: &Init, target: &Path, load_context: &LoadContext) -> String {
    let mut said = format!("{} {}.\n", target.display(), contents(pools));
    for open in pools.iter().flat_map(|pool| &pool.open) {
        said.push_str(&format!("Look at this: {open}\n"));
    }
    let mut steps: Vec<String> = Vec::new();
    for step in pools.iter().flat_map(|pool| &pool.steps) {
        if !steps.contains(step) {
            steps.push(step.clone());
        }
    }
    // For a shell: a path may have spaces.
    let word = |path: &Path| shell_words::quote(&path.display().to_string()).into_owned();
    if args.folder != Path::new(".") && !steps.is_empty() {
        steps = vec![format!("(cd {} && {})", word(&args.folder), steps.join(" && "))];
    }
    let file = if target == Path::new(FILE) { String::new() } else { format!(" -c {}", word(target)) };
    steps.extend([format!("hostler check{file}"), format!("hostler start{file}")]);
    said.push_str("\nNext:\n");
    steps.iter().for_each(|step| said.push_str(&format!("  {step}\n")));
    said.push_str("Then the app is on http://127.0.0.1:8080.\n");
    let invocation =
        Invocation { file: Some(target.into()), settings: Vec::new(), load_context: load_context.clone() };
    // Before a build, files are missing that the steps above make.
    let is_ready = pools.iter().all(|pool| pool.steps.is_empty());
    if let (true, Err(errors)) = (is_ready, config::load_to_run(&invocation)) {
        said.push_str(&format!("\nhostler check says:\n{errors}\n"));
    }
    // It quotes scripts of an app, which may come from anywhere.
    printable_lines(&said, Allowed::Text)
}
