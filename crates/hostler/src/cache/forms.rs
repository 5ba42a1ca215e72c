//! What becomes of a stored answer's body in other codings: made once, for all who want it, and kept with the answer. Knows no clients.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hostler_cache::{Flight, Form, Moment, Role};
use hostler_wire::{BodyLength, Fields, ResponseHead};

use super::{Cut, Entry, Filling, Landing, Poured, Reading, Source, Stock};
use crate::coding::{self, Coding, Stream, StreamError};

/// An answer whose body is on its way into memory, or there, for one client among others.
pub struct Shared {
    /// Its head, without fields that frame the message.
    pub head: Arc<ResponseHead>,
    /// How long the body is.
    pub length: BodyLength,
    /// The body.
    pub reading: Reading,
    /// Where it is stored, or will be; none where it will not, or this client gets it otherwise than others.
    pub place: Option<Place>,
}

/// Where an answer is stored.
#[derive(Clone)]
pub struct Place {
    /// The store.
    pub stock: Arc<Stock>,
    /// Under this key.
    pub key: Arc<[u8]>,
}

/// An answer in another coding.
pub enum Encoded {
    /// All of it.
    Whole(Arc<ResponseHead>, Bytes),
    /// As it comes.
    Coming(Box<Shared>),
    /// It is not to be had from here; this is what there was.
    Not(Box<Shared>),
    /// No encoder is to be had now; this is what there was.
    Spared(Box<Shared>),
}

impl Shared {
    /// The same in this coding, as it is made by now or as `encoder` makes it from now on. Mostly it is there, and nobody comes here.
    pub fn encoded(self: Box<Self>, coding: Coding, encoder: impl FnOnce() -> Option<Stream>) -> Encoded {
        let Some(Place { stock, key }) = self.place.clone() else { return Encoded::Not(self) };
        if let Some(form) = stock.form(&key, &self.head, coding) {
            return Encoded::Whole(form.head, form.body);
        }
        // Of this very answer: one that takes its place has another head.
        let name = [&Arc::as_ptr(&self.head).addr().to_ne_bytes()[..], coding.name().as_bytes()].concat();
        let flight = match stock.flights.join(&name, Moment::now()) {
            Role::Leader(flight) => flight,
            Role::Arriving(Landing::Form(head, filling)) => return coming(head, &filling, self),
            // Somebody begins in this moment.
            Role::Arriving(_) | Role::Follower(_) | Role::Alone => return Encoded::Not(self),
        };
        let Some(stream) = encoder() else { return Encoded::Spared(self) };
        let head = Arc::new(coding::encoded(&self.head, coding));
        let of = self.head.clone();
        let mut encoding = Encoding { stream, reading: self.reading };
        let filling = Filling::new(stock.memory.max_entry());
        let making = Making { stock, key, of, coding, head: head.clone(), flight };
        let reading = filling.reading().expect("invariant: nothing has come yet");
        match filling.begin(&mut encoding) {
            Some(Poured::Whole(body)) => {
                making.keep(body.clone());
                Encoded::Whole(head, body)
            }
            _ => {
                making.flight.arrive(&Landing::Form(head.clone(), filling.clone()));
                tokio::spawn(making.go_on(filling, encoding));
                Encoded::Coming(Box::new(Shared { head, length: BodyLength::Chunked, reading, place: None }))
            }
        }
    }
}

fn coming(head: Arc<ResponseHead>, filling: &Arc<Filling>, plain: Box<Shared>) -> Encoded {
    match filling.reading() {
        Some(reading) => {
            Encoded::Coming(Box::new(Shared { head, length: BodyLength::Chunked, reading, place: None }))
        }
        None => Encoded::Not(plain),
    }
}

impl Stock {
    /// A form of the answer with this very head.
    fn form(&self, key: &[u8], of: &Arc<ResponseHead>, coding: Coding) -> Option<Form<ResponseHead>> {
        self.entry(key, of)?.form(coding.name()).cloned()
    }

    fn entry(&self, key: &[u8], of: &Arc<ResponseHead>) -> Option<Arc<Entry>> {
        self.memory.look(key)?.find(|entry| Arc::ptr_eq(&entry.head, of)).cloned()
    }
}

/// A form that is being made.
struct Making {
    stock: Arc<Stock>,
    key: Arc<[u8]>,
    of: Arc<ResponseHead>,
    coding: Coding,
    head: Arc<ResponseHead>,
    flight: Flight<Landing>,
}

impl Making {
    async fn go_on(self, filling: Arc<Filling>, mut encoding: Encoding) {
        let pouring = filling.pouring();
        loop {
            match pouring.pour(&mut encoding).await {
                Poured::Whole(body) => return self.keep(body),
                Poured::TooLarge => {}
                Poured::Passed | Poured::Cut(_) | Poured::Unwanted => return,
            }
        }
    }

    fn keep(self, body: Bytes) {
        if let Some(entry) = self.stock.entry(&self.key, &self.of) {
            let form = Form { coding: self.coding.name(), head: self.head, body };
            self.stock.memory.add_form(&self.key, &entry, form);
        }
        // Whoever comes from now on finds it there.
        drop(self.flight);
    }
}

/// An encoder as the source of a body.
struct Encoding {
    stream: Stream,
    reading: Reading,
}

impl Source for Encoding {
    fn poll_body(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>, _: usize) -> Poll<Result<bool, Cut>> {
        let Self { stream, reading } = self;
        let came = stream.poll(cx, into, |cx, plain, max| reading.poll_body(cx, plain, max));
        came.map_err(|error| match error {
            StreamError::Source(cut) => cut,
            StreamError::Encoder(error) => Cut(format!("it could not be encoded: {error}").into()),
        })
    }

    fn trailers(&self) -> Option<&Fields> {
        self.reading.trailers()
    }
}
