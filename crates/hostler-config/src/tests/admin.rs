//! The keys of the admin listener: which addresses need a token, and which names are names.

use std::os::unix::fs::symlink;

use expect_test::expect;
use rustix::fs::{CWD, FileType, Mode, mknodat};

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

#[test]
fn a_token_file_is_a_regular_file_or_a_link_to_one() {
    let site = site("pools.a.command = \"x\"\nserver.admin_token_file = \"admin.token\"\n");
    let (file, token) = (site.folder.path().join("admin.token"), site.folder.path().join("token"));
    // No program writes to it, so reading it would never end.
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let refused = site.load().unwrap_err().to_string();
    assert!(refused.contains("admin.token is not a regular file"), "{refused}");
    std::fs::write(&token, "sixteen-letters-\n").unwrap();
    std::fs::remove_file(&file).unwrap();
    symlink(&token, &file).unwrap();
    assert_eq!(site.config().server.admin_token, Some(Secret("sixteen-letters-".into())));
}

#[test]
fn the_default_admin_port_of_run_gives_way_to_a_listener_for_clients() {
    let run = || site("").without_file().flag("pools.app.command", "x");
    assert_eq!(run().flag("server.listen", ":8081").config().server.listen[0].port(), 8081);
    // Only the certificates are missing.
    let without_certificates = run().flag("tls.listen", ":8081").load().unwrap_err().to_string();
    assert!(!without_certificates.contains("overlap"), "{without_certificates}");
    // An address that was set never moves. Nor does the default with a file, which commands read.
    let set = run().flag("server.listen", ":8081").flag("server.admin", "127.0.0.1:8081");
    let of_file = site("pools.app.command = \"x\"\nserver.listen = \":8081\"\n");
    for site in [set, of_file] {
        let refused = site.load().unwrap_err().to_string();
        assert!(
            refused.contains("server.admin: 127.0.0.1:8081 and [::]:8081 in server.listen overlap"),
            "{refused}"
        );
    }
}
