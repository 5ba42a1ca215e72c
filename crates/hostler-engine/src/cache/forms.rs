//! The encoded forms of a stored answer: each is made once for all clients and stored with the answer. Knows no clients.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hostler_cache::{Flight, FlightRole, StoredForm, Tick};
use hostler_coding::{self as coding, Coding, EncodedStream, StreamError};
use hostler_wire::{BodyLength, Fields, ResponseHead};

use super::{
    BodyFeed, BodyReading, Cut, Entry, FetchOutcome, FillOutcome, Filling, IncomingBody, SharedCache,
    StorageKey, UnreadLimit,
};

/// A form that no client reads is made to its end.
const TO_THE_END: UnreadLimit = UnreadLimit { time: Duration::MAX, bytes: usize::MAX };
/// As long as the answer itself is still coming, a form that no client reads ends soon. Otherwise it would be a reader of the answer, and a
/// member would go on for it.
const SOON: UnreadLimit = UnreadLimit { time: Duration::from_millis(250), bytes: usize::MAX };

/// An answer whose body is in memory or on its way there, as one client gets it.
pub struct SharedBody {
    /// The head, without fields that frame the message.
    pub head: Arc<ResponseHead>,
    pub length: BodyLength,
    pub reading: BodyReading,
    /// Where the answer is stored. None if it will not be stored, or if this client gets another answer than others.
    pub place: Option<StorageKey>,
}

/// The result of [`SharedBody::encoded`].
pub enum Encoded {
    /// The complete form.
    Whole(Arc<ResponseHead>, Bytes),
    /// A form whose body is still being made.
    Arriving(Box<SharedBody>),
    /// It cannot be encoded here. The answer is unchanged.
    Not(Box<SharedBody>),
    /// No encoder or no memory of the cache is free. The answer is unchanged.
    NoRoom(Box<SharedBody>),
}

impl SharedBody {
    /// The answer in this coding: the stored form, or one that `encoder` makes from now on. Mostly the caller has found the stored form
    /// already.
    pub fn encoded(
        self: Box<Self>,
        coding: Coding,
        encoder: impl FnOnce() -> Option<EncodedStream>,
    ) -> Encoded {
        let Some(StorageKey { shared_cache, key }) = self.place.clone() else { return Encoded::Not(self) };
        if let Some(form) = shared_cache.form(&key, &self.head, coding) {
            return Encoded::Whole(form.head, form.body);
        }
        // The head's address is part of the key: a newer answer under the same key has another head.
        let name = [&Arc::as_ptr(&self.head).addr().to_ne_bytes()[..], coding.name().as_bytes()].concat();
        let flight = match shared_cache.flights.join(&name, Tick::now()) {
            FlightRole::Leader(flight) => flight,
            FlightRole::Arriving(FetchOutcome::Form(head, incoming_body)) => {
                return arriving(head, &incoming_body, self);
            }
            // Another request has begun to make this form at the same moment.
            FlightRole::Arriving(_) | FlightRole::Follower(_) | FlightRole::Alone => {
                return Encoded::Not(self);
            }
        };
        let Some(share) = shared_cache.memory.share(0) else { return Encoded::NoRoom(self) };
        let Some(stream) = encoder() else { return Encoded::NoRoom(self) };
        let head = Arc::new(coding::encoded(&self.head, coding));
        let of = self.head.clone();
        let mut encoding = FormEncoding { stream, reading: self.reading, trailers: None };
        let incoming_body = IncomingBody::counted(shared_cache.memory.max_entry(), share);
        let making = Making { shared_cache, key, of, coding, head: head.clone(), flight };
        let reading = incoming_body.reading().expect("invariant: nothing has come yet");
        match incoming_body.begin(&mut encoding) {
            Some(FillOutcome::Whole(body)) => {
                making.keep(body.clone());
                Encoded::Whole(head, body)
            }
            _ => {
                making.flight.arrive(&FetchOutcome::Form(head.clone(), incoming_body.clone()));
                tokio::spawn(making.go_on(incoming_body, encoding));
                Encoded::Arriving(Box::new(SharedBody {
                    head,
                    length: BodyLength::Chunked,
                    reading,
                    place: None,
                }))
            }
        }
    }
}

fn arriving(head: Arc<ResponseHead>, incoming_body: &Arc<IncomingBody>, plain: Box<SharedBody>) -> Encoded {
    match incoming_body.reading() {
        Some(reading) => {
            let body = SharedBody { head, length: BodyLength::Chunked, reading, place: None };
            Encoded::Arriving(Box::new(body))
        }
        None => Encoded::Not(plain),
    }
}

impl SharedCache {
    /// The form of the answer with exactly this head.
    fn form(&self, key: &[u8], of: &Arc<ResponseHead>, coding: Coding) -> Option<StoredForm<ResponseHead>> {
        self.entry(key, of)?.form(coding.name()).cloned()
    }

    fn entry(&self, key: &[u8], of: &Arc<ResponseHead>) -> Option<Arc<Entry>> {
        self.memory.look(key)?.iter().find(|entry| Arc::ptr_eq(&entry.head, of)).cloned()
    }
}

/// A form that is being made.
struct Making {
    shared_cache: Arc<SharedCache>,
    key: Arc<[u8]>,
    of: Arc<ResponseHead>,
    coding: Coding,
    head: Arc<ResponseHead>,
    flight: Flight<FetchOutcome>,
}

impl Making {
    async fn go_on(self, incoming_body: Arc<IncomingBody>, mut encoding: FormEncoding) {
        let limit = if encoding.reading.has_all() { TO_THE_END } else { SOON };
        let mut filling = Filling::new(&incoming_body, limit);
        loop {
            match filling.fill(&mut encoding).await {
                FillOutcome::Whole(body) => return self.keep(body),
                FillOutcome::TooLarge => {}
                FillOutcome::ReadWithoutStoring | FillOutcome::Cut(_) | FillOutcome::Unwanted => return,
            }
        }
    }

    fn keep(self, body: Bytes) {
        if let Some(entry) = self.shared_cache.entry(&self.key, &self.of) {
            let form = StoredForm { coding: self.coding.name(), head: self.head, body };
            self.shared_cache.memory.add_form(&self.key, &entry, form);
        }
        // Requests find the stored form from now on.
        drop(self.flight);
    }
}

/// An encoder as the source of a body.
struct FormEncoding {
    stream: EncodedStream,
    reading: BodyReading,
    trailers: Option<Fields>,
}

impl BodyFeed for FormEncoding {
    fn poll_body(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>, _: usize) -> Poll<Result<bool, Cut>> {
        let Self { stream, reading, trailers } = self;
        let came = stream.poll(cx, into, |cx, plain, max| reading.poll_body(cx, plain, max));
        if let Poll::Ready(Ok(true)) = came {
            *trailers = reading.trailers().and_then(coding::trailers);
        }
        came.map_err(|error| match error {
            StreamError::Source(cut) => cut,
            StreamError::Encoder(error) => Cut(format!("it could not be encoded: {error}").into()),
        })
    }

    fn trailers(&self) -> Option<&Fields> {
        self.trailers.as_ref()
    }
}
