//! Certificates: which one is shown, what happens when files change, and client certificates.

use hostler_testkit::{
    IssuedCertificate, authority, client, eventually, self_signed, tls_clients, tls_clients_of,
    tls_clients_with, upstream,
};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use rustls::version::TLS12;

use crate::site;
use crate::tls::{ONE, failed, secured, started, write};

#[tokio::test]
async fn a_certificate_is_chosen_by_name_exact_before_wildcard_else_the_first() {
    let (trust, app) = (authority(), upstream().start().await);
    let plan = site(
        "[tls]
        listen = '127.0.0.1:0'
        certificates = [
            { cert = 'first.pem', key = 'first.key' },
            { cert = 'wild.pem', key = 'wild.key' },
            { cert = 'exact.pem', key = 'exact.key' },
        ]",
    );
    let first = trust.vouch_for(&["a.test", "other.test"]);
    let wild = trust.vouch_for(&["*.shop.test", "shop.test"]);
    let exact = trust.vouch_for(&["www.shop.test"]);
    for (name, certificate) in [("first", &first), ("wild", &wild), ("exact", &exact)] {
        write(plan.folder(), name, certificate);
    }
    let site = plan.with("app", &app).start().await;
    for (host, certificate) in [
        ("a.test", &first),
        ("other.test", &first),
        ("shop.test", &wild),
        ("img.shop.test", &wild),
        ("www.shop.test", &exact),
        ("WWW.Shop.TEST", &exact),
    ] {
        let client = tls_clients(&trust).connect(host, site.tls_address()).await;
        assert!(client.was_shown(certificate), "{host}");
    }
    // A wildcard stands for one label only: the first certificate is shown, and the client does not accept it.
    assert!(tls_clients(&trust).try_connect("a.b.shop.test", site.tls_address()).await.is_err());
    failed(&site, "refused_by_client").await;
}

#[tokio::test]
async fn with_strict_names_a_handshake_for_an_unknown_name_is_refused() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, &format!("{ONE}\nstrict_sni = true"), &app).await;
    let refused = tls_clients(&trust).try_connect("b.test", site.tls_address()).await;
    assert!(refused.err().unwrap().to_string().contains("AccessDenied"));
    tls_clients(&trust).connect("a.test", site.tls_address()).await.get("/").await.assert_ok("ok");
    failed(&site, "unknown_name").await;
}

#[tokio::test]
async fn changed_certificate_files_are_used_for_new_handshakes_only() {
    let trust = authority();
    let app = upstream().holds_requests().start().await;
    let site = started(&trust, ONE, &app).await;
    let (clients, others) = (tls_clients(&trust), tls_clients(&trust));
    let mut running = clients.connect("a.test", site.tls_address()).await;
    running.send("GET /running HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    app.has_seen(1).await;
    let mut before = clients.connect("a.test", site.tls_address()).await;
    before.send("GET / HTTP/1.1\r\n\r\n").await;
    before.answer().await.assert_status(400);

    let new = trust.vouch_for(&["a.test", "new.test"]);
    write(site.folder(), "a", &new);
    eventually("the new certificate", async || {
        let client = others.try_connect("new.test", site.tls_address()).await.ok()?;
        client.was_shown(&new).then_some(())
    })
    .await;
    site.says("a.pem for a.test, new.test, valid until").await;
    let mut back = clients.connect("a.test", site.tls_address()).await;
    assert!(back.is_resumed(), "a session is resumed with any certificate of the server");
    app.release_all();
    back.get("/").await.assert_ok("/");
    running.answer().await.assert_ok("/running");
    running.get("/again").await.assert_ok("/again");
    assert_eq!(site.status().await["certificates"][0]["names"][1], "new.test");
}

#[tokio::test]
async fn bad_certificate_files_are_reported_once_and_change_nothing() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let new = trust.vouch_for(&["a.test"]);
    std::fs::write(site.folder().join("a.pem"), &new.cert).unwrap();
    let line = site.says("is not the key of the first certificate in").await;
    assert!(line.contains("a.key: ") && line.contains("the certificates that were read before stay in use"));
    let client = tls_clients(&trust).connect("a.test", site.tls_address()).await;
    assert!(!client.was_shown(&new));
    std::fs::write(site.folder().join("a.key"), &new.key).unwrap();
    eventually("the new certificate", async || {
        tls_clients(&trust).connect("a.test", site.tls_address()).await.was_shown(&new).then_some(())
    })
    .await;
    let told = site.lines().iter().filter(|line| line.contains("is not the key")).count();
    assert_eq!(told, 1);
}

