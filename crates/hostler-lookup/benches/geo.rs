//! Measures how long databases of places take to open, to verify and to query: `cargo bench -p hostler-lookup --bench geo
//! -- v4.mmdb v6.mmdb`.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_types,
    reason = "it measures wall time, and a failure ends it"
)]

use std::hint::black_box;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Instant;

use hostler_lookup::Mapping;
use hostler_lookup::geo::{ByRecord, DatabaseError, GeoDatabases, verify};

const TIMES: u32 = 400_000;

/// Visitors that come again and again, compared with one query for each of many addresses.
const VISITORS: usize = 10_000;

fn main() {
    let paths: Vec<PathBuf> =
        std::env::args_os().skip(1).map(PathBuf::from).filter(|path| path.is_file()).collect();
    if paths.is_empty() {
        println!("name MMDB files: cargo bench -p hostler-lookup --bench geo -- city.mmdb");
        return;
    }
    let started = Instant::now();
    let databases = GeoDatabases::open(&paths, Mapping::InPlace).unwrap();
    println!("opened            {:>9.1?}", started.elapsed());
    let started = Instant::now();
    verify(&paths, Mapping::InPlace).unwrap();
    println!("verified          {:>9.1?}", started.elapsed());

    let mut random = fastrand::Rng::with_seed(1);
    let world: Vec<IpAddr> = (0..TIMES).map(|_| IpAddr::from(random.u32(..).to_be_bytes())).collect();
    let visitors: Vec<IpAddr> = (0..TIMES).map(|_| world[random.usize(..VISITORS)]).collect();
    for (who, addresses) in [("all the world", &world), ("10,000 visitors", &visitors)] {
        println!("{who}");
        let kept = ByRecord::new(1 << 15);
        ask("  found", addresses, |ip| {
            black_box(databases.find(ip).unwrap());
        });
        ask("  found and read", addresses, |ip| {
            let found = databases.find(ip).unwrap().unwrap();
            black_box(found.place().unwrap().city(&["en"]));
        });
        ask("  found and kept", addresses, |ip| {
            let found = databases.find(ip).unwrap().unwrap();
            let Some(record) = found.record() else { return };
            let city = kept.get(record, || found.place().map(|place| place.city(&["en"]).map(str::to_owned)));
            drop(black_box::<Result<_, DatabaseError>>(city));
        });
    }
}

fn ask(what: &str, addresses: &[IpAddr], mut look: impl FnMut(IpAddr)) {
    let started = Instant::now();
    addresses.iter().for_each(|ip| look(*ip));
    println!("{what:<17} {:>9.1?}", started.elapsed() / TIMES);
}
