//! An answer that is being read into memory. A task of its own reads it at the member's speed, for all requests that wait for it now or
//! later. Knows no client.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hostler_cache::{
    CacheStatus, FetchMark, Flight, FlightOutcome, Freshness, NotStored, RequestDirectives, Tick, Vary,
    size_of_tags,
};
use hostler_wire::{BodyLength, CallError, Fields, ResponseHead};
use tokio::time::timeout;

use super::show;
use crate::cache::{
    self, BodyFeed, Caching, Cut, Entry, FetchOutcome, FillOutcome, Filling, IncomingAnswer, IncomingBody,
    SharedCache, StorageKey, UnreadLimit,
};
use crate::exchange::{Exchange, LateLesson, RouteAccount};
use crate::gateway::answer::Answer;
use crate::gateway::poison::Following;
use crate::gateway::refusal::Refusal;
use crate::gateway::target::PoolTarget;
use crate::proxy::{CallBox, CallEnding};

/// Memory of an entry besides its head, body and labels, in bytes. It is an upper bound: the store compares the exact size with the limit
/// once more.
const OVERHEAD: usize = 1024;
/// After an answer was too large to store, its URL counts as too large for this long. Range requests for it then go to the member as they
/// are; the whole answer is not fetched for each of them.
const LARGE_MS: u64 = 10 * 60 * 1000;

/// How far a response is read for the store after its last client has left. The limit is low: the response may have no end, and its member
/// holds a slot.
const UNREAD: UnreadLimit = UnreadLimit { time: Duration::from_millis(250), bytes: 256 * 1024 };
/// The same for a response with `Content-Length`, and for one of which the client wanted only the head.
const UNREAD_WITH_END: UnreadLimit = UnreadLimit { time: Duration::from_secs(2), bytes: usize::MAX };

/// An answer that is being read.
pub(super) struct Arrival {
    /// The head for the client that caused the fetch. Other clients never get this one.
    own: Arc<ResponseHead>,
    pub arriving: Arc<IncomingAnswer>,
    tags: Box<[Box<str>]>,
    asked: FetchMark,
    /// The stored answer that this one replaces.
    outdated: Option<Arc<Entry>>,
    /// Other requests wait for this answer, or may join.
    flight: Option<Flight<FetchOutcome>>,
    /// The flight key of a request without a flight, if other requests can use the answer.
    pub shared_key: Option<Vec<u8>>,
}

/// An answer that broke off before any of it was passed on.
pub(super) struct BrokenOff {
    pub refusal: Refusal,
    /// Not settled yet.
    pub flight: Option<Flight<FetchOutcome>>,
}

/// The head of an answer that is to be read into memory, and what decides who may get the answer and for how long.
pub(super) struct ArrivedHead {
    /// For all clients.
    pub stored: Arc<ResponseHead>,
    /// For the client that caused the fetch.
    pub own: Arc<ResponseHead>,
    pub vary: Vary,
    pub freshness: Result<Freshness, NotStored>,
    pub tags: Box<[Box<str>]>,
    pub length: BodyLength,
}

impl Arrival {
    /// None if the answer is too large to store, or if clients still read so many evicted answers that there is no memory for this one. Then
    /// only the client that caused the fetch gets it.
    pub fn new(
        caching: &Arc<Caching>,
        key: &[u8],
        head: ArrivedHead,
        asked: FetchMark,
        outdated: Option<Arc<Entry>>,
        flight: Option<Flight<FetchOutcome>>,
    ) -> Option<Self> {
        let ArrivedHead { stored, own, vary, freshness, tags, length } = head;
        let labels = vary.size() + size_of_tags(&tags);
        let most =
            caching.shared_cache.memory.max_entry().saturating_sub(cache::size(&stored) + labels + OVERHEAD);
        if matches!(length, BodyLength::Known(length) if length > most as u64) {
            settle_too_large(&caching.shared_cache, key, outdated.as_ref(), flight);
            return None;
        }
        let known = if let BodyLength::Known(length) = length { length } else { 0 };
        let Some(share) = caching.shared_cache.memory.share(known) else {
            settle(flight, FlightOutcome::Alone);
            return None;
        };
        let incoming_body = IncomingBody::counted(most, share);
        let place = StorageKey { shared_cache: caching.shared_cache.clone(), key: key.into() };
        let arriving = IncomingAnswer { place, head: stored, length, vary, freshness, incoming_body };
        Some(Self { own, arriving: Arc::new(arriving), tags, asked, outdated, flight, shared_key: None })
    }

