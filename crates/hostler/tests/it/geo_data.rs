//! Databases of places while Hostler runs: replaced, broken, configured otherwise.

use hostler_testkit::{Mmdb, eventually, mmdb, mmdb_v4};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::geo::{places, started};
use crate::site;

const ROUTE: &str = "[[routes]]\nmatch = '*'\ngeo = true\n";

/// So many towns that a start does not look at the last one.
fn towns() -> Mmdb {
    (0..200).fold(mmdb("Many"), |towns, at| {
        towns.city(&format!("8.8.{at}.0/24"), &[("en", &format!("Town {at}"))], "US", (1.25, 1.25))
    })
}

/// The same bytes, with a damaged record of the last town.
fn damaged(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = bytes.windows(8).rposition(|part| part == b"Town 199").unwrap();
    bytes[at] = 0xff;
    bytes
}

#[tokio::test]
async fn a_renamed_newer_database_replaces_the_older_one() {
    let site = started("", ROUTE).await;
    let mut client = site.connect().await;
    client.get("/geo/81.2.69.160/city").await.assert_ok("London\n");
    let moved = mmdb("Newer").city("81.2.69.0/24", &[("en", "Paris")], "FR", (48.8, 2.3));
    moved.write(site.folder(), "places.mmdb");
    eventually("the newer database", async || {
        (site.get("/geo/81.2.69.160/city").await.text() == "Paris\n").then_some(())
    })
    .await;
    site.says("geo: now uses places.mmdb (Newer, built").await;
    client.get("/geo/81.2.69.160/city").await.assert_ok("Paris\n");
    assert_eq!(client.get("/geo/meta").await.json()["reloads"], 1);
    assert_eq!(site.status().await["geo"]["reloads"], 1);
}

#[tokio::test]
async fn a_database_that_is_overwritten_in_place_does_not_end_hostler_and_is_used() {
    let site = started("", ROUTE).await;
    let path = site.folder().join("places.mmdb");
    let newer = mmdb("Newer").city("81.2.69.0/24", &[("en", "Paris")], "FR", (48.8, 2.3));
    let newer = std::fs::read(newer.write(site.folder(), "newer.mmdb")).unwrap();
    // As `cp` does it: the file is empty first, then it has a part of its bytes.
    for written in [&b""[..], &newer[..newer.len() / 2]] {
        std::fs::write(&path, written).unwrap();
        site.get("/geo/81.2.69.160/city").await.assert_ok("London\n");
    }
    std::fs::write(&path, &newer).unwrap();
    eventually("the newer database", async || {
        (site.get("/geo/81.2.69.160/city").await.text() == "Paris\n").then_some(())
    })
    .await;
    std::fs::remove_file(&path).unwrap();
    site.get("/geo/81.2.69.160/city").await.assert_ok("Paris\n");
}

#[tokio::test]
async fn without_a_folder_for_copies_a_database_is_used_in_place_with_a_warning() {
    let plan = site(&format!("server.temp_dir = 'copies'\n[geo]\ndatabases = 'places.mmdb'\n{ROUTE}"));
    places().write(plan.folder(), "places.mmdb");
    let copies = plan.folder().join("copies");
    std::fs::create_dir(&copies).unwrap();
    let site = plan.start().await;
    std::fs::remove_dir_all(copies).unwrap();
    mmdb("Newer")
        .city("81.2.69.0/24", &[("en", "Paris")], "FR", (48.8, 2.3))
        .write(site.folder(), "places.mmdb");
    let line = site.says("places.mmdb: cannot be copied to ").await;
    assert!(
        line.contains("warn")
            && line.contains("No such file or directory")
            && line.contains("replace it only by a rename"),
        "{line}"
    );
    site.says("geo: now uses places.mmdb (Newer, built").await;
    site.get("/geo/81.2.69.160/city").await.assert_ok("Paris\n");
}

