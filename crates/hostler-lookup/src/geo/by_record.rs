//! A cache of values computed from records. Does not know what the values are.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use foldhash::fast::FixedState;

use super::RecordId;

/// A bounded number of values, by record. Two records with the same slot replace each other. So it needs no lock and no
/// order, and a scan over all addresses costs no more than without the cache.
pub struct ByRecord<T> {
    places: Box<[ArcSwapOption<(RecordId, T)>]>,
}

impl<T: Clone> ByRecord<T> {
    /// Room for this many values, rounded up to a power of two.
    pub fn new(room: usize) -> Self {
        Self { places: (0..room.next_power_of_two()).map(|_| ArcSwapOption::empty()).collect() }
    }

    /// The value for a record, from the cache or from `make`. An error is not stored.
    pub fn get<E>(&self, record: RecordId, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let place = self.place(record);
        if let Some(kept) = &*place.load()
            && kept.0 == record
        {
            return Ok(kept.1.clone());
        }
        let made = make()?;
        place.store(Some(Arc::new((record, made.clone()))));
        Ok(made)
    }

    fn place(&self, record: RecordId) -> &ArcSwapOption<(RecordId, T)> {
        // The length is a power of two, so the mask keeps the index in bounds.
        &self.places[FixedState::default().hash_one(record) as usize & (self.places.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_built_once_until_another_replaces_it() {
        let kept = ByRecord::new(1);
        let fail = |_: &str| -> Result<u32, &str> { Err("made again") };
        assert_eq!(kept.get(RecordId(1), || Ok::<_, &str>(10)), Ok(10));
        assert_eq!(kept.get(RecordId(1), || fail("")), Ok(10));
        assert_eq!(kept.get(RecordId(2), || fail("")), Err("made again"));
        assert_eq!(kept.get(RecordId(1), || fail("")), Ok(10));
        assert_eq!(kept.get(RecordId(2), || Ok::<_, &str>(20)), Ok(20));
        assert_eq!(kept.get(RecordId(1), || fail("")), Err("made again"));
    }

    #[test]
    fn each_record_gets_its_own_value() {
        let kept = ByRecord::new(64);
        for _ in 0..2 {
            for id in 0..1000 {
                assert_eq!(kept.get(RecordId(id), || Ok::<_, ()>(id * 2)), Ok(id * 2));
            }
        }
    }
}
