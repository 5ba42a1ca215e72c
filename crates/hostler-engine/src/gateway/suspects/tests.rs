//! What makes a suspect, what makes a conviction and what ends both, with the time set by the test.

use super::*;

const RULE: Rule = Rule { kills: 2, keep_off: Duration::from_secs(60) };

/// Who caused a death, and how many requests the worker had.
#[derive(Clone, Copy)]
enum How {
    /// By the worker itself, with one request.
    Alone,
    /// By the worker itself, with several requests.
    InCompany,
    /// From outside, with one request.
    Outside,
}
use How::{Alone, InCompany, Outside};

struct Court {
    suspects: Suspects,
    start: Instant,
}

/// A request with this URL, path and client, by one route.
fn request(url: u64, path: u64, client: u64) -> RequestIdentity {
    let keys = [url, 1000 + path, 2000, 3000 + client];
    let names =
        [format!("GET /{path}?{url}"), format!("GET /{path}"), "*".into(), format!("client {client}")];
    RequestIdentity { keys, names: names.map(Into::into), is_batch: false }
}

/// A request that has only the route in common with others.
fn single(url: u64) -> RequestIdentity {
    request(url, url, url)
}

impl Court {
    fn new() -> Self {
        Self { suspects: Suspects::default(), start: Instant::now() }
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    /// A process died at `at` over a request that was sent at `since`. Returns what is kept off because of it.
    fn death(&mut self, of: &RequestIdentity, pid: u32, (since, at): (u64, u64), how: How) -> Vec<String> {
        let (own, alone) = (!matches!(how, Outside), !matches!(how, InCompany));
        let death = Death { pid, since: self.at(since), at: self.at(at), own, alone };
        let now = self.at(at);
        let verdicts = self.suspects.record(of, &death, alone, RULE, now);
        verdicts.iter().map(|(name, _)| name.to_string()).collect()
    }

    fn standing(&mut self, of: &RequestIdentity, second: u64) -> &'static str {
        let now = self.at(second);
        match self.suspects.standing(&of.keys, now) {
            SuspectStanding::Unknown => "unknown",
            SuspectStanding::Suspect => "suspect",
            SuspectStanding::Convicted(_) => "convicted",
        }
    }

