//! Socket activation, as systemd does it: which socket becomes which listener, and that no client is refused during a restart.

use std::net::{SocketAddr, TcpListener, UdpSocket};

use hostler_testkit::{SitePlan, client, eventually, upstream};

use crate::site;

/// As systemd opens them: no process accepts yet.
fn socket() -> (TcpListener, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

fn listening_on(address: SocketAddr) -> SitePlan {
    site(&format!("server.listen = '{address}'\nserver.threads = 3"))
}

#[tokio::test]
async fn a_given_socket_is_the_listener_that_has_its_address() {
    let app = upstream().start().await;
    let (socket, address) = socket();
    let plan = listening_on(address).with("app", &app).given([socket.try_clone().unwrap()], "hostler.socket");
    let site = plan.start().await;
    site.says(&format!(r#"socket 3 (\"hostler.socket\") was passed by the parent process: {address}"#)).await;
    for _ in 0..20 {
        client(address).await.get("/").await.assert_ok("ok");
    }
    assert_eq!(site.addresses(), [address]);
}

#[tokio::test]
async fn clients_that_connect_between_two_hostlers_wait_in_a_given_socket() {
    let app = upstream().start().await;
    let (socket, address) = socket();
    let plan = || listening_on(address).with("app", &app).given([socket.try_clone().unwrap()], "");
    let mut first = plan().start().await;
    first.get("/").await.assert_ok("ok");
    first.terminate();
    assert_eq!(first.exit().await, 0);
    let mut waiting = client(address).await;
    waiting.send("GET /between HTTP/1.1\r\nHost: site.test\r\n\r\n").await;
    let _second = plan().start().await;
    waiting.answer().await.assert_ok("ok");
}

#[tokio::test]
async fn the_log_names_a_listener_that_cannot_accept_connections() {
    let app = upstream().start().await;
    let (socket, address) = socket();
    let plan = listening_on(address).with("app", &app).given([socket.try_clone().unwrap()], "");
    let site = plan.start().await;
    client(address).await.get("/").await.assert_ok("ok");
    // Another process has shut the socket down. A want of memory has the same effect.
    rustix::net::shutdown(&socket, rustix::net::Shutdown::Both).unwrap();
    site.says(&format!("{address}: Hostler cannot accept connections: ")).await;
}

#[tokio::test]
async fn a_given_socket_is_passed_to_a_successor() {
    let app = upstream().start().await;
    let (socket, address) = socket();
    let plan = listening_on(address).with("app", &app).given([socket], "hostler.socket");
    let mut site = plan.start().await;
    site.command(&["upgrade"]).await.assert_exit(0);
    assert_eq!(site.exit().await, 0);
    client(address).await.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_given_socket_that_is_named_after_a_key_is_for_that_key() {
    let app = upstream().start().await;
    let ((admin, at_admin), (plain, at_plain)) = (socket(), socket());
    let plan = site("").with("app", &app).given([admin, plain], "server.admin:server.listen");
    let site = plan.start().await;
    assert_eq!((site.admin(), site.addresses()), (at_admin, [at_plain].as_slice()));
    site.get("/").await.assert_ok("ok");
    assert!(site.status().await["pools"].is_array());
}

#[tokio::test]
async fn a_given_socket_without_a_key_stops_the_start_with_an_error() {
    let (socket, address) = socket();
    let unknown = site("pools.app.members = ['127.0.0.1:1']").given([socket], "hostler.socket").ended().await;
    unknown.assert_exit(1).assert_complains(&format!(
        "LISTEN_FDS: socket 3 (\"hostler.socket\") listens on {address}, which is no address of server.listen, tls.listen or \
         server.admin; write it there, or name the key: FileDescriptorName=server.listen"
    ));
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = site("pools.app.members = ['127.0.0.1:1']").given([datagrams], "x").ended().await;
    other
        .assert_exit(1)
        .assert_complains("LISTEN_FDS: descriptor 3 (\"x\") is no listening TCP or Unix socket");
}

#[tokio::test]
async fn sockets_for_another_process_are_ignored_with_a_warning() {
    let app = upstream().start().await;
    let plan = site("").with("app", &app).descriptor(3, socket().0);
    let site = plan.env("LISTEN_FDS", "1").env("LISTEN_PID", "1").start().await;
    site.get("/").await.assert_ok("ok");
    let told = "warning: LISTEN_FDS: 1 sockets are for process 1, and this is process ";
    eventually("the warning", async || {
        site.complaints().iter().any(|line| line.starts_with(told)).then_some(())
    })
    .await;
}
