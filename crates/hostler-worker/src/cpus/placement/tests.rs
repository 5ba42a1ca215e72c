//! Cases of workers on machines. Knows no process.

use super::*;

/// Each word is a core.
fn cores(text: &str) -> Cores {
    Cores { cores: text.split(' ').map(|core| core.parse().unwrap()).collect(), quota: None }
}

fn lists(texts: &[&str]) -> CpuSetting {
    CpuSetting::Lists(texts.iter().map(|text| text.parse().unwrap()).collect())
}

struct Worker(CpuSetting, CpuPhase, Option<CpuList>);

fn auto() -> Worker {
    Worker(CpuSetting::Auto, CpuPhase::Serves, None)
}

fn has(cpus: &str) -> Worker {
    Worker(CpuSetting::Auto, CpuPhase::Serves, Some(cpus.parse().unwrap()))
}

fn boots() -> Worker {
    Worker(CpuSetting::Auto, CpuPhase::Boots, None)
}

fn rests() -> Worker {
    Worker(CpuSetting::Auto, CpuPhase::Rests, Some("0".parse().unwrap()))
}

fn with(setting: CpuSetting) -> Worker {
    Worker(setting, CpuPhase::Serves, None)
}

/// The places of the workers of one pool.
fn placed(cores: &Cores, workers: &[Worker], disturbed: Option<&str>) -> Vec<Placement> {
    let mut wishes = Vec::new();
    for (at, Worker(setting, phase, has)) in workers.iter().enumerate() {
        wishes.push(CpuWish { setting, index: at + 1, phase: *phase, has: has.as_ref(), exempt: None });
    }
    place(cores, &wishes, disturbed)
}

/// The CPUs of each worker. `any`: all that Hostler may use.
fn cpus(cores: &Cores, workers: &[Worker]) -> String {
    let show = |place: Placement| place.cpus.map_or("any".into(), |cpus| cpus.to_string());
    placed(cores, workers, None).into_iter().map(show).collect::<Vec<_>>().join(" ")
}

fn why(cores: &Cores, workers: &[Worker], disturbed: Option<&str>) -> String {
    let places = placed(cores, workers, disturbed);
    assert!(places.iter().all(|place| place.cpus.is_none()), "{places:?}");
    places.iter().find_map(|place| place.why.clone()).unwrap_or_default()
}

#[test]
fn each_worker_gets_a_core_of_its_own_if_there_are_enough() {
    assert_eq!(cpus(&cores("0 1"), &[auto(), auto()]), "0 1");
    assert_eq!(cpus(&cores("4 5 6 7"), &[auto(), auto()]), "4 5");
    assert_eq!(cpus(&cores("0,8 1,9 2,10"), &[auto(), auto()]), "0,8 1,9", "a core is its hyperthreads");
}

#[test]
fn more_workers_than_cores_share_all_cores() {
    assert_eq!(why(&cores("0 1"), &[auto(), auto(), auto()], None), "3 workers share 2 cores");
    assert_eq!(why(&cores("0,1"), &[auto()], None), "there is only one core");
    assert_eq!(why(&cores("0,2 1,3"), &[auto(), auto(), auto(), auto()], None), "4 workers share 2 cores");
    assert_eq!(why(&cores("0 1"), &[auto(), auto(), with(CpuSetting::Off)], None), "3 workers share 2 cores");
}

#[test]
fn a_worker_keeps_its_core_when_others_come_and_go() {
    let machine = cores("0 1 2 3");
    assert_eq!(cpus(&machine, &[auto(), has("0"), has("2")]), "1 0 2");
    assert_eq!(cpus(&machine, &[has("3"), has("3"), auto()]), "3 0 1", "two workers never share a core");
    assert_eq!(cpus(&machine, &[has("7"), has("1")]), "0 1", "core 7 is gone");
}

#[test]
fn while_a_worker_boots_no_worker_is_bound_to_a_core() {
    assert!(why(&cores("0 1 2 3"), &[has("0"), boots()], None).starts_with("a worker boots"));
}

#[test]
fn a_worker_that_gets_no_requests_has_no_core() {
    assert_eq!(cpus(&cores("0 1"), &[has("0"), has("1"), rests()]), "0 1 any");
}

#[test]
fn a_limit_below_the_number_of_cpus_means_that_others_use_them() {
    let limited = |quota| Cores { quota: Some(quota), ..cores("0 1 2 3") };
    assert!(why(&limited(1.5), &[auto()], None).contains("control group (1.5) is less than the 4 CPUs"));
    assert_eq!(cpus(&limited(4.0), &[auto()]), "0");
    assert_eq!(cpus(&limited(8.0), &[auto()]), "0");
}

#[test]
fn workers_that_are_disturbed_are_not_bound() {
    assert_eq!(why(&cores("0 1"), &[has("0"), has("1")], Some("they waited")), "they waited");
}

#[test]
fn lists_are_kept_always_and_their_cores_are_for_no_other_worker() {
    let (one, two) = (lists(&["3"]), lists(&["0", "1-2"]));
    let machine = cores("0 1 2 3");
    assert_eq!(cpus(&machine, &[with(one.clone()), auto(), auto()]), "3 0 1");
    assert_eq!(
        cpus(&machine, &[with(two.clone()), with(two.clone()), with(two.clone()), auto()]),
        "0 1,2 0 3"
    );
    let all = [with(one.clone()), auto(), auto(), auto(), auto()];
    let places = placed(&machine, &all, Some("disturbed"));
    assert_eq!(places[0].cpus, Some("3".parse().unwrap()), "also if others are disturbed");
    assert_eq!(places[1].why.as_deref(), Some("4 workers share the 3 cores that no list names"));
    let booting = Worker(two, CpuPhase::Boots, None);
    assert_eq!(cpus(&machine, &[booting]), "any", "a boot takes any core");
    assert_eq!(cpus(&cores("0"), &[with(one)]), "3", "the kernel decides whether that is possible");
}

proptest::proptest! {
    /// No two workers with `"auto"` share a core, and none has a core that a list names.
    #[test]
    fn cores_are_never_shared(count in 1..9_usize, workers in proptest::collection::vec((0..5_u8, 0..9_usize), 0..9)) {
        let machine = Cores { cores: (0..count).map(|cpu| CpuList::from_iter([cpu])).collect(), quota: None };
        let workers: Vec<Worker> = workers.into_iter().map(|(kind, cpu)| match kind {
            0 => with(CpuSetting::Off),
            1 => with(CpuSetting::Lists(vec![CpuList::from_iter([cpu])])),
            2 => rests(),
            _ => has(&cpu.to_string()),
        }).collect();
        let places = placed(&machine, &workers, None);
        let serving = |worker: &Worker| worker.1 == CpuPhase::Serves;
        let of_auto: Vec<&CpuList> = workers.iter().zip(&places)
            .filter(|(worker, _)| worker.0 == CpuSetting::Auto && serving(worker))
            .filter_map(|(_, place)| place.cpus.as_ref()).collect();
        let of_lists: Vec<&CpuList> = workers.iter().zip(&places)
            .filter(|(worker, _)| matches!(worker.0, CpuSetting::Lists(_)))
            .filter_map(|(_, place)| place.cpus.as_ref()).collect();
        for (at, core) in of_auto.iter().enumerate() {
            proptest::prop_assert!(!of_auto[at + 1..].contains(core));
            proptest::prop_assert!(!of_lists.iter().any(|list| list.overlaps(core)));
        }
    }
}
