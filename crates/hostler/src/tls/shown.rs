//! Which certificate a client is shown: by the name it asks for, exact before wildcard, else the first. Knows not where they
//! come from.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;

/// All certificates of a listener.
#[derive(Debug, Default)]
pub struct Certificates {
    all: Vec<Certificate>,
    /// By name; several for one name differ in what they can be signed with.
    exact: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// By what comes after `*.`.
    wildcard: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// Whoever asks for another name, or for none, is shown nothing.
    strict: bool,
}

impl Certificates {
    /// The first is for those who ask for no name or an unknown one, unless it is `strict`.
    pub fn new(all: Vec<Certificate>, strict: bool) -> Self {
        let mut made = Self { strict, ..Self::default() };
        for certificate in &all {
            for name in &certificate.names {
                let (names, name) = match name.strip_prefix("*.") {
                    Some(rest) => (&mut made.wildcard, rest),
                    None => (&mut made.exact, &**name),
                };
                names.entry(name.to_owned()).or_default().push(certificate.key.clone());
            }
        }
        Self { all, ..made }
    }

    /// Each of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Certificate> {
        self.all.iter()
    }

    /// One for this name whose signature the client can check, by `suits`; if there is none, he will say so himself.
    fn find(&self, name: Option<&str>, suits: impl Fn(&CertifiedKey) -> bool) -> Option<Arc<CertifiedKey>> {
        let named = name.and_then(|name| {
            let name = name.to_ascii_lowercase();
            let wildcard = || self.wildcard.get(name.split_once('.')?.1);
            self.exact.get(&name).or_else(wildcard)
        });
        match named {
            Some(named) => named.iter().find(|key| suits(key)).or(named.first()).cloned(),
            None if self.strict => None,
            None => {
                let all = || self.all.iter().map(|certificate| &certificate.key);
                let same_names = || self.all.iter().filter(|other| other.names == self.all[0].names);
                same_names().map(|other| &other.key).find(|key| suits(key)).or(all().next()).cloned()
            }
        }
    }
}

/// The certificates of this moment, for handshakes that begin now; they can be replaced at any time.
#[derive(Debug, Default)]
pub(super) struct Shown(pub ArcSwap<Certificates>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        self.0.load().find(hello.server_name(), |key| key.key.choose_scheme(schemes).is_some())
    }
}
