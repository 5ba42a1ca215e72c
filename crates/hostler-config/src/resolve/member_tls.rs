//! The meaning of a pool's `tls`: reads files and checks names. Knows no pools and no connections.

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, ServerName};

use super::Resolver;
use crate::client_tls::{ClientTls, Identity, TrustedAuthorities};
use crate::document::KeyPath;
use crate::file::MemberTls;
use crate::tls;

impl Resolver<'_> {
    /// TLS to members as written at `path`. Reports errors.
    pub(super) fn member_tls(&mut self, path: &KeyPath, written: &MemberTls) -> Option<ClientTls> {
        let trust = self.trust(path, written);
        let identity = self.identity(path, written);
        let server_name = written.server_name.as_ref().map(|name| {
            let parsed = ServerName::try_from(name.clone());
            parsed
                .map_err(|_| self.refuse(&path.key("server_name"), "is neither a DNS name nor an IP address"))
        });
        let server_name = server_name.transpose().ok()?;
        let made = ClientTls::new(trust?, identity?, server_name);
        // All other errors are checked before. An error here has to do with the files.
        made.map_err(|error| self.refuse(path, error)).ok()
    }

    fn trust(&mut self, path: &KeyPath, written: &MemberTls) -> Option<TrustedAuthorities> {
        let here = path.key("ca");
        if !written.verify {
            if written.ca.is_some() {
                self.refuse(
                    &here,
                    "not allowed with verify = false, because Hostler then checks no certificate",
                );
            }
            let verify = path.key("verify");
            let place = self.document.place_of_value(&verify);
            self.report.warn(place, format!("{verify}: Hostler accepts any certificate, so another server can answer in a member's place"));
            return Some(TrustedAuthorities::Any);
        }
        match &written.ca {
            Some(file) => {
                let roots = self.certificates(&here, file)?;
                let added =
                    roots.iter().try_for_each(|root| rustls::RootCertStore::empty().add(root.clone()));
                added.map_err(|error| self.refuse(&here, error)).ok()?;
                Some(TrustedAuthorities::Roots(roots))
            }
            None => self.of_system(path),
        }
    }

    fn of_system(&mut self, path: &KeyPath) -> Option<TrustedAuthorities> {
        let mut found = rustls_native_certs::load_native_certs().certs;
        // A system may have an old certificate that cannot be read.
        found.retain(|root| rustls::RootCertStore::empty().add(root.clone()).is_ok());
        if found.is_empty() {
            let place = self.document.place_of_key(path);
            let message = "the system has no certificate authorities; set ca to a PEM file with authorities";
            self.report.error(place, format!("{path}: {message}"));
            return None;
        }
        Some(TrustedAuthorities::Roots(found))
    }

    /// `None` after an error. `Some(None)` without a certificate.
    fn identity(&mut self, path: &KeyPath, written: &MemberTls) -> Option<Option<Identity>> {
        let (cert, key) = match (&written.cert, &written.key) {
            (None, None) => return Some(None),
            (Some(cert), Some(key)) => (cert, key),
            (Some(_), None) => {
                self.refuse(&path.key("cert"), "needs key");
                return None;
            }
            (None, Some(_)) => {
                self.refuse(&path.key("key"), "needs cert");
                return None;
            }
        };
        let here = path.key("cert");
        let chain = self.certificates(&here, cert)?;
        self.tell_doubts(&here, cert, &chain)?;
        let here = path.key("key");
        let read = tls::private_key(&self.folder.join(key));
        let key = read.map_err(|error| self.refuse(&here, error)).ok()?;
        let fits = tls::key_for_servers(chain.clone(), &key);
        fits.map_err(|error| self.refuse(&here, format!("does not match cert: {error}"))).ok()?;
        Some(Some(Identity { chain, key }))
    }

    /// `None` after an error.
    fn tell_doubts(
        &mut self,
        path: &KeyPath,
        written: &str,
        chain: &[CertificateDer<'static>],
    ) -> Option<()> {
        let file = self.folder.join(written);
        match tls::identity_doubts(chain, Timestamp::now()) {
            Ok(doubts) => {
                for doubt in doubts {
                    let place = self.document.place_of_value(path);
                    self.report.warn(place, format!("{path}: {}: {doubt}", file.display()));
                }
                Some(())
            }
            Err(why) => {
                self.refuse(path, tls::FileError::new(&file, why));
                None
            }
        }
    }

    fn certificates(&mut self, path: &KeyPath, written: &str) -> Option<Vec<CertificateDer<'static>>> {
        tls::certificates(&self.folder.join(written)).map_err(|error| self.refuse(path, error)).ok()
    }
}
