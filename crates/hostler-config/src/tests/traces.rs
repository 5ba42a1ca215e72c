//! What `[traces]` means, and the mistakes in it.

use expect_test::{Expect, expect};

use super::site;

fn endpoint(written: &str) -> Option<String> {
    let text = format!("[traces]\nendpoint = \"{written}\"\n[pools.web]\ncommand = \"x\"\n");
    site(&text).config().traces.endpoint.as_ref().map(ToString::to_string)
}

#[test]
fn an_address_without_a_path_gets_the_path_of_the_protocol() {
    let usual = Some("http://127.0.0.1:4318/v1/traces".to_owned());
    assert_eq!(endpoint("http://127.0.0.1:4318"), usual);
    assert_eq!(endpoint("http://127.0.0.1:4318/"), usual);
    assert_eq!(endpoint("http://a.internal/x"), Some("http://a.internal/x".to_owned()));
    assert_eq!(site("[pools.web]\ncommand = \"x\"\n").config().traces.endpoint, None);
}

fn check(line: &str, expected: Expect) {
    site(&format!("[traces]\n{line}\n[pools.web]\ncommand = \"x\"\n")).says(expected);
}

#[test]
fn a_mistake_is_reported_with_its_place() {
    check(
        "endpoint = \"https://a.internal:4318\"",
        expect![
            "hostler.toml:2:12: traces.endpoint: Hostler sends spans without TLS; use an http:// address of a collector nearby"
        ],
    );
    check(
        "endpoint = \"127.0.0.1:4318\"",
        expect![[
            r#"hostler.toml:2:12: traces.endpoint: "127.0.0.1:4318" is not an address such as "http://127.0.0.1:4318""#
        ]],
    );
    check(
        "sample = 0.01",
        expect![
            "hostler.toml:2:10: traces.sample: invalid type: floating point `0.01`, expected a whole number from 0 to 1000000"
        ],
    );
}
