//! Which folder the workers of a pool use for Node's compile cache, and whether that folder is safe. Knows no process and
//! no pool.
//!
//! Node >= 22.1 keeps compiled code in the folder that `NODE_COMPILE_CACHE` names. It makes a subfolder for each version of
//! Node, and one file for each module, which it finds by the module's path. It believes what the files contain: who can
//! write there can run code as the worker. So the folder and the folders above it must belong to Hostler's user or root.

mod flushing;
mod pruning;

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

pub(super) use flushing::{CacheFlushes, Flushing};
use pruning::mark_used;
pub(super) use pruning::prune;

use super::settings::{CompileCache, WorkerSettings};

/// The operator's own settings. With one of them, Hostler sets nothing. Node measures coverage less exactly with a cache.
const SET_BY_OPERATOR: [&str; 3] = ["NODE_COMPILE_CACHE", "NODE_DISABLE_COMPILE_CACHE", "NODE_V8_COVERAGE"];
/// Everyone except the owner and the group may write.
const OTHERS_WRITE: u32 = 0o002;
/// In such a folder, only the owner of a file may remove or rename it. Example: `/tmp`.
const STICKY: u32 = 0o1000;

/// What a worker gets for its compile cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheChoice {
    pub folder: Option<PathBuf>,
    /// The folder is inside the app and may move with it, so Node uses paths relative to the folder.
    pub moves_with_app: bool,
    /// Hostler has chosen the folder, so it also removes old caches there.
    pub is_kept_tidy: bool,
    /// Why it is not the folder that was wanted.
    pub complaint: Option<String>,
}

impl CacheChoice {
    /// The variables of the worker.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let portable = Some(("NODE_COMPILE_CACHE_PORTABLE", Path::new("1"))).filter(|_| self.moves_with_app);
        self.folder
            .iter()
            .flat_map(move |folder| std::iter::once(("NODE_COMPILE_CACHE", folder.as_path())).chain(portable))
    }
}

/// Chooses and makes the folder. If the default folder cannot be used, it is one in `runtime`, a private folder that
/// Hostler removes at its end.
pub(super) fn choose(settings: &WorkerSettings, runtime: &Path) -> CacheChoice {
    let Some(wanted) = wanted(settings) else { return CacheChoice::default() };
    let is_default = settings.compile_cache == CompileCache::Auto;
    let made = wanted.and_then(|folder| if is_default { make_writable(&folder) } else { make_safe(&folder) });
    match made {
        Ok(folder) if is_default => {
            mark_used(&folder);
            CacheChoice { folder: Some(folder), is_kept_tidy: true, ..CacheChoice::default() }
        }
        Ok(folder) => {
            let moves_with_app = settings.cwd.canonicalize().is_ok_and(|cwd| folder.starts_with(cwd));
            CacheChoice { folder: Some(folder), moves_with_app, ..CacheChoice::default() }
        }
        Err(why) => {
            // The folders above `runtime` do not matter: workers run code from there anyway. Every user can write to an `emptyDir` of Kubernetes.
            let instead = || make(&runtime.join("compile-cache").join(app_name(&settings.cwd))).ok();
            let folder = is_default.then(instead).flatten();
            CacheChoice { folder, complaint: Some(why), ..CacheChoice::default() }
        }
    }
}

/// The folder that is tried first. `None`: Hostler sets none. `Err`: why there is no default folder. Makes nothing.
fn wanted(settings: &WorkerSettings) -> Option<Result<PathBuf, String>> {
    if SET_BY_OPERATOR.iter().any(|name| settings.env.contains_key(*name)) {
        return None;
    }
    match &settings.compile_cache {
        CompileCache::Off => None,
        CompileCache::Folder(folder) => Some(Ok(folder.clone())),
        CompileCache::Auto => Some(base(&settings.env).map(|base| base.join(app_name(&settings.cwd)))),
    }
}

/// Does to the folder that [`choose`] tries first what [`choose`] does to it. Makes nothing.
pub(super) fn touch(settings: &WorkerSettings) {
    let Some(Ok(folder)) = wanted(settings) else { return };
    if settings.compile_cache == CompileCache::Auto {
        mark_used(&folder);
    } else {
        drop(folder.metadata());
    }
}

/// The folder of all apps: in the cache folder that systemd made for the service, or in that of the user.
fn base(env: &BTreeMap<String, String>) -> Result<PathBuf, String> {
    let get = |name: &str| env.get(name).map(Path::new).filter(|path| path.is_absolute());
    // systemd may name several folders.
    let of_service = env.get("CACHE_DIRECTORY").and_then(|all| all.split(':').next()).map(Path::new);
    let of_service = of_service.filter(|path| path.is_absolute()).map(|path| path.join("compile-cache"));
    let of_user = get("XDG_CACHE_HOME").map(Path::to_owned);
    let of_user = of_user.or_else(|| get("HOME").map(|home| home.join(".cache")));
    of_service
        .or_else(|| of_user.map(|cache| cache.join("hostler/compile-cache")))
        .ok_or_else(|| "none of CACHE_DIRECTORY, XDG_CACHE_HOME and HOME is set".to_owned())
}

/// One folder for each app: the name of its folder, for people, and a number made from the whole path.
fn app_name(cwd: &Path) -> String {
    let path = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().filter(is_plain).take(40).collect();
    format!("{name}-{:016x}", fnv1a(path.as_os_str().as_encoded_bytes()))
}

/// The FNV-1a hash: it must be the same in each version of Hostler, which std does not promise of its hashes.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn make_writable(folder: &Path) -> Result<PathBuf, String> {
    let folder = make_safe(folder)?;
    rustix::fs::access(&folder, Access::WRITE_OK).map_err(|error| explain(&folder, &error.into()))?;
    Ok(folder)
}

/// Makes the folder with mode 0700 if it is missing.
fn make(folder: &Path) -> Result<PathBuf, String> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.and_then(|()| folder.canonicalize()).map_err(|error| explain(folder, &error))
}

/// Makes the folder, and checks that no other user can change what is in it.
fn make_safe(folder: &Path) -> Result<PathBuf, String> {
    let path = make(folder)?;
    let ours = rustix::process::geteuid().as_raw();
    for (level, above) in path.ancestors().enumerate() {
        let facts = above.metadata().map_err(|error| explain(above, &error))?;
        let open = facts.mode() & OTHERS_WRITE != 0 && (level == 0 || facts.mode() & STICKY == 0);
        if open || (facts.uid() != ours && facts.uid() != 0) {
            return Err(format!("{}: other users can change {}", folder.display(), above.display()));
        }
    }
    Ok(path)
}

fn explain(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests;