#[tokio::test]
async fn a_bad_certificate_file_does_not_keep_another_certificate_from_being_renewed() {
    let (trust, app) = (authority(), upstream().start().await);
    let plan = site(
        "[tls]
        listen = '127.0.0.1:0'
        certificates = [{ cert = 'bad.pem', key = 'bad.key' }, { cert = 'a.pem', key = 'a.key' }]",
    );
    let (bad, old, new) =
        (trust.vouch_for(&["bad.test"]), trust.vouch_for(&["a.test"]), trust.vouch_for(&["a.test"]));
    write(plan.folder(), "bad", &bad);
    write(plan.folder(), "a", &old);
    let site = plan.with("app", &app).start().await;
    std::fs::write(site.folder().join("bad.pem"), "nothing").unwrap();
    site.says("bad.pem: it has no certificate in PEM form").await;
    write(site.folder(), "a", &new);
    eventually("the new certificate", async || {
        tls_clients(&trust).connect("a.test", site.tls_address()).await.was_shown(&new).then_some(())
    })
    .await;
    assert!(tls_clients(&trust).connect("bad.test", site.tls_address()).await.was_shown(&bad));
    // Each bad file is named.
    std::fs::write(site.folder().join("a.pem"), "nothing").unwrap();
    site.says("/a.pem: it has no certificate in PEM form").await;
    assert!(tls_clients(&trust).connect("a.test", site.tls_address()).await.was_shown(&new));
}

#[tokio::test]
async fn a_changed_file_with_a_broken_chain_is_used_with_a_warning() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let IssuedCertificate { cert, key } = trust.vouch_for(&["a.test"]);
    let new = IssuedCertificate { cert: [cert, authority().cert()].concat(), key };
    write(site.folder(), "a", &new);
    let line = site.says("certificate 2 did not issue certificate 1").await;
    assert!(line.contains("a.pem: "), "{line}");
    assert!(tls_clients(&trust).connect("a.test", site.tls_address()).await.was_shown(&new));
}

#[tokio::test]
async fn certificates_that_could_not_be_read_for_want_of_descriptors_are_read_later() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let process = Pid::from_raw(site.pid() as i32);
    let most = getrlimit(Resource::Nofile).maximum;
    prlimit(process, Resource::Nofile, Rlimit { current: Some(1), maximum: most }).unwrap();
    let new = trust.vouch_for(&["a.test"]);
    write(site.folder(), "a", &new);
    site.says("a.pem: Too many open files").await;
    prlimit(process, Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    eventually("the new certificate", async || {
        tls_clients(&trust).connect("a.test", site.tls_address()).await.was_shown(&new).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_reload_reads_certificates_again_and_refuses_bad_ones() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let pool = format!("[pools.app]\nmembers = ['{}']\n", app.address());
    site.rewrite(&format!("{ONE}\n{pool}"));
    site.command(&["reload"]).await.assert_exit(0);
    let new = eventually("a reload that is the first to see new ones", async || {
        let new = trust.vouch_for(&["a.test"]);
        write(site.folder(), "a", &new);
        // The files are also checked periodically, which may happen at this moment.
        let output = site.command(&["reload"]).await;
        let said = output.assert_exit(0).stdout.contains("tls: certificates read again");
        said.then_some(new)
    })
    .await;
    assert!(tls_clients(&trust).connect("a.test", site.tls_address()).await.was_shown(&new));

    std::fs::write(site.folder().join("a.key"), "nothing").unwrap();
    let refused = "a.key: it has no private key in PEM form";
    site.command(&["reload"]).await.assert_exit(1).assert_complains(refused);
    assert!(tls_clients(&trust).connect("a.test", site.tls_address()).await.was_shown(&new));
}

#[tokio::test]
async fn a_reload_without_the_section_needs_no_files_of_certificates() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    for file in ["a.pem", "a.key"] {
        std::fs::remove_file(site.folder().join(file)).unwrap();
    }
    site.rewrite(&format!("pools.app.members = ['{}']", app.address()));
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("tls.listen: not applied yet; run `hostler upgrade`"), "{said}");
    tls_clients(&trust).connect("a.test", site.tls_address()).await.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn tls_settings_change_with_a_reload_and_listeners_with_an_upgrade() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let pool = format!("[pools.app]\nmembers = ['{}']\n", app.address());
    site.rewrite(&format!(
        "{}\nmin_version = '1.3'\nhsts = '1day'\n{pool}",
        ONE.replace("0.0.1:0", "0.0.2:0")
    ));
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(
        said.contains("tls.listen: not applied yet; run `hostler upgrade`")
            && said.contains("tls: min_version, hsts"),
        "{said}"
    );
    assert!(tls_clients_of(&TLS12, &trust).try_connect("a.test", site.tls_address()).await.is_err());
    let mut client = tls_clients(&trust).connect("a.test", site.tls_address()).await;
    client.get("/").await.assert_field("strict-transport-security", "max-age=86400");
    site.command(&["upgrade"]).await.assert_exit(0);
    site.says("listening on https://127.0.0.2:").await;
}

