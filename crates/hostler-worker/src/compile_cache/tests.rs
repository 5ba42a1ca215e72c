//! Tests of the choice of a folder, with real folders.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn settings(env: &[(&str, &Path)], compile_cache: CompileCache, cwd: &Path) -> WorkerSettings {
    let env =
        env.iter().map(|(name, value)| ((*name).to_owned(), value.to_str().unwrap().to_owned())).collect();
    WorkerSettings { env, compile_cache, cwd: cwd.to_owned(), ..WorkerSettings::default() }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

#[test]
fn the_folder_of_the_user_has_a_private_folder_for_each_app() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let apps = ["shop", "blog"].map(|name| home.join(name));
    let folders = apps.each_ref().map(|app| {
        std::fs::create_dir(app).unwrap();
        let choice = choose(&settings(&[("HOME", &home)], CompileCache::Auto, app), Path::new("/nowhere"));
        assert_eq!((choice.moves_with_app, &choice.complaint), (false, &None));
        choice.folder.unwrap()
    });
    assert!(folders[0].starts_with(home.join(".cache/hostler/compile-cache")), "{folders:?}");
    assert!(folders[0].file_name().unwrap().to_str().unwrap().starts_with("shop-"), "{folders:?}");
    assert_ne!(folders[0], folders[1]);
    assert_eq!([mode(&folders[0]), mode(&home.join(".cache/hostler"))], [0o700, 0o700]);
    let again = choose(&settings(&[("HOME", &home)], CompileCache::Auto, &apps[0]), Path::new("/nowhere"));
    assert_eq!(again.folder.as_ref(), Some(&folders[0]));
    assert_eq!(again.variables().collect::<Vec<_>>(), [("NODE_COMPILE_CACHE", folders[0].as_path())]);
}

#[test]
fn systemds_folder_is_taken_before_that_of_the_user() {
    let [service, user, home] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let of_service = PathBuf::from(format!("{}:/var/cache/other", service.path().display()));
    let mut env: Vec<(&str, &Path)> =
        vec![("CACHE_DIRECTORY", &of_service), ("XDG_CACHE_HOME", user.path()), ("HOME", home.path())];
    for expected in [&service, &user, &home] {
        let choice =
            choose(&settings(&env, CompileCache::Auto, Path::new("/srv/app")), Path::new("/nowhere"));
        assert!(choice.folder.unwrap().starts_with(expected.path()));
        env.remove(0);
    }
    // A relative path is not the same folder for everyone, so the XDG rules say to ignore it.
    let env: [(&str, &Path); 2] = [("XDG_CACHE_HOME", Path::new("cache")), ("HOME", home.path())];
    let choice = choose(&settings(&env, CompileCache::Auto, Path::new("/srv/app")), Path::new("/nowhere"));
    assert!(choice.folder.unwrap().starts_with(home.path()));
}

#[test]
fn what_the_operator_has_set_stays() {
    let home = tempfile::tempdir().unwrap();
    for name in SET_BY_OPERATOR {
        let env: [(&str, &Path); 2] = [("HOME", home.path()), (name, Path::new("1"))];
        let folder = CompileCache::Folder(home.path().join("cache"));
        for wish in [CompileCache::Auto, folder] {
            assert_eq!(
                choose(&settings(&env, wish, home.path()), home.path()),
                CacheChoice::default(),
                "{name}"
            );
        }
    }
    let off = settings(&[("HOME", home.path())], CompileCache::Off, home.path());
    assert_eq!(choose(&off, home.path()), CacheChoice::default());
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn without_a_usable_folder_of_the_user_the_cache_lives_as_long_as_hostler() {
    let runtime = tempfile::tempdir().unwrap();
    let cases: [&[(&str, &Path)]; 2] = [&[], &[("HOME", Path::new("/proc/self/nonexistent"))]];
    for env in cases {
        let choice = choose(&settings(env, CompileCache::Auto, Path::new("/srv/app")), runtime.path());
        assert!(choice.folder.unwrap().starts_with(runtime.path()));
        assert!(choice.complaint.is_some());
    }
}

#[test]
fn the_private_folder_of_hostler_may_be_in_one_that_every_user_can_change() {
    // As an `emptyDir` of Kubernetes.
    let parent = tempfile::tempdir().unwrap();
    std::fs::set_permissions(parent.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let runtime = parent.path().join("hostler-1");
    std::fs::create_dir(&runtime).unwrap();
    let choice = choose(&settings(&[], CompileCache::Auto, Path::new("/srv/app")), &runtime);
    assert_eq!(mode(&choice.folder.unwrap()), 0o700);
}

#[test]
fn a_folder_that_other_users_can_change_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let (shared, inside) = (root.join("shared"), root.join("shared/cache"));
    std::fs::create_dir_all(&inside).unwrap();
    let refusal = |path: &Path| make_safe(path).unwrap_err();
    for open in [0o777, 0o703] {
        std::fs::set_permissions(&shared, PermissionsExt::from_mode(open)).unwrap();
        assert!(refusal(&shared).contains("other users can change"), "{open:o}");
        assert!(refusal(&inside).ends_with(&format!("can change {}", shared.display())), "{open:o}");
    }
    // As /tmp: others cannot replace our folder in it, but they can put files next to it.
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o1777)).unwrap();
    assert_eq!(make_safe(&inside), Ok(inside.clone()));
    assert!(refusal(&shared).contains("other users can change"));
    // A link does not hide where it leads.
    let link = root.join("link");
    symlink(&shared, &link).unwrap();
    assert!(refusal(&link).contains("other users can change"));
    let choice = choose(&settings(&[], CompileCache::Folder(link), &root), &root);
    assert!(choice.folder.is_none() && choice.complaint.is_some(), "{choice:?}");
}

#[test]
fn a_folder_inside_the_app_may_move_with_it() {
    let app = tempfile::tempdir().unwrap();
    let inside = CompileCache::Folder(app.path().join("node_modules/.cache/code"));
    let choice = choose(&settings(&[], inside, app.path()), Path::new("/nowhere"));
    assert!(choice.moves_with_app && choice.complaint.is_none(), "{choice:?}");
    let names: Vec<_> = choice.variables().map(|(name, _)| name).collect();
    assert_eq!(names, ["NODE_COMPILE_CACHE", "NODE_COMPILE_CACHE_PORTABLE"]);
}
