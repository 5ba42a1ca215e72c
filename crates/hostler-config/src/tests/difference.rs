//! What a reload finds changed.

use super::{Site, site};
use crate::{Config, PoolChange};

/// A pool as it is added, removed or changed, and the other things that changed.
fn changes(old: &Config, new: &Config) -> (Vec<String>, Vec<&'static str>, bool) {
    let difference = old.difference(new);
    let shown = difference.pools.iter().map(|change| match change {
        PoolChange::Added(pool) => format!("+{}", pool.name),
        PoolChange::Removed(pool) => format!("-{}", pool.name),
        PoolChange::Changed(old, new) => {
            assert_eq!(old.name, new.name);
            format!("~{}", new.name)
        }
    });
    (shown.collect(), difference.server.clone(), difference.routes)
}

fn rewrite(site: &Site, text: &str) {
    std::fs::write(site.folder().join("hostler.toml"), text).unwrap();
}

#[test]
fn a_file_in_another_spelling_is_no_change() {
    let site = site("[server]\nidle_timeout = \"1m\"\n[pools.web]\ncommand = \"node a.js\"\n");
    let old = site.config();
    rewrite(&site, "pools.web.command = [\"node\", \"a.js\"]\nserver.idle_timeout = \"60s\" # as before\n");
    assert!(old.difference(&site.config()).is_empty());
}

#[test]
fn pools_are_compared_by_name() {
    let route = "[[routes]]\nmatch = \"*\"\npool = \"web\"\n";
    let pool = |name: &str, workers: u8| format!("[pools.{name}]\ncommand = \"x\"\nworkers = {workers}\n");
    let site = site(&[pool("gone", 1), pool("kept", 1), pool("web", 1), route.into()].concat());
    let old = site.config();
    rewrite(&site, &[pool("web", 2), pool("kept", 1), pool("added", 1), route.into()].concat());
    let pools = ["+added", "-gone", "~web"].map(String::from).to_vec();
    assert_eq!(changes(&old, &site.config()), (pools, vec![], false));
}

#[test]
fn changed_routes_and_server_keys_are_listed_too() {
    let site = site("pools.web.command = \"x\"\n");
    let old = site.config();
    rewrite(
        &site,
        "pools.web.command = \"x\"\nroutes = [{ match = \"/x\", pool = \"web\" }]\n[server]\nthreads = 9\ndrain_timeout = \"1m\"\n",
    );
    assert_eq!(changes(&old, &site.config()), (vec![], vec!["threads", "drain_timeout"], true));
}

#[test]
fn flags_and_variables_still_win_after_a_reload() {
    let site = site("pools.web.command = \"x\"\nserver.threads = 1\n")
        .flag("server.threads", "7")
        .variable("HOSTLER_POOLS_WEB_WORKERS", "5");
    let old = site.config();
    rewrite(&site, "pools.web = { command = \"x\", workers = 2 }\nserver.threads = 2\n");
    assert!(old.difference(&site.config()).is_empty());
}