#[tokio::test]
async fn both_of_two_databases_are_replaced() {
    let plan = site(&format!("[geo]\ndatabases = ['v4.mmdb', 'v6.mmdb']\n{ROUTE}"));
    let write = |folder: &std::path::Path, city: &str| {
        mmdb_v4("v4").flat("81.2.69.0/24", city, "GB", (51.5, -0.1)).write(folder, "v4.mmdb");
        mmdb("v6").flat("2a02:100::/32", city, "DE", (48.1, 11.5)).write(folder, "v6.mmdb");
    };
    write(plan.folder(), "Old");
    let site = plan.start().await;
    site.get("/geo/2a02:100::1/city").await.assert_ok("Old\n");
    write(site.folder(), "New");
    eventually("the newer databases", async || {
        let (v4, v6) = (site.get("/geo/81.2.69.160/city").await, site.get("/geo/2a02:100::1/city").await);
        (v4.text() == "New\n" && v6.text() == "New\n").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_broken_database_is_reported_once_and_the_older_one_stays() {
    let site = started("", ROUTE).await;
    let good = std::fs::read(site.folder().join("places.mmdb")).unwrap();
    let mut bad = good.clone();
    let at = bad.windows(6).position(|part| part == b"London").unwrap();
    bad[at] = 0xff;
    for (bytes, why) in [(&bad[..], "places.mmdb: "), (&good[..20], "places.mmdb: invalid database")] {
        let told =
            || site.lines().iter().filter(|line| line.contains("the data that was read before")).count();
        let before = told();
        let new = site.folder().join("new");
        std::fs::write(&new, bytes).unwrap();
        std::fs::rename(&new, site.folder().join("places.mmdb")).unwrap();
        eventually("the complaint", async || (told() > before).then_some(())).await;
        let lines = site.lines();
        let line = lines.iter().rev().find(|line| line.contains("the data that was read before")).unwrap();
        assert!(line.contains(why), "{line}");
        site.get("/geo/81.2.69.160/city").await.assert_ok("London\n");
    }
    places().city("9.9.9.0/24", &[("en", "Zurich")], "CH", (47.3, 8.5)).write(site.folder(), "places.mmdb");
    eventually("a good one again", async || {
        (site.get("/geo/9.9.9.9/city").await.text() == "Zurich\n").then_some(())
    })
    .await;
    let told = site.lines().iter().filter(|line| line.contains("the data that was read before")).count();
    assert_eq!(told, 2);
}

#[tokio::test]
async fn a_database_that_could_not_be_read_for_want_of_descriptors_is_read_later() {
    let site = started("", ROUTE).await;
    let newer = mmdb("Newer").city("81.2.69.0/24", &[("en", "Paris")], "FR", (48.8, 2.3));
    let process = Pid::from_raw(site.pid() as i32);
    let most = getrlimit(Resource::Nofile).maximum;
    prlimit(process, Resource::Nofile, Rlimit { current: Some(1), maximum: most }).unwrap();
    newer.write(site.folder(), "places.mmdb");
    site.says("places.mmdb: cannot be read: Too many open files").await;
    prlimit(process, Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    site.says("geo: now uses places.mmdb (Newer, built").await;
    site.get("/geo/81.2.69.160/city").await.assert_ok("Paris\n");
}

#[tokio::test]
async fn a_database_without_cities_does_not_replace_one_with_cities() {
    let site = started("", ROUTE).await;
    let countries = || {
        let record = serde_json::json!({ "country": { "iso_code": "GB" } });
        mmdb("GeoLite2-Country").record("81.2.69.0/24", &record)
    };
    countries().write(site.folder(), "places.mmdb");
    let said = "it has no cities, but the database that it would replace has them: its type is \\\"GeoLite2-Country\\\"";
    let line = site.says(said).await;
    assert!(line.contains("places.mmdb") && line.contains("the data that was read before"), "{line}");
    site.get("/geo/81.2.69.160/city").await.assert_ok("London\n");
    assert_eq!(site.status().await["geo"]["reloads"], 0);
    // A database with cities is accepted again.
    places().city("9.9.9.0/24", &[("en", "Zurich")], "CH", (47.3, 8.5)).write(site.folder(), "places.mmdb");
    eventually("a database with cities", async || {
        (site.get("/geo/9.9.9.9/city").await.text() == "Zurich\n").then_some(())
    })
    .await;
    // Without cities before, a database without them is accepted.
    let plan = with_places();
    countries().write(plan.folder(), "places.mmdb");
    let site = plan.start().await;
    site.get("/get_city").await.assert_ok("{\"city\":\"Unknown\"}\n");
    countries().city("9.9.9.0/24", &[], "CH", (47.3, 8.5)).write(site.folder(), "places.mmdb");
    site.says("geo: now uses places.mmdb").await;
}

fn with_places() -> hostler_testkit::SitePlan {
    site(&format!("[geo]\ndatabases = 'places.mmdb'\n{ROUTE}"))
}

#[tokio::test]
async fn a_start_with_a_broken_database_ends_with_its_name_and_line() {
    let plan = site(&format!("[geo]\ndatabases = ['places.mmdb']\n{ROUTE}"));
    let config = format!("[geo]\ndatabases = ['places.mmdb']\n{ROUTE}");
    std::fs::write(plan.folder().join("hostler.toml"), config).unwrap();
    std::fs::write(plan.folder().join("places.mmdb"), "nothing of the kind").unwrap();
    for command in ["start", "check"] {
        let refused = plan.run(&[command]).await;
        refused.assert_exit(2).assert_complains("hostler.toml:2:14: geo.databases[0]: ");
        refused.assert_complains("places.mmdb: invalid database");
    }
}

#[tokio::test]
async fn a_check_looks_at_all_of_the_data() {
    let plan = with_places();
    std::fs::write(plan.folder().join("hostler.toml"), format!("[geo]\ndatabases = 'places.mmdb'\n{ROUTE}"))
        .unwrap();
    let path = towns().write(plan.folder(), "places.mmdb");
    plan.run(&["check"]).await.assert_exit(0);
    std::fs::write(&path, damaged(std::fs::read(&path).unwrap())).unwrap();
    let refused = plan.run(&["check"]).await;
    refused.assert_exit(2).assert_complains("places.mmdb: ");
    assert_eq!(refused.stdout, "", "a configuration with an error is not shown as valid");
}

#[tokio::test]
async fn a_reload_applies_other_lookup_settings_and_databases() {
    let site = started("", ROUTE).await;
    let config = |keys: &str| {
        format!("server.trusted_proxies = ['127.0.0.1']\n[geo]\ndatabases = 'places.mmdb'\n{keys}\n{ROUTE}")
    };
    site.get("/get_city").await.assert_status(200);
    site.rewrite(&config("lookups = 'off'"));
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("geo: changed"), "{said}");
    site.get("/geo/81.2.69.160").await.assert_status(403);
    assert_eq!(site.get("/status").await.json()["cities"], 1, "what was counted is still counted");

    mmdb("Other")
        .city("81.2.69.0/24", &[("en", "Paris")], "FR", (48.8, 2.3))
        .write(site.folder(), "other.mmdb");
    site.rewrite(&config("").replace("places.mmdb", "other.mmdb"));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/geo/81.2.69.160/city").await.assert_ok("Paris\n");

    site.rewrite(&config("").replace("places.mmdb", "missing.mmdb"));
    site.command(&["reload"]).await.assert_exit(1).assert_complains("missing.mmdb");
    site.get("/geo/81.2.69.160/city").await.assert_ok("Paris\n");

    site.rewrite("[[routes]]\nmatch = '*'\nrespond = 'none'\n");
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/get_city").await.assert_ok("none");
}

#[tokio::test]
async fn a_reload_with_other_decimals_does_not_use_a_database_that_was_refused() {
    let plan = with_places();
    let path = towns().write(plan.folder(), "places.mmdb");
    let site = plan.start().await;
    std::fs::write(&path, damaged(std::fs::read(&path).unwrap())).unwrap();
    site.says("the data that was read before stays in use").await;
    site.rewrite(&format!("[geo]\ndatabases = 'places.mmdb'\ndecimals = 0\n{ROUTE}"));
    site.command(&["reload"]).await.assert_exit(0);
    site.get("/geo/8.8.199.1/city").await.assert_ok("Town 199\n");
    site.get("/geo/8.8.199.1/lat").await.assert_ok("1\n");
}
