//! Mistakes in values that may be secrets: the error has the key and the place, and not the value.

use expect_test::expect;

use super::{check, site};

#[test]
fn an_error_does_not_repeat_the_value_of_a_header_field() {
    check(
        "pools.a.command = \"x\"\n[[routes]]\nmatch = \"*\"\npool = \"a\"\nrequest_headers.set = { A = \"Bearer s3cret \", B = \"s3cret\\n\", C = 4711 }\n",
        expect![[r#"
            hostler.toml:5:29: routes[0].request_headers.set.A: begins or ends with a blank, which the value of a header field cannot have
            hostler.toml:5:51: routes[0].request_headers.set.B: character 7 is '\n', which the value of a header field cannot have
            hostler.toml:5:67: routes[0].request_headers.set.C: invalid type: integer, expected a string"#]],
    );
}

#[test]
fn an_error_does_not_repeat_the_value_of_a_variable() {
    let here = "hostler.toml:2:21: pools.a.env.TOKEN:";
    for (value, why) in [
        ("47.11", "invalid type: floating point, expected a string, a whole number or a boolean"),
        ("99999999999999999999", "the number is too large, the largest is 9223372036854775807"),
    ] {
        let text = format!("pools.a.command = \"x\"\npools.a.env.TOKEN = {value}\n");
        assert_eq!(site(&text).load().unwrap_err().to_string(), format!("{here} {why}"));
    }
}
