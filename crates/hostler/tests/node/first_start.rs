//! What an operator sees at a first start: programs and folders that may not be used, and ports that are taken.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use hostler_testkit::{Output, eventually, run, site};
use serde_json::Value;

const HOSTLER: &str = env!("CARGO_BIN_EXE_hostler");
const APP: &str = "require('http').createServer((req, res) => res.end('ok')).listen(3000);";
/// The user `nobody`.
const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// The errors of a command of a user without rights, which ends with exit code 2. Root may read everything.
fn complaints(folder: &Path, arguments: &[&str]) -> String {
    ended_with(2, folder, arguments)
}

fn ended_with(code: i32, folder: &Path, arguments: &[&str]) -> String {
    // The build may lie where this user may not go.
    let program = folder.join("hostler");
    if !program.exists() {
        // Not by this process: a child that another test starts at this moment would hold the file open for writing.
        assert!(Command::new("cp").arg(HOSTLER).arg(&program).status().unwrap().success());
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn what_may_not_be_read_or_executed_is_said_as_such_by_check_and_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let at = |name: &str| path.join(name).display().to_string();
    set_mode(&path, 0o755);
    for (name, mode) in [("closed", 0o700), ("open", 0o755)] {
        std::fs::create_dir_all(path.join(name).join("app")).unwrap();
        std::fs::write(path.join(name).join("server.js"), APP).unwrap();
        set_mode(&path.join(name), mode);
    }
    set_mode(&path.join("open/server.js"), 0o600);
    std::fs::write(path.join("open/run"), "#!/bin/sh\n").unwrap();
    set_mode(&path.join("open/run"), 0o644);
    let text = "server.admin = 'off'\nserver.listen = '127.0.0.1:0'\n\
        [pools.a]\ncommand = 'node x'\ncwd = 'closed/app'\n\
        [pools.b]\ncommand = 'node open/server.js'\n\
        [pools.c]\ncommand = 'open/run'\n\
        [[routes]]\nmatch = '/a'\npool = 'a'\n[[routes]]\nmatch = '/b'\npool = 'b'\n[[routes]]\nmatch = '/c'\npool = 'c'\n\
        [[routes]]\nmatch = '*'\nstatic = 'closed'\n\
        [[routes]]\nmatch = '/d'\nrespond = { file = 'closed/page.html' }\n\
        [tls]\nlisten = '127.0.0.1:0'\ncertificates = [{ cert = 'closed/c.pem', key = 'closed/k.pem' }]\n";
    std::fs::write(path.join("hostler.toml"), text).unwrap();
    let said = complaints(&path, &["check"]);
    let expected = [
        format!("hostler.toml:5:7: pools.a.cwd: {} may not be read (permission denied)", at("closed/app")),
        format!(
            "hostler.toml:7:11: pools.b.command: {} may not be read (permission denied)",
            at("open/server.js")
        ),
        format!(
            "hostler.toml:9:11: pools.c.command: {} may not be executed (permission denied)",
            at("open/run")
        ),
        format!("hostler.toml:21:10: routes[3].static: {} may not be read (permission denied)", at("closed")),
        format!(
            "hostler.toml:24:20: routes[4].respond.file: {} may not be read (permission denied)",
            at("closed/page.html")
        ),
        format!(
            "hostler.toml:27:26: tls.certificates[0].cert: {}: may not be read (permission denied)",
            at("closed/c.pem")
        ),
    ];
    assert_eq!(said.trim_end().lines().collect::<Vec<_>>(), expected);
    assert_eq!(complaints(&path, &["start"]), said);
}

#[test]
fn a_command_says_that_its_user_may_not_use_the_admin_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    set_mode(&path, 0o755);
    let closed = path.join("closed");
    std::fs::create_dir(&closed).unwrap();
    let _socket = UnixListener::bind(closed.join("admin.sock")).unwrap();
    set_mode(&closed, 0o000);
    let address = format!("unix:{}", closed.join("admin.sock").display());
    for command in [&["status"][..], &["top", "--once"], &["reload"]] {
        let said = ended_with(1, &path, &[command, &["--admin", &address]].concat());
        let expected = format!(
            "hostler {}: this user may not use {address} (permission denied); give the command as the user of Hostler or as root",
            command[0]
        );
        assert_eq!(said.trim_end(), expected);
    }
    set_mode(&closed, 0o700);
}

#[tokio::test]
async fn a_reload_says_the_same_and_changes_nothing() {
    let site = super::site::configured("[pools.app]\ncommand = 'node app.js'\nworkers = 1\n");
    std::fs::write(site.folder().join("app.js"), APP).unwrap();
    let site = site.started().await;
    site.configure("[pools.app]\ncommand = 'node ap.js'\nworkers = 1\n");
    let output = site.command(&["reload"]).await;
    output.assert_exit(1).assert_complains("pools.app.command: ").assert_complains("ap.js does not exist");
    site.get("/").await.assert_ok("ok");
    site.stop().await;
}

/// A deploy may have removed the app, and an operator shows another page meanwhile. The workers still serve.
#[tokio::test]
async fn a_reload_only_warns_of_the_missing_program_of_a_pool_that_stays() {
    let pool = "[pools.app]\ncommand = 'node app.js'\ncwd = 'app'\nworkers = 1\n";
    let file = |path: &str| {
        format!(
            "{pool}[[routes]]\nmatch = '/{path}'\nrespond = 'soon'\n[[routes]]\nmatch = '*'\npool = 'app'\n"
        )
    };
    let plan = super::site::configured(&file("before"));
    let folder = plan.folder().join("app");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("app.js"), APP).unwrap();
    let site = plan.started().await;
    for (path, key, gone) in [("one", "command", folder.join("app.js")), ("two", "cwd", folder.clone())] {
        if gone.is_dir() {
            std::fs::remove_dir(&gone).unwrap();
        } else {
            std::fs::remove_file(&gone).unwrap();
        }
        site.configure(&file(path));
        let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
        let warning = format!("pools.app.{key}: {} does not exist; running workers go on", gone.display());
        assert!(said.contains(&warning), "{said}");
        site.get(&format!("/{path}")).await.assert_ok("soon");
        site.get("/").await.assert_ok("ok");
    }
    // Workers with other settings would have to start.
    site.configure(&file("two").replace("workers = 1", "workers = 1\nenv = { A = 'b' }"));
    site.command(&["reload"]).await.assert_exit(1).assert_complains("nothing else has changed");
    site.get("/").await.assert_ok("ok");
    site.stop().await;
}

