//! The messages of the announcement: registrations of our pools, and the greetings of routers. Knows no connection.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use hostler_config::Advertise;

/// Our side of every message.
pub(super) struct Sender {
    at: Advertise,
    instance: String,
    zone: String,
}

/// A registration as Hostler's and Cloud Foundry's registrars read it.
#[derive(Serialize)]
struct OwnRegistration<'a> {
    uris: &'a [String],
    /// An IPv6 address is in brackets, because gorouter puts the port behind it as it is.
    host: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_port: Option<u16>,
    #[serde(skip_serializing_if = "str::is_empty")]
    server_cert_domain_san: &'a str,
    private_instance_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    availability_zone: &'a str,
    tags: Tags<'a>,
}

#[derive(Serialize)]
struct Tags<'a> {
    component: &'static str,
    pool: &'a str,
}

impl Sender {
    /// The instance id is made once and stays the same for the life of the process.
    pub fn new(at: Advertise, zone: String) -> Self {
        Self { at, zone, instance: uuid::Uuid::new_v4().to_string() }
    }

    /// The payload of a registration or an unregistration.
    pub fn payload(&self, pool: &str, uris: &[String]) -> Bytes {
        let Advertise { host, port, tls } = &self.at;
        let message = OwnRegistration {
            uris,
            host: if host.contains(':') { format!("[{host}]").into() } else { host.into() },
            port: (!tls).then_some(*port),
            tls_port: tls.then_some(*port),
            server_cert_domain_san: if *tls { host } else { "" },
            private_instance_id: &self.instance,
            availability_zone: &self.zone,
            tags: Tags { component: "hostler", pool },
        };
        serde_json::to_vec(&message).unwrap_or_default().into()
    }
}

/// The message of a router (`router.start`, and its answer to `router.greet`). Other fields are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct GreetingStart {
    minimum_register_interval_in_seconds: u64,
}

/// The interval at which the router wants registrations, if the message has one.
pub(super) fn wanted_interval(payload: &[u8]) -> Option<Duration> {
    let start: GreetingStart = serde_json::from_slice(payload).ok()?;
    let seconds = start.minimum_register_interval_in_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_announced_with_its_effective_port() {
        let at = |tls| Advertise { host: "10.0.0.5".into(), port: 8080, tls };
        let sender = |tls| Sender { instance: "i".into(), ..Sender::new(at(tls), String::new()) };
        let uris = ["a.test".to_owned(), "b.test/x".to_owned()];
        assert_eq!(
            sender(false).payload("web", &uris),
            r#"{"uris":["a.test","b.test/x"],"host":"10.0.0.5","port":8080,"private_instance_id":"i","tags":{"component":"hostler","pool":"web"}}"#
        );
        let secure = sender(true).payload("web", &uris);
        let secure = String::from_utf8_lossy(&secure);
        assert!(
            secure.contains(r#""tls_port":8080,"server_cert_domain_san":"10.0.0.5""#)
                && !secure.contains(r#""port""#)
        );
    }

    #[test]
    fn an_ipv6_address_is_announced_in_brackets_but_not_as_the_name_in_the_certificate() {
        let at = Advertise { host: "2001:db8::5".into(), port: 8443, tls: true };
        let said = Sender::new(at, String::new()).payload("web", &["a.test".to_owned()]);
        let said = String::from_utf8_lossy(&said);
        let expected = r#""host":"[2001:db8::5]","tls_port":8443,"server_cert_domain_san":"2001:db8::5""#;
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn an_invalid_interval_is_ignored() {
        let said = |text: &str| wanted_interval(text.as_bytes());
        let full = r#"{"id":"3-a","hosts":["10.9.9.9"],"minimumRegisterIntervalInSeconds":5,"pruneThresholdInSeconds":120}"#;
        assert_eq!(said(full), Some(Duration::from_secs(5)));
        for odd in [
            "{}",
            "",
            "[]",
            r#"{"minimumRegisterIntervalInSeconds":0}"#,
            r#"{"minimumRegisterIntervalInSeconds":-1}"#,
        ] {
            assert_eq!(said(odd), None, "{odd}");
        }
    }
}
