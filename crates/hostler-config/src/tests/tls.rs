//! TLS to clients: what is read, and what is said about it.

use expect_test::{Expect, expect};
use hostler_testkit::authority;

use super::{Site, site};
use crate::{Advertise, Tls};

const PING: &str = "[[routes]]\nmatch = \"*\"\nrespond = \"pong\"\n";

const NOISE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

/// RSA with 1024 bits.
const WEAK_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIICdQIBADANBgkqhkiG9w0BAQEFAASCAl8wggJbAgEAAoGBAKbAeqbvnr11mZ+g
C+6MzFUay7cTkkPfVlLGpFMHdJjTtswQwXQdjxq0VRQKalrQ/7HKKmbNC6gi8S3l
4rlvKSDZNd8J9jDvD/QkDaq3hS6YWIllSv0kKgYgs+7XUOuuStoEG3GjvJ3SN6xt
pneLEWewoYFZD84OSJS0d6UZ9683AgMBAAECgYBN7f5kLfAd0uvssbthzONhkphK
AxeEKMgK/1KkiwNuuOLhE6OVRIswi76HEycJMkuNJ1IRoRolhc75CEqhJtYtBrem
rMbQY3c/Rd7Wv2W7CKMS8SsQhOmQmmA0yct9rtiUVb+BLfF3SQGmkSnE2QiDiiNa
deMw+Z9hUdFOG/cngQJBAM8jZ1xzc3jNZjT8jKw4mv22RTOhlOhVjFPmbb1RE5QS
t/jwXrFfooyWWrJ8QbIyrSH9i8wTUrOnb3IS1yuf1IcCQQDOFjvcmyMDhPa9CGLU
3Y6i10MOI333NQTZqvl6jYodtfu+LB6RyQc4cxWYH7IHbnRTI1587KTWkHiZVQ7Q
k6vRAkBCoebsDI+Gurw4K02tUQA6wVl9hGr8WhisHKIMlnov1d2sjNZJRLRreSpv
5BzWEAs1tfQ0j7q45BGrpnflJqMdAkBOvywshZMBe0MUxCmPkQE5s+tJccJmPXoW
+j/N1luaMrl41z7vEdOSfFcaA7JxKIGGaxNlxL7PxfBvFpNMm8ChAkAA23HgUkzq
WHzFZwmLxgK0p+WQcIovXk5UjfjxktWVoEawxD03g9XsTsIlgkVTJVmfKJWmX2SS
H85/Dct7o43O
-----END PRIVATE KEY-----
";

