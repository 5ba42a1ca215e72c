//! The command line from outside: exit codes and error texts. The meaning of configurations is tested beside their code.

use std::io::Read;

use hostler_testkit::{no_upstream, run, upstream};

use crate::{in_front_of, site};

const HOSTLER: &str = env!("CARGO_BIN_EXE_hostler");

#[tokio::test]
async fn check_shows_the_meaning_of_a_configuration() {
    let plan = site("[[routes]]\nmatch = 'shop.test/*'\npool = 'app'").with_member("app", "127.0.0.1:3000");
    let output = plan.run(&["check"]).await;
    output.assert_exit(0);
    for part in ["hostler.toml is valid", "pool app", "127.0.0.1:3000", "shop.test  pool app"] {
        assert!(output.stdout.contains(part), "expected {part:?} in\n{}", output.stdout);
    }
}

#[tokio::test]
async fn a_wrong_configuration_is_named_by_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let cases: &[(&str, &[&str])] = &[
        (
            "[server]\nlisten = ':1'\nheader_timout = '1s'\n",
            &["hostler.toml:3", "header_timout", "header_timeout"],
        ),
        ("[server]\nheader_timeout = 'soon'\n", &["hostler.toml:2", "server.header_timeout", "soon"]),
        ("[pools.app]\nmembers = []\n", &["hostler.toml:2", "pools.app.members"]),
        (
            "[pools.app]\nmembers = ['x:1']\n[[routes]]\nmatch = '*'\npool = 'ap'\n",
            &["hostler.toml:5", "\"ap\"", "app"],
        ),
        ("[server\n", &["hostler.toml:1"]),
    ];
    for (text, parts) in cases {
        std::fs::write(folder.path().join("hostler.toml"), text).unwrap();
        // A start is as strict as a check.
        for command in ["check", "start"] {
            let output = run(HOSTLER, &[command], folder.path()).await;
            output.assert_exit(2);
            for part in *parts {
                output.assert_complains(part);
            }
        }
    }
}

#[tokio::test]
async fn a_missing_file_and_a_wrong_argument_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    run(HOSTLER, &["start"], folder.path()).await.assert_exit(2).assert_complains("hostler.toml");
    run(HOSTLER, &["start", "-c", "other.toml"], folder.path())
        .await
        .assert_exit(2)
        .assert_complains("other.toml");
    run(HOSTLER, &["strat"], folder.path()).await.assert_exit(2).assert_complains("start");
    run(HOSTLER, &["run", "--workers", "2"], folder.path()).await.assert_exit(2).assert_complains("COMMAND");
    run(HOSTLER, &["--help"], folder.path()).await.assert_exit(0);
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    for (key, address) in [("server.listen", site.address()), ("server.admin", site.admin())] {
        let plan = crate::site(&format!("{key} = '{address}'")).with("app", &app);
        let output = plan.run(&["start"]).await;
        output
            .assert_exit(1)
            .assert_complains(&format!("cannot listen on {address} ({key})"))
            .assert_complains("in use");
    }
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn an_address_of_another_machine_is_refused() {
    let plan = site("server.listen = '192.0.2.1:80'").with_member("app", &no_upstream());
    plan.run(&["start"])
        .await
        .assert_exit(1)
        .assert_complains("cannot listen on 192.0.2.1:80 (server.listen)");
}

#[tokio::test]
async fn hostler_listens_on_several_addresses() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.listen = ['127.0.0.1:0', '127.0.0.3:0']\nserver.threads = 2").await;
    assert_eq!(site.addresses().len(), 2);
    for address in site.addresses() {
        hostler_testkit::client(*address).await.get("/").await.assert_ok("ok");
    }
}

#[tokio::test]
async fn the_admin_listener_can_be_off() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.admin = 'off'").await;
    site.get("/").await.assert_ok("ok");
    let plan = crate::site("server.admin = 'off'").with("app", &app);
    plan.run(&["status"]).await.assert_exit(2).assert_complains("--admin");
}

#[tokio::test]
async fn keys_can_be_set_on_the_command_line() {
    let plan = site("server.header_timeout = '5s'").with_member("app", "127.0.0.1:3000");
    let output = plan.run(&["check", "--pools.app.concurrency", "7"]).await;
    output.assert_exit(0);
    assert!(output.stdout.contains("7 each"), "{}", output.stdout);
    plan.run(&["check", "--server.header-timout=1s"]).await.assert_exit(2).assert_complains("header_timeout");
}

