//! Lists that give requests their keys.

use expect_test::{Expect, expect};

use super::site;

fn check(text: &str, expected: Expect) {
    site(text).says(expected);
}

#[test]
fn keys_after_the_client_cause_a_warning() {
    check(
        "[pools.a]\ncommand = \"x\"\nqueue.fair = [\"client\", \"crawler\"]\nrate_limit = { requests = 1, key = [\"crawler\", \"client\", \"header:K\", \"crawler\"] }\n",
        expect![[r#"
            hostler.toml:3:25: pools.a.queue.fair[1]: "crawler" never counts, because each request has a client; write "client" last
            hostler.toml:4:58: pools.a.rate_limit.key[2]: "header:K" never counts, because each request has a client; write "client" last"#]],
    );
}
