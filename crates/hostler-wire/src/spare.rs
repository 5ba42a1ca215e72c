//! Buffers that are empty between two uses, kept a few for each thread: whoever needs one gets that which was given back last, and is
//! still in the processor's cache. Knows not what is in them.

use std::cell::RefCell;
use std::mem;

/// More than a request is under way with at once: one that is written, one that is read.
const MOST: usize = 4;
/// Larger ones are freed: they were made for a large message, and the next is not likely to be one.
const MOST_BYTES: usize = 64 * 1024;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Gives a buffer memory that has none.
pub(crate) fn take(buffer: &mut Vec<u8>) {
    if buffer.capacity() == 0
        && let Some(spare) = SPARE.with_borrow_mut(Vec::pop)
    {
        *buffer = spare;
    }
}

/// Empties a buffer, and takes its memory for the next.
pub(crate) fn give_back(buffer: &mut Vec<u8>) {
    let mut spare = mem::take(buffer);
    spare.clear();
    if (1..=MOST_BYTES).contains(&spare.capacity()) {
        SPARE.with_borrow_mut(|spares| {
            if spares.len() < MOST {
                spares.push(spare);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_round_and_what_was_in_it_does_not() {
        let mut buffer = b"secret".repeat(100);
        let (at, capacity) = (buffer.as_ptr(), buffer.capacity());
        give_back(&mut buffer);
        assert_eq!((buffer.len(), buffer.capacity()), (0, 0));
        let mut other = Vec::new();
        take(&mut other);
        assert_eq!((other.as_ptr(), other.len(), other.capacity()), (at, 0, capacity));
        take(&mut buffer);
        assert_eq!(buffer.capacity(), 0, "there is but one");
    }

    #[test]
    fn neither_many_nor_large_ones_are_kept() {
        for _ in 0..2 * MOST {
            give_back(&mut vec![0; 10]);
        }
        give_back(&mut vec![0; 2 * MOST_BYTES]);
        SPARE.with_borrow(|spares| {
            assert_eq!(spares.len(), MOST);
            assert!(spares.iter().all(|spare| spare.capacity() < MOST_BYTES));
        });
    }
}
