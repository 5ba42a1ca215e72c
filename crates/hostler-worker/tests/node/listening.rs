//! How an app gets its address and its folder, and becomes ready.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use hostler_dispatch::Claim;
use hostler_worker::{Bind, Slots, WorkerAddress};

use super::support::*;

#[tokio::test]
async fn an_app_with_a_hard_coded_port_answers_on_the_inherited_socket_and_opens_no_port() {
    let test_pool = test_pool(PLAIN).started().await;
    let pid: u32 = test_pool.get("/").await.parse().unwrap();
    let worker = test_pool.worker();
    assert_eq!(worker.pid, Some(pid));
    assert!(worker.memory.unwrap() > 1 << 20 && worker.uptime.is_some() && worker.restarts == 0);
    assert_eq!(worker.member, Some(test_pool.pool.snapshot().members[0].figures.id));
    test_pool.assert_logged(&format!("web 1: ready (pid {pid}) in "));
    test_pool.stop().await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn pwd_is_the_folder_of_the_app_as_in_a_shell() {
    let app = "require('http').createServer((req, res) => res.end(process.env.PWD)).listen(3000);";
    let with_pwd = |plan: Plan, pwd: &str| {
        plan.with(|settings| drop(settings.env.insert("PWD".to_owned(), pwd.to_owned())))
    };
    // As Hostler was started in another folder.
    let plan = with_pwd(test_pool(app), "/");
    let cwd = plan.settings.cwd.display().to_string();
    let elsewhere = plan.started().await;
    assert_eq!(elsewhere.get("/").await, cwd);
    elsewhere.stop().await;
    // As it was started in the same folder, by the name of a link.
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("current").display().to_string();
    let plan = with_pwd(test_pool(app), &link);
    std::os::unix::fs::symlink(&plan.settings.cwd, &link).unwrap();
    let by_link = plan.started().await;
    assert_eq!(by_link.get("/").await, link);
    by_link.stop().await;
}

#[tokio::test]
async fn the_listening_socket_is_the_workers_alone_so_a_dead_worker_refuses_at_once() {
    let test_pool = test_pool(PLAIN).started().await;
    let members = test_pool.pool.snapshot_with(WorkerAddress::to_string).members;
    let path = members[0].endpoint.strip_prefix("unix:").unwrap();
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    let inodes =
        sockets.lines().filter(|line| line.ends_with(path)).filter_map(|line| line.split_whitespace().nth(6));
    let holds = |pid: &str, inode: &str| {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        descriptors
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|link| link.ends_with(format!("socket:[{inode}]")))
    };
    let held = |pid: &str| inodes.clone().any(|inode| holds(pid, inode));
    assert!(held(&test_pool.worker().pid.unwrap().to_string()));
    assert!(!held("self"));
    test_pool.stop().await;
}

