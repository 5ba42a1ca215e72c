//! Node's compile cache: a worker's code is compiled once, and later boots load it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hostler_testkit::{eventually, node_22};

use super::proc;
use super::site::{Plan, Site, source};

/// An app with a module of its own. It shows the folder of its compile cache.
fn with_module() -> Plan {
    let app = "const { page } = require('./page.cjs');
        require('http').createServer((req, res) => res.end(page())).listen(3000);";
    let plan = source(app);
    let page = "exports.page = () => String(process.env.NODE_COMPILE_CACHE);";
    std::fs::write(plan.folder().join("page.cjs"), page).unwrap();
    plan
}

/// Node 22 instead of the one that is installed.
fn by_node_22(plan: Plan) -> Option<Plan> {
    Some(plan.runs(&format!("{} app.cjs", node_22()?.display())))
}

async fn cache_of(site: &Site) -> PathBuf {
    site.get("/").await.assert_status(200).text().into()
}

/// The files in the folders of all versions.
fn modules(cache: &Path) -> Vec<PathBuf> {
    let entries =
        |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries(cache).flat_map(|version| entries(&version).collect::<Vec<_>>()).collect()
}

#[tokio::test]
async fn a_worker_that_is_killed_has_written_its_compiled_code_and_the_next_one_loads_it() {
    let Some(plan) = by_node_22(with_module()) else { return };
    let site = plan.env("NODE_DEBUG_NATIVE", "COMPILE_CACHE").started().await;
    let cache = cache_of(&site).await;
    assert!(cache.starts_with(site.file("cache/hostler/compile-cache").canonicalize().unwrap()), "{cache:?}");
    assert_eq!(cache.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    // The app, its module and the preload. Node adds an ending to a file that is not complete.
    let written = eventually("the worker has written its code", async || {
        let complete = modules(&cache).into_iter().filter(|file| file.extension().is_none());
        Some(complete.collect::<Vec<_>>()).filter(|files| files.len() >= 3)
    })
    .await;
    assert_eq!(site.printed("page.cjs").await["stream"], "stderr");

    let pid = site.workers().await[0]["pid"].as_u64().unwrap();
    proc::kill(pid as u32);
    eventually("another worker is ready", async || {
        let worker = site.workers().await.remove(0);
        (worker["state"] == "ready" && worker["pid"] != pid).then_some(())
    })
    .await;
    let loaded = |line: &serde_json::Value| {
        let text = line["text"].as_str().unwrap_or_default();
        text.contains("page.cjs") && text.contains("was accepted")
    };
    eventually("it has loaded the code of the module", async || site.log().iter().any(loaded).then_some(()))
        .await;
    assert!(written.iter().all(|file| file.exists()));
    site.stop().await;
}

#[tokio::test]
async fn what_the_operator_sets_is_kept_and_off_sets_nothing() {
    let own = with_module().env("NODE_COMPILE_CACHE", "/srv/own").started().await;
    assert_eq!(cache_of(&own).await, Path::new("/srv/own"));
    own.stop().await;
    let off = with_module().option("pools.app.compile_cache=off").started().await;
    assert_eq!(cache_of(&off).await, Path::new("undefined"));
    off.stop().await;
}

#[tokio::test]
async fn without_a_folder_that_can_be_written_the_cache_is_in_hostlers_own() {
    let site = with_module().env("XDG_CACHE_HOME", "/proc/none").workers(2).started().await;
    let cache = cache_of(&site).await;
    assert!(cache.starts_with(site.file("run").canonicalize().unwrap()), "{cache:?}");
    let line = site.logged("the compile cache is kept only until Hostler ends").await;
    assert!(line.contains("/proc/none"), "{line}");
    let said = site.log().into_iter().filter(|line| line.to_string().contains("compile cache")).count();
    assert_eq!(said, 1, "one line for the pool");
    site.stop().await;
    assert!(!cache.exists(), "it ends with Hostler");
}

#[tokio::test]
async fn a_folder_that_other_users_can_change_is_not_used() {
    let plan = with_module();
    let shared = plan.folder().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o777)).unwrap();
    let site = plan.option(&format!("pools.app.compile_cache={}", shared.display())).started().await;
    assert_eq!(cache_of(&site).await, Path::new("undefined"));
    let line = site.logged("no compile cache").await;
    assert!(line.contains("other users can change"), "{line}");
    site.stop().await;
}
