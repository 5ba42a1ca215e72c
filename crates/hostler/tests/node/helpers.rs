//! Servers of a worker that listen before the app does and are not the app: helper processes, port probes, internal servers, second ports.

use hostler_testkit::{client, eventually, held_port};

use super::proc;
use super::site::{Plan, Site, source};

/// Servers that answer with a text. `whenTold` waits for the file `go`.
const SERVERS: &str = "
    const server = (text) => require('http').createServer((req, res) => res.end(text));
    const whenTold = (then) => {
        const look = setInterval(() => {
            if (!require('fs').existsSync(`${process.env.TEST_FOLDER}/go`)) return;
            clearInterval(look);
            then();
        }, 5);
    };
    const { spawn } = require('child_process');
";

fn with_servers(text: &str) -> Plan {
    source(&format!("{SERVERS}{text}"))
}

/// An app that starts a helper with a port of its own, and listens on `listen` when it is told.
fn with_helper(helper: u16, listen: &str) -> Plan {
    with_servers(&format!(
        "if (process.argv[2] === 'helper') {{
            server('helper').listen({helper}, '127.0.0.1', () => console.log('helper listens'));
        }} else {{
            spawn(process.execPath, [__filename, 'helper'], {{ stdio: 'inherit' }});
            whenTold(() => server('app').listen({listen}));
        }}"
    ))
}

