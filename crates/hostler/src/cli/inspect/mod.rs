//! `hostler profile` and `hostler heap`: the files, and what is printed about them. Does not know how a profile is taken.

mod cpu_profile;
mod page;
mod receive;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tempfile::{NamedTempFile, PersistError};

use self::cpu_profile::CpuProfile;
use self::receive::InspectionFailure;
use super::admin::Admin;
use super::{HeapArgs, ProfileArgs, complain, print};

/// How many functions the table shows.
const HOTTEST: usize = 10;

/// `hostler profile`
pub fn profile(args: &ProfileArgs) -> ExitCode {
    let admin = match Admin::find("profile", &args.ask) {
        Ok(admin) => admin,
        Err(code) => return code,
    };
    let (pool, worker) = match target(&args.worker) {
        Ok(target) => target,
        Err(why) => return admin.misused(&why),
    };
    let query = format!("profile?seconds={}&interval={}", args.seconds, args.interval);
    let path = match worker {
        Some(worker) => format!("/pools/{}/workers/{worker}/{query}", encoded(pool)),
        None => format!("/pools/{}/{query}", encoded(pool)),
    };
    let taken = part_file(&args.out).map_err(InspectionFailure::from).and_then(|mut file| {
        let mut json = Vec::new();
        let began = receive::receive(&admin, &path, pool, |bytes| {
            json.extend_from_slice(bytes);
            Ok(())
        })?;
        let profile = CpuProfile::parse(&json)?;
        file.write_all(&json).map_err(|error| written_badly(&args.out, &error))?;
        let name = format!("{pool}/{} (pid {})", began.worker, began.pid);
        let files = finish(
            &args.out,
            pool,
            began.worker,
            [("cpuprofile", file), ("html", page_file(args, &name, &profile)?)],
        )?;
        Ok((name, profile, files))
    });
    match taken {
        Ok((name, profile, files)) => print(&format!("{}{}", profile.report(&name, HOTTEST), list(&files))),
        Err(InspectionFailure::Misused(why)) => admin.misused(&why),
        Err(InspectionFailure::Failed(why)) => admin.failed(&why),
    }
}

fn page_file(args: &ProfileArgs, name: &str, profile: &CpuProfile) -> Result<NamedTempFile, String> {
    let mut file = part_file(&args.out)?;
    let page = page::page(name, profile, HOTTEST);
    file.write_all(page.as_bytes()).map_err(|error| written_badly(&args.out, &error))?;
    Ok(file)
}

/// `hostler heap`
pub fn heap(args: &HeapArgs) -> ExitCode {
    let admin = match Admin::find("heap", &args.ask) {
        Ok(admin) => admin,
        Err(code) => return code,
    };
    let (pool, worker) = match target(&args.worker) {
        Ok((pool, Some(worker))) => (pool, worker),
        Ok((pool, None)) => {
            return admin
                .misused(&format!("name the worker, such as {pool}/1: it is out of rotation meanwhile"));
        }
        Err(why) => return admin.misused(&why),
    };
    let (wait, force, replace) = (args.wait.as_millis(), args.force, args.replace);
    let path = format!(
        "/pools/{}/workers/{worker}/heap?wait={wait}ms&force={force}&replace={replace}",
        encoded(pool)
    );
    let taken = part_file(&args.out).map_err(InspectionFailure::from).and_then(|mut file| {
        let (mut shown, mut all) = (0, 0_u64);
        let began = receive::receive(&admin, &path, pool, |bytes| {
            file.write_all(bytes).map_err(|error| written_badly(&args.out, &error))?;
            all += bytes.len() as u64;
            if all / STEP > shown && io::stderr().is_terminal() {
                shown = all / STEP;
                eprint!("\r{pool}/{worker}: {} MiB written ", all >> 20);
            }
            Ok(())
        })?;
        if shown > 0 {
            complain("");
        }
        let files = finish(&args.out, pool, began.worker, [("heapsnapshot", file)])?;
        Ok((all, files))
    });
    match taken {
        Ok((all, files)) => {
            let fate =
                if replace { "is being replaced" } else { "gets requests again, unless it is drained" };
            let size = all as f64 / f64::from(1 << 20);
            print(&format!(
                "{pool}/{worker} {fate}; the snapshot has {size:.1} MiB. It may contain secrets: keep it private.\n{}",
                list(&files)
            ))
        }
        Err(InspectionFailure::Misused(why)) => admin.misused(&why),
        Err(InspectionFailure::Failed(why)) => admin.failed(&why),
    }
}

