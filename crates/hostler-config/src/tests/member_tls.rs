//! TLS to members: what is read, and what is said about it.

use expect_test::{Expect, expect};
use hostler_testkit::authority;

use super::site;
use crate::{Endpoint, MemberProtocol, Members, PoolMembers};

const HTTPS: &str = "pools.web.members = [\"https://app.test:8443\"]\n";

fn members(site: &super::Site) -> Members {
    let pool = site.config().pools.remove(0);
    let PoolMembers::Members(members) = pool.source else { panic!("not members") };
    members
}

fn check(keys: &str, expected: Expect) {
    let site = site(&format!("{HTTPS}[pools.web.tls]\n{keys}"));
    let (one, other) = (authority().vouch_for(&["a"]), authority().vouch_for(&["b"]));
    let (old, chain) = (authority().vouched_for(&["a"]), [&*one.cert, &authority().cert()].concat());
    for (name, text) in [
        ("ca.pem", &one.cert),
        ("one.key", &one.key),
        ("other.key", &other.key),
        ("old.pem", &old.cert),
        ("old.key", &old.key),
        ("chain.pem", &chain),
    ] {
        std::fs::write(site.folder().join(name), text).unwrap();
    }
    std::fs::write(site.folder().join("empty.pem"), "nothing\n").unwrap();
    site.says(expected);
}

#[test]
fn members_over_tls_are_marked_by_their_scheme() {
    let site = site(
        "[pools.web]\nmembers = [\"https://app.test:8443\", \"https://[::1]:1\", \"b:1\"]\nprotocol = \"http2\"\ntls.verify = false\n",
    );
    let members = members(&site);
    let shown: Vec<_> = members.endpoints.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["https://app.test:8443", "https://[::1]:1", "b:1"]);
    assert_eq!(members.endpoints[1], Endpoint::Tls { host: "::1".into(), port: 1 });
    assert_eq!(members.protocol, MemberProtocol::Http2);
}

#[test]
fn equal_certificate_files_give_equal_settings_and_different_ones_do_not() {
    let site = site(&format!("{HTTPS}[pools.web.tls]\nca = \"ca.pem\"\n"));
    let write = |text: &str| std::fs::write(site.folder().join("ca.pem"), text).unwrap();
    let old = authority().cert();
    write(&old);
    let before = members(&site);
    write(&authority().cert());
    assert_ne!(members(&site), before);
    write(&old);
    assert_eq!(members(&site), before);
}

#[test]
fn an_own_certificate_that_members_reject_causes_a_warning() {
    check(
        "cert = \"old.pem\"\nkey = \"old.key\"\nca = \"ca.pem\"\n",
        expect!["hostler.toml:3:8: pools.web.tls.cert: FOLDER/old.pem: expired at 2002-01-01T00:00:00Z"],
    );
    check(
        "cert = \"chain.pem\"\nkey = \"one.key\"\nca = \"ca.pem\"\n",
        expect![
            "hostler.toml:3:8: pools.web.tls.cert: FOLDER/chain.pem: certificate 2 did not issue certificate 1, so servers may not find an authority that they trust"
        ],
    );
}

#[test]
fn invalid_certificate_files_are_named() {
    check(
        "ca = \"nowhere.pem\"\n",
        expect![
            "hostler.toml:3:6: pools.web.tls.ca: FOLDER/nowhere.pem: No such file or directory (os error 2)"
        ],
    );
    check(
        "ca = \"empty.pem\"\n",
        expect![
            "hostler.toml:3:6: pools.web.tls.ca: FOLDER/empty.pem: it has no certificate in PEM form (-----BEGIN ...)"
        ],
    );
    check(
        "ca = \"ca.pem\"\ncert = \"ca.pem\"\nkey = \"ca.pem\"\n",
        expect![[
            r#"hostler.toml:5:7: pools.web.tls.key: FOLDER/ca.pem: it has no private key; it has "CERTIFICATE""#
        ]],
    );
    check(
        "ca = \"ca.pem\"\ncert = \"ca.pem\"\nkey = \"other.key\"\n",
        expect![
            "hostler.toml:5:7: pools.web.tls.key: does not match cert: keys may not be consistent: KeyMismatch"
        ],
    );
    check("ca = \"ca.pem\"\ncert = \"ca.pem\"\nkey = \"one.key\"\nserver_name = \"a\"\n", expect![""]);
}

#[test]
fn keys_that_exclude_each_other_are_refused() {
    check(
        "ca = \"ca.pem\"\nverify = false\n",
        expect![
            "hostler.toml:3:6: pools.web.tls.ca: not allowed with verify = false, because Hostler then checks no certificate"
        ],
    );
    check("verify = false\ncert = \"ca.pem\"\n", expect!["hostler.toml:4:8: pools.web.tls.cert: needs key"]);
    check(
        "verify = false\nserver_name = \"a b\"\n",
        expect!["hostler.toml:4:15: pools.web.tls.server_name: is neither a DNS name nor an IP address"],
    );
    check(
        "verify = false\n",
        expect![
            "hostler.toml:3:10: pools.web.tls.verify: Hostler accepts any certificate, so another server can answer in a member's place"
        ],
    );
    site("[pools.web]\nmembers = [\"a:1\"]\ntls.verify = false\n").says(expect![
        "hostler.toml:3:1: pools.web.tls: not allowed, because no member begins with https://"
    ]);
    site("[pools.web]\ncommand = \"x\"\nprotocol = \"http2\"\n").says(expect![
        "hostler.toml:3:1: pools.web.protocol: not allowed for workers: Hostler always uses HTTP/1.1 to them"
    ]);
}
