//! Files of postal codes: packed, replaced while Hostler runs, broken, configured otherwise.

use hostler_testkit::eventually;

use crate::postal::{EVERYWHERE, ROWS, started};
use crate::site;

#[tokio::test]
async fn a_pack_answers_as_its_rows_do() {
    let rows = started("", EVERYWHERE).await;
    let plan = site(&format!("[postal]\ndata = 'rows.pack'\n{EVERYWHERE}"));
    std::fs::write(plan.folder().join("rows.txt"), ROWS).unwrap();
    let packed = plan.run(&["pack", "rows.txt", "-o", "rows.pack"]).await;
    let said = &packed.stdout;
    assert!(packed.code == Some(0) && said.contains("10 places in DE, US"), "{packed:?}");
    let pack = plan.start().await;
    for path in
        ["/postal/us/or", "/postal/us/search?q=portl", "/api/zipinfo/byzip/97209", "/postal/near?lat=1&lng=1"]
    {
        assert_eq!(pack.get(path).await.text(), rows.get(path).await.text(), "{path}");
    }
    let status = pack.status().await;
    assert_eq!((&status["postal"]["places"], &status["postal"]["countries"]), (&10.into(), &2.into()));
}

#[tokio::test]
async fn a_pack_that_is_overwritten_in_place_does_not_end_hostler_and_is_used() {
    let plan = site(&format!("[postal]\ndata = 'rows.pack'\n{EVERYWHERE}"));
    let pack = async |text: &str, name: &str| {
        std::fs::write(plan.folder().join("rows.txt"), text).unwrap();
        plan.run(&["pack", "rows.txt", "-o", name]).await.assert_exit(0);
        std::fs::read(plan.folder().join(name)).unwrap()
    };
    pack(ROWS, "rows.pack").await;
    let newer = pack(&ROWS.replace("Portland", "Stumptown"), "newer.pack").await;
    let site = plan.start().await;
    let city = async || site.get("/api/zipinfo/byzip/97209").await.json()["city"].clone();
    for written in [&b""[..], &newer[..newer.len() / 2]] {
        std::fs::write(site.folder().join("rows.pack"), written).unwrap();
        assert_eq!(city().await, "Portland");
    }
    std::fs::write(site.folder().join("rows.pack"), &newer).unwrap();
    eventually("the newer pack", async || (city().await == "Stumptown").then_some(())).await;
}

#[tokio::test]
async fn a_newer_file_replaces_the_older_one_a_broken_one_does_not_and_a_reload_keeps_the_count() {
    let site = started("", EVERYWHERE).await;
    let tag = site.get("/api/zipinfo/byzip/97209").await.field("etag");
    let put = |text: &str| {
        let new = site.folder().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, site.folder().join("rows.txt")).unwrap();
    };
    put(&ROWS.replace("Portland", "Stumptown"));
    eventually("the newer file", async || {
        let city = site.get("/api/zipinfo/byzip/97209").await.json()["city"].clone();
        (city == "Stumptown").then_some(())
    })
    .await;
    site.says("postal: now uses 10 places in 2 countries").await;
    assert_ne!(site.get("/api/zipinfo/byzip/97209").await.field("etag"), tag);
    put("US\t97209\n");
    site.says("rows.txt:1: the line has 2 columns, not the 12 of a GeoNames postal file").await;
    assert_eq!(site.get("/api/zipinfo/byzip/97209").await.json()["city"], "Stumptown");
    assert_eq!(site.status().await["postal"]["reloads"], 1);
    put(ROWS);
    site.rewrite(&format!("[postal]\ndata = 'rows.txt'\ncompat_strings = true\n{EVERYWHERE}"));
    site.command(&["reload"]).await.assert_exit(0);
    // The watch may have counted the third file, too.
    assert!(site.status().await["postal"]["reloads"].as_u64() >= Some(1), "a reload of the configuration");
}

#[tokio::test]
async fn a_reload_applies_other_settings() {
    let site = started("", EVERYWHERE).await;
    site.get("/api/zipinfo/byzip/00000").await.assert_status(404);
    let tag = site.get("/api/zipinfo/byzip/97209").await.field("etag");
    site.rewrite(&format!("[postal]\ndata = 'rows.txt'\ncompat_strings = true\n{EVERYWHERE}"));
    let reload = site.command(&["reload"]).await;
    assert!(&reload.stdout.contains("postal: changed"), "{reload:?}");
    site.get("/api/zipinfo/byzip/00000").await.assert_ok("null");
    assert_ne!(site.get("/api/zipinfo/byzip/97209").await.field("etag"), tag, "other words, another tag");
}

#[tokio::test]
async fn bad_data_is_reported_with_its_file_and_line() {
    for (text, why) in [
        ("US\t97209\tPortland\n", "rows.txt:1: the line has 3 columns"),
        ("", "rows.txt: has no postal codes"),
        ("PK\u{3}\u{4}", "rows.txt: is a ZIP archive; unpack it first"),
        ("HOSTLERP\u{1}\u{0}\u{0}\u{0}", "rows.txt: is not a pack"),
    ] {
        let plan = site(&format!("[postal]\ndata = 'rows.txt'\n{EVERYWHERE}"));
        std::fs::write(plan.folder().join("rows.txt"), text).unwrap();
        let checked = plan.run(&["check"]).await;
        let said = &checked.stderr;
        assert!(checked.code == Some(2) && said.contains(why), "{checked:?}");
        let packed = plan.run(&["pack", "rows.txt", "-o", "rows.pack"]).await;
        assert!(packed.code == Some(2) && !plan.folder().join("rows.pack").exists(), "{packed:?}");
    }
}

#[tokio::test]
async fn a_pack_that_cannot_be_written_is_a_failure_and_leaves_nothing() {
    let plan = site("[[routes]]\nmatch = '*'\nrespond = 'a'");
    std::fs::write(plan.folder().join("rows.txt"), ROWS).unwrap();
    // A file cannot take the place of a folder.
    std::fs::create_dir(plan.folder().join("rows.pack")).unwrap();
    let packed = plan.run(&["pack", "rows.txt", "-o", "rows.pack"]).await;
    packed.assert_exit(1).assert_complains("rows.pack: ");
    assert!(!plan.folder().join("rows.pack.new").exists());
}