/// A site with a few good and bad files.
fn with_files(text: &str) -> Site {
    let site = site(&format!("{text}\n{PING}"));
    let trust = authority();
    let (one, other, old) =
        (trust.vouch_for(&["a.test"]), trust.vouch_for(&["b.test"]), trust.vouched_for(&["a.test"]));
    let nameless = trust.vouch_for(&["192.0.2.1"]);
    let (middle, expired, stranger) =
        (trust.intermediate(), trust.expired_intermediate(), authority().cert());
    let (below, below_expired) = (middle.vouch_for(&["a.test"]), expired.vouch_for(&["a.test"]));
    let broken_off = &one.cert[..one.cert.len() / 2];
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let old_encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    for (name, text) in [
        ("a.pem", &*one.cert),
        ("a.key", &one.key),
        ("b.key", &other.key),
        ("old.pem", &old.cert),
        ("old.key", &old.key),
        ("nameless.pem", &nameless.cert),
        ("nameless.key", &nameless.key),
        ("chain.pem", &format!("{}{}", one.cert, trust.cert())),
        ("below.key", &below.key),
        ("whole.pem", &[&*below.cert, &middle.cert(), &trust.cert()].concat()),
        ("joined_all.pem", &[one.cert.trim_end(), &one.key].concat()),
        ("disorder.pem", &[&*below.cert, &trust.cert(), &middle.cert()].concat()),
        ("stranger.pem", &[&*below.cert, &middle.cert(), &stranger].concat()),
        ("namesake.pem", &[&*below.cert, &middle.namesake().cert()].concat()),
        ("noise_behind.pem", &[&*below.cert, NOISE].concat()),
        ("below_expired.key", &below_expired.key),
        ("below_expired.pem", &[&*below_expired.cert, &expired.cert(), &trust.cert()].concat()),
        ("expired.pem", &[trust.cert(), expired.cert()].concat()),
        ("half.pem", broken_off),
        ("empty.pem", "nothing\n"),
        ("encrypted.key", encrypted),
        ("old_encrypted.key", old_encrypted),
        ("marked.pem", &format!("\u{feff}{}", one.cert)),
        ("weak.key", WEAK_KEY),
        ("strange.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
        ("one_line.key", "-----BEGIN PRIVATE KEY----- c2VjcmV0 -----END PRIVATE KEY-----\n"),
        ("escaped.key", "-----BEGIN PRIVATE KEY-----\\nc2VjcmV0\\n-----END PRIVATE KEY-----\n"),
        ("joined.key", "-----BEGIN PRIVATE KEY-----c2VjcmV0\n-----END PRIVATE KEY-----\n"),
        ("noise.pem", NOISE),
    ] {
        std::fs::write(site.folder().join(name), text).unwrap();
    }
    site
}

fn check(keys: &str, expected: Expect) {
    with_files(&format!("[tls]\nlisten = \":8443\"\n{keys}")).says(expected);
}

fn pair(cert: &str, key: &str) -> String {
    format!("certificates = [{{ cert = \"{cert}\", key = \"{key}\" }}]\n")
}

fn meaning(keys: &str) -> Tls {
    let text = format!("[tls]\nlisten = \":8443\"\n{}{keys}", pair("a.pem", "a.key"));
    with_files(&text).config().tls.unwrap()
}

#[test]
fn a_bad_certificate_file_is_reported_with_the_reason() {
    check(&pair("chain.pem", "a.key"), expect![""]);
    check(
        &pair("missing.pem", "a.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/missing.pem: No such file or directory (os error 2)"
        ],
    );
    check(
        &pair("empty.pem", "a.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/empty.pem: it has no certificate in PEM form (-----BEGIN ...)"
        ],
    );
    check(
        &pair("a.key", "a.key"),
        expect![[
            r#"hostler.toml:3:26: tls.certificates[0].cert: FOLDER/a.key: it has no certificate; it has "PRIVATE KEY""#
        ]],
    );
    check(
        &pair("half.pem", "a.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/half.pem: it is incomplete: the end of CERTIFICATE is missing"
        ],
    );
    check(
        &pair("noise.pem", "a.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/noise.pem: its first certificate is malformed (TrailingData(SignedData))"
        ],
    );
    check(
        &pair(".", "a.key"),
        expect!["hostler.toml:3:26: tls.certificates[0].cert: FOLDER/.: is not a file"],
    );
    check(
        &pair("a.pem", "b.key"),
        expect![
            "hostler.toml:3:41: tls.certificates[0].key: FOLDER/b.key: is not the key of the first certificate in FOLDER/a.pem"
        ],
    );
    check(
        &pair("a.pem", "a.pem"),
        expect![[
            r#"hostler.toml:3:41: tls.certificates[0].key: FOLDER/a.pem: it has no private key; it has "CERTIFICATE""#
        ]],
    );
}

#[test]
fn a_key_with_a_passphrase_is_no_damaged_one() {
    for file in ["encrypted.key", "old_encrypted.key"] {
        let said = with_files(&format!("[tls]\nlisten = \":8443\"\n{}", pair("a.pem", file))).load();
        let why = format!("{file}: the private key has a passphrase; Hostler needs a key without one");
        assert!(said.unwrap_err().to_string().contains(&why), "{file}");
    }
}

#[test]
fn a_byte_order_mark_hides_no_certificate() {
    check(&pair("marked.pem", "a.key"), expect![""]);
}

#[test]
fn a_section_that_begins_on_the_last_line_of_the_one_before_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("joined.pem");
    let certificates = [authority().cert(), authority().cert(), authority().cert()];
    let joined: String = certificates.iter().map(|one| one.trim_end()).collect();
    std::fs::write(&file, joined).unwrap();
    assert_eq!(crate::tls::certificates(&file).unwrap().len(), certificates.len());
    check(&pair("joined_all.pem", "joined_all.pem"), expect![""]);
}

