//! Workers that do not fit into the memory of the control group.

use super::site;

/// What is said about the memory of this pool on 32 cores, with this limit in MiB.
fn warning(workers: &str, limit: Option<u64>) -> Option<String> {
    let mut site = site(&format!("pools.web.command = \"node server.js\"\n{workers}\n"));
    site.invocation.load_context.cores = 32;
    site.invocation.load_context.memory = limit.map(|limit| limit << 20);
    site.config().warnings.into_iter().find(|warning| warning.contains("control group"))
}

#[test]
fn more_workers_than_the_memory_has_room_for_are_told() {
    let told = warning("", Some(1024)).unwrap();
    let expected = "pools.web.workers: 32 workers take about 1536 MiB or more, and the control group (the container or the unit) \
                    may use 1024 MiB";
    assert!(told.contains(expected), "{told}");
    assert_eq!(warning("", Some(2048)), None);
    assert_eq!(warning("", None), None);
    assert_eq!(warning("pools.web.workers = 4", Some(1024)), None);
    assert_eq!(warning("pools.web.workers = { min = 1 }", Some(1024)), None, "it grows with its load");
}
