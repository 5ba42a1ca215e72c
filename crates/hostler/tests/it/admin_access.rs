//! Who may use the admin listener: the token, the Unix socket, `Host` and `Origin`, and what each refusal says.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use hostler_testkit::{Output, ReceivedAnswer, Site, SitePlan, client, eventually, run, upstream};
use serde_json::Value;

use crate::{in_front_of, site};

const HOSTLER: &str = env!("CARGO_BIN_EXE_hostler");
const TOKEN: &str = "b3f1c0ffee5eed5a17ed";

/// A file with the token, which only its user can read.
fn token_file(folder: &Path) -> PathBuf {
    let file = folder.join("admin.token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    file
}

fn with_token(config: &str) -> SitePlan {
    let plan = site(&format!("server.admin_token_file = 'admin.token'\n{config}"));
    token_file(plan.folder());
    plan
}

async fn asked(site: &Site, line: &str, fields: &str) -> ReceivedAnswer {
    let mut admin = client(site.admin()).await;
    let host = site.admin();
    admin.send(format!("{line} HTTP/1.1\r\nHost: {host}\r\n{fields}Content-Length: 0\r\n\r\n")).await;
    admin.answer_to(line.split(' ').next().unwrap()).await
}

/// Runs a command with the token in a variable.
async fn with_variable(token: &str, arguments: &[&str]) -> Output {
    let words = arguments.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let script = format!("HOSTLER_ADMIN_TOKEN='{token}' exec '{HOSTLER}' {words}");
    run("sh", &["-c", &script], Path::new("/")).await
}

#[tokio::test]
async fn a_command_needs_the_admin_token_where_one_is_set() {
    let app = upstream().start().await;
    let site = with_token("").with("app", &app).start().await;
    let commands = ["/restart", "/pools/app/pause", "/reload", "/upgrade", "/purge?all=true"];
    let ours = "Hostler-Command: 1\r\n";
    for path in commands {
        let refused = asked(&site, &format!("POST {path}"), ours).await;
        refused.assert_status(401).assert_field("www-authenticate", "Bearer realm=\"Hostler admin\"");
        refused.assert_says("needs the admin token");
        let wrong = format!("{ours}Authorization: Bearer {TOKEN}x\r\n");
        let refused = asked(&site, &format!("POST {path}"), &wrong).await;
        refused.assert_status(401).assert_says("the admin token is wrong");
        assert!(refused.field("www-authenticate").unwrap().contains("error=\"invalid_token\""));
    }
    // A browser sends `Basic` by itself once it knows it.
    let basic = format!("{ours}Authorization: Basic bWU6YjNmMWMwZmZlZTVlZWQ1YTE3ZWQ=\r\n");
    asked(&site, "POST /pools/app/pause", &basic).await.assert_status(401);
    assert_eq!(site.pool("app").await["paused"], false);
    asked(&site, "POST /pools/app/pause", &format!("Authorization: Bearer {TOKEN}\r\n"))
        .await
        .assert_status(200);
    assert_eq!(site.pool("app").await["paused"], true);
    // Reading on a loopback address needs none.
    for path in ["/", "/status", "/metrics", "/table", "/health/ready"] {
        asked(&site, &format!("GET {path}"), "").await.assert_status(200);
    }
    site.says("admin: a request with a wrong token from 127.0.0.1:").await;
    let told = site.lines().join("\n") + &site.complaints().join("\n") + &site.status().await.to_string();
    assert!(!told.contains(TOKEN), "the token is in a log or in the status");
}

#[tokio::test]
async fn the_command_line_sends_the_admin_token() {
    let app = upstream().start().await;
    let site = with_token("").with("app", &app).start().await;
    let admin = site.admin().to_string();
    // From the variable.
    let pause = ["pause", "app", "--admin", &admin];
    with_variable(TOKEN, &pause).await.assert_exit(0);
    let wrong = with_variable("another-token-that-is-wrong", &pause).await;
    wrong.assert_exit(1).assert_complains("the admin token in HOSTLER_ADMIN_TOKEN is wrong");
    let empty = with_variable("", &pause).await;
    empty
        .assert_exit(1)
        .assert_complains("needs its admin token: HOSTLER_ADMIN_TOKEN: the token is too short");
    // From the file of the configuration, and from a flag.
    let file = site.folder().join("admin.token").display().to_string();
    run(HOSTLER, &["resume", "app", "--admin", &admin, "--admin-token-file", &file], Path::new("/"))
        .await
        .assert_exit(0);
    let without = run(HOSTLER, &["resume", "app", "--admin", &admin], Path::new("/")).await;
    without
        .assert_exit(1)
        .assert_complains("set HOSTLER_ADMIN_TOKEN, or name its file with --admin-token-file");
    run(HOSTLER, &["status", "--admin", &admin], Path::new("/")).await.assert_exit(0);
    let missing = ["resume", "app", "--admin", &admin, "--admin-token-file", "/no/such/file"];
    run(HOSTLER, &missing, Path::new("/"))
        .await
        .assert_exit(1)
        .assert_complains("/no/such/file does not exist");
}

#[tokio::test]
async fn a_public_admin_address_without_a_token_is_refused() {
    for address in ["0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:8081"] {
        let plan = site(&format!("server.admin = '{address}'\npools.app.members = ['127.0.0.1:1']"));
        for output in [plan.run(&["check"]).await, plan.run(&["start"]).await] {
            output
                .assert_exit(2)
                .assert_complains("hostler.toml:")
                .assert_complains("server.admin: other machines");
            output.assert_complains("set server.admin_token_file").assert_complains("HOSTLER_ADMIN_TOKEN");
        }
    }
    // A socket of the parent process can have another address than the configuration.
    let public = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let plan = site("pools.app.members = ['127.0.0.1:1']").given([public], "server.admin");
    plan.ended().await.assert_exit(1).assert_complains("so it needs server.admin_token_file");
}

#[tokio::test]
async fn on_a_public_admin_address_only_health_checks_need_no_token() {
    let app = upstream().start().await;
    let plan = site("server.admin = '0.0.0.0:0'").env("HOSTLER_ADMIN_TOKEN", TOKEN).with("app", &app);
    let site = plan.start().await;
    for path in ["/status", "/metrics", "/table", "/routes", "/", "/other"] {
        let refused = asked(&site, &format!("GET {path}"), "").await;
        refused.assert_status(401).assert_field("www-authenticate", "Bearer realm=\"Hostler admin\"");
    }
    for path in ["/health", "/health/live", "/health/ready", "/health/startup", "/health/ready/app"] {
        asked(&site, &format!("GET {path}"), "").await.assert_status(200);
    }
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    for line in ["GET /status", "GET /metrics", "POST /pools/app/pause"] {
        asked(&site, line, &bearer).await.assert_status(200);
    }
    // A browser asks its user, and sends the token as the password of `Basic`.
    let page = asked(&site, "GET /", "Accept: text/html\r\n").await;
    let head = String::from_utf8(page.assert_status(401).head.raw.clone()).unwrap();
    assert!(head.contains("www-authenticate: Basic realm=\"Hostler admin\""), "{head}");
    let basic = "Authorization: Basic bWU6YjNmMWMwZmZlZTVlZWQ1YTE3ZWQ=\r\nAccept: text/html\r\n";
    asked(&site, "GET /", basic).await.assert_status(200);
    let local = format!("127.0.0.1:{}", site.admin().port());
    with_variable(TOKEN, &["status", "--admin", &local]).await.assert_exit(0);
    run(HOSTLER, &["status", "--admin", &local], Path::new("/"))
        .await
        .assert_exit(1)
        .assert_complains("this Hostler needs its admin token");
}

#[tokio::test]
async fn a_token_file_that_others_may_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = token_file(folder.path());
    let config =
        format!("server.admin_token_file = '{}'\npools.app.members = ['127.0.0.1:1']", file.display());
    let check = async || site(&config).run(&["check"]).await;
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o666);
    check().await.assert_exit(2).assert_complains("server.admin_token_file: every user may write");
    mode(0o644);
    check().await.assert_exit(0).assert_complains("every user may read").assert_complains("chmod 600");
    mode(0o600);
    let valid = check().await;
    valid.assert_exit(0);
    assert!(valid.stdout.contains(", with a token") && !valid.stdout.contains(TOKEN), "{valid:?}");
    assert!(!valid.stderr.contains("admin_token_file"), "{valid:?}");
    for (text, why) in [
        ("tiny", "the token is too short; write at least 16 characters"),
        ("two words are not a token", "without spaces"),
        ("", "too short"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = check().await;
        refused.assert_exit(2).assert_complains("hostler.toml:").assert_complains(why);
        assert!(text.is_empty() || !refused.stderr.contains(text), "{refused:?}");
    }
    std::fs::remove_file(&file).unwrap();
    check().await.assert_exit(2).assert_complains("does not exist");
    let plan = site("pools.app.members = ['127.0.0.1:1']").env("HOSTLER_ADMIN_TOKEN", "short");
    plan.ended().await.assert_exit(2).assert_complains("HOSTLER_ADMIN_TOKEN: the token is too short");
}