    /// Reads what has already arrived. If that is not all, a task reads the rest.
    pub fn fill(
        mut self,
        caching: &Caching,
        exchange: &mut Exchange,
        asks: &RequestDirectives,
        call: CallBox,
        target: &PoolTarget,
    ) -> Result<Result<Answer, Refusal>, BrokenOff> {
        let reading = self.arriving.incoming_body.reading().expect("invariant: nothing has come yet");
        // Only limits of worker time ask for the average.
        let account = exchange.account.as_ref().filter(|_| !exchange.log_facts.charges.is_empty());
        let mut member = FetchSource { call, error: None, account: account.cloned() };
        match self.arriving.incoming_body.begin(&mut member) {
            Some(FillOutcome::Whole(body)) => {
                member.call.finish(exchange);
                let (entry, is_stored) = self.keep(&body);
                note_stored(exchange, is_stored);
                Ok(match entry {
                    Some(entry) if Arc::ptr_eq(&entry.head, &self.own) => {
                        show::stored(caching, exchange, asks, &entry)
                    }
                    _ => show::whole(caching, exchange, asks, &self.own, self.asked.at, &body),
                })
            }
            Some(FillOutcome::Cut(_)) => {
                let error = member.why();
                Err(BrokenOff { refusal: member.call.give_up(exchange, error).into(), flight: self.flight })
            }
            outcome => {
                if outcome == Some(FillOutcome::TooLarge) {
                    self.settle_large();
                }
                // An answer of unknown length may still become too large.
                let is_known_to_fit = matches!(self.arriving.length, BodyLength::Known(_));
                note_stored(exchange, is_known_to_fit && self.arriving.freshness.is_ok());
                let answer = show::arriving(exchange, asks, &self.own, &self.arriving, reading);
                let following = target.poison.following(exchange);
                let expected = exchange.log_facts.expected.as_ref();
                let lesson = expected.and_then(|expected| expected.learner.later(exchange));
                let limits = (target.response_idle_timeout, self.unread_limit());
                tokio::spawn(self.go_on(member, following, limits, lesson));
                Ok(answer)
            }
        }
    }

    /// The response does not fit into the cache, or had to make room because clients hold too much.
    fn settle_large(&mut self) {
        let flight = self.flight.take();
        match self.arriving.incoming_body.has_given_way() {
            true => settle(flight, FlightOutcome::Alone),
            false => {
                let StorageKey { shared_cache, key } = &self.arriving.place;
                settle_too_large(shared_cache, key, self.outdated.as_ref(), flight);
            }
        }
    }

    fn unread_limit(&self) -> UnreadLimit {
        let has_end = matches!(self.arriving.length, BodyLength::Known(_));
        let is_read = self.arriving.incoming_body.unread().is_none();
        match self.arriving.freshness {
            Ok(_) if has_end || !is_read => UNREAD_WITH_END,
            Ok(_) | Err(_) => UNREAD,
        }
    }

    /// Reads to the end. If all clients leave, it has to come soon.
    async fn go_on(
        mut self,
        mut member: FetchSource,
        following: Following,
        (silence_limit, limit): (Duration, UnreadLimit),
        lesson: Option<LateLesson>,
    ) {
        let arriving = self.arriving.clone();
        // The log names the request if its worker is killed before the end.
        let _unfinished = following.name().and_then(|name| member.call.note_unfinished(name));
        let mut filling = Filling::new(&arriving.incoming_body, limit);
        if let Some(flight) = &self.flight {
            flight.arrive(&FetchOutcome::Arriving(arriving.clone()));
        }
        loop {
            match fill(&arriving.incoming_body, &mut filling, &mut member, silence_limit).await {
                FillOutcome::TooLarge => self.settle_large(),
                FillOutcome::Whole(body) => {
                    member.finish(lesson);
                    following.answered();
                    self.keep(&body);
                    return;
                }
                FillOutcome::ReadWithoutStoring => {
                    following.answered();
                    return member.finish(lesson);
                }
                FillOutcome::Cut(_) => {
                    let error = member.why();
                    return following.follow(member.call.break_off(error).1.pending_end);
                }
                FillOutcome::Unwanted => {
                    drop(self.flight.take());
                    return following.follow(member.call.end(CallEnding::Unwanted).pending_end);
                }
            }
        }
    }