#[test]
fn a_certificate_that_clients_reject_causes_a_warning() {
    check(
        &pair("old.pem", "old.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/old.pem: expired at 2002-01-01T00:00:00Z"
        ],
    );
    check(
        &pair("nameless.pem", "nameless.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/nameless.pem: has no DNS name (subjectAltName), so clients accept it only for an IP address that it names"
        ],
    );
}

#[test]
fn a_chain_that_clients_cannot_follow_causes_a_warning() {
    check(&pair("whole.pem", "below.key"), expect![""]);
    check(
        &pair("disorder.pem", "below.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/disorder.pem: certificate 2 did not issue certificate 1, so clients may not find an authority that they trust"
        ],
    );
    check(
        &pair("stranger.pem", "below.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/stranger.pem: certificate 3 issued none of the certificates before it, so clients may not find an authority that they trust"
        ],
    );
    check(
        &pair("namesake.pem", "below.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/namesake.pem: certificate 2 did not issue certificate 1, so clients may not find an authority that they trust"
        ],
    );
    check(
        &pair("below_expired.pem", "below_expired.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/below_expired.pem: certificate 2 expired at 2002-01-01T00:00:00Z, so clients may not find an authority that they trust"
        ],
    );
}

#[test]
fn an_intermediate_that_is_no_certificate_is_refused() {
    check(
        &pair("noise_behind.pem", "below.key"),
        expect![
            "hostler.toml:3:26: tls.certificates[0].cert: FOLDER/noise_behind.pem: certificate 2 is malformed (TrailingData(SignedData))"
        ],
    );
}

#[test]
fn an_expired_authority_of_clients_causes_a_warning() {
    check(
        &format!("{}client_ca = \"expired.pem\"\n", pair("a.pem", "a.key")),
        expect![
            "hostler.toml:4:13: tls.client_ca: FOLDER/expired.pem: certificate 2 expired at 2002-01-01T00:00:00Z; certificates that it has issued are accepted all the same"
        ],
    );
}

#[test]
fn a_key_that_cannot_be_used_is_reported_with_those_that_can() {
    check(
        &pair("a.pem", "weak.key"),
        expect![
            "hostler.toml:3:41: tls.certificates[0].key: FOLDER/weak.key: this RSA key cannot be used: it must have 2048 to 8192 bits; make a new key and get a certificate for it"
        ],
    );
    check(
        &pair("a.pem", "strange.key"),
        expect![
            "hostler.toml:3:41: tls.certificates[0].key: FOLDER/strange.key: this private key cannot be used: it must be an RSA key of 2048 to 8192 bits, an ECDSA key of P-256, P-384 or P-521, or an Ed25519 key"
        ],
    );
}

#[test]
fn a_key_without_its_line_breaks_is_not_shown() {
    check(
        &pair("a.pem", "one_line.key"),
        expect![
            "hostler.toml:3:41: tls.certificates[0].key: FOLDER/one_line.key: -----BEGIN PRIVATE KEY----- must be on a line of its own; has the file lost its line breaks?"
        ],
    );
    check(
        &pair("a.pem", "escaped.key"),
        expect![
            "hostler.toml:3:41: tls.certificates[0].key: FOLDER/escaped.key: -----BEGIN PRIVATE KEY----- must be on a line of its own; has the file lost its line breaks?"
        ],
    );
    check(
        &pair("a.pem", "joined.key"),
        expect![
            "hostler.toml:3:41: tls.certificates[0].key: FOLDER/joined.key: -----BEGIN PRIVATE KEY----- must be on a line of its own; has the file lost its line breaks?"
        ],
    );
}

