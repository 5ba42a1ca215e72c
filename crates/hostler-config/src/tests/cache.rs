//! `[cache]`: what it means, and what cannot be meant.

use expect_test::expect;

use super::site;

const ROUTE: &str =
    "[[routes]]\nmatch = \"*\"\npool = \"web\"\ncache = \"standard\"\n[pools.web]\ncommand = \"node a.js\"\n";

#[test]
fn without_a_cache_section_the_defaults_hold() {
    let cache = site(ROUTE).config().cache;
    assert_eq!((cache.memory, cache.max_entry, cache.tier), (64 << 20, 8 << 20, None));
    let small = site(&format!("[cache]\nmemory = \"2 MiB\"\n{ROUTE}")).config().cache;
    assert_eq!((small.memory, small.max_entry), (2 << 20, 2 << 20));
}

#[test]
fn memcached_addresses_keep_their_spelling() {
    let text = "[cache]\nmemcached = [\"10.0.0.1:11211\", \"[fd00::2]:11211\", \"cache.internal:11212\", \"unix:/run/memcached.sock\"]\n";
    let tier = site(&format!("{text}{ROUTE}")).config().cache.tier.unwrap();
    let servers: Vec<_> = tier.servers.iter().map(|server| &**server).collect();
    assert_eq!(
        servers,
        ["10.0.0.1:11211", "[fd00::2]:11211", "cache.internal:11212", "unix:/run/memcached.sock"]
    );
    assert_eq!((&*tier.namespace, tier.timeout.as_millis(), tier.max_item), ("hostler", 50, 1_000_000));
}

#[test]
fn impossible_values_are_reported_with_their_line() {
    let text = "[cache]\nmemory = \"2 MiB\"\nmax_entry = \"3 MiB\"\nnamespace = \"a b\"\nmemcached = [\"a:1\", \"a:1\"]\n";
    site(&format!("{text}{ROUTE}")).says(expect![[r#"
        hostler.toml:3:13: cache.max_entry: is more than memory (2 MiB)
        hostler.toml:4:13: cache.namespace: must have 1 to 64 letters, digits, '-', '_' and '.'
        hostler.toml:5:21: cache.memcached[1]: is in the list twice"#]]);
    for (server, why) in [
        (
            "localhost",
            expect![[
                r#"hostler.toml:2:13: cache.memcached: "localhost" is not an address such as "127.0.0.1:8080": the port is missing"#
            ]],
        ),
        (
            "https://a:1",
            expect![[
                r#"hostler.toml:2:13: cache.memcached: "https://a:1": Hostler uses memcached without TLS; write "host:port", in a private network"#
            ]],
        ),
    ] {
        site(&format!("[cache]\nmemcached = \"{server}\"\n{ROUTE}")).says(why);
    }
}

#[test]
fn a_socket_with_a_path_that_no_socket_can_have_is_refused() {
    let long = format!("unix:/{}", "a".repeat(107));
    let said = site(&format!("[cache]\nmemcached = \"{long}\"\n{ROUTE}")).load().unwrap_err().to_string();
    let expected = "hostler.toml:2:13: cache.memcached: the path of a Unix socket may have ";
    assert!(said.starts_with(expected), "{said}");
    let fits = format!("unix:/{}", "a".repeat(102));
    assert!(site(&format!("[cache]\nmemcached = [\"{fits}\"]\n{ROUTE}")).load().is_ok());
}

#[test]
fn servers_that_no_route_uses_are_reported() {
    site("[cache]\nmemcached = \"a:1\"\n[pools.web]\ncommand = \"node a.js\"\n")
        .says(expect!["hostler.toml:2:1: cache.memcached: changes nothing, because no route has cache"]);
}