    /// The whole answer is in memory. Returns the entry if it may be stored, and whether it is: a purge may have come meanwhile.
    fn keep(&mut self, body: &Bytes) -> (Option<Arc<Entry>>, bool) {
        let IncomingAnswer { place, head, vary, freshness, .. } = &*self.arriving;
        let mut is_stored = false;
        let entry = match freshness {
            Ok(freshness) => {
                if let Some(outdated) = self.outdated.as_ref().filter(|outdated| hides(outdated, vary)) {
                    place.shared_cache.remove(&place.key, outdated);
                }
                let entry = Arc::new(Entry {
                    head: head.clone(),
                    head_bytes: cache::size(head),
                    body: body.clone(),
                    freshness: *freshness,
                    vary: vary.clone(),
                    asked: self.asked,
                    tags: std::mem::take(&mut self.tags),
                    forms: Box::default(),
                });
                is_stored = place.shared_cache.keep(&place.key, entry.clone());
                if let Some(flight_key) = self.shared_key.take().filter(|_| is_stored) {
                    place.shared_cache.flights.share_again(&flight_key);
                }
                Some(entry)
            }
            Err(_) => None,
        };
        let fetch_outcome =
            entry.clone().map_or_else(|| FetchOutcome::Arriving(self.arriving.clone()), FetchOutcome::Stored);
        settle(self.flight.take(), FlightOutcome::Shared(fetch_outcome));
        (entry, is_stored)
    }
}

/// Whether the lookup would prefer the outdated response to one with this `Vary`: a response without `Vary` is tried last.
fn hides(outdated: &Entry, vary: &Vary) -> bool {
    vary.fields.is_empty() && !outdated.vary.fields.is_empty()
}

/// Notes for `Cache-Status` whether the answer is stored (RFC 9211 section 2.4).
fn note_stored(exchange: &mut Exchange, is_stored: bool) {
    if let Some(CacheStatus::Forwarded { stored, .. }) = &mut exchange.log_facts.cache {
        *stored = is_stored;
    }
}

/// Fills the body. Gives up on a member that sends nothing for `silence_limit`. An answer that is too large to store has no such
/// limit: its readers may be slow.
async fn fill(
    incoming_body: &IncomingBody,
    filling: &mut Filling<'_>,
    member: &mut FetchSource,
    silence_limit: Duration,
) -> FillOutcome {
    loop {
        let before = incoming_body.come();
        match timeout(silence_limit, filling.fill(member)).await {
            Ok(outcome) => return outcome,
            Err(_) if incoming_body.come() > before || incoming_body.is_too_large() => {}
            Err(_) => return FillOutcome::Unwanted,
        }
    }
}

struct FetchSource {
    call: CallBox,
    error: Option<CallError>,
    /// Notes for how long the request has held its slot, for those that are given up.
    account: Option<Arc<RouteAccount>>,
}

impl FetchSource {
    /// The error that ended the call.
    fn why(&mut self) -> CallError {
        self.error.take().unwrap_or(CallError::Cut)
    }

    /// All of the answer has come.
    fn finish(self, lesson: Option<LateLesson>) {
        let Some(cost) = self.call.end(CallEnding::Whole).cost else { return };
        if let Some(account) = self.account {
            account.note_hold(cost.hold);
        }
        if let Some(learn) = lesson {
            learn(cost.hold);
        }
    }
}

impl BodyFeed for FetchSource {
    fn poll_body(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>, max: usize) -> Poll<Result<bool, Cut>> {
        self.call.poll_body(cx, into, max).map_err(|error| {
            let cut = Cut(error.to_string().into());
            self.error = Some(error);
            cut
        })
    }

    fn trailers(&self) -> Option<&Fields> {
        self.call.trailers()
    }
}

/// Other requests do not wait for an answer that does not fit. An older one must not stay in its place.
fn settle_too_large(
    shared_cache: &SharedCache,
    key: &[u8],
    outdated: Option<&Arc<Entry>>,
    flight: Option<Flight<FetchOutcome>>,
) {
    if let Some(outdated) = outdated {
        shared_cache.remove(key, outdated);
    }
    settle(flight, FlightOutcome::AloneFor(LARGE_MS));
}

fn settle(flight: Option<Flight<FetchOutcome>>, outcome: FlightOutcome<FetchOutcome>) {
    if let Some(flight) = flight {
        flight.settle(outcome, Tick::now());
    }
}