#[tokio::test]
async fn clients_must_send_certificates_where_required() {
    let (trust, known, app) = (authority(), authority(), upstream().start().await);
    let plan = secured(&trust, &format!("{ONE}\nclient_ca = 'ca.pem'"));
    std::fs::write(plan.folder().join("ca.pem"), known.cert()).unwrap();
    let site = plan.with("app", &app).start().await;
    let without = tls_clients(&trust);
    let mut client = without.connect("a.test", site.tls_address()).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    assert_eq!(client.refused().await, "");
    failed(&site, "no_client_certificate").await;
    let (stranger, friend) = (trust.vouch_for(&["me"]), known.vouch_for(&["me"]));
    let mut client = tls_clients_with(&stranger, &trust).connect("a.test", site.tls_address()).await;
    assert_eq!(client.refused().await, "");
    failed(&site, "bad_client_certificate").await;
    let clients = tls_clients_with(&friend, &trust);
    clients.connect("a.test", site.tls_address()).await.get("/").await.assert_ok("ok");
    let mut back = clients.connect("a.test", site.tls_address()).await;
    back.send("GET / HTTP/1.1\r\nHost: a.test\r\nClient-Cert: :bGll:\r\nClient-Cert-Chain: :bGll:\r\n\r\n")
        .await;
    back.answer().await.assert_ok("ok");
    assert!(back.is_resumed());
    let body: String = friend.cert.lines().filter(|line| !line.starts_with("-----")).collect();
    let requests = app.requests();
    assert_eq!(requests.len(), 2);
    for seen in requests {
        assert_eq!(seen.field("client-cert"), Some(format!(":{body}:")));
        assert_eq!(seen.field("client-cert-chain"), None);
    }
    // Without TLS there is no certificate, although the fields name one.
    site.send("GET / HTTP/1.1\r\nHost: a.test\r\nClient-Cert: :bGll:\r\n\r\n").await.assert_ok("ok");
    assert_eq!(app.requests()[2].field("client-cert"), None);
}

#[tokio::test]
async fn a_certificate_of_a_client_that_is_trusted_itself_is_accepted() {
    let (trust, app) = (authority(), upstream().start().await);
    let (known, stranger) = (self_signed(&["me"]), self_signed(&["me"]));
    let plan = secured(&trust, &format!("{ONE}\nclient_ca = 'ca.pem'"));
    std::fs::write(plan.folder().join("ca.pem"), &known.cert).unwrap();
    let site = plan.with("app", &app).start().await;
    let clients = tls_clients_with(&known, &trust);
    for is_resumed in [false, true] {
        let mut client = clients.connect("a.test", site.tls_address()).await;
        client.get("/").await.assert_ok("ok");
        assert_eq!(client.is_resumed(), is_resumed);
    }
    let mut client = tls_clients_with(&stranger, &trust).connect("a.test", site.tls_address()).await;
    assert_eq!(client.refused().await, "");
    failed(&site, "bad_client_certificate").await;
}