#[tokio::test]
async fn an_app_behind_npm_listens_on_the_path_and_reports_its_own_pid() {
    let test_pool = test_pool(PLAIN)
        .file("package.json", r#"{"scripts":{"start":"node app.js"}}"#)
        .command(["npm", "start"])
        .started()
        .await;
    let pid: u32 = test_pool.get("/").await.parse().unwrap();
    assert_eq!(test_pool.worker().pid, Some(pid));
    test_pool.stop().await;
    assert!(!is_alive(pid));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn an_app_in_a_pid_namespace_of_its_own_is_not_taken_for_the_process_with_its_number_here() {
    let unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    let tried = std::process::Command::new(unshare[0]).args(&unshare[1..]).arg("true").status();
    if !tried.is_ok_and(|status| status.success()) {
        return hostler_testkit::say_skipped("this system does not allow PID namespaces");
    }
    // The kernel drops a signal that the first process of a namespace does not handle.
    let app = format!("process.on('SIGTERM', () => process.exit(0)); {PLAIN}");
    let command = unshare.into_iter().chain(["node", "app.js"]).map(str::to_owned).collect();
    let test_pool = test_pool(&app).with(|settings| settings.command = command).started().await;
    assert_eq!(test_pool.get("/").await, "1", "its number there");
    let unshared = test_pool.worker().pid.unwrap();
    let app = children_of(unshared);
    assert!(unshared != 1 && app.len() == 1, "{unshared} {app:?}");
    test_pool.stop().await;
    assert!(!is_alive(unshared) && !is_alive(app[0]));
}

#[tokio::test]
async fn a_script_that_is_started_without_our_descriptors_is_served() {
    // Bun and `node --run` close them for what they start, and leave the variables.
    let runner = "#!/bin/sh
        echo \"channel: ${NODE_CHANNEL_FD-none}\"
        [ \"$2\" = app.js ] || exec 3>&- 4>&-
        exec node app.js";
    for (name, command, channel) in [
        ("bun", "PROGRAM|run|start", "none"),
        ("bun", "PROGRAM|run|app.js", "4"),
        ("node", "PROGRAM|--run|start", "none"),
        ("node", "env|A=b|PROGRAM|--run|start", "none"),
        ("bun", "sh|-c|exec PROGRAM run start", "none"),
        ("bun", "sh|start.sh", "none"),
    ] {
        let plan = test_pool(PLAIN).file(name, runner);
        let program = plan.settings.cwd.join(name).display().to_string();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let plan = plan.file("start.sh", &format!("#!/bin/sh\nexec {program} run start\n"));
        let command = command.replace("PROGRAM", &program);
        let plan = plan.with(|settings| settings.command = command.split('|').map(str::to_owned).collect());
        let test_pool = plan.started().await;
        assert_eq!(test_pool.get("/").await, test_pool.worker().pid.unwrap().to_string());
        test_pool.assert_logged(&format!("Stdout: channel: {channel}"));
        test_pool.stop().await;
    }
}

#[tokio::test]
async fn with_bind_port_the_app_gets_a_free_port_and_is_ready_when_it_accepts() {
    let app =
        "require('http').createServer((req, res) => res.end(process.env.HOST)).listen(process.env.PORT);";
    let test_pool = test_pool(app).with(|settings| settings.bind = Bind::Port).started().await;
    assert_eq!(test_pool.get("/").await, "127.0.0.1");
    let members = test_pool.pool.snapshot_with(WorkerAddress::clone).members;
    assert!(matches!(members[0].endpoint, WorkerAddress::Tcp(address) if address.ip().is_loopback()));
    test_pool.stop().await;
}

#[tokio::test]
async fn an_app_on_the_port_of_ipv6_loopback_is_served() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    // `localhost` is this address in many containers.
    let app = "require('http').createServer((req, res) => res.end('six')).listen(process.env.PORT, '::1');";
    // The second one has no preload.
    for (bind, command) in [(Bind::Port, "node app.js"), (Bind::Socket, "NODE_OPTIONS= node app.js")] {
        let plan = test_pool(app).with(|settings| settings.bind = bind);
        let test_pool = plan.command(["sh", "-c", command]).started().await;
        assert_eq!(test_pool.get("/").await, "six");
        test_pool.stop().await;
    }
}

#[tokio::test]
async fn behind_a_port_and_a_shell_the_status_is_that_of_the_app() {
    let app =
        "require('http').createServer((req, res) => res.end(`${process.pid}`)).listen(process.env.PORT);";
    let test_pool = test_pool(app)
        .with(|settings| settings.bind = Bind::Port)
        // The shell stays, because another command follows.
        .command(["sh", "-c", "node app.js; exit 0"])
        .started()
        .await;
    let pid: u32 = test_pool.get("/").await.parse().unwrap();
    let worker = test_pool.worker();
    assert_eq!(worker.pid, Some(pid));
    // A shell has less, and `max_memory` is for the app.
    assert!(worker.memory.unwrap() > 20 << 20, "{:?}", worker.memory);
    test_pool.assert_logged(&format!("web 1: ready (pid {pid}) in "));
    test_pool.stop().await;
}

#[tokio::test]
async fn requests_from_before_an_app_has_listened_again_are_counted_and_finished() {
    let app = "const fs = require('fs'), http = require('http');
        const wait = (res) => {
            console.log('waits');
            const timer = setInterval(() => {
                if (!fs.existsSync('go')) return;
                clearInterval(timer);
                res.end('late');
            }, 20);
        };
        const listen = () => {
            const server = http.createServer((req, res) => {
                if (req.url === '/wait') return wait(res);
                if (req.url === '/again') {
                    server.close();
                    listen();
                }
                res.end();
            });
            server.listen(3000);
        };
        listen();";
    let test_pool = test_pool(app).with(|settings| settings.slots = Slots::Fixed(2)).started().await;
    let first = test_pool.worker().member;
    let lease = test_pool.pool.acquire(Claim::default()).await.unwrap();
    let waiting = tokio::spawn(async move { get(&lease, "/wait").await });
    eventually("the worker has it", || test_pool.log().contains("Stdout: waits")).await;
    test_pool.get("/again").await;
    eventually("another member", || test_pool.worker().member != first).await;
    assert_eq!(test_pool.worker().earlier_requests, 2);

    let restart = tokio::spawn(test_pool.workers.restart());
    eventually("the worker ends", || test_pool.log().contains("web 1: ends (pid ")).await;
    test_pool.write("go", "");
    assert_eq!(waiting.await.unwrap(), Ok((200, "late".to_owned())));
    restart.await.unwrap().unwrap();
    test_pool.stop().await;
}

#[tokio::test]
async fn a_preload_path_with_spaces_and_quotes_works() {
    let parent = tempfile::Builder::new().prefix("a \"b\" c\\d").tempdir().unwrap();
    let test_pool = test_pool(PLAIN).start_in(parent.path());
    test_pool.is_ready().await;
    test_pool.get("/").await;
    test_pool.stop().await;
}

#[tokio::test]
async fn the_worker_knows_its_pool_and_number_and_keeps_its_own_environment() {
    let app = "const e = process.env; require('http').createServer((req, res) => res.end([e.HOSTLER_POOL, \
               e.HOSTLER_WORKER, e.HOSTLER_GENERATION, e.NODE_APP_INSTANCE, e.MINE, e.NODE_CHANNEL_FD, \
               e.NODE_OPTIONS].join())).listen(3000);";
    let test_pool = test_pool(app)
        .with(|settings| {
            settings.env.insert("MINE".into(), "yes".into());
            settings.env.insert("NODE_OPTIONS".into(), "--no-warnings".into());
        })
        .started()
        .await;
    assert_eq!(test_pool.get("/").await, "web,1,1,0,yes,,--no-warnings");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_pool_may_set_the_number_of_the_instance_itself() {
    let app = "const { NODE_APP_INSTANCE: own } = process.env; \
               require('http').createServer((req, res) => res.end(JSON.stringify(own))).listen(3000);";
    for (value, seen) in [("eu", r#""eu""#), ("", r#""""#)] {
        let test_pool = test_pool(app)
            .with(|settings| _ = settings.env.insert("NODE_APP_INSTANCE".into(), value.into()))
            .started()
            .await;
        assert_eq!(test_pool.get("/").await, seen);
        test_pool.stop().await;
    }
}

#[tokio::test]
async fn readiness_waits_for_the_health_path_and_then_for_the_warm_up() {
    let app = "let healthy = 0; const seen = []; require('http').createServer((req, res) => {
        seen.push(req.url);
        if (req.url === '/healthz' && ++healthy < 3) { res.statusCode = 503; }
        if (req.url === '/bad') { res.statusCode = 500; }
        res.end(seen.join());
    }).listen(3000);";
    let test_pool = test_pool(app)
        .with(|settings| {
            settings.health = Some("/healthz".to_owned());
            settings.warmup = vec!["/a".to_owned(), "/bad".to_owned()];
        })
        .started()
        .await;
    assert_eq!(test_pool.get("/now").await, "/healthz,/healthz,/healthz,/a,/bad,/now");
    test_pool.assert_logged("warm-up of /bad: answered 500");
    test_pool.stop().await;
}

#[tokio::test]
async fn output_of_a_worker_is_logged_line_by_line_with_its_number() {
    let app = format!("console.log('one\\ntwo'); console.error('oh'); process.stdout.write('half'); {PLAIN}");
    let test_pool = test_pool(&app).with(|settings| settings.count = 2).started().await;
    test_pool.stop().await;
    for line in ["web 1 Stdout: one", "web 2 Stdout: two", "web 2 Stderr: oh", "web 1 Stdout: half"] {
        test_pool.assert_logged(line);
    }
}
