//! All responses that are stored under one key, and which of them gives way to a new one. Knows no store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Entry;

/// How many entries one key may have. A site whose responses vary more should not be cached.
const MOST_VARIANTS: usize = 16;

/// All entries under one key, the newest first. Almost always it is one entry, which then needs no more memory than itself.
#[derive(Debug)]
pub enum Variants<H> {
    /// One entry.
    One(Arc<Entry<H>>),
    /// Several entries.
    More(Arc<SeveralVariants<H>>),
}

/// Several entries under one key. They never change, except that they note when they were last used.
#[derive(Debug)]
pub struct SeveralVariants<H> {
    /// How many entries were stored under this key so far. Uses are noted with this number in place of a time.
    turn: u64,
    variants: Box<[Variant<H>]>,
}

#[derive(Debug)]
struct Variant<H> {
    entry: Arc<Entry<H>>,
    /// The turn in which it was last used. 0: never since it was stored.
    used: AtomicU64,
}

impl<H> Clone for Variants<H> {
    fn clone(&self) -> Self {
        match self {
            Self::One(entry) => Self::One(Arc::clone(entry)),
            Self::More(several) => Self::More(Arc::clone(several)),
        }
    }
}

impl<H> Clone for Variant<H> {
    fn clone(&self) -> Self {
        Self { entry: Arc::clone(&self.entry), used: AtomicU64::new(self.used()) }
    }
}

impl<H> Variant<H> {
    fn new(entry: Arc<Entry<H>>, used: u64) -> Self {
        Self { entry, used: AtomicU64::new(used) }
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl<H> Variants<H> {
    /// The newest entry for which `fits` returns true, but one with `Vary` before one without: some apps leave `Vary` out if the request has none
    /// of its fields, and such an entry fits every request (RFC 9111 section 4.1). The entry counts as used. Errors: all entries, because
    /// none fits.
    pub fn find(self, fits: impl Fn(&Entry<H>) -> bool) -> Result<Arc<Entry<H>>, Self> {
        let several = match self {
            Self::One(entry) if fits(&entry) => return Ok(entry),
            Self::One(entry) => return Err(Self::One(entry)),
            Self::More(several) => several,
        };
        let mut found = None;
        for variant in several.variants.iter().filter(|variant| fits(&variant.entry)) {
            found = found.or(Some(variant));
            if !variant.entry.vary.fields.is_empty() {
                found = Some(variant);
                break;
            }
        }
        let Some(found) = found else {
            return Err(Self::More(several));
        };
        // Reads before it writes: other threads use the same entry.
        if found.used() != several.turn {
            found.used.store(several.turn, Ordering::Relaxed);
        }
        Ok(Arc::clone(&found.entry))
    }

    /// All entries, the newest first. None of them counts as used.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry<H>>> {
        let (one, several) = match self {
            Self::One(entry) => (Some(entry), None),
            Self::More(several) => (None, Some(several)),
        };
        let several = several.into_iter().flat_map(|several| &several.variants);
        one.into_iter().chain(several.map(|variant| &variant.entry))
    }

    /// The memory of all entries, in bytes.
    pub fn weight(&self) -> usize {
        self.iter().map(|entry| entry.weight()).sum()
    }

    /// A copy with one more entry in front, without the entry for the same requests.
    ///
    /// If there are too many entries, or more than `most` bytes, one that was never used gives way, or else the one that was used
    /// least recently. So requests with many values of one field, each sent once, do not displace what visitors use.
    pub(crate) fn with(&self, entry: Arc<Entry<H>>, most: usize) -> Self {
        let (turn, mut others) = self.parts();
        let before = others.iter().position(|other| other.entry.vary == entry.vary);
        // The new entry for the same requests is used like the one before.
        let used = before.map_or(0, |at| others.remove(at).used());
        let mut weight = others.iter().map(|other| other.entry.weight()).sum::<usize>() + entry.weight();
        while others.len() >= MOST_VARIANTS || weight > most {
            // The oldest of those that are equal.
            let least = others.iter().enumerate().rev().min_by_key(|(_, other)| other.used());
            let Some((at, _)) = least else { break };
            weight -= others.remove(at).entry.weight();
        }
        if others.is_empty() {
            return Self::One(entry);
        }
        let variants = [Variant::new(entry, used)].into_iter().chain(others).collect();
        Self::More(Arc::new(SeveralVariants { turn: turn + 1, variants }))
    }

    /// A copy with only the entries for which `stays` returns true. `None`: no entry stays.
    pub(crate) fn only(&self, stays: impl Fn(&Arc<Entry<H>>) -> bool) -> Option<Self> {
        let (turn, mut others) = self.parts();
        others.retain(|other| stays(&other.entry));
        match others.len() {
            0 | 1 => others.pop().map(|last| Self::One(last.entry)),
            _ => Some(Self::More(Arc::new(SeveralVariants { turn, variants: others.into() }))),
        }
    }

    /// A copy with `new` in the place of `old`, even if `old` has got other forms since. `None`: `old` is not there any more.
    pub(crate) fn exchange(&self, old: &Arc<Entry<H>>, new: &Arc<Entry<H>>) -> Option<Self> {
        let (turn, mut variants) = self.parts();
        let place = variants.iter_mut().find(|variant| variant.entry.is_same(old))?;
        place.entry = Arc::clone(new);
        Some(match self {
            Self::One(_) => Self::One(Arc::clone(new)),
            Self::More(_) => Self::More(Arc::new(SeveralVariants { turn, variants: variants.into() })),
        })
    }

    fn parts(&self) -> (u64, Vec<Variant<H>>) {
        match self {
            // Of a single entry it is not noted whether it was used, so it counts as used.
            Self::One(entry) => (1, vec![Variant::new(Arc::clone(entry), 1)]),
            Self::More(several) => (several.turn, several.variants.to_vec()),
        }
    }
}

impl<H> From<Arc<Entry<H>>> for Variants<H> {
    fn from(entry: Arc<Entry<H>>) -> Self {
        Self::One(entry)
    }
}
