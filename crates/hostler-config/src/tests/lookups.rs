//! What `[geo]` and `[postal]` mean, and routes that need them.

use expect_test::expect;

use super::{check, site};
use crate::{Lookups, Origin, Target};

#[test]
fn a_route_with_geo_needs_data_and_data_needs_a_route() {
    check(
        "[[routes]]\nmatch = \"/a/*\"\ngeo = true\npostal = true\n",
        expect![[r#"
            hostler.toml:3:7: routes[0].geo: needs data; add [geo] with databases
            hostler.toml:4:10: routes[0].postal: needs data; add [postal] with data"#]],
    );
    check(
        "[geo]\n[[routes]]\nmatch = \"*\"\ngeo = true\n",
        expect!["hostler.toml:1:1: geo: databases is missing; name at least one file"],
    );
    check(
        "[geo]\ndatabases = [\"a.mmdb\", \".\"]\n[[routes]]\nmatch = \"*\"\ngeo = true\n",
        expect![[r#"
        hostler.toml:2:14: geo.databases[0]: FOLDER/a.mmdb cannot be read: No such file or directory (os error 2)
        hostler.toml:2:24: geo.databases[1]: FOLDER/. is not a file"#]],
    );
    let site = site("[geo]\ndatabases = \"a.mmdb\"\n[[routes]]\nmatch = \"*\"\nrespond = \"x\"\n");
    std::fs::write(site.folder().join("a.mmdb"), "none").unwrap();
    site.says(expect!["hostler.toml:2:13: geo.databases: FOLDER/a.mmdb: invalid database: could not find MaxMind DB metadata in file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_database_is_checked_in_a_copy_that_no_program_can_make_shorter() {
    // It can be mapped, but a read at its beginning fails.
    check(
        "[geo]\ndatabases = \"/proc/self/mem\"\n[[routes]]\nmatch = \"*\"\ngeo = true\n",
        expect![
            "hostler.toml:2:13: geo.databases: /proc/self/mem: cannot be read: Input/output error (os error 5)"
        ],
    );
}

#[test]
fn a_lookup_set_to_false_makes_no_route() {
    check(
        "[[routes]]\nmatch = \"/b\"\ngeo = false\n",
        expect![
            "hostler.toml:1:1: routes[0]: the route has no target; add pool, static, redirect, respond, geo or postal"
        ],
    );
}

#[test]
fn geo_and_postal_may_share_a_route_but_with_no_other_target() {
    check(
        "[geo]\n[postal]\n[[routes]]\nmatch = \"/a\"\ngeo = true\nrespond = \"x\"\n[[routes]]\nmatch = \"/b\"\ngeo = false\n[[routes]]\nmatch = \"/c\"\ngeo = true\nrewrite = { add_prefix = \"/x\" }\nmax_body_size = \"1MB\"\n",
        expect![[r#"
            hostler.toml:5:7: routes[0].geo: a route has exactly one target: pool, static, redirect, respond, geo or postal (or pool and static, or geo and postal)
            hostler.toml:13:11: routes[2].rewrite: cannot be set together with geo
            hostler.toml:14:17: routes[2].max_body_size: cannot be set together with geo"#]],
    );
}

#[test]
fn invalid_values_are_reported() {
    check(
        "[geo]\ndatabases = \"\"\nlookups = \"private\"\ndecimals = 7\nmax_age = \"1\"\ncors = [\"https://A.test\", \"a.test\", \"https://a.test/x\"]\n",
        expect![[r#"
            hostler.toml: there is nothing to serve; add [pools.NAME], [[routes]] or [registrar]
            hostler.toml:2:13: geo.databases: "" is not a valid name of a file
            hostler.toml:3:11: geo.lookups: "private" is not one of "public", "private-net", "off"
            hostler.toml:4:12: geo.decimals: 7 is out of range; it must be from 0 to 6
            hostler.toml:5:11: geo.max_age: "1" has no unit; write "1s" for seconds or "1ms"
            hostler.toml:6:9: geo.cors[0]: "https://A.test" is not an origin such as "https://www.example.com", or "*"
            hostler.toml:6:27: geo.cors[1]: "a.test" is not an origin such as "https://www.example.com", or "*"
            hostler.toml:6:37: geo.cors[2]: "https://a.test/x" is not an origin such as "https://www.example.com", or "*""#]],
    );
}

#[test]
fn all_keys_of_geo_and_postal_are_read() {
    use hostler_testkit::mmdb;
    let site = site(
        "[geo]\ndatabases = \"a.mmdb\"\nlookups = \"public\"\ncors = \"*\"\nmax_age = \"0s\"\n[[routes]]\nmatch = \"*\"\ngeo = true\n",
    );
    mmdb("City").city("9.9.9.0/24", &[("en", "Zurich")], "CH", (47.3, 8.5)).write(&site.folder(), "a.mmdb");
    let config = site.config();
    assert_eq!(config.warnings, [""; 0]);
    let geo = config.geo.unwrap();
    assert_eq!(geo.databases, [site.folder().join("a.mmdb")]);
    assert_eq!((geo.lookups, geo.decimals, geo.max_age.as_secs()), (Lookups::Public, 4, 0));
    assert_eq!(geo.cors, [Origin("*".into())]);
    assert_eq!(config.routes[0].target, Target::Native { geo: true, postal: false });
}
