//! Registrations that come and go while a successor takes over.

use std::task::Poll;

use hostler_testkit::{nats, upstream};
use serde_json::Value;

use crate::registrar::{client, lists, registration, say, site_on};
use crate::site;

#[tokio::test]
async fn no_message_is_lost_while_a_successor_takes_over() {
    let Some(nats) = nats().start().await else { return };
    let (app, site) = (upstream().start().await, site_on(&nats, "").await);
    let client = client(&nats).await;
    let names = |kind: &str| (0..200).map(|number| format!("{kind}{number}.test")).collect::<Vec<_>>();
    let (old, new) = (names("old"), names("new"));
    let all: Vec<&str> = old.iter().map(String::as_str).collect();
    say(&client, "router.register", &registration(&app, &all)).await;
    lists(&site, "all hosts", |routes| all.iter().all(|host| routes[host][0].is_object())).await;
    let mut upgrade = Box::pin(site.command(&["upgrade"]));
    let mut said = 0;
    // One by one, each when the one before is listed: so some are said before, while and after the successor subscribes.
    let output = loop {
        if said == old.len() {
            break upgrade.await;
        }
        if let Poll::Ready(output) = futures_util::poll!(&mut upgrade) {
            break output;
        }
        let (leaves, comes) = (&old[said], &new[said]);
        say(&client, "router.unregister", &registration(&app, &[leaves])).await;
        say(&client, "router.register", &registration(&app, &[comes])).await;
        lists(&site, "the one that has come", |routes| routes[comes][0].is_object()).await;
        said += 1;
    };
    output.assert_exit(0);
    lists(&site, "what was said", |routes| {
        let is_listed = |host: &String| routes[host][0].is_object();
        let is_right = |(at, (old, new))| is_listed(old) == (at >= said) && is_listed(new) == (at < said);
        old.iter().zip(&new).enumerate().all(is_right)
    })
    .await;
    assert!(said > 0, "nothing was said during the upgrade");
}

#[tokio::test]
async fn a_route_that_has_lost_its_last_member_is_kept_by_a_successor() {
    let Some(nats) = nats().start().await else { return };
    let (app, site) = (upstream().start().await, site_on(&nats, "keep_empty = \"1h\"").await);
    let client = client(&nats).await;
    let message = registration(&app, &["*.empty.test/api%20b"]);
    say(&client, "router.register", &message).await;
    lists(&site, "the member", |routes| routes["*.empty.test/api%20b"][0].is_object()).await;
    say(&client, "router.unregister", &message).await;
    let is_empty = |routes: &Value| routes["*.empty.test/api%20b"].as_array().is_some_and(Vec::is_empty);
    lists(&site, "no member", is_empty).await;
    let get = "GET /api%20b HTTP/1.1\r\nHost: a.empty.test\r\nConnection: close\r\n\r\n";
    let before = site.send(get).await;
    site.command(&["upgrade"]).await.assert_exit(0);
    lists(&site, "still no member", is_empty).await;
    let after = site.send(get).await;
    assert_eq!((before.status, after.status), (503, 503), "{}", after.text());
    say(&client, "router.register", &message).await;
    lists(&site, "the member again", |routes| routes["*.empty.test/api%20b"][0].is_object()).await;
    site.send(get).await.assert_status(200);
}

#[tokio::test]
async fn an_upgrade_needs_no_temp_dir_that_a_reload_has_replaced() {
    let Some(nats) = nats().start().await else { return };
    let config = |folder: &str| {
        format!(
            "server.temp_dir = '{folder}'\nregistrar = {{ nats = '{}', start_delay = '0s' }}\n\
             routes = [{{ match = 'own.test', respond = 'own' }}]\n",
            nats.url()
        )
    };
    let plan = site(&config("old"));
    let folder = plan.folder().to_owned();
    for name in ["old", "new"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    let site = plan.start().await;
    site.rewrite(&config("new"));
    site.command(&["reload"]).await.assert_exit(0);
    std::fs::remove_dir(folder.join("old")).unwrap();
    site.command(&["upgrade"]).await.assert_exit(0);
}