/// The progress line changes after so many bytes.
const STEP: u64 = 1 << 20;

/// `web/2` or `web`.
pub(super) fn target(text: &str) -> Result<(&str, Option<usize>), String> {
    let Some((pool, number)) = text.rsplit_once('/') else { return Ok((text, None)) };
    match number.parse() {
        Ok(worker) if worker > 0 && !pool.is_empty() => Ok((pool, Some(worker))),
        _ => Err(format!("{text}: not a worker; write the pool and the number of the worker, such as web/2")),
    }
}

fn encoded(pool: &str) -> String {
    percent_encoding::utf8_percent_encode(pool, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A file that only this user can read (mode 0600). It is removed unless it gets its name.
fn part_file(folder: &Path) -> Result<NamedTempFile, String> {
    if !folder.is_dir() {
        let what = if folder.exists() { "is not a folder" } else { "does not exist" };
        return Err(format!("--out: {} {what}", folder.display()));
    }
    let made = tempfile::Builder::new().prefix(".hostler-").suffix(".part").tempfile_in(folder);
    made.map_err(|error| written_badly(folder, &error))
}

fn written_badly(folder: &Path, error: &io::Error) -> String {
    format!("cannot write in {}: {error}", folder.display())
}

/// Gives the files their names: `web-2-20261123T221500.cpuprofile`.
fn finish(
    folder: &Path,
    pool: &str,
    worker: usize,
    files: impl IntoIterator<Item = (&'static str, NamedTempFile)>,
) -> Result<Vec<PathBuf>, String> {
    let plain: String =
        pool.chars().map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect();
    let stem = format!("{plain}-{worker}-{}", jiff::Zoned::now().strftime("%Y%m%dT%H%M%S"));
    files.into_iter().map(|(ending, file)| name_it(folder, &stem, ending, file)).collect()
}

/// A file of this name is left as it is, and the new one gets a number. Not by a hard link, which FAT, exFAT and some network file systems
/// do not have.
fn name_it(folder: &Path, stem: &str, ending: &str, mut file: NamedTempFile) -> Result<PathBuf, String> {
    // First, because a file with its name must be complete.
    file.as_file().sync_all().map_err(|error| written_badly(folder, &error))?;
    for number in 1..100 {
        let name = if number == 1 { format!("{stem}.{ending}") } else { format!("{stem}-{number}.{ending}") };
        let path = folder.join(name);
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(path),
            Err(PersistError { error, file: unnamed }) if error.kind() == io::ErrorKind::AlreadyExists => {
                file = unnamed;
            }
            Err(PersistError { error, .. }) => return Err(written_badly(folder, &error)),
        }
    }
    Err(format!("{}: too many files named {stem}", folder.display()))
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| format!("{}\n", file.display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_for_the_files_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = part_file(folder.path()).unwrap();
        let refused = |path: &Path| part_file(path).unwrap_err();
        assert_eq!(refused(Path::new("/absent")), "--out: /absent does not exist");
        assert_eq!(refused(file.path()), format!("--out: {} is not a folder", file.path().display()));
    }

    #[test]
    fn a_file_gets_its_name_and_replaces_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let named = |text: &[u8]| {
            let mut file = part_file(folder.path()).unwrap();
            file.write_all(text).unwrap();
            name_it(folder.path(), "web-1", "heapsnapshot", file).unwrap()
        };
        let [first, second] = [b"one", b"two"].map(|text| named(text));
        assert_eq!(first, folder.path().join("web-1.heapsnapshot"));
        assert_eq!(second, folder.path().join("web-1-2.heapsnapshot"));
        assert_eq!([first, second].map(|path| std::fs::read(path).unwrap()), [b"one", b"two"]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no other name is left");
    }

    #[test]
    fn a_worker_is_named_by_pool_and_number() {
        assert_eq!(target("web/2"), Ok(("web", Some(2))));
        assert_eq!(target("web"), Ok(("web", None)));
        for text in ["web/", "web/0", "web/two", "/2", "web/-1"] {
            assert!(target(text).is_err(), "{text}");
        }
    }
}
