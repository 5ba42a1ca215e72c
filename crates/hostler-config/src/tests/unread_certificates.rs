//! Certificates that the library for certificates does not read, and that clients can get all the same.

use expect_test::{Expect, expect};
use hostler_testkit::{VERSION_1, VERSION_1_KEY, authority};

use super::site;

/// For `a.test`, self-signed with [`VERSION_1_KEY`]. The extension 1.2.3.4 is critical.
const CRITICAL: &str = "\
-----BEGIN CERTIFICATE-----
MIIBZzCCAQ6gAwIBAgIUae9jzy1ELoI4PHyOxLniukh6qrcwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGYS50ZXN0MCAXDTI2MTEzMDA2MTUwOVoYDzIxMjYxMTA2MDYx
NTA5WjARMQ8wDQYDVQQDDAZhLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQqzo4zBkihlvZtj4mS/iRKUylPoboFOAXJ7XVyc/TDiUlWBhzYlSuQ+9SYZkkQ
AJ3HOES5+RFS5uwK28rSw29yo0IwQDARBgNVHREECjAIggZhLnRlc3QwDAYDKgME
AQH/BAIFADAdBgNVHQ4EFgQUOBvi/DdPzGbsc7dc6N18a5uHsUwwCgYIKoZIzj0E
AwIDRwAwRAIgfk4QOBn5IGgj39qBABxcC78ZSJbA8WYooqKxI96UEXcCIHibCYhd
Myv+dowSWe+ity/ZrPSoy/RPT4JvYf15B4UV
-----END CERTIFICATE-----
";

fn check(cert: &str, key: &str, expected: Expect) {
    let pair = "[tls]\nlisten = \":8443\"\ncertificates = [{ cert = \"a.pem\", key = \"a.key\" }]\n";
    let site = site(&format!("{pair}[[routes]]\nmatch = \"*\"\nrespond = \"pong\"\n"));
    std::fs::write(site.folder().join("a.pem"), cert).unwrap();
    std::fs::write(site.folder().join("a.key"), key).unwrap();
    site.says(expected);
}

#[test]
fn a_certificate_of_version_1_or_with_an_unknown_critical_extension_is_used_with_a_warning() {
    check(
        VERSION_1,
        VERSION_1_KEY,
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/a.pem: is not of version 3 of X.509, so Hostler cannot read its names and dates: it is used only as the first certificate, and clients may refuse it"
        ],
    );
    check(
        CRITICAL,
        VERSION_1_KEY,
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/a.pem: has a critical extension that Hostler does not know, so Hostler cannot read its names and dates: it is used only as the first certificate, and clients may refuse it"
        ],
    );
}

#[test]
fn the_key_of_another_certificate_is_refused_for_them_too() {
    let other = authority().vouch_for(&["a.test"]).key;
    for cert in [VERSION_1, CRITICAL] {
        check(
            cert,
            &other,
            expect![
                "hostler.toml:3:41: tls.certificates[0].key: FOLDER/a.key: is not the key of the first certificate in FOLDER/a.pem"
            ],
        );
    }
}

/// What is said about such a certificate of Hostler's own, with this key.
fn check_own(config: &str, key: &str, expected: &Expect) {
    for cert in [VERSION_1, CRITICAL] {
        let site = site(&format!("{config} = {{ ca = \"ca.pem\", cert = \"a.pem\", key = \"a.key\" }}\n"));
        for (name, text) in [("ca.pem", &*authority().cert()), ("a.pem", cert), ("a.key", key)] {
            std::fs::write(site.folder().join(name), text).unwrap();
        }
        let said = site.load().err().map_or(String::new(), |errors| errors.to_string());
        expected.assert_eq(&said);
    }
}

#[test]
fn members_may_be_shown_one_of_them() {
    let config = "[pools.web]\nmembers = [\"https://a.test:1\"]\ntls";
    check_own(config, VERSION_1_KEY, &expect![""]);
    check_own(
        config,
        &authority().vouch_for(&["a.test"]).key,
        &expect![
            "hostler.toml:3:46: pools.web.tls.key: does not match cert: keys may not be consistent: KeyMismatch"
        ],
    );
}

#[test]
fn a_nats_server_is_shown_none_of_them() {
    check_own(
        "[registrar]\nnats = \"a\"\nnats_tls",
        VERSION_1_KEY,
        &expect![
            "hostler.toml:3:36: registrar.nats_tls.cert: must be of X.509 version 3, without unknown critical extensions, for the NATS library"
        ],
    );
}

#[test]
fn a_file_of_which_the_nats_library_would_leave_out_a_part_is_refused() {
    let site = site("[registrar]\nnats = \"a\"\nnats_tls = { ca = \"ca.pem\" }\n");
    let one = authority().cert();
    let cases = [one.clone(), format!("\u{feff}{one}"), format!("{}{one}", one.trim_end())];
    let said = cases.map(|text| {
        std::fs::write(site.folder().join("ca.pem"), text).unwrap();
        site.load().err().map_or(String::new(), |errors| errors.to_string())
    });
    let expected = "hostler.toml:3:19: registrar.nats_tls.ca: has a byte order mark, or a section that does not begin on a line of its own; the NATS library would leave that section out";
    assert_eq!(said, ["", expected, expected]);
}
