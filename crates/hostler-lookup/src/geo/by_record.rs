//! What was made of a record, kept for the next address that has the same one. Knows not what it is.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use foldhash::fast::FixedState;

use super::RecordId;

/// A bounded number of results, by record. Two that want the same place push each other out: no lock, no order, and a scan over all
/// addresses costs nobody more than it would have cost without.
pub struct ByRecord<T> {
    places: Box<[ArcSwapOption<(RecordId, T)>]>,
}

impl<T: Clone> ByRecord<T> {
    /// Room for so many, rounded up to a power of two.
    pub fn new(room: usize) -> Self {
        Self { places: (0..room.next_power_of_two()).map(|_| ArcSwapOption::empty()).collect() }
    }

    /// What is kept for a record, or is made now; what fails is not kept.
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
        // A power of two: the mask keeps it inside.
        &self.places[FixedState::default().hash_one(record) as usize & (self.places.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_once_is_not_made_again_until_another_takes_its_place() {
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
    fn however_many_records_there_are_each_gets_its_own() {
        let kept = ByRecord::new(64);
        for _ in 0..2 {
            for id in 0..1000 {
                assert_eq!(kept.get(RecordId(id), || Ok::<_, ()>(id * 2)), Ok(id * 2));
            }
        }
    }
}
