//! The address of a NATS server. Never shows a password in it.

use std::fmt;
use std::str::FromStr;

use async_nats::ServerAddr;

use super::one_string;

/// `nats://host:port`, or `tls://host:port` for TLS. The default port is 4222.
#[derive(Clone, PartialEq)]
pub struct NatsAddress(pub ServerAddr);

impl FromStr for NatsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Without the text itself, because it may contain a password.
        let wrong = |why: &str| format!("not an address such as \"nats://10.0.0.4:4222\": {why}");
        let address = ServerAddr::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(address.scheme(), "nats" | "tls") {
            return Err(wrong("it must begin with nats:// or tls://"));
        }
        if address.host().is_empty() {
            return Err(wrong("the host is missing"));
        }
        Ok(Self(address))
    }
}

impl fmt::Display for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(address) = self;
        match address.host() {
            host if host.contains(':') => write!(f, "{}://[{host}]:{}", address.scheme(), address.port()),
            host => write!(f, "{}://{host}:{}", address.scheme(), address.port()),
        }
    }
}

impl fmt::Debug for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

one_string!(
    NatsAddress,
    kind: "address of a NATS server",
    expects: "the address of a NATS server, such as \"nats://10.0.0.4:4222\""
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_never_shown() {
        let address: NatsAddress = "nats://app:s3cret@10.0.0.4".parse().unwrap();
        assert_eq!(address.to_string(), "nats://10.0.0.4:4222");
        assert_eq!(format!("{address:?}"), "nats://10.0.0.4:4222");
        assert_eq!(address.0.password(), Some("s3cret"));
    }

    #[test]
    fn an_invalid_nats_server_is_refused_and_not_printed() {
        for text in ["http://app:s3cret@10.0.0.4", "ws://app:s3cret@a", "nats://app:s3cret@:x", "tls://"] {
            let why = text.parse::<NatsAddress>().unwrap_err();
            assert!(!why.contains("s3cret"), "{why}");
        }
    }
}
