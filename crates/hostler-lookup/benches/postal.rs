//! Measures how long the postal table takes to build and to query: `cargo bench -p hostler-lookup --bench postal --
//! US.txt`.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_types,
    reason = "it measures wall time, and a failure ends it"
)]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use hostler_lookup::Mapping;
use hostler_lookup::postal::{Point, PostalFile, pack};

const TIMES: u32 = 200_000;

fn main() {
    let paths: Vec<PathBuf> =
        std::env::args_os().skip(1).map(PathBuf::from).filter(|path| path.is_file()).collect();
    if paths.is_empty() {
        println!("name files of GeoNames: cargo bench -p hostler-lookup --bench postal -- US.txt");
        return;
    }
    let started = Instant::now();
    let image = pack(&paths).unwrap();
    println!("made of text      {:>9.1?}, {} bytes", started.elapsed(), image.as_bytes().len());
    let file = std::env::temp_dir().join(format!("hostler-bench-{}.pack", std::process::id()));
    image.write(&file).unwrap();
    drop(image);
    let started = Instant::now();
    let postal = PostalFile::open(std::slice::from_ref(&file), Mapping::InPlace).unwrap();
    println!("opened as a pack  {:>9.1?}, {} places", started.elapsed(), postal.len());
    ask(&postal);
    std::fs::remove_file(&file).unwrap();
}

fn ask(postal: &PostalFile) {
    let (table, country) = postal.countries().max_by_key(|(_, country)| country.codes).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let all: Vec<_> = table.each(&table.prefix(country, "")).collect();
    let mut any = || all[random.usize(..all.len())];
    let asked: Vec<_> = (0..TIMES).map(|_| any()).collect();
    let time = |what: &str, times: u32, mut ask: Box<dyn FnMut(usize) + '_>| {
        let started = Instant::now();
        (0..times as usize).for_each(&mut ask);
        println!("{what:<17} {:>9.1?}", started.elapsed() / times);
    };
    time("a code", TIMES, Box::new(|at| drop(black_box(table.code(country, asked[at].code)))));
    time(
        "a US code, direct",
        TIMES,
        Box::new(|at| {
            black_box(table.zip(at as u32 % 100_000));
        }),
    );
    time(
        "a place",
        TIMES,
        Box::new(|at| {
            black_box(table.place(at as u32 % table.len()));
        }),
    );
    let city = |at: usize| {
        let region = table.region(country, asked[at].state)?;
        table.city(&region, asked[at].city)
    };
    time(
        "a city",
        TIMES / 10,
        Box::new(|at| {
            black_box(city(at));
        }),
    );
    let point = |at: usize| asked[at].point.unwrap_or(Point::new(1.0, 1.0).unwrap());
    time(
        "nearest 1",
        TIMES / 10,
        Box::new(|at| drop(black_box(table.near(point(at), Some(country), 1, None)))),
    );
    time(
        "nearest 10",
        TIMES / 10,
        Box::new(|at| drop(black_box(table.near(point(at), Some(country), 10, None)))),
    );
    time(
        "within 25 km",
        TIMES / 10,
        Box::new(|at| drop(black_box(table.near(point(at), Some(country), 1000, Some(25.0))))),
    );
    for text in ["s", "san", "portland or", "972"] {
        time(
            &format!("typed {text:?}"),
            200,
            Box::new(|_| drop(black_box(table.suggest(country, text, None, 10)))),
        );
    }
}
