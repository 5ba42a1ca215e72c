//! The connection to NATS: over TLS, with a certificate and a password, which are in no log. Also with a login in the address.

use hostler_testkit::{authority, nats};

use crate::site;

#[tokio::test]
async fn nats_is_spoken_to_over_tls_with_a_certificate_and_a_password() {
    let trust = authority();
    let plan = nats().config(
        "authorization { user: hostler, password: s3cret }\n\
         tls { cert_file: cert.pem, key_file: key.pem, ca_file: ca.pem, verify: true }",
    );
    let own = trust.vouch_for(&["127.0.0.1"]);
    for (name, text) in
        [("ca.pem", trust.cert()), ("cert.pem", own.cert.clone()), ("key.pem", own.key.clone())]
    {
        std::fs::write(plan.folder().join(name), text).unwrap();
    }
    let Some(nats) = plan.start().await else { return };
    let config = |password: &str| {
        format!(
            "[registrar]\nnats = \"tls://{}\"\nuser = \"hostler\"\npassword = \"{password}\"\nstart_delay = \"0s\"\n\
             nats_tls = {{ ca = \"ca.pem\", cert = \"cert.pem\", key = \"key.pem\" }}\n",
            nats.address()
        )
    };
    for (password, said) in [("s3cret", "nats: connected"), ("wr0ng", "nats: no connection to ")] {
        let plan = site(&config(password));
        let shown = trust.vouch_for(&["router.internal"]);
        for (name, text) in [("ca.pem", trust.cert()), ("cert.pem", shown.cert), ("key.pem", shown.key)] {
            std::fs::write(plan.folder().join(name), text).unwrap();
        }
        let site = plan.start().await;
        site.says(said).await;
        assert!(site.lines().iter().all(|line| !line.contains(password)), "no secret is told");
    }
}

#[tokio::test]
async fn the_login_may_be_in_the_address_of_the_server() {
    let plan = nats().config("authorization { user: hostler, password: \"s3cr:et\" }");
    let Some(nats) = plan.start().await else { return };
    let address = nats.address();
    let config =
        format!("[registrar]\nnats = \"nats://hostler:s3cr%3Aet@{address}\"\nstart_delay = \"0s\"\n");
    let site = site(&config).start().await;
    site.says("nats: connected").await;
    assert!(site.lines().iter().all(|line| !line.contains("s3cr")), "no secret is told");
}
