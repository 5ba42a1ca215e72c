//! Second tries at another member: what they mean, and every mistake with the line that tells it.

use expect_test::{Expect, expect};

use super::site;
use crate::{Hedge, HedgeAfter, Share};

fn members(hedge: &str) -> String {
    format!("[pools.app]\nmembers = [\"a:1\", \"b:1\"]\nhedge = {hedge}\n")
}

#[test]
fn a_pool_of_members_can_have_second_tries() {
    let meaning = |hedge: &str| site(&members(hedge)).config().pools[0].hedge.clone();
    assert_eq!(meaning("false"), None);
    let (p95, two_percent) = (HedgeAfter::Percentile(950), Share(20));
    assert_eq!(meaning("true"), Some(Hedge { after: p95, budget: two_percent }));
    let p999 = HedgeAfter::Percentile(999);
    assert_eq!(meaning("{ after = \"p99.9\" }"), Some(Hedge { after: p999, budget: two_percent }));
    let fixed = HedgeAfter::Time(std::time::Duration::from_millis(50));
    assert_eq!(
        meaning("{ after = \"50ms\", budget = \"0.5 %\" }"),
        Some(Hedge { after: fixed, budget: Share(5) })
    );
}

#[test]
fn each_mistake_about_second_tries_is_told_with_its_line() {
    let says = |text: &str, expected: Expect| site(text).says(expected);
    says(
        &members("{ after = \"p100\" }"),
        expect![[
            r#"hostler.toml:3:19: pools.app.hedge.after: "p100" is not a percentile from "p50" to "p99.9""#
        ]],
    );
    says(
        &members("{ after = \"p95.55\" }"),
        expect![[
            r#"hostler.toml:3:19: pools.app.hedge.after: "p95.55" is not a percentile from "p50" to "p99.9""#
        ]],
    );
    says(
        &members("{ after = \"95\" }"),
        expect![[
            r#"hostler.toml:3:19: pools.app.hedge.after: "95" is not a percentile such as "p95", or a duration such as "50ms""#
        ]],
    );
    says(
        &members("{ budget = \"60%\" }"),
        expect![[r#"hostler.toml:3:20: pools.app.hedge.budget: "60%" is not a share from "0.1%" to "50%""#]],
    );
    says(
        &members("{ budget = \"2\" }"),
        expect![[r#"hostler.toml:3:20: pools.app.hedge.budget: "2" is not a share from "0.1%" to "50%""#]],
    );
    says(
        &members("\"p95\""),
        expect![[r#"hostler.toml:3:9: pools.app.hedge: "p95" is not true, false or a table"#]],
    );
    says(
        "[pools.app]\ncommand = \"node a.js\"\nhedge = true\n",
        expect![
            "hostler.toml:3:1: pools.app.hedge: not allowed for workers: their queue knows which worker can begin a request at once, so a second try would only make others wait"
        ],
    );
    says(
        "[pools.app]\nmembers = [\"a:1\"]\nhedge = true\n",
        expect!["hostler.toml:3:9: pools.app.hedge: changes nothing, because the pool has one member"],
    );
    says(
        &format!("{}request_timeout = \"2s\"\n", members("{ after = \"2s\" }")),
        expect![
            "hostler.toml:3:19: pools.app.hedge.after: must be shorter than the longest request_timeout, 2s; otherwise Hostler sends no request to a second member"
        ],
    );
    says(
        &format!(
            "{}request_timeout = \"2s\"\n[[routes]]\nmatch = \"*\"\npool = \"app\"\nrequest_timeout = \"3s\"\n",
            members("{ after = \"2s\" }")
        ),
        expect![""],
    );
}
