//! One stored response. Knows no store, and of HTTP only what the policy has read.

use std::num::NonZeroU64;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Freshness, Moment, Tick, Vary};

/// What an entry needs besides its head, body, labels and key, in bytes: the entry itself, what the store keeps for each
/// key, and what the allocator rounds up. Measured; `crates/hostler/tests/weight.rs` checks it.
const OVERHEAD: usize = 640;

/// What the allocator needs for one allocation besides its bytes, on average.
const PIECE: usize = 16;

/// A stored response. It never changes, so a reader can keep it; a changed response replaces it in the store.
#[derive(Debug)]
pub struct Entry<H> {
    /// The head as it came, without the fields that must not be stored.
    pub head: Arc<H>,
    /// The memory of the head, in bytes.
    pub head_bytes: usize,
    /// The body as the member sent it.
    pub body: Bytes,
    /// How long it may be served, and under which conditions.
    pub freshness: Freshness,
    /// Which requests it may be served to.
    pub vary: Vary,
    /// When the response was requested, and which purges were known then. A purge voids entries that were requested
    /// before it.
    pub asked: FetchMark,
    /// The tags by which it can be purged.
    pub tags: Box<[Box<str>]>,
    /// The body in other content codings, as far as they were made.
    pub forms: Box<[StoredForm<H>]>,
}

/// When a response was requested from a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchMark {
    /// The time by the clock of the Hostler that requested it.
    pub at: Moment,
    /// The same by the monotonic clock of this process. Zero for an entry of another Hostler.
    #[serde(skip)]
    pub tick: Tick,
    /// How far that Hostler had read the shared purge log. `None`: not at all, so other Hostlers must not use the
    /// response.
    pub under: Option<LogPosition>,
}

impl FetchMark {
    /// The mark for a response that is requested now.
    pub fn now(under: Option<LogPosition>) -> Self {
        Self { at: Moment::now(), tick: Tick::now(), under }
    }
}

/// A position in the purge log of one memcached server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// Which log. A log that was lost starts again with a new epoch.
    pub epoch: NonZeroU64,
    /// The number of the latest record.
    pub number: u64,
}

/// The body of an entry in another content coding, with the head for it.
#[derive(Debug)]
pub struct StoredForm<H> {
    /// The name of the coding, as in `Content-Encoding`.
    pub coding: &'static str,
    /// The head for this coding.
    pub head: Arc<H>,
    /// The encoded body.
    pub body: Bytes,
}

/// The memory of the tags of an entry, in bytes.
pub fn size_of_tags(tags: &[Box<str>]) -> usize {
    tags.iter().map(|tag| tag.len() + size_of::<Box<str>>() + PIECE).sum()
}

impl<H> Clone for StoredForm<H> {
    fn clone(&self) -> Self {
        Self { coding: self.coding, head: Arc::clone(&self.head), body: self.body.clone() }
    }
}

impl<H> Entry<H> {
    /// The memory of the entry, in bytes.
    pub fn weight(&self) -> usize {
        let form =
            |form: &StoredForm<H>| self.head_bytes + form.body.len() + size_of::<StoredForm<H>>() + 4 * PIECE;
        self.weight_without_forms() + self.forms.iter().map(form).sum::<usize>()
    }

    /// The memory of the entry as it came, in bytes.
    pub(crate) fn weight_without_forms(&self) -> usize {
        OVERHEAD + self.head_bytes + self.body.len() + self.vary.size() + size_of_tags(&self.tags)
    }

    /// Whether it is this entry, perhaps with other forms: a form may be added while a member is asked about the entry.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.head, &other.head) && (self.freshness, self.asked) == (other.freshness, other.asked)
    }

    /// The form in this coding, if it exists.
    pub fn form(&self, coding: &str) -> Option<&StoredForm<H>> {
        self.forms.iter().find(|form| form.coding == coding)
    }

    /// A copy with one more form.
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
