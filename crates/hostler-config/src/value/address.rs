//! Addresses: of listeners, of members and of trusted proxies. Parsed here, looked up elsewhere.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use super::one_string;

/// `host:port`, `[v6]:port`, or `:port` for every address of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// `None`: every address. An IPv6 address has no brackets here.
    pub host: Option<String>,
    /// 0: the system chooses a free port.
    pub port: u16,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Err(format!(
                "{text:?} is a URL; write the host and the port, such as \"127.0.0.1:8080\""
            ));
        }
        let wrong = |why: &str| format!("{text:?} is not an address such as \"127.0.0.1:8080\": {why}");
        let (host, port) = text.rsplit_once(':').ok_or_else(|| match text.parse::<u16>() {
            Ok(port) => wrong(&format!("write \":{port}\" for every address of the machine")),
            Err(_) => wrong("the port is missing"),
        })?;
        let port = port.parse().map_err(|_| wrong("the port must be a number from 0 to 65535"))?;
        let host = match host.strip_prefix('[') {
            Some(inner) => {
                let inner = inner.strip_suffix(']').filter(|inner| inner.parse::<Ipv6Addr>().is_ok());
                inner.ok_or_else(|| wrong("an IPv6 address must be in brackets"))?
            }
            None if host.contains(':') => {
                return Err(wrong("an IPv6 address must be in brackets, as in \"[::1]:8080\""));
            }
            None => host,
        };
        if host.contains(|char: char| char.is_whitespace() || matches!(char, '/' | '*' | '@')) {
            return Err(wrong("a name or an IP address must be before the port"));
        }
        Ok(Self { host: (!host.is_empty()).then(|| host.into()), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            None => write!(f, ":{}", self.port),
            Some(host) if host.contains(':') => write!(f, "[{host}]:{}", self.port),
            Some(host) => write!(f, "{host}:{}", self.port),
        }
    }
}

one_string!(Address, kind: "address", expects: "an address such as \"127.0.0.1:8080\"");

/// The admin listener's address, or `off`.
#[derive(Clone, Debug, PartialEq)]
pub enum AdminAddress {
    /// No admin listener.
    Off,
    /// Here.
    At(Address),
    /// The path of a Unix socket, as written. It may be relative.
    Unix(PathBuf),
}

impl FromStr for AdminAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("unix:")) {
            ("off", _) => Ok(Self::Off),
            (_, Some("")) => {
                Err(format!("{text:?} has no path; write for example \"unix:/run/hostler/admin.sock\""))
            }
            (_, Some(path)) => Ok(Self::Unix(path.into())),
            _ => text.parse().map(Self::At),
        }
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

one_string!(
    AdminAddress,
    kind: "address, \"unix:PATH\" or \"off\"",
    expects: "an address such as \"127.0.0.1:8081\", \"unix:/run/hostler/admin.sock\", or \"off\""
);

/// Where a member listens: `host:port`, `https://host:port` or `unix:/path`.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberAddress {
    /// A host and a port, both given.
    Tcp(String, u16),
    /// The same, over TLS.
    Tls(String, u16),
    /// As written. It may be relative.
    Unix(PathBuf),
}

impl FromStr for MemberAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err(format!("{text:?} has no path; write for example \"unix:/run/app.sock\"")),
                path => Ok(Self::Unix(path.into())),
            };
        }
        let (place, is_tls) = text.strip_prefix("https://").map_or((text, false), |place| (place, true));
        if place.contains('/') {
            return Err(format!(
                "{text:?} is a URL; write \"host:port\", \"https://host:port\" or \"unix:/path\""
            ));
        }
        match place.parse()? {
            Address { host: Some(host), port: port @ 1.. } if is_tls => Ok(Self::Tls(host, port)),
            Address { host: Some(host), port: port @ 1.. } => Ok(Self::Tcp(host, port)),
            _ => Err(format!("{text:?} is not a host and a port, such as \"10.0.0.5:3000\"")),
        }
    }
}

impl fmt::Display for MemberAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => Address { host: Some(host.clone()), port: *port }.fmt(f),
            Self::Tls(host, port) => {
                write!(f, "https://{}", Address { host: Some(host.clone()), port: *port })
            }
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

one_string!(MemberAddress, kind: "address or \"unix:PATH\"", expects: "\"host:port\" or \"unix:/path\"");

/// A network or an address whose forwarding headers Hostler trusts. IPv4-mapped networks are held as IPv4, because peers are compared in
/// canonical form.
#[derive(Clone, Debug, PartialEq)]
pub struct Proxy(pub IpNet);

impl FromStr for Proxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(address.to_canonical().into()));
        }
        let net = text
            .parse::<IpNet>()
            .map_err(|_| format!("{text:?} is neither a network such as \"10.0.0.0/8\" nor an IP address"))?;
        // Clearing the bits without an error would trust a whole network where one proxy may be meant.
        if net.trunc() != net {
            let (net, host) = (net.trunc(), net.addr());
            return Err(format!(
                "{text:?} has host bits set; write \"{net}\" for the network or \"{host}\" for one host"
            ));
        }
        Ok(Self(canonical(net)))
    }
}

fn canonical(net: IpNet) -> IpNet {
    match (net.addr().to_canonical(), net.prefix_len().checked_sub(96)) {
        (IpAddr::V4(address), Some(prefix)) if matches!(net, IpNet::V6(_)) => {
            Ipv4Net::new(address, prefix).map_or(net, IpNet::V4)
        }
        _ => net,
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

one_string!(Proxy, kind: "network or address", expects: "a network such as \"10.0.0.0/8\" or an IP address");