#[tokio::test]
async fn a_reload_reads_the_admin_token_again() {
    let app = upstream().start().await;
    let site = with_token("").with("app", &app).start().await;
    let admin = site.admin().to_string();
    std::fs::write(site.folder().join("admin.token"), "another-token-0123456789").unwrap();
    with_variable(TOKEN, &["reload", "--admin", &admin]).await.assert_exit(0);
    let old = with_variable(TOKEN, &["reload", "--admin", &admin]).await;
    old.assert_exit(1).assert_complains("is wrong");
    with_variable("another-token-0123456789", &["reload", "--admin", &admin]).await.assert_exit(0);
}

#[tokio::test]
async fn the_admin_listener_tells_browsers_to_keep_other_pages_out() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.admin_hosts = ['admin.internal']").await;
    for (line, fields) in [
        ("GET /status", ""),
        ("GET /", "Accept: text/html\r\n"),
        ("POST /restart", ""),
        ("OPTIONS /restart", "Access-Control-Request-Method: POST\r\n"),
    ] {
        let answer = asked(&site, line, fields).await;
        answer.assert_field("x-frame-options", "DENY").assert_field("x-content-type-options", "nosniff");
        assert!(
            answer.field("content-security-policy").unwrap().contains("frame-ancestors 'none'"),
            "{line}"
        );
        for field in ["access-control-allow-origin", "access-control-allow-headers"] {
            answer.assert_no_field(field);
        }
    }
    let mut admin = client(site.admin()).await;
    admin.get_of("admin.internal:8081", "/status").await.assert_status(200);
    let refused = admin.get_of("other.internal", "/status").await;
    refused.assert_status(403).assert_says("Host must be").assert_says("server.admin_hosts");
    // A page of the listener itself may send a command; a page on another port is another site.
    let own =
        format!("Hostler-Command: 1\r\nOrigin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", site.admin());
    asked(&site, "POST /pools/app/pause", &own).await.assert_status(200);
    let other = "Hostler-Command: 1\r\nOrigin: http://127.0.0.1:1\r\nSec-Fetch-Site: same-site\r\n";
    asked(&site, "POST /pools/app/resume", other).await.assert_status(403).assert_says("Origin");
}

