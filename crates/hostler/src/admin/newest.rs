//! Picks the newest of the workers that have the same number, or the others. Knows no figures of workers.

use std::collections::BTreeMap;

/// One worker of each number, the one with the highest generation: while a worker is replaced, the status lists both. A successor that waits for
/// its first start has generation 0, so the old worker is picked until then. `place` returns the number and the generation, perhaps with
/// something that counts more.
pub fn newest<'a, W: 'a, G: Ord>(
    workers: impl IntoIterator<Item = &'a W>,
    place: impl Fn(&W) -> (usize, G),
) -> impl Iterator<Item = &'a W> {
    let mut newest: BTreeMap<usize, (G, &W)> = BTreeMap::new();
    for worker in workers {
        let (index, generation) = place(worker);
        if newest.get(&index).is_none_or(|(other, _)| *other < generation) {
            newest.insert(index, (generation, worker));
        }
    }
    newest.into_values().map(|(_, worker)| worker)
}

/// The workers that have a newer one with their number. Such a worker may still serve, while its successor boots.
pub fn replaced<W, G: Ord>(workers: &[W], place: impl Fn(&W) -> (usize, G)) -> impl Iterator<Item = &W> {
    workers.iter().filter(move |worker| {
        let (index, generation) = place(worker);
        workers.iter().map(&place).any(|(other, newer)| other == index && newer > generation)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_workers_with_one_number_the_newest_is_taken() {
        let workers = [(2, 4, "leaves"), (1, 7, "waits"), (2, 5, "boots"), (3, 2, "stays"), (3, 0, "queues")];
        let taken: Vec<_> = newest(&workers, |(index, generation, _)| (*index, *generation)).collect();
        assert_eq!(taken, [&(1, 7, "waits"), &(2, 5, "boots"), &(3, 2, "stays")]);
        let others: Vec<_> = replaced(&workers, |(index, generation, _)| (*index, *generation)).collect();
        assert_eq!(others, [&(2, 4, "leaves"), &(3, 0, "queues")]);
    }
}
