//! Writes the entries under one key as an item of memcached, and reads them back. An item that cannot be read completely
//! counts as missing. Knows no servers.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use hostler_wire::hex;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use crate::{Entry, FetchMark, Freshness, Vary};

/// The version of the format and of the keys. It is part of every name, so Hostlers of two versions that share a memcached do not see
/// each other's items. A change of what belongs to a key needs a new version, too: otherwise a response that an older Hostler stored under
/// too short a key is served until it expires. 5: more parameters of a query belong to the key.
const VERSION: u32 = 5;

const MARK: &[u8; 4] = b"Hstl";

/// The most seconds that an item stays, whatever its freshness. A purge must be remembered for this long.
pub(super) const LONGEST_SECONDS: u64 = 24 * 60 * 60;

/// How heads are written as bytes and read back.
#[derive(Debug, Clone, Copy)]
pub struct Packing<H> {
    /// Appends the bytes of a head.
    pub write: fn(&H, &mut Vec<u8>),
    /// Reads a head. `None` if the bytes are not a head.
    pub read: fn(&[u8]) -> Option<H>,
    /// The memory of a head in bytes.
    pub bytes: fn(&H) -> usize,
}

/// Why an item cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is cut off or changed, or no Hostler wrote it.
    Garbled,
    /// It is complete, but of another key: two keys have the same name.
    OtherKey,
}

/// Why there is no item to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unwritable {
    /// Other Hostlers may use none of the entries.
    Void,
    /// None of the entries fits.
    TooLarge,
}

/// The parts of an entry other than head and body.
#[derive(Serialize, Deserialize)]
struct ItemMeta {
    freshness: Freshness,
    vary: Vary,
    asked: FetchMark,
    tags: Box<[Box<str>]>,
}

/// The name of a key's item: short, and without characters that the protocol forbids.
pub(super) fn name(namespace: &str, key: &[u8]) -> String {
    format!("{namespace}:{VERSION}:{}", hex(&Sha1::digest(key)))
}

/// The name of an item that is not for a key.
pub(super) fn own_name(namespace: &str, what: &str) -> String {
    format!("{namespace}:{VERSION}:{what}")
}

/// As many of these entries as fit into `max` bytes, the newest first. Without one that does not fit, a smaller one may. `None` if none fits.
pub(super) fn write<H>(
    packing: &Packing<H>,
    key: &[u8],
    entries: &[&Entry<H>],
    max: usize,
) -> Option<Vec<u8>> {
    let weight = entries.iter().map(|entry| entry.weight()).sum();
    let mut item = Vec::with_capacity(max.min(weight));
    item.put_slice(MARK);
    // Reserved for the checksum.
    item.put_u32(0);
    put_part(&mut item, key);
    let empty = item.len();
    for entry in entries {
        let before = item.len();
        put_entry(packing, &mut item, entry);
        if item.len() > max {
            item.truncate(before);
        }
    }
    let sum = crc32fast::hash(&item[8..]);
    item[4..8].copy_from_slice(&sum.to_be_bytes());
    (item.len() > empty).then_some(item)
}

fn put_entry<H>(packing: &Packing<H>, item: &mut Vec<u8>, entry: &Entry<H>) {
    let about = ItemMeta {
        freshness: entry.freshness,
        vary: entry.vary.clone(),
        asked: entry.asked,
        tags: entry.tags.clone(),
    };
    // Serialization fails only for maps whose keys are not strings, or if the writer fails. Neither happens here.
    put_part(item, &serde_json::to_vec(&about).unwrap_or_default());
    let mut head = Vec::new();
    (packing.write)(&entry.head, &mut head);
    put_part(item, &head);
    put_part(item, &entry.body);
}

fn put_part(item: &mut Vec<u8>, part: &[u8]) {
    item.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
    item.put_slice(part);
}

/// The entries in an item, the newest first.
pub(super) fn read<H>(packing: &Packing<H>, key: &[u8], item: Vec<u8>) -> Result<Vec<Entry<H>>, Unreadable> {
    let length = item.len();
    let mut rest = Bytes::from(item);
    if rest.len() < 8 || !rest.starts_with(MARK) {
        return Err(Unreadable::Garbled);
    }
    rest.advance(MARK.len());
    if rest.get_u32() != crc32fast::hash(&rest) {
        return Err(Unreadable::Garbled);
    }
    if take_part(&mut rest)? != key {
        return Err(Unreadable::OtherKey);
    }
    let mut entries = Vec::new();
    while !rest.is_empty() {
        entries.push(take_entry(packing, &mut rest)?);
    }
    // A body that is a slice of the item keeps the whole item in memory, but only the body is counted.
    let rest = length - entries.iter().map(|entry: &Entry<H>| entry.body.len()).sum::<usize>();
    for entry in &mut entries {
        if length - entry.body.len() > rest || rest > entry.body.len() / 64 {
            entry.body = Bytes::copy_from_slice(&entry.body);
        }
    }
    Ok(entries)
}

fn take_entry<H>(packing: &Packing<H>, rest: &mut Bytes) -> Result<Entry<H>, Unreadable> {
    let about: ItemMeta = serde_json::from_slice(&take_part(rest)?).map_err(|_| Unreadable::Garbled)?;
    let head = (packing.read)(&take_part(rest)?).ok_or(Unreadable::Garbled)?;
    Ok(Entry {
        head_bytes: (packing.bytes)(&head),
        head: Arc::new(head),
        body: take_part(rest)?,
        freshness: about.freshness,
        vary: about.vary,
        asked: about.asked,
        tags: about.tags,
        forms: Box::default(),
    })
}

fn take_part(rest: &mut Bytes) -> Result<Bytes, Unreadable> {
    let length = rest.try_get_u32().map_err(|_| Unreadable::Garbled)? as usize;
    if length > rest.len() {
        return Err(Unreadable::Garbled);
    }
    Ok(rest.split_to(length))
}

#[cfg(test)]
mod tests;
