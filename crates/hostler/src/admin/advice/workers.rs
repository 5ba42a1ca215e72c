//! Advice about workers: how they end, what they take, and what their event loops do. Knows no queue.

use std::time::Duration;

use hostler_worker::{HeavyStart, WorkerState};

use super::figures::{PoolFigures, WorkerFigures};
use super::finding::{Finding, bytes, line, percent, sentences, time};
use super::history::{View, WorkerEnds, WorkerHistory, rhythm};
use super::table;

const BLOCKED: Duration = Duration::from_millis(200);

pub(super) fn find(view: View<'_>, found: &mut Vec<Finding>) {
    for pool in &view.now.pools {
        let Some(workers) = &pool.workers else { continue };
        for worker in workers {
            if let Some(past) = view.workers.get(&(pool.name.clone(), worker.index)) {
                ends(pool, worker, past, found);
            }
            now(pool, worker, found);
        }
        together(view, pool, workers, found);
    }
}

fn ends(pool: &PoolFigures, worker: &WorkerFigures, past: &WorkerHistory, found: &mut Vec<Finding>) {
    let (name, index) = (&pool.name, worker.index);
    let all: Vec<WorkerEnds> = past.deaths.iter().copied().collect();
    let deaths: Vec<WorkerEnds> = all.iter().copied().filter(|ends| !ends.recycled).collect();
    let each =
        all.iter().rev().flat_map(|ends| std::iter::repeat_n(ends.grown_to, ends.times.min(3) as usize));
    let last: Vec<u64> = each.take(3).flatten().collect();
    if let [_, _, _] = last[..] {
        let most = bytes(last.iter().sum::<u64>() / 3);
        let text = match rhythm(&all) {
            (_, Some(every)) => {
                format!("restarts every {}, each time with about {most} of memory: a leak?", time(every))
            }
            (times, None) => format!(
                "restarted {times} times within seconds, each time with about {most} of memory: a leak?"
            ),
        };
        found.push(Finding::of_worker(table::WORKER_LEAKS, name, index, &text));
    } else if let (times @ 3.., every) = rhythm(&deaths) {
        let every = every.map_or("within seconds".to_owned(), |every| format!("about every {}", time(every)));
        let exit =
            worker.last_exit.as_deref().map_or(String::new(), |exit| format!(" (last: {})", line(exit)));
        let text = format!("had to be started again {times} times in the last 15 minutes, {every}{exit}");
        found.push(Finding::of_worker(table::WORKER_RESTARTS, name, index, &text));
    }
}

fn now(pool: &PoolFigures, worker: &WorkerFigures, found: &mut Vec<Finding>) {
    let (name, index) = (&pool.name, worker.index);
    if worker.crashes >= 3 && worker.state != WorkerState::Ready && pool.has_ready_worker() {
        let why = worker.last_error.as_ref().or(worker.last_exit.as_ref());
        let why = why.map_or(String::new(), |why| format!(": {}", sentences(why)));
        let text = format!("failed {} times in a row{why}", worker.crashes);
        found.push(Finding::of_worker(table::BOOTS_FAIL, name, index, &text));
    }
    if worker.state != WorkerState::Ready {
        return;
    }
    if let Some(heap) = worker.heap
        && heap.limit > 0
        && percent(heap.used, heap.limit) >= 90
    {
        let (share, limit) = (percent(heap.used, heap.limit), bytes(heap.limit));
        let text = format!("uses {share} % of its heap limit {limit}: at the limit V8 ends the process");
        found.push(Finding::of_worker(table::HEAP_FULL, name, index, &text));
    }
    // With one slot and nothing beside it, a busy event loop holds up no other request. Without requests the figures are old.
    let shares = worker.in_use > 1 || worker.long_lived > 0;
    if let Some(delay) = worker.loop_delay.filter(|delay| shares && *delay >= BLOCKED) {
        let text =
            format!("blocks its event loop: it sometimes needs {} or longer to answer Hostler", time(delay));
        found.push(Finding::of_worker(table::EVENT_LOOP_BLOCKED, name, index, &text));
    }
}

fn together(view: View<'_>, pool: &PoolFigures, workers: &[WorkerFigures], found: &mut Vec<Finding>) {
    let name = &pool.name;
    if let Some(reason) = pool.misfit() {
        found.push(Finding::of_pool(table::CONCURRENCY, name, &sentences(reason)));
    }
    // The next look at new code may show less.
    if let Some(HeavyStart { limit, memory }) = pool.heavy_start.filter(|_| !pool.deploying) {
        let (memory, limit) = (bytes(memory), bytes(limit));
        let text = format!(
            "a worker takes {memory} from its start on, more than max_memory ({limit}): replacing it does not help"
        );
        found.push(Finding::of_pool(table::MAX_MEMORY_TOO_LOW, name, &text));
    }
    let of_pool = || view.workers.iter().filter(|((pool, _), _)| pool == name);
    let hangs: usize = of_pool().map(|(_, past)| past.hangs.len()).sum();
    let last = workers.iter().filter(|worker| worker.hung_ago.is_some()).min_by_key(|worker| worker.hung_ago);
    if let Some(last) = last.filter(|_| hangs >= 2) {
        let place = last.stack.as_deref().map_or(String::new(), |place| format!(" in {}", line(place)));
        let index = last.index;
        let text = format!("workers hung {hangs} times in 15 minutes, {name}/{index} last{place}");
        found.push(Finding::of_pool(table::WORKERS_HANG, name, &text));
    }
    if let Some(request) = pool.kept_off.first() {
        let others = match pool.kept_off.len() {
            1 => String::new(),
            2 => " and 1 other".to_owned(),
            count => format!(" and {} others", count - 1),
        };
        let text = format!("{}{others} made workers die, so Hostler refuses such requests", line(request));
        found.push(Finding::of_pool(table::REQUESTS_KILL, name, &text));
    }
    // An app that has never worked needs no second worker.
    let died = of_pool().any(|(_, past)| past.was_ready && past.deaths.iter().any(|end| !end.recycled));
    if workers.len() == 1 && pool.spares.is_empty() && died && !pool.deploying {
        let text = "the only worker died, and requests waited until it had booted again";
        found.push(Finding::of_pool(table::ONE_WORKER, name, text));
    }
    let held_up = view.before.pool(name).map_or(0, |before| before.boots.held_up);
    let held_up = pool.boots.held_up.saturating_sub(held_up);
    if held_up >= 3 {
        let text = format!(
            "{held_up} boots of the last minute had to wait, because boots after deaths use up restart_cpu"
        );
        found.push(Finding::of_pool(table::BOOTS_HELD_UP, name, &text));
    }
    if let Some(why) = &pool.failed_restart {
        let text = format!("the last restart failed: {}", sentences(why));
        found.push(Finding::of_pool(table::RESTART_FAILED, name, &text));
    }
}
