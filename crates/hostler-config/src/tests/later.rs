//! Values that could be read, and would break something later: each is refused at its place.

use expect_test::{Expect, expect};

use super::site;

fn check(text: &str, expected: Expect) {
    site(text).says(expected);
}

/// The library panics at the last one.
#[test]
fn a_text_that_no_unit_makes_a_duration_is_refused() {
    check(
        "pools.web.command = \"node a.js\"\n[server]\nbody_timeout = \"1e3\"\nsend_timeout = \"-5\"\nidle_timeout = \"inf\"\ndrain_timeout = \"18446744073709551615s 1000ms\"\n",
        expect![[r#"
            hostler.toml:3:16: server.body_timeout: "1e3" is not a duration such as "30s", "250ms" or "1m 30s"
            hostler.toml:4:16: server.send_timeout: "-5" is not a duration such as "30s", "250ms" or "1m 30s"
            hostler.toml:5:16: server.idle_timeout: "inf" is not a duration such as "30s", "250ms" or "1m 30s"
            hostler.toml:6:17: server.drain_timeout: "18446744073709551615s 1000ms" is not a duration such as "30s", "250ms" or "1m 30s""#]],
    );
}