fn warnings(site: &Site) -> Vec<String> {
    let log = site.log();
    let warned = log.iter().filter(|line| line["event"] == "hostler" && line["level"] == "warn");
    warned.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

async fn answer_on(port: u16) -> String {
    client(([127, 0, 0, 1], port).into()).await.get("/").await.text()
}

/// The app listens at last: it gets the requests, and the helper its own port, which one warning says.
async fn gives_way(site: Site, helper: u16) {
    site.touch("go");
    eventually("the app answers", async || (site.get("/").await.body == b"app").then_some(())).await;
    let app = site.pid_of(1).await;
    let told =
        site.logged(&format!("listened on port {helper} before process {app} listened on port ")).await;
    assert!(
        told.contains(&format!(
            "listens on 127.0.0.1:{helper} directly. To rule this out, set the app's port: --port"
        )),
        "{told}"
    );
    assert_eq!(answer_on(helper).await, "helper");
    assert_eq!(warnings(&site).len(), 1, "{:?}", warnings(&site));
    assert_eq!(site.workers().await[0]["restarts"], 0);
    site.stop().await;
}

#[tokio::test]
async fn a_helper_process_that_listens_first_gets_no_requests_and_its_own_port_when_the_app_listens() {
    for listen in ["process.env.PORT", "3000"] {
        let port = held_port();
        let helper = port.address().port();
        let site = with_helper(helper, listen).start().await;
        let told = site.logged("which the app's command has started, listens on port ").await;
        assert!(told.starts_with(&format!("{helper}; Hostler waits 5.0 s for the process ")), "{told}");
        assert_eq!(site.workers().await[0]["state"], "booting");
        gives_way(site, helper).await;
    }
}

#[tokio::test]
async fn a_helper_process_gives_way_to_an_app_that_listens_long_after_it() {
    let port = held_port();
    let helper = port.address().port();
    let plan = with_helper(helper, "process.env.PORT").option("pools.app.start_timeout=6s");
    let site = plan.started().await;
    site.get("/").await.assert_ok("helper");
    gives_way(site, helper).await;
}

#[tokio::test]
async fn a_helper_process_of_an_app_behind_npm_gives_way() {
    let port = held_port();
    let helper = port.address().port();
    let plan = with_helper(helper, "3000");
    std::fs::write(plan.folder().join("package.json"), r#"{"scripts":{"start":"node app.cjs"}}"#).unwrap();
    let site = plan.runs("npm start").start().await;
    site.printed("helper listens").await;
    gives_way(site, helper).await;
}

#[tokio::test]
async fn with_the_port_of_the_app_a_helper_process_keeps_its_own() {
    let port = held_port();
    let helper = port.address().port();
    let site = with_helper(helper, "3000").option("pools.app.port=3000").start().await;
    site.printed("helper listens").await;
    assert_eq!(answer_on(helper).await, "helper");
    site.touch("go");
    site.is_ready().await;
    site.get("/").await.assert_ok("app");
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_another_script_starts_waits_only_once() {
    let site = with_servers(
        "if (process.argv[2] === 'app') server('app').listen(3000);
        else spawn(process.execPath, [__filename, 'app'], { stdio: 'inherit' });",
    );
    let site = site.option("pools.app.start_timeout=6s").started().await;
    for _ in 0..2 {
        site.get("/").await.assert_ok("app");
        proc::kill(site.pid_of(1).await);
    }
    site.get("/").await.assert_ok("app");
    let log = site.log();
    let waits =
        log.iter().filter(|line| line["text"].as_str().is_some_and(|text| text.contains("; Hostler waits ")));
    assert_eq!(waits.count(), 1);
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_another_script_starts_in_a_group_of_its_own_is_served() {
    let site = with_servers(
        "if (process.argv[2] === 'app') server('app').listen(3000);
        else spawn(process.execPath, [__filename, 'app'], { stdio: 'inherit', detached: true });",
    );
    let site = site.option("pools.app.start_timeout=6s").started().await;
    site.get("/").await.assert_ok("app");
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_ignores_port_is_told_of_it_where_its_port_is_in_use() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let app = format!("server('app').listen({port}, '127.0.0.1');");
    let told = format!(
        "the port {port} is in use by another process, perhaps an older worker of this app. If it is the app's port: "
    );
    let site = with_servers(&app).option("pools.app.bind=port").start().await;
    site.logged(&format!("{told}the app must listen on the PORT of its environment; ")).await;
    let site = with_servers(&app).option("pools.app.env={PORT=\"3000\"}").start().await;
    site.logged(&format!("{told}let the app listen on the PORT of its environment, or set port = {port} "))
        .await;
}

#[tokio::test]
async fn an_app_that_looks_for_free_ports_first_answers_on_its_own() {
    for listen in ["3000", "process.env.PORT"] {
        for probed in ["0", "3300"] {
            let site = with_servers(&format!(
                "const probe = require('net').createServer().listen({probed}, () => probe.close(() => server('app').listen({listen})));"
            ));
            let site = site.started().await;
            site.get("/").await.assert_ok("app");
            assert_eq!(proc::tcp_ports(&proc::group_of(site.pid_of(1).await)), [0; 0]);
            assert_eq!(warnings(&site), [""; 0]);
            site.stop().await;
        }
    }
}

#[tokio::test]
async fn a_plain_tcp_server_or_one_on_port_0_gives_way_to_an_http_server_on_a_fixed_port() {
    let port = held_port();
    let number = port.address().port();
    for other in [
        format!("require('net').createServer((socket) => socket.end('mqtt')).listen({number}, '127.0.0.1')"),
        "server('internal').listen(0, '127.0.0.1')".to_owned(),
    ] {
        let site = with_servers(&format!(
            "const other = {other}; other.on('listening', () => console.log('port', other.address().port)); whenTold(() => server('app').listen(3000));"
        ));
        let site = site.started().await;
        site.touch("go");
        eventually("the app answers", async || (site.get("/").await.body == b"app").then_some(())).await;
        let printed = site.printed("port ").await;
        let own: u16 = printed["text"].as_str().unwrap().trim_start_matches("port ").parse().unwrap();
        site.logged(&format!("the app listens on 127.0.0.1:{own} directly, not through Hostler, because Hostler uses its server on port 3000")).await;
        assert_eq!(proc::tcp_ports(&proc::group_of(site.pid_of(1).await)), [own]);
        site.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_once_gave_way_to_the_app_gets_no_requests_when_a_worker_is_replaced() {
    let port = held_port();
    let metrics = port.address().port();
    let site = with_servers(&format!(
        "server('metrics').listen({metrics}, '127.0.0.1'); whenTold(() => server('app').listen(process.env.PORT));"
    ));
    let site = site.started().await;
    site.touch("go");
    eventually("the app answers", async || (site.get("/").await.body == b"app").then_some(())).await;
    std::fs::remove_file(site.file("go")).unwrap();
    let boot = async {
        site.logged(&format!("the app listens on port {metrics}; Hostler waits up to ")).await;
        site.get("/").await.assert_ok("app");
        site.touch("go");
    };
    let (restart, ()) = tokio::join!(site.command(&["restart", "app"]), boot);
    restart.assert_exit(0);
    site.get("/").await.assert_ok("app");
    site.stop().await;
}

#[tokio::test]
async fn a_second_port_that_is_in_use_is_named_where_a_worker_dies_of_it() {
    let port = held_port();
    let second = port.address().port();
    let app = format!("server('app').listen(3000); server('metrics').listen({second}, '127.0.0.1');");
    let site = with_servers(&app).workers(2).start().await;
    site.logged(&format!(
        "exit code 1 before it was ready: the port {second} is in use, probably by another worker of this app. It is a second port of \
         the app: set workers = 1, or let each worker listen on the port + NODE_APP_INSTANCE. In an upgrade, the workers of the old Hostler \
         still have their ports: let the app go on without this port; restarts in "
    ))
    .await;
    site.get("/").await.assert_ok("app");
    site.stop().await;
}

#[tokio::test]
async fn a_port_that_another_program_uses_is_named() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let second = taken.local_addr().unwrap().port();
    let app = format!("server('app').listen(3000); server('metrics').listen({second}, '127.0.0.1');");
    let site = with_servers(&app).start().await;
    site.logged(&format!(
        "before it was ready: the port {second} is in use by another process, perhaps an older worker of this app; restarts at once"
    ))
    .await;
}