#[test]
fn contradictory_tls_keys_are_refused() {
    check(
        "",
        expect![[
            r#"hostler.toml:1:1: tls: certificates is missing; write for example certificates = [{ cert = "...", key = "..." }]"#
        ]],
    );
    check(
        &format!("{}client_certificates = \"optional\"\n", pair("a.pem", "a.key")),
        expect!["hostler.toml:4:23: tls.client_certificates: needs tls.client_ca"],
    );
    check(
        &format!("{}client_ca = \"empty.pem\"\n", pair("a.pem", "a.key")),
        expect![
            "hostler.toml:4:13: tls.client_ca: FOLDER/empty.pem: it has no certificate in PEM form (-----BEGIN ...)"
        ],
    );
    check(
        &format!("{}min_version = \"1.1\"\n", pair("a.pem", "a.key")),
        expect![[
            r#"hostler.toml:4:15: tls.min_version: "1.1" is not one of "1.2", "1.3"; did you mean "1.2"?"#
        ]],
    );
    check(
        &format!("{}hsts = \"soon\"\n", pair("a.pem", "a.key")),
        expect![[r#"hostler.toml:4:8: tls.hsts: "soon" is not a duration such as "1year""#]],
    );
    check(
        &format!("{}hsts = \"18446744073709551615s 1000ms\"\n", pair("a.pem", "a.key")),
        expect![[
            r#"hostler.toml:4:8: tls.hsts: "18446744073709551615s 1000ms" is not a duration such as "1year""#
        ]],
    );
    check(
        &format!("{}hsts = \"500ms\"\n", pair("a.pem", "a.key")),
        expect![[
            r#"hostler.toml:4:8: tls.hsts: is less than a second; "0s" makes browsers forget this site"#
        ]],
    );
    check(
        &format!("{}hsts = {{ max_age = \"1day\", preload = true }}\n", pair("a.pem", "a.key")),
        expect![
            "hostler.toml:4:38: tls.hsts.preload: needs include_subdomains = true and a max_age of a year or more"
        ],
    );
    check(
        "certificates = [{ cert = \"a.pem\" }]\n",
        expect!["hostler.toml:3:17: tls.certificates[0]: missing field `key`"],
    );
}

#[test]
fn two_listeners_cannot_share_a_port() {
    let plain = "server.listen = \":8443\"\n";
    with_files(&format!("{plain}[tls]\nlisten = \"127.0.0.1:8443\"\n{}", pair("a.pem", "a.key")))
        .says(expect!["hostler.toml:3:10: tls.listen[0]: 127.0.0.1:8443 and [::]:8443 in server.listen overlap; use another port"]);
    with_files("[tls]\nredirect_http = true\n").says(expect![[r#"
        hostler.toml:1:1: tls.listen: at least one address is needed, such as ":8443"
        hostler.toml:1:1: tls: certificates is missing; write for example certificates = [{ cert = "...", key = "..." }]"#]]);
    with_files("server.listen = []\n").says(expect![[
        r#"hostler.toml:1:17: server.listen: at least one address is needed, such as ":8080""#
    ]]);
    let config = format!("server.listen = []\n[tls]\nlisten = \":8443\"\n{}", pair("a.pem", "a.key"));
    assert!(with_files(&config).config().server.listen.is_empty());
}

#[test]
fn a_hostler_with_tls_only_announces_the_address_that_it_is_told() {
    let keys = |advertise: &str| {
        let pair = pair("a.pem", "a.key");
        format!(
            "server.listen = []\nregistrar = {{ nats = \"a\"{advertise} }}\n[tls]\nlisten = \":8443\"\n{pair}[pools.a]\ncommand = \"x\"\nannounce = \"a.test\"\n"
        )
    };
    with_files(&keys("")).says(expect![[
        r#"hostler.toml:8:12: pools.a.announce: server.listen has no address that others could be told; set registrar.advertise = "https://app1.internal:8443""#
    ]]);
    let told =
        with_files(&keys(", advertise = \"https://a.test:8443\"")).config().registrar.unwrap().advertise;
    assert_eq!(told, Some(Advertise { host: "a.test".into(), port: 8443, tls: true }));
}

#[test]
fn hsts_is_a_strict_transport_security_value() {
    let hsts = |keys: &str| meaning(keys).hsts;
    assert_eq!(hsts(""), None);
    assert_eq!(hsts("hsts = \"365days\"").as_deref(), Some("max-age=31536000"));
    assert_eq!(hsts("hsts = \"0s\"").as_deref(), Some("max-age=0"));
    assert_eq!(
        hsts("hsts = { max_age = \"2years\", include_subdomains = true, preload = true }").as_deref(),
        Some("max-age=63115200; includeSubDomains; preload")
    );
}

#[test]
fn without_any_key_there_is_no_tls() {
    assert_eq!(with_files("").config().tls, None);
}
