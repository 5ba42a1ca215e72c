//! Which route a host and a path find.

use super::*;

fn table(patterns: &[&'static str]) -> Table<&'static str> {
    patterns.iter().map(|pattern| (pattern.parse().unwrap(), *pattern)).collect()
}

#[test]
fn the_most_specific_route_wins() {
    let table = table(&[
        "*",
        "/api/*",
        "/api/users/*",
        "/ping",
        "shop.example.com",
        "shop.example.com/cart/*",
        "*.example.com",
        "*.eu.example.com/x/*",
    ]);
    let cases = [
        ("a.org", "/", "*"),
        ("a.org", "/api", "/api/*"),
        ("a.org", "/api/", "/api/*"),
        ("a.org", "/api/x", "/api/*"),
        ("a.org", "/apis", "*"),
        ("a.org", "/api/users/1", "/api/users/*"),
        ("a.org", "/ping", "/ping"),
        ("a.org", "/ping/", "*"),
        ("shop.example.com", "/ping", "shop.example.com"),
        ("SHOP.example.com.:8080", "/cart/1", "shop.example.com/cart/*"),
        ("example.com", "/", "*"),
        ("a.example.com", "/", "*.example.com"),
        ("a.eu.example.com", "/", "*.example.com"),
        ("a.eu.example.com", "/x", "*.eu.example.com/x/*"),
        ("", "/api/1", "/api/*"),
    ];
    for (host, path, expected) in cases {
        assert_eq!(table.find(host.as_bytes(), path.as_bytes()), Some(&expected), "{host}{path}");
    }
}

#[test]
fn an_ipv6_address_is_found_in_each_of_its_forms() {
    let table = table(&["[0:0::1]", "[2001:db8::a]", "*"]);
    for (host, expected) in [
        ("[::1]", "[0:0::1]"),
        ("[::1]:80", "[0:0::1]"),
        ("[0:0:0:0:0:0:0:1]:8080", "[0:0::1]"),
        ("[2001:DB8:0::A]", "[2001:db8::a]"),
        ("[::2]", "*"),
        ("[::1", "*"),
        ("::1", "*"),
    ] {
        assert_eq!(table.find(host.as_bytes(), b"/"), Some(&expected), "{host}");
    }
}

#[test]
fn no_spelling_of_a_path_bypasses_a_route() {
    let table = table(&["/admin/*", "/open/*"]);
    for path in ["/admin", "/%61dmin/x", "/open/../admin/x", "/./admin", "/open/%2e%2e/admin", "/admin/.."] {
        let expected = if path == "/admin/.." { None } else { Some(&"/admin/*") };
        assert_eq!(table.find(b"a", path.as_bytes()), expected, "{path}");
    }
    assert_eq!(table.find(b"a", b"/other"), None);
    assert_eq!(table.find(b"a", b"*"), None);
}

#[test]
fn a_path_that_apps_read_as_paths_of_different_routes_is_ambiguous() {
    let table = table(&["*", "/admin/*", "/api/admin/*"]);
    for path in [
        "/admin/../x",
        "/admin/%2e%2e/x",
        "/x/../admin/y",
        "/x/%2E%2e/admin",
        "/admin/%2e%2e%2fx",
        "/admin/%2e%2e%2fx/..",
        "/x%2f..%2fadmin",
        "/x/..%5cadmin",
        "/admin%2Fx",
        "/admin;a=b/x",
        "/admin;a",
        "/x/..;/admin",
        "/;x/admin/y",
        "/api/;x/admin",
        "/api//admin",
        "/api/.//admin",
    ] {
        let found = table.find(b"a", path.as_bytes()).unwrap();
        assert!(table.is_disputed(b"a", MarkedPath::of(path.as_bytes()), found, &|_| true), "{path}");
    }
    for (path, route) in [
        ("/a/../x", "*"),
        ("/a%2Fb", "*"),
        ("/a;b=c//d", "*"),
        ("/admin/a%2Fb;c//d/./e", "/admin/*"),
        ("/%61dmin/x", "/admin/*"),
        ("/.well-known/x", "*"),
        ("/x%3Badmin", "*"),
        ("*", "*"),
    ] {
        let found = table.find(b"a", path.as_bytes()).unwrap();
        assert_eq!(
            (*found, table.is_disputed(b"a", MarkedPath::of(path.as_bytes()), found, &|_| true)),
            (route, false),
            "{path}"
        );
    }
}

#[test]
fn a_path_that_matches_another_route_without_case_is_ambiguous() {
    let routes =
        table(&["*", "/admin/*", "/Reports/*", "/api/*", "/API/docs/*", "/Ping", "a.test/admin/x/*"]);
    for path in [
        "/Admin/x",
        "/ADMIN",
        "/%41dmin/x",
        "/reports/1",
        "/REPORTS",
        "/API/x",
        "/API",
        "/api/docs/1",
        "/ping",
        "/x/../Admin",
        "/Admin;a/x",
        "/Admin%2Fx",
    ] {
        let found = routes.find(b"b", path.as_bytes()).unwrap();
        assert!(routes.is_disputed(b"b", MarkedPath::of(path.as_bytes()), found, &|_| true), "{path}");
    }
    for (path, route) in [
        ("/admin/X/Y", "/admin/*"),
        ("/Reports/X", "/Reports/*"),
        ("/API/docs/X", "/API/docs/*"),
        ("/api/X", "/api/*"),
        ("/Ping", "/Ping"),
        ("/Adminx", "*"),
        ("/X/admin", "*"),
        ("/%C3%89", "*"),
    ] {
        let found = routes.find(b"b", path.as_bytes()).unwrap();
        assert_eq!(
            (*found, routes.is_disputed(b"b", MarkedPath::of(path.as_bytes()), found, &|_| true)),
            (route, false),
            "{path}"
        );
    }
    let found = routes.find(b"a.test", b"/admin/X/y").unwrap();
    assert!(
        routes.is_disputed(b"a.test", MarkedPath::of(b"/admin/X/y"), found, &|_| true),
        "of this host's own"
    );
}

#[test]
fn a_catch_all_route_takes_requests_for_the_server_as_a_whole() {
    let table = table(&["*", "/a/*"]);
    assert_eq!(table.find(b"a", b"*"), Some(&"*"));
}

#[test]
fn hostile_hosts_and_paths_cause_no_panic() {
    let table = table(&["/a/*", "x.org"]);
    assert_eq!(table.find(&[b'x'; 1000], b"/a/b"), Some(&"/a/*"));
    assert_eq!(table.find(b"[::1", &b"/".repeat(60_000)), None);
}

#[test]
fn a_table_copy_with_one_changed_host_keeps_all_others() {
    let first = table(&["*", "a.test/x/*", "*.b.test", "c.test"]);
    let mut second = first.clone();
    let host = |pattern: &str| pattern.parse::<MatchPattern>().unwrap().host;
    second.set(host("a.test").as_ref(), [(PathPattern::Prefix(String::new()), "new")]);
    second.set(host("*.b.test").as_ref(), []);
    second.set(None, []);
    for (host, path, before, after) in [
        ("a.test", "/x/1", Some("a.test/x/*"), Some("new")),
        ("a.test", "/y", Some("*"), Some("new")),
        ("x.b.test", "/", Some("*.b.test"), None),
        ("c.test", "/", Some("c.test"), Some("c.test")),
    ] {
        assert_eq!(first.find(host.as_bytes(), path.as_bytes()).copied(), before, "{host}{path}");
        assert_eq!(second.find(host.as_bytes(), path.as_bytes()).copied(), after, "{host}{path}");
    }
}

#[test]
fn paths_are_case_sensitive_unless_configured() {
    let mut folding = Table::folding_paths();
    folding.set(None, [(PathPattern::Prefix("/Api".into()), 1), (PathPattern::Prefix("/api".into()), 2)]);
    for path in ["/api/x", "/API", "/%41pi/X", "/x/../aPI/"] {
        assert_eq!(folding.find(b"a", path.as_bytes()), Some(&1), "{path}");
    }
    assert_eq!(table(&["/api/*"]).find(b"a", b"/API/x"), None);
}

#[test]
fn a_pattern_of_which_no_value_fits_gives_way_to_the_next_that_matches() {
    let patterns = ["*", "/api/*", "/api/*", "/api/x", "a.test/api/*", "*.test"];
    let table: Table<(usize, &str)> = patterns
        .into_iter()
        .enumerate()
        .map(|(at, pattern)| (pattern.parse().unwrap(), (at, pattern)))
        .collect();
    let find = |host: &str, path: &str, fits: &[usize]| {
        let found = table.find_fitting(host.as_bytes(), path.as_bytes(), &|(at, _)| fits.contains(at));
        found.map(|(at, _)| *at)
    };
    assert_eq!(find("a.test", "/api/x", &[0, 1, 2, 3, 4, 5]), Some(4));
    assert_eq!(find("a.test", "/api/x", &[0, 1, 2, 3, 5]), Some(5));
    assert_eq!(find("a.test", "/api/x", &[0, 1, 2, 3]), Some(3));
    assert_eq!(find("a.test", "/api/x", &[0, 1, 2]), Some(1), "the first of two with the same pattern");
    assert_eq!(find("a.test", "/api/x", &[0, 2]), Some(2));
    assert_eq!(find("a.test", "/api/x", &[0]), Some(0));
    assert_eq!(find("a.test", "/api/x", &[]), None);
}

#[test]
fn a_value_that_yields_counts_only_if_no_other_of_its_host_matches() {
    let table =
        table(&["*", "*.test", "a.test", "a.test/api/*", "b.test/api/*", "*.test/x/*", "*.c.test/x/*"]);
    let find = |host: &str, path: &str, yielding: &[&str]| {
        table
            .find_yielding(host.as_bytes(), MarkedPath::of(path.as_bytes()), &|_| true, &|pattern| {
                yielding.contains(pattern)
            })
            .copied()
    };
    for (host, path, yielding, expected) in [
        ("a.test", "/api/x", &[][..], "a.test/api/*"),
        ("a.test", "/api/x", &["a.test/api/*"], "a.test"),
        ("A.test:80", "/%61pi/x", &["a.test/api/*"], "a.test"),
        ("a.test", "/api/x", &["a.test/api/*", "a.test"], "a.test/api/*"),
        ("b.test", "/api/x", &["b.test/api/*"], "b.test/api/*"),
        ("d.test", "/x/y", &["*.test/x/*"], "*.test"),
        ("d.c.test", "/x/y", &["*.c.test/x/*"], "*.c.test/x/*"),
        ("other", "/", &["*"], "*"),
    ] {
        assert_eq!(find(host, path, yielding), Some(expected), "{host}{path} {yielding:?}");
    }
    assert_eq!(Table::<u8>::default().find_yielding(b"a", MarkedPath::of(b"/"), &|_| true, &|_| true), None);
}

#[test]
fn a_path_is_disputed_only_by_a_route_that_fits() {
    let table = table(&["*", "/admin/*", "/Reports/*"]);
    for (path, other) in
        [("/x%2f..%2fadmin", "/admin/*"), ("/Admin/x", "/admin/*"), ("/reports", "/Reports/*")]
    {
        for (fits, expected) in [(true, true), (false, false)] {
            let fits = |pattern: &&str| fits || *pattern != other;
            let found = table.find_fitting(b"a", path.as_bytes(), &fits).unwrap();
            assert_eq!(
                table.is_disputed(b"a", MarkedPath::of(path.as_bytes()), found, &fits),
                expected,
                "{path}"
            );
        }
    }
}
