//! The keys of the admin listener: which addresses need a token, and which names are names.

use expect_test::expect;

use super::site;
use crate::Secret;

#[test]
fn an_admin_address_for_other_machines_needs_a_token() {
    let public = "pools.a.command = \"x\"\n[server]\nadmin = \":8081\"\n";
    let refused = site(public).load().unwrap_err().to_string();
    let expected = "hostler.toml:3:9: server.admin: other machines can reach [::]:8081, so it needs a token";
    assert!(refused.starts_with(expected), "{refused}");
    let config = site(public).variable("HOSTLER_ADMIN_TOKEN", "sixteen-letters-").config();
    assert_eq!(config.server.admin_token, Some(Secret("sixteen-letters-".into())));
    assert!(!format!("{config:?}").contains("sixteen"), "the token is secret");
    let wrong = site(
        "pools.a.command = \"x\"\n[server]\nadmin = \"unix:\"\nadmin_hosts = [\"*\", \"http://a\", \"a:1\"]\n",
    );
    wrong.says(expect![[r#"
            hostler.toml:3:9: server.admin: "unix:" has no path; write for example "unix:/run/hostler/admin.sock"
            hostler.toml:4:16: server.admin_hosts[0]: "*" would allow every web page to reach the admin listener (DNS rebinding); write each name
            hostler.toml:4:21: server.admin_hosts[1]: "http://a" is not a host name; write it without scheme, port and path, as in "hostler-admin.internal"
            hostler.toml:4:33: server.admin_hosts[2]: "a:1" is not a host name; write it without scheme, port and path, as in "hostler-admin.internal""#]]);
}