#[test]
fn a_command_whose_output_is_lost_fails_and_one_whose_reader_has_enough_does_not() {
    let schema = |out: std::process::Stdio| {
        let mut command = std::process::Command::new(HOSTLER);
        command.arg("schema").stdout(out).stderr(std::process::Stdio::piped()).output().unwrap()
    };
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let failed = schema(full.into());
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = schema(writer.into());
    assert_eq!((closed.status.code(), &closed.stderr[..]), (Some(0), &b""[..]));
}

#[tokio::test]
async fn an_address_that_is_not_the_admin_listener_is_said_to_be_none() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let listener = site.address().to_string();
    for command in ["status", "routes"] {
        let asked = run(HOSTLER, &[command, "--admin", &listener], site.folder()).await;
        asked.assert_exit(1).assert_complains("; is it server.admin?");
    }
}

#[tokio::test]
async fn an_app_in_place_of_the_admin_listener_is_not_taken_for_a_hostler() {
    let json = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}";
    let app = upstream().answers(json).start().await;
    for arguments in [&["status"][..], &["status", "--json"], &["routes"], &["routes", "--json"]] {
        let folder = tempfile::tempdir().unwrap();
        let asked = run(HOSTLER, &[arguments, &["--admin", app.address()]].concat(), folder.path()).await;
        asked.assert_exit(1).assert_complains("; is it server.admin?");
        assert_eq!(asked.stdout, "", "{arguments:?}");
    }
    let page = "<!doctype html>\n<title>Error</title>\n<pre>Cannot GET</pre>\n";
    let missing = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n{page}", page.len());
    let app = upstream().answers(missing).start().await;
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["status"][..], &["restart"], &["purge", "--all"], &["profile", "web"]] {
        let asked = run(HOSTLER, &[arguments, &["--admin", app.address()]].concat(), folder.path()).await;
        asked.assert_exit(1).assert_complains("status 404; is it server.admin");
        assert!(!asked.stderr.contains("<pre>"), "{}", asked.stderr);
    }
    // No order has reached it, and with it no token.
    assert!(app.requests().iter().all(|seen| seen.method() == "GET"), "{:?}", app.requests());
}

#[test]
fn an_error_whose_reader_has_left_keeps_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        [&["check"][..], &["status", "-c", "absent.toml"], &["drain", "web"], &["init"], &["top"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(HOSTLER);
        let ended = command.args(arguments).current_dir(folder.path()).stderr(writer).output().unwrap();
        let code = if arguments == ["init"] { 1 } else { 2 };
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_check_finds_files_that_a_start_could_not_make() {
    let folder = tempfile::tempdir().unwrap();
    for (setting, complaint) in [
        ("log.file = '.'", "hostler.toml:1:12: log.file: "),
        ("server.admin = 'unix:absent/admin.sock'", "hostler.toml:1:16: server.admin: "),
    ] {
        let text = format!("{setting}\n[[routes]]\nmatch = '*'\nrespond = 'a'\n");
        std::fs::write(folder.path().join("hostler.toml"), text).unwrap();
        let output = run(HOSTLER, &["check"], folder.path()).await;
        output.assert_exit(2).assert_complains(complaint);
        assert_eq!(output.stdout, "", "a configuration with an error is not shown as valid");
    }
}

#[tokio::test]
async fn an_order_is_not_sent_to_a_hostler_that_hangs() {
    let folder = tempfile::tempdir().unwrap();
    // The kernel accepts, and nothing answers.
    let hung = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = hung.local_addr().unwrap().to_string();
    let order = async |order: &[&str]| {
        let ended = run(HOSTLER, &[order, &["--admin", &admin]].concat(), folder.path()).await;
        ended.assert_exit(1).assert_complains("no response within 5s");
    };
    tokio::join!(order(&["pause", "web"]), order(&["profile", "web"]));
    for _ in 0..2 {
        let mut sent = String::new();
        hung.accept().unwrap().0.read_to_string(&mut sent).unwrap();
        assert!(sent.starts_with("GET "), "{sent}");
    }
}
