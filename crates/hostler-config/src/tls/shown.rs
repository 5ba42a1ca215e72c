//! Which certificate a client gets: by the name it asks for, exact before wildcard, otherwise the first. Does not know where they come
//! from.

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
    /// By name. Several certificates for one name have different kinds of keys.
    exact: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// By the part after `*.`.
    wildcard: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// For other names, and for clients that ask for none: the first certificate, and those for the same names.
    default: Vec<Arc<CertifiedKey>>,
    /// Whether a client that asks for another name, or for none, gets no certificate.
    strict: bool,
}

impl Certificates {
    /// The first certificate is for clients that ask for no name or an unknown one, unless `strict`.
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
        if let Some(first) = all.first() {
            let alike = all.iter().filter(|other| has_names_of(first, other));
            made.default = alike.map(|certificate| certificate.key.clone()).collect();
        }
        Self { all, ..made }
    }

    /// All certificates, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Certificate> {
        self.all.iter()
    }

    /// A certificate for this name whose signature the client supports (`suits`). If there is none, the client ends the handshake itself.
    fn find(&self, name: Option<&str>, suits: impl Fn(&CertifiedKey) -> bool) -> Option<Arc<CertifiedKey>> {
        let named = name.and_then(|name| {
            // Some clients send the final dot of `https://example.com./`. RFC 6066 allows none, but routes take both for the same host.
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            let wildcard = name.split_once('.').and_then(|(_, rest)| self.wildcard.get(rest));
            best(self.exact.get(&name).into_iter().chain(wildcard).flatten(), &suits)
        });
        match named {
            None if !self.strict => best(self.default.iter(), &suits),
            named => named,
        }
    }
}

/// The first one that suits, or else the first one.
fn best<'a>(
    mut keys: impl Iterator<Item = &'a Arc<CertifiedKey>> + Clone,
    suits: &impl Fn(&CertifiedKey) -> bool,
) -> Option<Arc<CertifiedKey>> {
    keys.clone().find(|key| suits(key)).or_else(|| keys.next()).cloned()
}

fn has_names_of(one: &Certificate, other: &Certificate) -> bool {
    one.names.len() == other.names.len() && one.names.iter().all(|name| other.names.contains(name))
}

/// The current certificates, for handshakes that begin now. They can be replaced at any time.
#[derive(Debug, Default)]
pub(super) struct ShownCertificate(pub ArcSwap<Certificates>);

impl ResolvesServerCert for ShownCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        self.0.load().find(hello.server_name(), |key| key.key.choose_scheme(schemes).is_some())
    }
}

#[cfg(test)]
mod tests {
    use hostler_testkit::authority;

    use super::super::certificate::CertificateFiles;
    use super::*;

    fn certificates(names: &[&[&str]], strict: bool) -> Certificates {
        let (folder, trust) = (tempfile::tempdir().unwrap(), authority());
        let load = |names: &&[&str]| {
            let made = trust.vouch_for(names);
            let files = CertificateFiles { cert: folder.path().join("cert"), key: folder.path().join("key") };
            std::fs::write(&files.cert, made.cert).unwrap();
            std::fs::write(&files.key, made.key).unwrap();
            Certificate::load(&files).unwrap()
        };
        Certificates::new(names.iter().map(load).collect(), strict)
    }

    fn found(of: &Certificates, name: Option<&str>, suits: &[usize]) -> Option<usize> {
        let place = |key: &CertifiedKey| of.all.iter().position(|other| std::ptr::eq(&*other.key, key));
        let found = of.find(name, |key| place(key).is_some_and(|place| suits.contains(&place)));
        found.and_then(|key| place(&key))
    }

    #[test]
    fn the_first_suitable_certificate_for_a_name_is_chosen() {
        let names: &[&[&str]] =
            &[&["a.test"], &["a.test"], &["*.c.test", "b.test"], &["b.test"], &["y.c.test"]];
        let (lax, strict) = (certificates(names, false), certificates(names, true));
        for (name, suits, expected) in [
            (Some("a.test"), &[0, 1][..], Some(0)),
            (Some("a.test"), &[1], Some(1)),
            (Some("A.test"), &[1, 2], Some(1)),
            (Some("b.test."), &[2, 3], Some(2)),
            (Some("X.c.test."), &[2], Some(2)),
            // Nothing suits: the client will say so himself.
            (Some("a.test"), &[2], Some(0)),
            (Some("b.test"), &[3], Some(3)),
            (Some("x.c.test"), &[0, 1, 2, 3], Some(2)),
            (Some("y.c.test"), &[2, 4], Some(4)),
            // The wildcard has the other kind of key.
            (Some("y.c.test"), &[2], Some(2)),
            (Some("y.c.test"), &[3], Some(4)),
        ] {
            assert_eq!(found(&lax, name, suits), expected, "{name:?} {suits:?}");
            assert_eq!(found(&strict, name, suits), expected, "{name:?} {suits:?}");
        }
        // The default is the first, or one that differs from it by its key alone.
        for name in [None, Some("other"), Some("a.b.test")] {
            assert_eq!(found(&lax, name, &[0, 1, 2, 3]), Some(0));
            assert_eq!(found(&lax, name, &[1, 2, 3]), Some(1));
            assert_eq!(found(&lax, name, &[2, 3]), Some(0));
            assert_eq!(found(&strict, name, &[0, 1, 2, 3]), None);
        }
    }

    #[test]
    fn the_default_has_its_other_kinds_of_keys_also_with_its_names_in_another_order() {
        let others = certificates(&[&["a.test", "b.test"], &["a.test"], &["b.test", "a.test"]], false);
        assert_eq!(found(&others, None, &[1, 2]), Some(2));
        assert_eq!(found(&others, None, &[1]), Some(0));
    }
}