#[tokio::test]
async fn a_session_without_a_certificate_is_not_resumed_where_one_is_required() {
    let (trust, known, app) = (authority(), authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let clients = tls_clients(&trust);
    clients.connect("a.test", site.tls_address()).await.get("/").await.assert_ok("ok");
    std::fs::write(site.folder().join("ca.pem"), known.cert()).unwrap();
    let pool = format!("[pools.app]\nmembers = ['{}']\n", app.address());
    site.rewrite(&format!("{ONE}\nclient_ca = 'ca.pem'\n{pool}"));
    site.command(&["reload"]).await.assert_exit(0);
    let mut client = clients.connect("a.test", site.tls_address()).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    assert_eq!(client.refused().await, "");
    assert_eq!(app.requests().len(), 1);
}

#[tokio::test]
async fn a_reload_with_other_authorities_ends_connections_over_tls_and_no_others() {
    let (trust, old, new) = (authority(), authority(), authority());
    let app = upstream().holds_requests().start().await;
    let config = format!("{ONE}\nclient_ca = 'ca.pem'");
    let plan = secured(&trust, &config);
    std::fs::write(plan.folder().join("ca.pem"), old.cert()).unwrap();
    let site = plan.with("app", &app).start().await;
    let clients = tls_clients_with(&old.vouch_for(&["me"]), &trust);
    let mut busy = clients.connect("a.test", site.tls_address()).await;
    busy.send("GET /busy HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut other = clients.connect("a.test", site.tls_address()).await;
    let mut plain = client(site.address()).await;
    app.has_seen(1).await;

    let pool = format!("[pools.app]\nmembers = ['{}']\n", app.address());
    site.rewrite(&format!("{config}\nhsts = '1day'\n{pool}"));
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("tls: hsts changed") && !said.contains("open connections end"), "{said}");
    other.send("GET /other HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    app.has_seen(2).await;
    let mut idle = clients.connect("a.test", site.tls_address()).await;

    std::fs::write(site.folder().join("ca.pem"), new.cert()).unwrap();
    let said = site.command(&["reload"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("tls: open connections end"), "{said}");
    idle.assert_closed().await;
    app.release_all();
    for (client, path) in [(&mut busy, "/busy"), (&mut other, "/other")] {
        client.answer().await.assert_ok(path).assert_field("connection", "close");
        client.assert_closed().await;
    }
    plain.get("/plain").await.assert_ok("/plain").assert_no_field("connection");
    let mut back = clients.connect("a.test", site.tls_address()).await;
    assert_eq!(back.refused().await, "");
    failed(&site, "bad_client_certificate").await;
    let clients = tls_clients_with(&new.vouch_for(&["me"]), &trust);
    clients.connect("a.test", site.tls_address()).await.get("/new").await.assert_ok("/new");
}

#[tokio::test]
async fn a_reload_with_other_authorities_ends_connections_with_http2() {
    let (trust, known, app) = (authority(), authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    let mut client = tls_clients(&trust).speaking(&["h2"]).connect("a.test", site.tls_address()).await;
    // The preface, and settings without any.
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    std::fs::write(site.folder().join("ca.pem"), known.cert()).unwrap();
    let pool = format!("[pools.app]\nmembers = ['{}']\n", app.address());
    site.rewrite(&format!("{ONE}\nclient_ca = 'ca.pem'\n{pool}"));
    site.command(&["reload"]).await.assert_exit(0);
    let (bytes, _) = client.rest().await;
    let goaway = "\0\0\x08\x07\0\0\0\0\0\x7f";
    assert!(bytes.contains(goaway), "no GOAWAY: {bytes:?}");
}

#[tokio::test]
async fn a_connection_from_before_a_reload_tells_members_of_no_certificate() {
    let (trust, known, app) = (authority(), authority(), upstream().start().await);
    // A client that is no proxy is never believed.
    let trusting = format!("server.trusted_proxies = ['127.0.0.1']\n{ONE}");
    let site = started(&trust, &trusting, &app).await;
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nClient-Cert: :bGll:\r\n\r\n";
    let mut plain = client(site.address()).await;
    plain.send(request).await;
    plain.answer().await.assert_ok("ok");
    std::fs::write(site.folder().join("ca.pem"), known.cert()).unwrap();
    let pool = format!("[pools.app]\nmembers = ['{}']\n", app.address());
    site.rewrite(&format!("{trusting}\nclient_ca = 'ca.pem'\n{pool}"));
    site.command(&["reload"]).await.assert_exit(0);
    plain.send(request).await;
    plain.answer().await.assert_ok("ok");
    let told: Vec<_> = app.requests().iter().map(|seen| seen.field("client-cert")).collect();
    assert_eq!(told, [Some(":bGll:".to_owned()), None]);
}
