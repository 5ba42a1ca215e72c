//! Reads certificates and keys from PEM files. Errors name the file. Does not know what they are for.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::access;

/// A larger file is not a certificate. The limit gives a quick error for a wrong file name.
const LARGEST: u64 = 4 << 20;
/// What the first line of a section begins and ends with.
const BEGIN: &[u8] = b"-----BEGIN ";
const DASHES: &[u8] = b"-----";
/// What its last line begins with.
const END: &[u8] = b"-----END ";
/// An editor may have put it before the first line, which the library would then not find: it has no meaning in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const PASSPHRASE: &str =
    "the private key has a passphrase; Hostler needs a key without one, in a file that only Hostler can read";
/// The labels of certificates and keys are shorter.
const LONGEST_LABEL: usize = 24;

/// An error of a file, with its name.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The error.
    pub why: String,
}

impl FileError {
    /// An error of this file.
    pub fn new(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into() }
    }
}

/// All certificates of a file, in their order. At least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(FileError::new(path, nothing(&text, "certificate"))),
        Ok(found) => Ok(found),
        Err(error) => Err(FileError::new(path, malformed(&error))),
    }
}

/// The first private key of a file.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, FileError> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let why = match error {
            // The library takes the lines that say so for a part of the key, and the key for damaged.
            _ if contains(&text, b"Proc-Type: 4,ENCRYPTED") => PASSPHRASE.into(),
            pem::Error::NoItemsFound => nothing(&text, "private key"),
            error => malformed(&error),
        };
        FileError::new(path, why)
    })
}

/// Whether the library finds all sections if it reads the file itself. True for a file that cannot be read.
pub(crate) fn is_plain(path: &Path) -> bool {
    let Ok(text) = read(path) else { return true };
    let Ok(whole) = std::fs::read(path) else { return true };
    whole == text
}

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let refuse = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => FileError::new(path, access::unreadable(&error)),
        _ => FileError::new(path, error.to_string()),
    };
    // The size is checked first, because a pipe or a device would never end.
    let about = std::fs::metadata(path).map_err(refuse)?;
    if !about.is_file() {
        return Err(FileError::new(path, "is not a file"));
    }
    if about.len() > LARGEST {
        return Err(FileError::new(path, "is larger than 4 MiB; it must be a PEM file"));
    }
    let mut text = std::fs::read(path).map_err(refuse)?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(separated(&text))
}

/// Puts each section on lines of its own. If files without a final line break are joined, a section begins on the last line of the one before,
/// and the library would leave it out without a word.
fn separated(text: &[u8]) -> Vec<u8> {
    let mut separated = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let begin = memchr::memmem::find(line, BEGIN).filter(|_| line.starts_with(END)).unwrap_or(0);
        separated.extend_from_slice(&line[..begin]);
        if begin > 0 {
            separated.push(b'\n');
        }
        separated.extend_from_slice(&line[begin..]);
    }
    separated
}

/// The error for a file without the wanted item. It names what the file has instead.
fn nothing(text: &[u8], wanted: &str) -> String {
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let labels = lines.filter_map(|line| line.strip_prefix(BEGIN)?.strip_suffix(DASHES));
    let labels: Vec<_> = labels.map(label).collect();
    if labels.iter().any(|label| label.starts_with("ENCRYPTED")) {
        return PASSPHRASE.into();
    }
    match labels.first() {
        Some(label) => format!("it has no {wanted}; it has \"{label}\""),
        None => format!("it has no {wanted} in PEM form (-----BEGIN ...)"),
    }
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(text, what).is_some()
}

/// The label of a section, such as `PRIVATE KEY`, at the start of this text. No more of it is shown: in a file that has lost its line
/// breaks, the key itself follows on the same line.
fn label(text: &[u8]) -> Cow<'_, str> {
    let end = memchr::memmem::find(text, DASHES).unwrap_or(text.len());
    String::from_utf8_lossy(&text[..end.min(LONGEST_LABEL)])
}

fn malformed(error: &pem::Error) -> String {
    let alone = |label: &str| {
        format!("-----BEGIN {label}----- must be on a line of its own; has the file lost its line breaks?")
    };
    match error {
        pem::Error::MissingSectionEnd { end_marker } => match label(end_marker) {
            label if label.len() < end_marker.len() => alone(&label),
            label => format!("it is incomplete: the end of {label} is missing"),
        },
        pem::Error::IllegalSectionStart { line } => {
            alone(&label(line.strip_prefix(BEGIN).unwrap_or_default()))
        }
        pem::Error::Base64Decode(why) => format!("it is damaged: {why}"),
        error => error.to_string(),
    }
}
