//! An answer on its way into memory: read from its member at that one's speed, by a task of its own, for all who wait for it and for
//! those to come. Knows no client.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hostler_cache::{
    FetchMark, Flight, FlightOutcome, Freshness, Moment, NotStored, RequestDirectives, Vary,
};
use hostler_wire::{BodyLength, CallError, Fields, ResponseHead};
use tokio::time::timeout;

use super::show;
use crate::cache::{
    self, BodyFeed, Caching, Coming, Cut, Entry, FetchOutcome, IncomingBody, Poured, Pouring, StorageKey,
};
use crate::exchange::Exchange;
use crate::gateway::answer::Answer;
use crate::gateway::poison::Following;
use crate::gateway::refusal::Refusal;
use crate::gateway::target::PoolTarget;
use crate::proxy::{Call, CallEnding};

/// What an entry takes besides its head and body, roughly.
const OVERHEAD: usize = 1024;
/// For how long what was too large to be kept is taken to be still: its parts are asked for as they are wanted, and not the whole for
/// each of them.
const LARGE_MS: u64 = 10 * 60 * 1000;

/// An answer that arrives.
pub(super) struct Arrival {
    /// The head that its own client gets, and nobody else.
    own: Arc<ResponseHead>,
    pub coming: Arc<Coming>,
    tags: Box<[Box<str>]>,
    asked: FetchMark,
    /// Others wait for it, or may come.
    flight: Option<Flight<FetchOutcome>>,
}

/// One that broke off before anybody was given any of it.
pub(super) struct BrokenOff {
    pub refusal: Refusal,
    /// Not settled.
    pub flight: Option<Flight<FetchOutcome>>,
}

/// For which requests an answer is, on which terms, its tags and its length.
pub(super) type Parts = (Vary, Result<Freshness, NotStored>, Box<[Box<str>]>, BodyLength);

impl Arrival {
    /// One that begins; none if it is too large to be kept, which then is its own client's alone.
    pub fn new(
        caching: &Arc<Caching>,
        key: &[u8],
        (stored, own): (Arc<ResponseHead>, Arc<ResponseHead>),
        (vary, freshness, tags, length): Parts,
        asked: FetchMark,
        flight: Option<Flight<FetchOutcome>>,
    ) -> Option<Self> {
        let labels: usize = vary.size() + tags.iter().map(|tag| tag.len() + 16).sum::<usize>();
        let most = caching.stock.memory.max_entry().saturating_sub(cache::size(&stored) + labels + OVERHEAD);
        if matches!(length, BodyLength::Known(length) if length > most as u64) {
            settle(flight, FlightOutcome::AloneFor(LARGE_MS));
            return None;
        }
        let place = StorageKey { stock: caching.stock.clone(), key: key.into() };
        let coming =
            Coming { place, head: stored, length, vary, freshness, incoming_body: IncomingBody::new(most) };
        Some(Self { own, coming: Arc::new(coming), tags, asked, flight })
    }

    /// Reads what there is; and where that is not all, goes on apart.
    pub fn pour(
        mut self,
        caching: &Caching,
        exchange: &mut Exchange,
        asks: &RequestDirectives,
        call: Box<Call>,
        target: &PoolTarget,
    ) -> Result<Result<Answer, Refusal>, BrokenOff> {
        let reading = self.coming.incoming_body.reading().expect("invariant: nothing has come yet");
        let mut member = FetchSource { call, error: None };
        match self.coming.incoming_body.begin(&mut member) {
            Some(Poured::Whole(body)) => {
                member.call.finish(exchange);
                Ok(match self.keep(&body) {
                    Some(entry) if Arc::ptr_eq(&entry.head, &self.own) => {
                        show::stored(caching, exchange, asks, &entry)
                    }
                    _ => show::whole(exchange, asks, &self.own, self.asked.at, &body),
                })
            }
            Some(Poured::Cut(_)) => {
                let error = member.why();
                Err(BrokenOff { refusal: member.call.give_up(exchange, error).into(), flight: self.flight })
            }
            poured => {
                if poured == Some(Poured::TooLarge) {
                    settle(self.flight.take(), FlightOutcome::AloneFor(LARGE_MS));
                }
                let answer = show::coming(exchange, asks, &self.own, &self.coming, reading);
                let following = target.poison.following(exchange);
                tokio::spawn(self.go_on(member, following, target.call.hang_timeout));
                Ok(answer)
            }
        }
    }

    /// To the end, whoever is there to read.
    async fn go_on(mut self, mut member: FetchSource, following: Following, wait_budget: Duration) {
        let coming = self.coming.clone();
        let pouring = coming.incoming_body.pouring();
        if let Some(flight) = &self.flight {
            flight.arrive(&FetchOutcome::Coming(coming.clone()));
        }
        loop {
            match pour(&coming.incoming_body, &pouring, &mut member, wait_budget).await {
                Poured::TooLarge => settle(self.flight.take(), FlightOutcome::AloneFor(LARGE_MS)),
                Poured::Whole(body) => {
                    member.call.end(CallEnding::Whole);
                    self.keep(&body);
                    return;
                }
                Poured::Passed => {
                    member.call.end(CallEnding::Whole);
                    return;
                }
                Poured::Cut(_) => {
                    let error = member.why();
                    return following.follow(member.call.break_off(error).1.pending_end);
                }
                Poured::Unwanted => {
                    return following.follow(member.call.end(CallEnding::Unwanted).pending_end);
                }
            }
        }
    }

    /// All of it is there; the entry, where it is stored.
    fn keep(&mut self, body: &Bytes) -> Option<Arc<Entry>> {
        let Coming { place, head, vary, freshness, .. } = &*self.coming;
        let entry = match freshness {
            Ok(freshness) => {
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
                place.stock.keep(&place.key, entry.clone());
                Some(entry)
            }
            Err(_) => None,
        };
        let fetch_outcome =
            entry.clone().map_or_else(|| FetchOutcome::Coming(self.coming.clone()), FetchOutcome::Stored);
        settle(self.flight.take(), FlightOutcome::Shared(fetch_outcome));
        entry
    }
}

/// Pours; a member that says nothing for so long is not waited for any more. What is too large is waited for by its readers.
async fn pour(
    incoming_body: &IncomingBody,
    pouring: &Pouring<'_>,
    member: &mut FetchSource,
    wait_budget: Duration,
) -> Poured {
    loop {
        let before = incoming_body.come();
        match timeout(wait_budget, pouring.pour(member)).await {
            Ok(poured) => return poured,
            Err(_) if incoming_body.come() > before || incoming_body.is_too_large() => {}
            Err(_) => return Poured::Unwanted,
        }
    }
}

/// A member as the source of a body.
struct FetchSource {
    call: Box<Call>,
    error: Option<CallError>,
}

impl FetchSource {
    /// What has gone wrong, as its call has said it.
    fn why(&mut self) -> CallError {
        self.error.take().unwrap_or(CallError::Cut)
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

fn settle(flight: Option<Flight<FetchOutcome>>, outcome: FlightOutcome<FetchOutcome>) {
    if let Some(flight) = flight {
        flight.settle(outcome, Moment::now());
    }
}
