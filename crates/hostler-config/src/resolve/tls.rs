//! The meaning of `[tls]`: reads the files and checks that they match. Knows no pools and routes.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;

use super::{Resolver, server};
use crate::document::KeyPath;
use crate::file::{self, ClientCertificates, Hsts, MinVersion};
use crate::resolved::{Server, Tls};
use crate::tls::{self, Certificate, CertificateFiles, Expiry, LoadError};
use crate::value::{ListenAddress, TextOr, parse_duration};

/// `None` if it is not written.
pub fn resolve(resolver: &mut Resolver<'_>, written: &file::Tls, server: &Server) -> Option<Tls> {
    let section = KeyPath::of("tls");
    if *written == file::Tls::default() && !resolver.document.is_written(&section) {
        return None;
    }
    let listen = server::listen(resolver, &section.key("listen"), &written.listen.0);
    if written.listen.0.is_empty() {
        resolver.refuse(&section.key("listen"), "at least one address is needed, such as \":8443\"");
    }
    check_places(resolver, &section.key("listen"), &listen, server);
    // A certificate with an error is not in the list, and is already reported.
    let is_told = resolver.document.is_written(&section.key("certificates")) && resolver.report.has_errors();
    if written.certificates.is_empty() && !is_told {
        resolver.refuse(
            &section,
            "certificates is missing; write for example certificates = [{ cert = \"...\", key = \"...\" }]",
        );
    }
    let certificates = written.certificates.iter().enumerate();
    let certificates = certificates
        .map(|(at, one)| certificate(resolver, &section.key("certificates").index(at), one))
        .collect();
    if written.client_ca.is_none() && resolver.document.is_written(&section.key("client_certificates")) {
        resolver.refuse(&section.key("client_certificates"), "needs tls.client_ca");
    }
    Some(Tls {
        listen,
        certificates,
        strict_sni: written.strict_sni,
        min_version: match written.min_version {
            MinVersion::Tls12 => tls::TlsVersion::Tls12,
            MinVersion::Tls13 => tls::TlsVersion::Tls13,
        },
        client_certificates: clients(resolver, &section.key("client_ca"), written),
        redirect_http: written.redirect_http,
        public_port: written.public_port.and_then(|port| u16::try_from(port.0).ok()),
        hsts: written.hsts.as_ref().and_then(|hsts| self::hsts(resolver, &section.key("hsts"), hsts)),
    })
}

fn check_places(resolver: &mut Resolver<'_>, path: &KeyPath, listen: &[SocketAddr], server: &Server) {
    let others = server.listen.iter().map(|&other| (other, "server.listen"));
    let admin = server.admin.iter().filter_map(ListenAddress::tcp).filter(|_| !resolver.may_move_admin);
    let others: Vec<_> = others.chain(admin.map(|admin| (admin, "server.admin"))).collect();
    for (index, &address) in listen.iter().enumerate() {
        if let Some((other, key)) = others.iter().find(|(other, _)| server::overlap(address, *other)) {
            resolver.refuse(
                &path.index(index),
                format!("{address} and {other} in {key} overlap; use another port"),
            );
        }
    }
}

/// Reads both files to find errors. Hostler reads them again when the listeners open.
fn certificate(resolver: &mut Resolver<'_>, path: &KeyPath, written: &file::Certificate) -> CertificateFiles {
    let files = CertificateFiles {
        cert: resolver.folder.join(&written.cert),
        key: resolver.folder.join(&written.key),
    };
    match Certificate::load(&files) {
        Ok(certificate) => {
            let path = path.key("cert");
            for doubt in certificate.doubts(Timestamp::now()) {
                let place = resolver.document.place_of_value(&path);
                resolver.report.warn(place, format!("{path}: {doubt}"));
            }
        }
        Err(LoadError::Cert(error)) => resolver.refuse(&path.key("cert"), error),
        Err(LoadError::Key(error)) => resolver.refuse(&path.key("key"), error),
    }
    files
}

fn clients(
    resolver: &mut Resolver<'_>,
    path: &KeyPath,
    written: &file::Tls,
) -> Option<tls::ClientCertificates> {
    let file = resolver.folder.join(written.client_ca.as_ref()?);
    let required = written.client_certificates == ClientCertificates::Required;
    match authorities(&file) {
        Ok(authorities) => {
            warn_of_expired(resolver, path, &file, &authorities);
            Some(tls::ClientCertificates { authorities: authorities.into(), required })
        }
        Err(error) => {
            resolver.refuse(path, error);
            None
        }
    }
}

fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, tls::FileError> {
    let found = tls::certificates(file)?;
    let mut roots = rustls::RootCertStore::empty();
    for authority in &found {
        roots.add(authority.clone()).map_err(|error| tls::FileError::new(file, error.to_string()))?;
    }
    Ok(found)
}

/// The library checks the dates of clients' certificates, but not those of the authorities.
fn warn_of_expired(
    resolver: &mut Resolver<'_>,
    path: &KeyPath,
    file: &Path,
    authorities: &[CertificateDer<'static>],
) {
    let now = Timestamp::now();
    for (number, authority) in (1..).zip(authorities) {
        let Some(doubt) = Expiry::read(authority).and_then(|valid| valid.doubt(now)) else { continue };
        let rest = "; certificates that it has issued are accepted all the same";
        let place = resolver.document.place_of_value(path);
        resolver
            .report
            .warn(place, format!("{path}: {}: certificate {number} {doubt}{rest}", file.display()));
    }
}

/// The value of the header field.
fn hsts(resolver: &mut Resolver<'_>, path: &KeyPath, written: &TextOr<Hsts>) -> Option<String> {
    let (max_age_path, hsts) = match written {
        TextOr::Word(max_age) => (path.clone(), Hsts { max_age: max_age.clone(), ..Hsts::default() }),
        TextOr::Value(table) => (path.key("max_age"), table.clone()),
    };
    let max_age: Duration = match parse_duration(&hsts.max_age) {
        Ok(max_age) => max_age,
        Err(_) => {
            let written = &hsts.max_age;
            resolver.refuse(&max_age_path, format!("{written:?} is not a duration such as \"1year\""));
            return None;
        }
    };
    // Browsers read whole seconds, and forget a host with 0.
    if !max_age.is_zero() && max_age < Duration::from_secs(1) {
        resolver.refuse(&max_age_path, "is less than a second; \"0s\" makes browsers forget this site");
    }
    // The conditions of the preload lists. Browser vendors refuse less than this, after browsers have already stored the value.
    if hsts.preload && !(hsts.include_subdomains && max_age >= Duration::from_secs(365 * 24 * 3600)) {
        resolver
            .refuse(&path.key("preload"), "needs include_subdomains = true and a max_age of a year or more");
    }
    let subdomains = if hsts.include_subdomains { "; includeSubDomains" } else { "" };
    let preload = if hsts.preload { "; preload" } else { "" };
    Some(format!("max-age={}{subdomains}{preload}", max_age.as_secs()))
}