    fn enters(&mut self, of: &RequestIdentity, second: u64) -> Result<Option<u64>, bool> {
        let now = self.at(second);
        match self.suspects.enter(&of.keys, false, 9, now) {
            Admission::Free => Ok(None),
            Admission::Alone(number) => Ok(Some(number)),
            Admission::Closed { risky } => Err(risky),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_deaths_in_a_row_caused_by_a_request_block_it_for_a_while() {
    let (mut court, bad) = (Court::new(), single(1));
    assert!(court.death(&bad, 10, (0, 1), Alone).is_empty());
    assert_eq!(court.standing(&bad, 1), "suspect");
    assert_eq!(court.death(&bad, 11, (1, 2), Alone), ["GET /1?1"]);
    let kept_off = court.suspects.kept_off(court.at(3));
    assert_eq!((kept_off[0].for_ms, &kept_off[0].killed), (59_000, &vec![10, 11]));
    assert_eq!((court.standing(&bad, 61), court.standing(&bad, 62)), ("convicted", "unknown"));
    assert_eq!(court.suspects.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn two_outside_kills_block_nothing_and_a_third_does() {
    let (mut court, unlucky) = (Court::new(), single(1));
    assert!(court.death(&unlucky, 10, (0, 1), Outside).is_empty());
    assert!(court.death(&unlucky, 11, (1, 2), Outside).is_empty());
    assert_eq!(court.death(&unlucky, 12, (2, 3), Outside), ["GET /1?1"]);
    // One death from outside, and one by the worker itself.
    let other = single(2);
    assert!(court.death(&other, 13, (3, 4), Outside).is_empty());
    assert!(court.death(&other, 14, (4, 5), Alone).is_empty());
    assert_eq!(court.death(&other, 15, (5, 6), Alone), ["GET /2?2"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_a_common_accident_or_the_same_worker_is_no_second_death() {
    let (mut court, it) = (Court::new(), single(1));
    court.death(&it, 10, (0, 1), Alone);
    assert!(court.death(&it, 11, (0, 1), Alone).is_empty(), "it was sent before the first died");
    assert!(court.death(&it, 10, (1, 2), Alone).is_empty(), "it is the same worker");
    court.suspects.acquit(&it.keys, court.at(3));
    assert!(court.death(&it, 12, (3, 4), Alone).is_empty(), "it was answered since");
}

#[tokio::test(start_paused = true)]
async fn a_death_over_several_requests_makes_suspects_and_blocks_none() {
    let mut court = Court::new();
    for url in 1..=3 {
        assert!(court.death(&single(url), 10, (0, 1), InCompany).is_empty());
        assert!(court.death(&single(url), 11, (1, 2), InCompany).is_empty());
    }
    assert_eq!(court.death(&single(2), 12, (2, 3), Alone), ["GET /2?2"]);
    assert_eq!([court.standing(&single(1), 3), court.standing(&single(2), 3)], ["suspect", "convicted"]);
}

#[tokio::test(start_paused = true)]
async fn with_kills_1_a_death_over_several_requests_blocks_none() {
    let mut court = Court::new();
    let rule = Rule { kills: 1, ..RULE };
    let death = |alone| Death { pid: 10, since: court.start, at: court.start, own: true, alone };
    assert!(court.suspects.record(&single(1), &death(false), false, rule, court.start).is_empty());
    assert_eq!(court.suspects.record(&single(2), &death(true), true, rule, court.start).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn different_urls_of_one_path_are_admitted_one_at_a_time_until_the_path_is_blocked() {
    let mut court = Court::new();
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|url| request(url, 1, url));
    assert_eq!(court.enters(&first, 0), Ok(None));
    court.death(&first, 10, (0, 1), Alone);
    let turn = court.enters(&second, 1).unwrap().expect("in its turn");
    assert_eq!(court.enters(&third, 1), Err(true), "one at a time");
    assert_eq!(court.enters(&single(9), 1), Ok(None), "all others are let in as before");
    assert!(court.death(&second, 11, (1, 2), Alone).is_empty());
    court.suspects.leave(&second.keys, turn);
    assert!(court.enters(&third, 2).is_ok());
    assert_eq!(court.death(&third, 12, (2, 3), Alone), ["GET /1"]);
    assert_eq!((court.standing(&fourth, 62), court.standing(&single(9), 4)), ("convicted", "suspect"));
    // After the time of `keep_off`, one more death convicts it again.
    assert_eq!(court.standing(&fourth, 63), "suspect");
    assert!(court.enters(&fourth, 63).unwrap().is_some());
    assert_eq!(court.death(&fourth, 13, (63, 64), Alone), ["GET /1"]);
}

#[tokio::test(start_paused = true)]
async fn a_trial_lasts_half_as_long_again_as_the_slowest_death_and_a_minute_beside_a_held_worker() {
    let mut court = Court::new();
    let [bad, next] = [1, 2].map(|url| request(url, 1, url));
    let tried = |court: &mut Court, of: &RequestIdentity| court.suspects.begin_trial(&of.keys).0.as_secs();
    court.death(&bad, 10, (0, 4), Alone);
    assert_eq!(tried(&mut court, &next), 7);
    court.death(&request(3, 1, 3), 11, (4, 6), Alone);
    assert_eq!(tried(&mut court, &single(9)), 7, "the route has killed two");
    court.suspects.hold(&bad, WorkerHold::Waits, court.at(6), court.at(90), court.at(30));
    assert_eq!(tried(&mut court, &next), 60);
    court.suspects.release(&bad.keys, WorkerHold::Waits);
    assert_eq!(tried(&mut court, &next), 28, "two trials before it have shown nothing");
    court.death(&bad, 12, (40, 99), Alone);
    assert_eq!(tried(&mut court, &next), 60, "no longer than that");
    court.suspects.acquit(&next.keys, court.at(100));
    assert_eq!(tried(&mut court, &next), 0, "there is no suspicion any more");
}

#[tokio::test(start_paused = true)]
async fn a_client_over_whose_requests_alone_workers_died_is_refused_and_others_are_not() {
    let mut court = Court::new();
    let [bad, good, third] = [7, 8, 9].map(|client| request(1, 1, client));
    assert!(court.death(&bad, 10, (0, 1), Alone).is_empty());
    assert_eq!(court.death(&bad, 11, (1, 2), Alone), ["GET /1?1"]);
    assert_eq!(&*court.suspects.kept_off(court.at(2))[0].request, "GET /1?1 from client 7");
    assert_eq!((court.standing(&bad, 3), court.standing(&good, 3)), ("convicted", "suspect"));
    let turn = court.enters(&good, 3).unwrap().expect("in its turn");
    court.suspects.acquit(&good.keys, court.at(4));
    court.suspects.leave(&good.keys, turn);
    assert_eq!((court.standing(&bad, 4), court.enters(&good, 4)), ("convicted", Ok(None)));
    // Workers die over requests of several clients.
    assert!(court.death(&good, 12, (5, 6), Alone).is_empty());
    assert_eq!(court.death(&third, 13, (6, 7), Alone), ["GET /1?1"]);
    assert_eq!(court.standing(&request(1, 1, 10), 8), "convicted");
}

#[tokio::test(start_paused = true)]
async fn one_more_death_convicts_a_client_again_on_its_path() {
    let mut court = Court::new();
    let of_client = |url| request(url, 1, 7);
    let mut death = |url: u64, second| court.death(&of_client(url), url as u32, (second, second), Alone);
    assert!(death(1, 1).is_empty() && death(2, 2).is_empty());
    assert_eq!((death(3, 3), death(4, 70)), (vec!["GET /1".into()], vec!["GET /1".into()]));
    assert_eq!(
        (court.standing(&of_client(5), 71), court.standing(&request(5, 1, 8), 71)),
        ("convicted", "suspect")
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_clears_the_path_of_its_request() {
    let mut court = Court::new();
    let good = request(2, 1, 2);
    for pid in 10..20 {
        let second = u64::from(pid);
        // The URL is a new one each time, so only the path counts.
        let bad = request(100 + second, 1, second);
        assert!(court.death(&bad, pid, (second, second), Alone).is_empty());
        court.suspects.acquit(&good.keys, court.at(second));
        assert_eq!(court.enters(&good, second), Ok(None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_holds_a_worker_too_long_makes_similar_ones_wait() {
    let mut court = Court::new();
    let [held, next] = [1, 2].map(|url| request(url, 1, 7));
    court.suspects.hold(&held, WorkerHold::Blocks, court.at(0), court.at(90), court.at(30));
    assert_eq!(court.enters(&next, 30), Err(true));
    court.suspects.release(&held.keys, WorkerHold::Blocks);
    assert_eq!(court.enters(&next, 40), Ok(None), "it has finished, or the death of the worker is known");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_blocks_workers_closes_their_path_for_no_other_until_that_blocks_one_too() {
    let mut court = Court::new();
    let [bad, worse] = [1, 2].map(|url| request(url, 1, 7));
    let [second, third] = [8, 9].map(|client| request(3, 1, client));
    for held in [&bad, &worse] {
        court.suspects.hold(held, WorkerHold::Blocks, court.at(0), court.at(90), court.at(30));
    }
    assert_eq!(court.enters(&bad, 30), Err(true));
    let turn = court.enters(&second, 30).unwrap().expect("in its turn");
    assert_eq!(court.enters(&third, 30), Err(true), "one at a time");
    court.suspects.hold(&second, WorkerHold::Blocks, court.at(30), court.at(120), court.at(60));
    court.suspects.leave(&second.keys, turn);
    assert_eq!(court.enters(&third, 60), Err(true), "requests of two clients block workers");
    court.suspects.release(&second.keys, WorkerHold::Blocks);
    assert!(court.enters(&third, 61).unwrap().is_some(), "in its turn");
}

#[tokio::test(start_paused = true)]
async fn no_request_of_a_path_that_blocks_a_worker_gets_the_last_one_that_serves() {
    let mut court = Court::new();
    let [bad, worse, other] = [7, 7, 8].map(|client| request(client, 1, client));
    let is_let_in_at = |court: &mut Court, of: &RequestIdentity, members, second| {
        let now = court.at(second);
        match court.suspects.enter(&of.keys, false, members, now) {
            Admission::Closed { .. } => return false,
            Admission::Alone(number) => court.suspects.leave(&of.keys, number),
            Admission::Free => {}
        }
        true
    };
    let is_let_in = |court: &mut Court, of: &RequestIdentity, members| is_let_in_at(court, of, members, 30);
    court.suspects.hold(&bad, WorkerHold::Blocks, court.at(0), court.at(90), court.at(30));
    assert_eq!([2, 3].map(|members| is_let_in(&mut court, &other, members)), [false, true]);
    assert!(is_let_in(&mut court, &other, 1), "a pool of one has no other to keep");
    assert!(is_let_in(&mut court, &single(9), 2), "requests of other paths go on");
    court.suspects.hold(&worse, WorkerHold::Blocks, court.at(1), court.at(90), court.at(30));
    assert_eq!([3, 4].map(|members| is_let_in(&mut court, &other, members)), [false, true]);
    assert!(is_let_in(&mut court, &single(9), 3), "also of the same route, one at a time");
    assert_eq!([60, 61].map(|second| is_let_in_at(&mut court, &other, 3, second)), [false, true], "a minute");
    for held in [&bad, &worse] {
        court.suspects.release(&held.keys, WorkerHold::Blocks);
    }
    assert!(is_let_in(&mut court, &other, 2));
}

#[tokio::test(start_paused = true)]
async fn while_a_request_waits_in_its_worker_for_too_long_similar_ones_are_tried_one_at_a_time() {
    let mut court = Court::new();
    let [held, next, third] = [1, 2, 3].map(|url| request(url, 1, url));
    court.suspects.hold(&held, WorkerHold::Waits, court.at(0), court.at(90), court.at(30));
    let turn = court.enters(&next, 30).unwrap().expect("in its turn");
    assert_eq!(court.enters(&third, 30), Err(true), "one at a time");
    court.suspects.acquit(&next.keys, court.at(31));
    court.suspects.leave(&next.keys, turn);
    assert_eq!(court.enters(&third, 31), Ok(None), "a similar request was answered");
    court.suspects.release(&held.keys, WorkerHold::Waits);
    assert_eq!(court.enters(&third, 40), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_route_that_holds_workers_admits_one_request_at_a_time_until_an_answer() {
    let mut court = Court::new();
    for held in [single(1), single(2)] {
        court.suspects.hold(&held, WorkerHold::Blocks, court.at(0), court.at(90), court.at(30));
    }
    assert_eq!(court.enters(&single(1), 30), Err(true), "a request of its path holds a worker");
    let turn = court.enters(&single(3), 30).unwrap().expect("in its turn");
    assert_eq!(court.enters(&single(4), 30), Err(true), "one at a time");
    court.suspects.acquit(&single(3).keys, court.at(31));
    court.suspects.leave(&single(3).keys, turn);
    assert_eq!(court.enters(&single(4), 31), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_held_worker_makes_no_request_wait_while_similar_ones_are_answered() {
    let mut court = Court::new();
    let [held, good, next] = [1, 2, 3].map(|url| request(url, 1, 1));
    court.suspects.watch(&held, court.at(60), court.at(8));
    court.suspects.acquit(&good.keys, court.at(20));
    court.suspects.hold(&held, WorkerHold::Blocks, court.at(0), court.at(90), court.at(30));
    assert_eq!(court.enters(&next, 30), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_client_with_many_different_paths_is_admitted_one_at_a_time_and_then_blocked() {
    let mut court = Court::new();
    let of_client = |url| request(url, url, 7);
    let mut kept_off = Vec::new();
    for url in 1..=4 {
        let second = url * 2;
        let turn = court.enters(&of_client(url), second).unwrap();
        assert_eq!(turn.is_some(), url > 2, "two deaths may be chance");
        if turn.is_some() {
            assert_eq!(court.enters(&of_client(90 + url), second), Err(true));
        }
        kept_off = court.death(&of_client(url), url as u32, (second, second + 1), Alone);
        court.suspects.leave(&of_client(url).keys, turn.unwrap_or(0));
        // Others on the same route are answered all the time.
        court.suspects.acquit(&single(50).keys, court.at(second + 1));
    }
    assert_eq!(kept_off, ["client 7"]);
    assert_eq!(
        (court.standing(&of_client(5), 10), court.standing(&single(50), 10)),
        ("convicted", "unknown")
    );
    assert_eq!(court.enters(&single(50), 10), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_route_that_kills_workers_admits_one_request_at_a_time_until_an_answer() {
    let mut court = Court::new();
    for url in 1..=9 {
        let second = url * 2;
        let turn = court.enters(&single(url), second).unwrap();
        assert_eq!(turn.is_some(), url > 2, "two deaths may be chance");
        if turn.is_some() {
            assert_eq!(court.enters(&single(90 + url), second), Err(true), "one at a time");
        }
        let kept_off = court.death(&single(url), url as u32, (second, second + 1), Alone);
        assert!(kept_off.is_empty(), "a route is never blocked: {kept_off:?}");
        court.suspects.leave(&single(url).keys, turn.unwrap_or(0));
    }
    court.suspects.acquit(&single(50).keys, court.at(20));
    assert_eq!(court.enters(&single(51), 20), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn the_number_of_suspects_is_limited() {
    let mut court = Court::new();
    for url in 0..3 * MAX_SUSPECTS as u64 {
        court.death(&single(url), 10, (0, url / 1000), Alone);
    }
    assert_eq!(court.suspects.len(), MAX_SUSPECTS);
    assert_eq!(court.standing(&single(3 * MAX_SUSPECTS as u64 - 1), 7), "suspect");
}
