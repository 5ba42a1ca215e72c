//! The certificates behind the first one of a file: with them a client finds an authority that it trusts. Knows no files.

use std::time::Duration;

use jiff::Timestamp;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage, anchor_from_trusted_cert};

use super::validity::Expiry;

/// A file with all authorities of a system would have more than a hundred doubts.
const MOST_DOUBTS: usize = 3;

/// One of these certificates.
#[derive(Debug, Clone)]
pub(super) struct ChainLink {
    /// Its place in the file, from 1.
    number: usize,
    /// None if that cannot be read.
    valid: Option<Expiry>,
    /// Whether it has issued one of the certificates before it.
    is_issuer: bool,
}

/// Reads all certificates behind the first one. The error says which one is none.
pub(super) fn links(chain: &[CertificateDer<'_>]) -> Result<Vec<ChainLink>, String> {
    let mut links = Vec::new();
    for (index, cert) in chain.iter().enumerate().skip(1) {
        let number = index + 1;
        match EndEntityCert::try_from(cert) {
            Ok(read) => {
                let is_issuer = has_issued(cert, &read, &chain[..index]);
                links.push(ChainLink { number, valid: Expiry::of(&read), is_issuer });
            }
            Err(error @ (Error::BadDer | Error::BadDerTime | Error::TrailingData(_))) => {
                return Err(format!("certificate {number} is malformed ({error})"));
            }
            // One that only this library does not read, such as an old authority of version 1: clients may read it.
            Err(_) => {}
        }
    }
    Ok(links)
}

/// What is wrong with the first of them that cannot be used. `readers`: who checks them.
pub(super) fn doubts(links: &[ChainLink], now: Timestamp, readers: &str) -> impl Iterator<Item = String> {
    links.iter().filter_map(move |link| link.doubt(now, readers)).take(MOST_DOUBTS)
}

/// What is wrong with a certificate that Hostler shows to servers, and with those behind it. The error says which one is none.
pub fn identity_doubts(chain: &[CertificateDer<'_>], now: Timestamp) -> Result<Vec<String>, String> {
    let own = chain.first().and_then(Expiry::read).and_then(|valid| valid.doubt(now));
    let links = links(chain)?;
    Ok(own.into_iter().chain(doubts(&links, now, "servers")).collect())
}

impl ChainLink {
    fn doubt(&self, now: Timestamp, readers: &str) -> Option<String> {
        let Self { number, valid, is_issuer } = self;
        let why = match (is_issuer, number) {
            (true, _) => valid.and_then(|valid| valid.doubt(now))?,
            (false, 2) => "did not issue certificate 1".into(),
            (false, _) => "issued none of the certificates before it".into(),
        };
        Some(format!("certificate {number} {why}, so {readers} may not find an authority that they trust"))
    }
}

/// Whether a certificate has issued one of those before it. The next one would be the strict rule, but clients look for the issuer in the whole
/// file, and some files have an authority twice, because two others vouch for it.
fn has_issued(cert: &CertificateDer<'_>, read: &EndEntityCert<'_>, before: &[CertificateDer<'_>]) -> bool {
    let anchor = anchor_from_trusted_cert(cert);
    let first = before.first().and_then(|first| EndEntityCert::try_from(first).ok());
    let (Ok(anchor), Some(first)) = (anchor, first) else { return true };
    // The issuer of a certificate was valid when that was issued. Its own dates are another question.
    let time = Expiry::of(&first).and_then(|valid| u64::try_from(valid.from.as_second()).ok());
    let time = UnixTime::since_unix_epoch(Duration::from_secs(time.unwrap_or_default()));
    let algorithms = default_provider().signature_verification_algorithms.all;
    let (anchors, usage) = ([anchor], KeyUsage::server_auth());
    match first.verify_for_usage(algorithms, &anchors, &before[1..], time, usage, None, None) {
        Ok(_) => true,
        Err(Error::UnknownIssuer | Error::InvalidSignatureForPublicKey) => false,
        // Another reason, such as a first certificate that is an authority itself, proves nothing. Then the names decide.
        Err(_) => {
            let is_issued = |other: EndEntityCert<'_>| other.issuer() == read.subject();
            before.iter().any(|other| EndEntityCert::try_from(other).is_ok_and(is_issued))
        }
    }
}
