//! What `[traces]` means, and the mistakes in it.

use expect_test::{Expect, expect};
use hostler_testkit::authority;

use super::site;
use crate::resolved::CollectorAddress;

fn collector(keys: &str) -> Option<CollectorAddress> {
    site(&format!("[traces]\n{keys}\n[pools.web]\ncommand = \"x\"\n")).config().traces.collector.clone()
}

fn endpoint(written: &str) -> Option<String> {
    collector(&format!("endpoint = \"{written}\"")).map(|collector| collector.uri.to_string())
}

#[test]
fn an_address_without_a_path_gets_the_path_of_the_protocol() {
    let usual = Some("http://127.0.0.1:4318/v1/traces".to_owned());
    assert_eq!(endpoint("http://127.0.0.1:4318"), usual);
    assert_eq!(endpoint("http://127.0.0.1:4318/"), usual);
    assert_eq!(endpoint("http://a.internal/x"), Some("http://a.internal/x".to_owned()));
    assert_eq!(collector(""), None);
}

#[test]
fn an_https_collector_is_checked_with_the_authorities_of_the_file() {
    let site = site(
        "[traces]\nendpoint = \"https://a.internal:4318\"\ntls.ca = \"ca.pem\"\n[pools.web]\ncommand = \"x\"\n",
    );
    std::fs::write(site.folder().join("ca.pem"), authority().cert()).unwrap();
    let collector = site.config().traces.collector.unwrap();
    assert_eq!(collector.uri, "https://a.internal:4318/v1/traces");
    assert!(collector.tls.is_some());
    assert!(self::collector("endpoint = \"http://127.0.0.1:4318\"").unwrap().tls.is_none());
}

#[test]
fn fields_for_the_collector_are_read_and_never_shown() {
    let written = "endpoint = \"http://127.0.0.1:4318\"\nheaders = \" api-key = s3cr%65t , x-team=web,\"";
    let found = collector(written).unwrap();
    let value = |name: &str| found.headers.get(name).map(|value| value.as_bytes().to_vec());
    assert_eq!((value("api-key"), value("x-team")), (Some(b"s3cret".to_vec()), Some(b"web".to_vec())));
    assert!(!format!("{found:?}").contains("s3cret"), "{found:?}");
}

#[test]
fn the_variable_of_opentelemetry_is_used_only_where_no_other_program_reads_it() {
    let with = |keys: &str, variables: &[(&str, &str)]| {
        let text = format!("[traces]\n{keys}\n[pools.web]\ncommand = \"x\"\n");
        let site = variables.iter().fold(site(&text), |site, (name, value)| site.variable(name, value));
        let headers = site.config().traces.collector.unwrap().headers;
        headers.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (general, own) =
        (("OTEL_EXPORTER_OTLP_HEADERS", "a=1"), ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=1"));
    let here = "endpoint = \"http://localhost:4318\"";
    assert_eq!(with(here, &[general]), ["a"]);
    assert_eq!(with(here, &[general, own]), ["b"]);
    assert_eq!(with(here, &[general, (own.0, "")]), ["a"], "an empty variable is not set");
    assert_eq!(with("endpoint = \"http://[::1]:4318\"", &[general]), ["a"]);
    assert_eq!(with("endpoint = \"http://a.internal:4318\"", &[general]), [""; 0]);
    assert_eq!(with(&format!("{here}\nheaders = \"c=1\""), &[general]), ["c"]);
    assert_eq!(with(&format!("{here}\nheaders = \"\""), &[general]), [""; 0]);
}

fn check(line: &str, expected: Expect) {
    site(&format!("[traces]\n{line}\n[pools.web]\ncommand = \"x\"\n")).says(expected);
}

#[test]
fn a_mistake_is_reported_with_its_place() {
    check(
        "endpoint = \"127.0.0.1:4318\"",
        expect![[
            r#"hostler.toml:2:12: traces.endpoint: "127.0.0.1:4318" is not an address such as "http://127.0.0.1:4318""#
        ]],
    );
    check(
        "endpoint = \"http://127.0.0.1:43180000\"",
        expect![[
            r#"hostler.toml:2:12: traces.endpoint: "http://127.0.0.1:43180000" is not an address such as "http://127.0.0.1:4318""#
        ]],
    );
    for port in ["0", "+4318", "431B", ""] {
        let text = format!("[traces]\nendpoint = \"http://[::1]:{port}\"\n[pools.web]\ncommand = \"x\"\n");
        assert!(site(&text).load().is_err(), "{port}");
    }
    let in_address = r#"hostler.toml:2:12: traces.endpoint: is not an address such as "http://127.0.0.1:4318": it has a user, a password or a query; use traces.headers"#;
    for address in ["https://me:s3cret@a.internal", "https://a.internal/v1/traces?api-key=s3cret"] {
        let text = format!("[traces]\nendpoint = \"{address}\"\n[pools.web]\ncommand = \"x\"\n");
        assert_eq!(site(&text).load().unwrap_err().to_string(), in_address);
    }
    check(
        "sample = 0.01",
        expect![
            "hostler.toml:2:10: traces.sample: invalid type: floating point `0.01`, expected a whole number from 0 to 1000000"
        ],
    );
    let here = "endpoint = \"http://localhost:4318\"";
    check(
        &format!("{here}\ntls.ca = \"ca.pem\""),
        expect!["hostler.toml:3:1: traces.tls: needs an https:// endpoint"],
    );
    check(
        "endpoint = \"https://a.internal\"\ntls.ca = \"missing.pem\"",
        expect![
            "hostler.toml:3:10: traces.tls.ca: FOLDER/missing.pem: No such file or directory (os error 2)"
        ],
    );
}

#[test]
fn a_mistake_in_a_secret_is_reported_without_it() {
    for (headers, why) in [
        ("s3cret", "is not of the form \"name=value,name=value\""),
        ("a b=s3cret", "the text before the first = of field 1 is not a field name"),
        ("a=b,Api-Key: s3cret=", "the text before the first = of field 2 is not a field name"),
        ("a=s3cret%0a", "the value of a cannot be in a field"),
        ("Host=s3cret", "Host is a field that Hostler sets itself"),
    ] {
        let keys = "[traces]\nendpoint = \"http://localhost:4318\"\n";
        let text = format!("{keys}headers = \"{headers}\"\n[pools.web]\ncommand = \"x\"\n");
        let said = site(&text).load().unwrap_err().to_string();
        assert_eq!(said, format!("hostler.toml:3:11: traces.headers: {why}"));
        let text = format!("{keys}[pools.web]\ncommand = \"x\"\n");
        let said =
            site(&text).variable("OTEL_EXPORTER_OTLP_HEADERS", headers).load().unwrap_err().to_string();
        assert_eq!(said, format!("OTEL_EXPORTER_OTLP_HEADERS: {why}"));
    }
    let warned = site(
        "[traces]\nendpoint = \"http://a.internal\"\nheaders = \"a=s3cret\"\n[pools.web]\ncommand = \"x\"\n",
    )
    .config()
    .warnings;
    let warned: Vec<_> = warned.iter().filter(|line| line.contains("traces")).collect();
    assert_eq!(
        warned,
        [
            "hostler.toml:3:11: traces.headers: Hostler sends these fields in plain text; use an https:// endpoint"
        ]
    );
}
