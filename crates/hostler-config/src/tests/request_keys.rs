//! Lists that give requests their keys.

use expect_test::expect;

use super::{check, site};
use crate::FairBy;

#[test]
fn keys_after_the_client_cause_a_warning() {
    check(
        "[pools.a]\ncommand = \"x\"\nqueue.fair = [\"client\", \"crawler\"]\nrate_limit = { requests = 1, key = [\"crawler\", \"client\", \"header:K\", \"crawler\"] }\n",
        expect![[r#"
            hostler.toml:3:25: pools.a.queue.fair[1]: "crawler" never counts, because each request has a client; write "client" last
            hostler.toml:4:58: pools.a.rate_limit.key[2]: "header:K" never counts, because each request has a client; write "client" last"#]],
    );
}

#[test]
fn a_route_may_have_its_own_list_of_keys_if_its_pool_is_fair() {
    let text = |queue: &str, fair: &str| {
        format!(
            "[pools.a]\ncommand = \"x\"\n{queue}\n[[routes]]\nmatch = \"*\"\npool = \"a\"\nfair = {fair}\n"
        )
    };
    let own = |fair: &str| site(&text("queue.fair = \"client\"", fair)).config().routes[0].fair.clone();
    assert_eq!(own("[\"crawler\", \"client\"]"), Some(vec![FairBy::Crawler, FairBy::Client]));
    assert_eq!(site("[pools.a]\ncommand = \"x\"\n").config().routes[0].fair, None);
    let fair = "queue.fair = \"client\"";
    check(
        &text(fair, "[]"),
        expect!["hostler.toml:7:8: routes[0].fair: is empty; leave it out for the list of the pool"],
    );
    check(
        &text("", "\"client\""),
        expect![[
            r#"hostler.toml:7:8: routes[0].fair: needs queue.fair of the pool "a", which serves requests in order of arrival"#
        ]],
    );
    check(
        &text(fair, "[\"client\", \"crawler\"]"),
        expect![[
            r#"hostler.toml:7:19: routes[0].fair[1]: "crawler" never counts, because each request has a client; write "client" last"#
        ]],
    );
    check(
        "[[routes]]\nmatch = \"*\"\nrespond = \"\"\nfair = \"client\"\n",
        expect!["hostler.toml:4:8: routes[0].fair: cannot be set together with respond"],
    );
}
