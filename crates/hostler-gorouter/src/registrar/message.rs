//! The parser of registrations from NATS. Knows no registry.
//!
//! Each field may be missing or null. Unknown fields are ignored. A wrong type makes the whole message invalid.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A registration as the client wrote it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Registration {
    #[serde(deserialize_with = "nullable")]
    pub host: String,
    #[serde(deserialize_with = "nullable")]
    pub port: u16,
    #[serde(deserialize_with = "nullable")]
    pub tls_port: u16,
    #[serde(deserialize_with = "nullable")]
    pub uris: Vec<Nullable<String>>,
    #[serde(deserialize_with = "nullable")]
    pub app: String,
    #[serde(deserialize_with = "nullable")]
    pub private_instance_id: String,
    #[serde(deserialize_with = "nullable")]
    pub private_instance_index: String,
    #[serde(deserialize_with = "nullable")]
    pub availability_zone: String,
    #[serde(deserialize_with = "nullable")]
    pub isolation_segment: String,
    #[serde(deserialize_with = "nullable")]
    pub protocol: String,
    #[serde(deserialize_with = "nullable")]
    pub route_service_url: String,
    #[serde(deserialize_with = "nullable")]
    pub server_cert_domain_san: String,
    #[serde(deserialize_with = "nullable")]
    pub stale_threshold_in_seconds: i64,
    /// Only checked for its type.
    #[serde(deserialize_with = "nullable")]
    pub endpoint_updated_at_ns: i64,
    #[serde(deserialize_with = "nullable")]
    pub tags: BTreeMap<String, Nullable<String>>,
    #[serde(deserialize_with = "options")]
    pub options: Options,
}

/// The `options` of a registration.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Options {
    #[serde(deserialize_with = "nullable")]
    pub loadbalancing: String,
}

/// A value. JSON null is the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nullable<T>(pub T);

impl<'de, T: Default + Deserialize<'de>> Deserialize<'de> for Nullable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        nullable(deserializer).map(Self)
    }
}

fn nullable<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn options<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Options, D::Error> {
    let written: Option<Box<RawValue>> = Option::deserialize(deserializer)?;
    let Some(written) = written else { return Ok(Options::default()) };
    if is_list(written.get().as_bytes()) {
        return Err(D::Error::custom("options is a list and not an object"));
    }
    serde_json::from_str(written.get()).map_err(D::Error::custom)
}

/// Why a message is ignored as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// It is not JSON, or a value has a wrong type.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It is a list. Serde takes one for the fields of a struct in their order.
    #[error("it is a list and not an object")]
    List,
    /// It has no host or no port.
    #[error("it has no host or no port")]
    NoAddress,
    /// Its route service has no HTTPS URL.
    #[error("route_service_url does not begin with https")]
    RouteService,
}

impl Registration {
    pub fn parse(payload: &[u8]) -> Result<Self, Invalid> {
        if is_list(payload) {
            return Err(Invalid::List);
        }
        let mut message = parsed(payload)?;
        if let Some(address) = bracketed(&message.host) {
            message.host = address;
        }
        if message.host.is_empty() || message.chosen_port() == 0 {
            return Err(Invalid::NoAddress);
        }
        let service = &message.route_service_url;
        if !service.is_empty() && !service.starts_with("https") {
            return Err(Invalid::RouteService);
        }
        Ok(message)
    }

    /// The port for TLS if there is one, else the plain one.
    pub fn chosen_port(&self) -> u16 {
        if self.has_tls() { self.tls_port } else { self.port }
    }

    pub fn has_tls(&self) -> bool {
        self.tls_port != 0
    }
}

/// A key that comes twice counts as its last value, as in Go's JSON. Serde refuses it.
fn parsed(payload: &[u8]) -> Result<Registration, serde_json::Error> {
    serde_json::from_slice(payload).or_else(|why| {
        let last: serde_json::Value = serde_json::from_slice(payload)?;
        serde_json::from_str(&last.to_string()).map_err(|_| why)
    })
}

fn is_list(json: &[u8]) -> bool {
    json.trim_ascii_start().starts_with(b"[")
}

/// The IPv6 address in brackets, as some clients write their host.
fn bracketed(host: &str) -> Option<String> {
    let inner = host.strip_prefix('[')?.strip_suffix(']')?;
    inner.parse::<Ipv6Addr>().ok().map(|_| inner.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_may_be_missing_null_or_unknown() {
        let full = br#"{"host":"10.0.0.1","port":80,"uris":["a.test",null],"tags":{"component":"c","x":null},"dea":1,
            "options":{"loadbalancing":"round-robin","hash_header":"x"},"allowed_sources":[{}]}"#;
        let message = Registration::parse(full).unwrap();
        assert_eq!(message.uris, [Nullable("a.test".into()), Nullable(String::new())]);
        assert_eq!(message.tags["component"].0, "c");
        let nulls =
            br#"{"host":"a","port":1,"uris":null,"tags":null,"app":null,"options":null,"tls_port":null,
            "stale_threshold_in_seconds":null,"protocol":null}"#;
        assert_eq!(
            Registration::parse(nulls).unwrap(),
            Registration { host: "a".into(), port: 1, ..Default::default() }
        );
    }

    #[test]
    fn a_key_that_comes_twice_counts_as_its_last_value() {
        let twice =
            br#"{"host":"a","port":80,"host":"b","options":{"loadbalancing":"x","loadbalancing":"y"}}"#;
        let message = Registration::parse(twice).unwrap();
        assert_eq!((message.host, message.options.loadbalancing), ("b".to_owned(), "y".to_owned()));
        let wrong = Registration::parse(br#"{"host":"a","port":80,"port":"81"}"#).unwrap_err();
        assert!(wrong.to_string().contains("duplicate field `port`"), "{wrong}");
    }

    #[test]
    fn an_ipv6_address_may_be_in_brackets() {
        for (host, address) in [("[::1]", "::1"), ("::1", "::1"), ("[a]", "[a]"), ("[::1", "[::1")] {
            let message = format!(r#"{{"host":"{host}","port":1}}"#);
            assert_eq!(Registration::parse(message.as_bytes()).unwrap().host, address);
        }
    }

    #[test]
    fn a_wrong_type_a_missing_address_or_an_unsafe_route_service_makes_the_message_invalid() {
        let cases = [
            "not json",
            "",
            "[]",
            r#" ["10.0.0.1", 80, 0, ["x.test"]]"#,
            r#"{"host":"a","port":1,"options":["round-robin"]}"#,
            r#"{"host":"a","port":"3000","uris":["x.test"]}"#,
            r#"{"host":"a","port":70000}"#,
            r#"{"host":"a","port":1,"uris":"x.test"}"#,
            r#"{"host":"a","port":1,"endpoint_updated_at_ns":"now"}"#,
            r#"{"host":"a","port":1} trailing"#,
            r#"{"host":"","port":1}"#,
            r#"{"host":"a","port":0}"#,
            r#"{"host":"a","port":1,"route_service_url":"http://x"}"#,
        ];
        for text in cases {
            assert!(Registration::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_port_for_tls_wins_over_the_other() {
        let message = Registration::parse(br#"{"host":"a","port":80,"tls_port":443}"#).unwrap();
        assert_eq!((message.chosen_port(), message.has_tls()), (443, true));
    }
}
