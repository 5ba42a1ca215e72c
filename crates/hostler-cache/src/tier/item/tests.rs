//! Entries come back from an item unchanged, and anything else is rejected.

use std::num::NonZeroU64;

use super::*;
use crate::{LogPosition, Moment, Selecting, Tick};

const KEY: &[u8] = b"example.org/products?page=2";

fn packing() -> Packing<String> {
    Packing {
        write: |head, into| into.extend_from_slice(head.as_bytes()),
        read: |bytes| String::from_utf8(bytes.to_vec()).ok(),
        bytes: String::len,
    }
}

fn selecting(name: &str, value: Option<&[u8]>) -> Selecting {
    Selecting { name: name.into(), value: value.map(Into::into) }
}

fn entry(at: u64, body: usize) -> Arc<Entry<String>> {
    let freshness = Freshness {
        received: Moment(at + 50),
        initial_age: 7,
        lifetime: 60,
        stale_while_revalidate: 10,
        stale_if_error: 20,
        must_revalidate: true,
        shared: true,
        validates: true,
        ..Freshness::default()
    };
    let fields = Box::new([
        selecting("accept-encoding", Some(b"gzip")),
        selecting("x-odd", Some(&[0xff, 0x00])),
        selecting("x-none", None),
    ]);
    Arc::new(Entry {
        head: Arc::new(format!("200 at {at}")),
        head_bytes: format!("200 at {at}").len(),
        body: Bytes::from(vec![b'b'; body]),
        freshness,
        vary: Vary { secure: at.is_multiple_of(2), route: at, fields },
        asked: FetchMark {
            at: Moment(at),
            tick: Tick::default(),
            under: Some(LogPosition { epoch: NonZeroU64::MIN, number: at }),
        },
        tags: ["a".into(), "ü".into()].into(),
        forms: Box::default(),
    })
}

fn item() -> Vec<u8> {
    write(&packing(), KEY, &[&entry(2, 200), &entry(1, 100)], 10_000).unwrap()
}

#[test]
fn entries_are_read_back_unchanged_newest_first() {
    let entries = read(&packing(), KEY, item()).unwrap();
    let (new, old) = (&entries[0], &entries[1]);
    let original = entry(2, 200);
    assert_eq!((&new.head, &new.body, new.head_bytes), (&original.head, &original.body, original.head_bytes));
    assert_eq!((&new.freshness, &new.vary, new.asked), (&original.freshness, &original.vary, original.asked));
    assert_eq!(new.tags, original.tags);
    assert_eq!((old.asked.at, old.body.len(), entries.len()), (Moment(1), 100, 2));
}

#[test]
fn an_item_with_any_changed_byte_is_unreadable() {
    let item = item();
    for at in 0..item.len() {
        let mut changed = item.clone();
        changed[at] ^= 0x10;
        assert_eq!(read(&packing(), KEY, changed).unwrap_err(), Unreadable::Garbled, "byte {at}");
    }
}

#[test]
fn an_item_that_is_cut_off_or_has_more_is_unreadable() {
    let item = item();
    for length in 0..item.len() {
        assert_eq!(read(&packing(), KEY, item[..length].to_vec()).unwrap_err(), Unreadable::Garbled);
    }
    assert_eq!(read(&packing(), KEY, [item, vec![0]].concat()).unwrap_err(), Unreadable::Garbled);
}

#[test]
fn an_item_of_another_key_is_refused() {
    assert_eq!(read(&packing(), b"example.org/other", item()).unwrap_err(), Unreadable::OtherKey);
}

#[test]
fn variants_that_do_not_fit_are_left_out_and_if_none_fits_there_is_no_item() {
    let (new, old) = (entry(2, 200), entry(1, 100));
    let both: [&Entry<String>; 2] = [&new, &old];
    let least = write(&packing(), KEY, &[&new], usize::MAX).unwrap().len();
    let one = write(&packing(), KEY, &both, least + 50).unwrap();
    assert_eq!(read(&packing(), KEY, one).unwrap().len(), 1);
    assert!(write(&packing(), KEY, &both, 300).is_none());
    let without_large = write(&packing(), KEY, &[&entry(3, 5_000), &old], 2_000).unwrap();
    let entries = read(&packing(), KEY, without_large).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.asked.at).collect::<Vec<_>>(), [Moment(1)]);
}

#[test]
fn item_names_are_short_and_plain_for_any_key() {
    for key in [b"".as_slice(), b"a b\r\nget x", &[0xff; 4000]] {
        let name = name("site", key);
        assert!(name.len() < 100 && name.bytes().all(|byte| byte.is_ascii_graphic()), "{name}");
    }
    assert_ne!(name("site", b"a"), name("site", b"b"));
}

proptest::proptest! {
    #[test]
    fn no_item_bytes_cause_a_panic(bytes: Vec<u8>, sums: bool) {
        let mut item = [MARK.as_slice(), &[0; 4], &bytes].concat();
        if sums {
            let sum = crc32fast::hash(&item[8..]);
            item[4..8].copy_from_slice(&sum.to_be_bytes());
        }
        let _ = read(&packing(), KEY, item);
    }
}

#[test]
fn a_read_item_keeps_only_its_body_in_memory() {
    for (size, is_copied) in [(2_000, true), (500_000, false)] {
        let item = write(&packing(), KEY, &[&entry(1, size)], 1_000_000).unwrap();
        let bytes = item.as_ptr_range();
        let entries = read(&packing(), KEY, item).unwrap();
        assert_eq!(!bytes.contains(&entries[0].body.as_ptr()), is_copied, "{size}");
    }
}
