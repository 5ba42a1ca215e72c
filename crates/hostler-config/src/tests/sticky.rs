//! What the key `sticky` of a pool means, and the mistakes in it.

use std::time::Duration;

use expect_test::expect;

use super::site;
use crate::{SameSite, Sticky, StickyBy};

fn sticky(written: &str) -> Sticky {
    let text = format!("[pools.web]\ncommand = \"x\"\nhang_timeout = \"33s\"\nsticky = {written}\n");
    site(&text).config().pools[0].sticky.clone()
}

#[test]
fn the_short_form_and_the_table_mean_the_same() {
    for (short, table) in [
        ("\"cookie\"", "{}"),
        ("\"address\"", "{ by = \"address\" }"),
        ("\"header:X-User\"", "{ by = \"header:X-User\", wait = \"2s\" }"),
        ("\"query:sid\"", "{ by = \"query:sid\" }"),
        ("\"cookie:session\"", "{ by = \"cookie:session\" }"),
        ("\"off\"", "{ by = \"off\" }"),
    ] {
        assert_eq!(sticky(short), sticky(table), "{short}");
    }
}

#[test]
fn defaults_and_settings_of_the_cookie() {
    let default = sticky("\"cookie\"");
    assert_eq!((&*default.cookie, default.same_site), ("hostler_web", SameSite::Lax));
    assert_eq!((default.wait, default.drain), (Duration::from_secs(2), Duration::from_secs(3)));
    assert_eq!(default.secret, None);
    let set = sticky(
        "{ name = \"at\", same_site = \"none\", secret = \"sixteen letters!\", wait = \"0s\", drain = \"1s\" }",
    );
    assert_eq!((&*set.cookie, set.same_site, &set.by), ("at", SameSite::None, &StickyBy::Cookie));
    assert_eq!((set.wait, set.drain), (Duration::ZERO, Duration::from_secs(1)));
    assert!(!format!("{set:?}").contains("sixteen"), "the key is secret");
}

#[test]
fn mistakes_are_told_with_their_place() {
    site("[pools.a]\ncommand = \"x\"\nsticky = \"cokie\"\n[pools.b]\ncommand = \"x\"\nsticky = { by = \"header:\" }\n[pools.c]\ncommand = \"x\"\nsticky = { by = \"address\", name = \"x\", drain = \"1s\" }\n[pools.d]\nmembers = [\"a:1\"]\nsticky = { name = \"a b\", secret = \"short\", drain = \"1s\" }\n[pools.e]\ncommand = \"x\"\nsticky = { by = \"auto\", wait = \"1s\" }\n[[routes]]\nmatch = \"*\"\nrespond = \"\"\n")
        .says(expect![[r#"
            hostler.toml:3:10: pools.a.sticky: "cokie" is not "auto", "off", "cookie", "address", "header:NAME", "query:NAME", "cookie:NAME" or a table
            hostler.toml:6:17: pools.b.sticky.by: "header:" is not "auto", "off", "cookie", "address", "header:NAME", "query:NAME" or "cookie:NAME"
            hostler.toml:9:35: pools.c.sticky.name: is for by = "cookie" only
            hostler.toml:9:48: pools.c.sticky.drain: has no effect with by = "address"
            hostler.toml:12:19: pools.d.sticky.name: "a b" is not a valid name of a cookie; use letters, digits, "-" and "_"
            hostler.toml:12:35: pools.d.sticky.secret: is too short; write at least 16 characters
            hostler.toml:12:52: pools.d.sticky.drain: not allowed for members, because Hostler does not start them
            hostler.toml:15:32: pools.e.sticky.wait: has no effect with by = "auto""#]]);
}
