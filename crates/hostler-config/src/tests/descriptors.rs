//! How many client connections fit into the file descriptors of the process.

use super::site;
use crate::Config;

/// A pool with the defaults, on a machine with so many cores, in a process that may have so many descriptors.
fn with(cores: usize, open_files: usize) -> Config {
    let mut site = site("pools.web.command = \"node server.js\"");
    site.invocation.load_context.cores = cores;
    site.invocation.load_context.open_files = Some(open_files);
    site.config()
}

#[test]
fn workers_leave_half_of_few_descriptors_to_clients_on_any_number_of_cores() {
    for cores in [1, 4, 8, 16, 64] {
        for open_files in [4_096, 16_384, 1 << 20] {
            let connections = with(cores, open_files).server.max_connections;
            let least = 10_000.min(open_files / 4);
            assert!((least..=10_000).contains(&connections), "{cores} cores, {open_files}: {connections}");
        }
    }
    assert_eq!(with(4, 64).server.max_connections, 8, "always a few");
}

#[test]
fn the_warning_names_a_number_of_descriptors_that_is_enough_and_not_much_more() {
    for (cores, open_files) in [(4, 4_096), (64, 4_096), (64, 20_000)] {
        let warning = with(cores, open_files).warnings.concat();
        let (_, after) = warning.split_once("10000 connections need ").unwrap();
        let enough: usize = after.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(with(cores, enough + 8).server.max_connections, 10_000, "{enough}");
        assert!(with(cores, enough - 200).server.max_connections < 10_000, "{enough}");
    }
}
