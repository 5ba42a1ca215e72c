//! A few empty buffers for each thread, to be used again. The buffer that was returned last is used first, because it is
//! still in the processor's cache. Does not know what the buffers are used for.

use std::cell::RefCell;
use std::mem;

/// A request uses at most two at the same time: one to write and one to read.
const MOST: usize = 4;
/// Larger buffers are freed: they were used for a large message, and the next one will probably be smaller.
const MOST_BYTES: usize = 64 * 1024;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Gives memory to a buffer that has none.
pub(crate) fn take(buffer: &mut Vec<u8>) {
    if buffer.capacity() == 0
        && let Some(spare) = SPARE.with_borrow_mut(Vec::pop)
    {
        *buffer = spare;
    }
}

/// Empties a buffer and keeps its memory for the next use.
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
    fn a_reused_buffer_is_empty() {
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
    fn spare_buffers_are_limited_in_number_and_size() {
        let spares = || SPARE.with_borrow(Vec::len);
        SPARE.with_borrow_mut(Vec::clear);
        give_back(&mut vec![0; 2 * MOST_BYTES]);
        assert_eq!(spares(), 0, "there was room for it");
        for _ in 0..2 * MOST {
            give_back(&mut vec![0; 10]);
        }
        assert_eq!(spares(), MOST);
    }
}