/// A Hostler whose admin listener is a Unix socket, which [`Site`] cannot ask.
struct Process(std::process::Child, tempfile::TempDir);

impl Process {
    async fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[server]\nlisten = '127.0.0.1:0'\naccess_log = 'json'\n{config}\n[pools.app]\nmembers = ['127.0.0.1:1']\n"
        );
        std::fs::write(folder.path().join("hostler.toml"), text).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(HOSTLER)
            .arg("start")
            .current_dir(folder.path())
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let process = Self(child, folder);
        process.says("admin listener on unix:").await;
        process
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.1.path().join("log")).unwrap()
    }

    async fn says(&self, text: &str) {
        eventually(text.to_owned(), async || self.log().contains(text).then_some(())).await;
    }

    async fn command(&self, arguments: &[&str]) -> Output {
        run(HOSTLER, arguments, self.1.path()).await
    }

    fn stop(&self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }

    async fn exit(&mut self) {
        eventually("its end", async || self.0.try_wait().unwrap()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn commands_reach_a_hostler_whose_file_has_an_error_and_a_reload_tells_it() {
    let process = Process::start("admin = 'unix:admin.sock'").await;
    let file = process.1.path().join("hostler.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}nonsense = 1\n")).unwrap();
    let failed = process.command(&["reload"]).await;
    failed.assert_exit(1).assert_complains("unknown key").assert_complains("nonsense");
    let status = process.command(&["status", "--json"]).await;
    let status: Value = serde_json::from_str(&status.assert_exit(0).stdout).unwrap();
    assert_eq!(status["last_reload"]["ok"], false, "{}", status["last_reload"]);
    process.stop();
}

#[tokio::test]
async fn commands_find_the_unix_socket_of_the_configuration_and_an_upgrade_passes_it_on() {
    let mut old = Process::start("admin = 'unix:admin.sock'").await;
    let socket = old.1.path().join("admin.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o7777, 0o600);
    let status = old.command(&["status", "--json"]).await;
    status.assert_exit(0);
    let pid = |text: &str| serde_json::from_str::<Value>(text).unwrap()["pid"].as_i64().unwrap();
    assert_eq!(pid(&status.stdout), i64::from(old.0.id()));
    let named = format!("unix:{}", socket.display());
    run(HOSTLER, &["pause", "app", "--admin", &named], Path::new("/")).await.assert_exit(0);
    run(HOSTLER, &["resume", "app", "--admin", &named], Path::new("/")).await.assert_exit(0);

    old.command(&["upgrade"]).await.assert_exit(0);
    old.exit().await;
    let status = old.command(&["status", "--json"]).await;
    status.assert_exit(0);
    let new = i32::try_from(pid(&status.stdout)).unwrap();
    assert_ne!(new, i32::try_from(old.0.id()).unwrap(), "the successor answers");
    let new = rustix::process::Pid::from_raw(new).unwrap();
    rustix::process::kill_process(new, rustix::process::Signal::TERM).unwrap();
    eventually("the socket file to be removed", async || (!socket.exists()).then_some(())).await;
}

#[tokio::test]
async fn a_stale_admin_socket_is_replaced_and_a_live_one_is_an_error() {
    let mut first = Process::start("admin = 'unix:admin.sock'").await;
    let socket = first.1.path().join("admin.sock");
    let other = first.command(&["start", "--server.listen", "127.0.0.1:0"]).await;
    other.assert_exit(1).assert_complains("(server.admin)").assert_complains("another process listens there");
    UnixStream::connect(&socket).unwrap();
    // A Hostler that is killed leaves its socket file.
    first.0.kill().unwrap();
    first.exit().await;
    assert!(socket.exists());
    let path = socket.display().to_string();
    let second = Process::start(&format!("admin = 'unix:{path}'")).await;
    second.command(&["status"]).await.assert_exit(0);
    second.stop();
    eventually("the socket file to be removed", async || (!socket.exists()).then_some(())).await;

    std::fs::write(&socket, "precious").unwrap();
    let refused = first.command(&["start"]).await;
    refused.assert_exit(1).assert_complains("is not a socket");
    assert_eq!(std::fs::read_to_string(&socket).unwrap(), "precious");
    let missing = first.command(&["start", "--server.admin", "unix:/no/such/folder/a.sock"]).await;
    missing.assert_exit(1).assert_complains("create the folder /no/such/folder");
}

#[tokio::test]
async fn a_given_unix_socket_is_the_admin_listener() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("given.sock");
    let socket = UnixListener::bind(&path).unwrap();
    let app = upstream().start().await;
    let plan = site(&format!("server.admin = 'unix:{}'", path.display())).with("app", &app);
    let plan = plan.given([socket.try_clone().unwrap()], "hostler.socket");
    let (site, named) = (plan.start_without_admin().await, format!("unix:{}", path.display()));
    run(HOSTLER, &["status", "--admin", &named], Path::new("/")).await.assert_exit(0);
    site.get("/").await.assert_ok("ok");
}