/// `hostler run` without an admin address, in a folder with the app.
async fn run_in_its_folder(runtime: &Path) -> hostler_testkit::Site {
    let plan = site(HOSTLER, "");
    // The test kit writes a file into the folder above.
    let folder = plan.folder().join("app");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("app.js"), APP).unwrap();
    let arguments = ["run", "--listen", "127.0.0.1:0", "--workers", "1", "--", "node", "app.js"];
    let plan = plan.env("XDG_RUNTIME_DIR", runtime);
    plan.invoked(&folder, arguments.map(Into::into).to_vec()).start().await
}

/// `hostler status` in a folder, without an address.
async fn status(folder: &Path, runtime: &Path) -> Output {
    let arguments =
        [format!("XDG_RUNTIME_DIR={}", runtime.display()), format!("TMPDIR={}", runtime.display())];
    let arguments: Vec<_> =
        arguments.iter().map(String::as_str).chain([HOSTLER, "status", "--json"]).collect();
    run("env", &arguments, folder).await
}

#[tokio::test]
async fn status_without_an_address_finds_the_hostler_of_the_folder_or_the_only_one() {
    let runtime = tempfile::tempdir().unwrap();
    let one = run_in_its_folder(runtime.path()).await;
    let pid = |output: &Output| serde_json::from_str::<Value>(&output.stdout).unwrap()["pid"].as_u64();
    let elsewhere = status(Path::new("/"), runtime.path()).await;
    let first = pid(elsewhere.assert_exit(0));
    let other = run_in_its_folder(runtime.path()).await;
    let second = pid(status(&other.folder().join("app"), runtime.path()).await.assert_exit(0));
    assert_ne!(first, second);
    assert_eq!(pid(status(&one.folder().join("app"), runtime.path()).await.assert_exit(0)), first);
    let unclear = status(Path::new("/"), runtime.path()).await;
    unclear.assert_exit(2).assert_complains(&format!("hostler status --admin {}", one.admin()));
    unclear.assert_complains(&other.folder().display().to_string());
}

#[tokio::test]
async fn a_command_without_a_file_finds_the_token_file_of_the_last_reload() {
    let file = |token: &str| {
        format!("server.admin_token_file = '{token}'\n[pools.app]\ncommand = 'node app.js'\nworkers = 1\n")
    };
    let plan = super::site::configured(&file("one"));
    for (name, text) in
        [("app.js", APP), ("one", "the-first-token-of-all"), ("two", "the-second-token-of-all")]
    {
        std::fs::write(plan.folder().join(name), text).unwrap();
        set_mode(&plan.folder().join(name), 0o600);
    }
    let site = plan.started().await;
    site.configure(&file("two"));
    site.hang_up();
    site.says("reload: server: admin_token_file").await;
    let runtime = format!("XDG_RUNTIME_DIR={}", site.file("run").display());
    let output = run("env", &[runtime.as_str(), HOSTLER, "pause", "app"], Path::new("/")).await;
    output.assert_exit(0);
    // As the log tells it after a reload with another server.admin.
    let admin = site.admin().to_string();
    let resume = [runtime.as_str(), HOSTLER, "resume", "app", "--admin", admin.as_str()];
    run("env", &resume, Path::new("/")).await.assert_exit(0);
    site.stop().await;
}

#[tokio::test]
async fn two_runs_side_by_side_have_admin_ports_of_their_own() {
    let runtime = tempfile::tempdir().unwrap();
    let one = run_in_its_folder(runtime.path()).await;
    let other = run_in_its_folder(runtime.path()).await;
    assert_ne!(one.admin(), other.admin());
    // One of them may have the default port, if no other process of this machine has it.
    for site in [&one, &other].into_iter().filter(|site| site.admin().port() != 8081) {
        let command = eventually("the log names the command", async || {
            let lines = site.lines();
            let told = lines.iter().find_map(|line| {
                line.split_once("127.0.0.1:8081 is taken, so commands need another address: hostler ")
            });
            told.map(|(_, command)| command.trim_end_matches("\"}").to_owned())
        });
        let command = command.await;
        assert_eq!(command, format!("status --admin {}", site.admin()));
        let arguments: Vec<_> = command.split(' ').collect();
        run(HOSTLER, &arguments, Path::new("/")).await.assert_exit(0);
    }
}

#[tokio::test]
async fn an_admin_port_that_was_set_is_never_exchanged_and_a_listen_port_never() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("app.js"), APP).unwrap();
    let app = ["--", "node", "app.js"];
    for options in [
        ["--admin", taken.as_str(), "--listen", "127.0.0.1:0"],
        ["--listen", taken.as_str(), "--admin", "off"],
    ] {
        let output = run(HOSTLER, &[&["run"][..], &options, &app].concat(), folder.path()).await;
        output
            .assert_exit(1)
            .assert_complains(&format!("cannot listen on {taken}"))
            .assert_complains(&format!("another process uses port {}", holder.local_addr().unwrap().port()));
    }
}
