//! Advice about what Hostler itself needs: files, memory, disk, log, configuration. Knows no pools and no clients.

use hostler_worker::WorkerMemory;

use super::finding::{Finding, bytes, file, percent, sentences, time};
use super::history::View;
use super::table;

const DAY: i64 = 86_400;
const HOUR: i64 = 3600;
/// A certificate is late so long before its end, but not before a third of its life is left: some are valid for six days only.
const LATE: i64 = 14 * DAY;
const LITTLE_DISK: u64 = 256 << 20;

pub(super) fn find(view: View<'_>, found: &mut Vec<Finding>) {
    process(view, found);
    memory(view, found);
    configuration(view, found);
}

fn process(view: View<'_>, found: &mut Vec<Finding>) {
    let (now, before) = (view.now, view.before);
    let failed = now.health_failed.saturating_sub(before.health_failed);
    if let Some(why) = now.not_ready.first().filter(|_| failed > 0) {
        let text = format!("health checks get 503: {}", sentences(why));
        found.push(Finding::new(table::NOT_READY, text));
    }
    if let (Some(open), Some(most)) = (now.open_files, now.max_files)
        && percent(open, most) >= 80
    {
        let text = format!("{open} of {most} file descriptors are open");
        found.push(Finding::new(table::DESCRIPTORS_LOW, text));
    }
    let dropped = now.log_dropped.saturating_sub(before.log_dropped);
    if dropped > 0 {
        let why = now.log_error.as_deref().unwrap_or("the reader of the log is too slow");
        let text = format!("{dropped} lines of the log were lost in the last minute: {why}");
        found.push(Finding::new(table::LOG_DROPPED, text));
    } else if let Some(stuck) = now.log_stuck.filter(|stuck| stuck.as_secs() >= 10) {
        let text = format!("the reader of the log has read nothing for {}", time(stuck));
        found.push(Finding::new(table::LOG_DROPPED, text));
    }
}

fn memory(view: View<'_>, found: &mut Vec<Finding>) {
    let (now, before) = (view.now, view.before);
    if let (Some(used), Some(limit)) = (now.machine.memory_used, now.machine.memory_limit)
        && percent(used, limit) >= 90
    {
        let text = format!("{} of {} memory are in use", bytes(used), bytes(limit));
        found.push(Finding::new(table::MEMORY_LOW, text));
    }
    // A fixed number of workers does not depend on this limit.
    let is_full = |memory: &WorkerMemory| now.has_ranges && percent(memory.used, memory.limit) >= 95;
    if let Some(workers) = now.worker_memory.filter(is_full) {
        let text =
            format!("workers use {} of {} (server.worker_memory)", bytes(workers.used), bytes(workers.limit));
        found.push(Finding::new(table::WORKER_MEMORY_FULL, text));
    }
    let may_take = now.spool.limit.saturating_sub(now.spool.used);
    if let Some(free) = now.machine.temp_free.filter(|free| *free < LITTLE_DISK && *free < may_take) {
        let text = format!("the disk of server.temp_dir has {} left", bytes(free));
        found.push(Finding::new(table::DISK_LOW, text));
    }
    let full = now.spool.full.saturating_sub(before.spool.full);
    if full >= 5 {
        let limit = bytes(now.spool.limit);
        let text = format!(
            "the temporary files had no room {full} times in the last minute (server.spool_size {limit})"
        );
        found.push(Finding::new(table::SPOOL_FULL, text));
    }
    let refused = now.request_memory.refused.saturating_sub(before.request_memory.refused);
    if refused >= 10 {
        let limit = bytes(now.request_memory.limit);
        let text = format!(
            "{refused} requests of the last minute found no room in memory (server.request_memory {limit})"
        );
        found.push(Finding::new(table::REQUEST_MEMORY_FULL, text));
    }
}

fn configuration(view: View<'_>, found: &mut Vec<Finding>) {
    let now = view.now;
    for certificate in &now.certificates {
        let until = certificate.until.as_second();
        let (left, life) = (until - now.time.as_second(), until - certificate.from.as_second());
        if left > 0 && left >= LATE.min(life / 3) {
            continue;
        }
        let name = file(&certificate.file);
        let text = match left / DAY {
            _ if left <= 0 => "the certificate has expired".to_owned(),
            _ if left < HOUR => "the certificate expires in less than an hour".to_owned(),
            0 => format!("the certificate expires in {} hours", left / HOUR),
            days => format!("the certificate expires in {days} days"),
        };
        found.push(Finding::about(table::CERTIFICATE_EXPIRES, &name, &text));
    }
    if let Some(reload) = now.last_reload.as_ref().filter(|reload| !reload.ok) {
        let why = reload.text.first().map_or(String::new(), |why| format!(": {}", sentences(why)));
        let text = format!("the last reload was not applied{why}");
        found.push(Finding::new(table::RELOAD_FAILED, text));
    }
}
