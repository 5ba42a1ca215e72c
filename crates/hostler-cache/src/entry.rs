//! One stored answer, and all that is stored under one key. Knows no store, and of HTTP only what the policy has made of it.

use std::num::NonZeroU64;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Freshness, Moment, Vary};

/// How many entries one key may have: a site whose answers vary by more than this had better not be cached.
const MOST_VARIANTS: usize = 16;

/// What an entry takes besides its head, body, labels and key: itself, what the store keeps for each key, and what the allocator rounds
/// up. Measured (`crates/hostler/tests/weight.rs` holds it to that).
const OVERHEAD: usize = 640;

/// What the allocator takes for a piece besides its bytes, on average.
const PIECE: usize = 16;

/// A stored answer. Never changed: whoever has it, has it for as long as he likes, and a changed one replaces it.
#[derive(Debug)]
pub struct Entry<H> {
    /// Its head, as it came, without the fields that may not be stored.
    pub head: Arc<H>,
    /// What the head takes, in bytes.
    pub head_bytes: usize,
    /// The body as the member sent it.
    pub body: Bytes,
    /// How long it may be served, and when.
    pub freshness: Freshness,
    /// To whom.
    pub vary: Vary,
    /// When its member was asked, and what was known then: a purge voids what was asked for before it.
    pub asked: FetchMark,
    /// The tags that it may be purged by.
    pub tags: Box<[Box<str>]>,
    /// What became of the body in other codings.
    pub forms: Box<[StoredForm<H>]>,
}

/// When a member was asked for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FetchMark {
    /// By the clock of whoever has asked.
    pub at: Moment,
    /// How far he knew the log that several Hostlers share; none: not at all, and the answer is not for others.
    pub under: Option<Under>,
}

impl From<Moment> for FetchMark {
    fn from(at: Moment) -> Self {
        Self { at, under: None }
    }
}

/// A place in the log of one memcached server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Under {
    /// Which log: one that was lost begins anew.
    pub epoch: NonZeroU64,
    /// Its latest record.
    pub number: u64,
}

/// An entry's body in another coding, with the head that goes with it.
#[derive(Debug)]
pub struct StoredForm<H> {
    /// As in `Content-Encoding`.
    pub coding: &'static str,
    /// Its head.
    pub head: Arc<H>,
    /// Its body.
    pub body: Bytes,
}

impl<H> Clone for StoredForm<H> {
    fn clone(&self) -> Self {
        Self { coding: self.coding, head: Arc::clone(&self.head), body: self.body.clone() }
    }
}

impl<H> Entry<H> {
    /// The bytes that it holds.
    pub fn weight(&self) -> usize {
        let tags: usize = self.tags.iter().map(|tag| tag.len() + size_of::<Box<str>>() + PIECE).sum();
        let form =
            |form: &StoredForm<H>| self.head_bytes + form.body.len() + size_of::<StoredForm<H>>() + 4 * PIECE;
        let forms: usize = self.forms.iter().map(form).sum();
        OVERHEAD + self.head_bytes + self.body.len() + self.vary.size() + tags + forms
    }

    /// The form in this coding, if it was made.
    pub fn form(&self, coding: &str) -> Option<&StoredForm<H>> {
        self.forms.iter().find(|form| form.coding == coding)
    }

    /// With one form more.
    #[must_use]
    pub fn with(&self, form: StoredForm<H>) -> Self {
        let others = self.forms.iter().filter(|other| other.coding != form.coding);
        let forms = others.chain([&form]).cloned().collect();
        Self {
            head: Arc::clone(&self.head),
            head_bytes: self.head_bytes,
            body: self.body.clone(),
            freshness: self.freshness,
            vary: self.vary.clone(),
            asked: self.asked,
            tags: self.tags.clone(),
            forms,
        }
    }
}

/// All that is stored under one key, the newest first. Never changed either. Nearly always it is one entry, which then takes nothing
/// besides itself.
#[derive(Debug)]
pub enum Variants<H> {
    /// The only one.
    One(Arc<Entry<H>>),
    /// Several.
    More(Arc<[Arc<Entry<H>>]>),
}

impl<H> Clone for Variants<H> {
    fn clone(&self) -> Self {
        match self {
            Self::One(entry) => Self::One(Arc::clone(entry)),
            Self::More(entries) => Self::More(Arc::clone(entries)),
        }
    }
}

impl<H> Variants<H> {
    fn entries(&self) -> &[Arc<Entry<H>>] {
        match self {
            Self::One(entry) => std::slice::from_ref(entry),
            Self::More(entries) => entries,
        }
    }

    /// The newest entry that is for this request.
    pub fn find(&self, fits: impl Fn(&Entry<H>) -> bool) -> Option<&Arc<Entry<H>>> {
        self.iter().find(|entry| fits(entry))
    }

    /// The newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry<H>>> {
        self.entries().iter()
    }

    /// The bytes that they hold.
    pub fn weight(&self) -> usize {
        self.iter().map(|entry| entry.weight()).sum()
    }

    /// With one entry more, in front, and without the one for the same requests.
    pub(crate) fn with(&self, entry: Arc<Entry<H>>) -> Self {
        let others: Vec<_> = self.iter().filter(|other| other.vary != entry.vary).cloned().collect();
        if others.is_empty() {
            return Self::One(entry);
        }
        Self::More([entry].into_iter().chain(others).take(MOST_VARIANTS).collect())
    }

    /// Only those that stay; None: none does.
    pub(crate) fn only(&self, stays: impl Fn(&Arc<Entry<H>>) -> bool) -> Option<Self> {
        let mut others: Vec<_> = self.iter().filter(|entry| stays(entry)).cloned().collect();
        match others.len() {
            0 | 1 => others.pop().map(Self::One),
            _ => Some(Self::More(others.into())),
        }
    }

    /// With this one in place of that, which must be there still.
    pub(crate) fn exchange(&self, old: &Arc<Entry<H>>, new: &Arc<Entry<H>>) -> Option<Self> {
        let put = |entry| Arc::clone(if Arc::ptr_eq(entry, old) { new } else { entry });
        self.iter().any(|entry| Arc::ptr_eq(entry, old)).then(|| match self {
            Self::One(_) => Self::One(Arc::clone(new)),
            Self::More(entries) => Self::More(entries.iter().map(put).collect()),
        })
    }
}

impl<H> From<Arc<Entry<H>>> for Variants<H> {
    fn from(entry: Arc<Entry<H>>) -> Self {
        Self::One(entry)
    }
}
