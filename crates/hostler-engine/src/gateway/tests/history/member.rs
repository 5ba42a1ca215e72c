//! A simulated member: a task for each of its connections, which reads requests strictly and answers them as their scripts say.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use hostler_wire::{BodyLength, BodyReader, Limits, RequestHead, request_body};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::record::{SharedRecord, ensure, id_in, lock};
use super::script::{MemberAnswer, Script, Then, UNASKED, pattern};
use super::steps::{Ask, Settings};
use crate::proxy::tests::{Dialled, MemberSide, SimulatedMember, WireSettings, wire};

/// How long a member that has said so takes to close a connection.
const CLOSES_AFTER: Duration = Duration::from_millis(3);

pub struct Member {
    number: usize,
    seed: u64,
    capacity: usize,
    record: SharedRecord,
    connections: AtomicU64,
    state: Mutex<MemberBehaviour>,
    changed: Notify,
}

#[derive(Default)]
struct MemberBehaviour {
    /// No connection can be made until then, and whether nothing answers.
    outage: Option<(Instant, bool)>,
    orders: Vec<IdleOrder>,
}

/// What an idle connection is to do.
#[derive(Clone, Copy)]
pub enum IdleOrder {
    /// Close. The proxy learns of it after this long.
    Close(Duration),
    /// Send an answer without a request.
    Unasked,
}

impl SimulatedMember for Member {
    fn dial(self: Arc<Self>) -> Dialled {
        let outage = self.state.lock().unwrap().outage.filter(|(until, _)| *until > Instant::now());
        if let Some((_, is_silent)) = outage {
            let mut record = lock(&self.record);
            record.refused += 1;
            record.tell(|| format!("member {} refuses a connection, silent: {is_silent}", self.number));
            return if is_silent { Dialled::Silent } else { Dialled::Refused };
        }
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let seed = self.seed ^ (number << 8) ^ self.number as u64;
        let record = self.record.clone();
        let discarded = Arc::new(move |bytes: &[u8]| lock(&record).discard(bytes));
        let (stream, side) = wire(WireSettings { capacity: self.capacity, seed, discarded });
        tokio::spawn(Connection { member: self, wire: side, inbox: vec![], unfit: None }.serve(seed));
        Dialled::Accepted(stream, Duration::from_millis(seed % 3))
    }
}

impl Member {
    pub fn new(number: usize, seed: u64, settings: &Settings, record: SharedRecord) -> Arc<Self> {
        let (connections, state, changed) = (AtomicU64::new(0), Mutex::default(), Notify::new());
        Arc::new(Self { number, seed, capacity: settings.capacity, record, connections, state, changed })
    }

    pub fn fail_until(&self, until: Instant, is_silent: bool) {
        self.state.lock().unwrap().outage = Some((until, is_silent));
    }

    pub fn order(&self, order: IdleOrder) {
        self.state.lock().unwrap().orders.push(order);
        self.changed.notify_waiters();
    }

    fn orders(&self) -> usize {
        self.state.lock().unwrap().orders.len()
    }

    fn order_after(&self, seen: usize) -> Option<IdleOrder> {
        self.state.lock().unwrap().orders.get(seen).copied()
    }
}

/// One connection.
struct Connection {
    member: Arc<Member>,
    wire: MemberSide,
    inbox: Vec<u8>,
    /// Why no further request may come.
    unfit: Option<&'static str>,
}

/// What ended a wait between two requests.
enum Woken {
    Bytes,
    Gone,
    Order(IdleOrder),
}

impl Connection {
    async fn serve(mut self, seed: u64) {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut count = 0;
        loop {
            match self.idle(count > 0).await {
                Woken::Gone => return,
                Woken::Order(IdleOrder::Unasked) => {
                    self.write(UNASKED).await;
                    self.unfit = Some("an answer without a request");
                }
                Woken::Order(IdleOrder::Close(after)) => {
                    lock(&self.member.record)
                        .tell(|| format!("member {} closes a connection", self.member.number));
                    if !after.is_zero() {
                        self.wire.deafen();
                        sleep_until(Instant::now() + after).await;
                    }
                    match dice.bool() {
                        true => self.wire.close(),
                        false => self.wire.reset(),
                    }
                    return;
                }
                Woken::Bytes => {
                    if let Some(why) = self.unfit {
                        let member = self.member.number;
                        self.broken(format!("member {member} gets a request on a connection after {why}"));
                        return;
                    }
                    if !self.request(&mut dice).await {
                        return;
                    }
                    count += 1;
                    if count == 2 {
                        lock(&self.member.record).seen.reused += 1;
                    }
                }
            }
        }
    }

    fn broken(&self, what: String) {
        lock(&self.member.record).note(Err(what));
    }

    /// Waits for the next request. Orders from before do not count, and none counts before the first request: the proxy may just be about
    /// to send it.
    async fn idle(&mut self, obeys: bool) -> Woken {
        let seen = self.member.orders();
        if !self.inbox.is_empty() {
            return Woken::Bytes;
        }
        loop {
            let mut changed = pin!(self.member.changed.notified());
            let (member, wire, inbox) = (&self.member, &self.wire, &mut self.inbox);
            let woken = poll_fn(|cx| match wire.poll_read(cx, inbox) {
                Poll::Ready(0) => Poll::Ready(Some(Woken::Gone)),
                Poll::Ready(_) => Poll::Ready(Some(Woken::Bytes)),
                Poll::Pending => match member.order_after(seen).filter(|_| obeys) {
                    Some(order) => Poll::Ready(Some(Woken::Order(order))),
                    None => changed.as_mut().poll(cx).map(|()| None),
                },
            });
            if let Some(woken) = woken.await {
                return woken;
            }
        }
    }

    /// Reads more of the request. False: nothing more comes.
    async fn read(&mut self) -> bool {
        let (wire, inbox) = (&self.wire, &mut self.inbox);
        poll_fn(|cx| wire.poll_read(cx, inbox)).await > 0
    }

    /// Reads a request and answers it. False: the connection has ended.
    async fn request(&mut self, dice: &mut fastrand::Rng) -> bool {
        let end = loop {
            if let Some(end) = self.inbox.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if !self.read().await {
                return false;
            }
        };
        let mut head = RequestHead::default();
        let text = String::from_utf8_lossy(&self.inbox[..end]).into_owned();
        let length = match head.parse(&self.inbox[..end], &Limits::default()).map(|()| request_body(&head)) {
            Ok(Ok(length)) => length,
            _ => {
                self.broken(format!("member {} gets what is no request: {text:?}", self.member.number));
                return false;
            }
        };
        self.inbox.drain(..end);
        let arrived = id_in(&text).and_then(|id| lock(&self.member.record).arrive(self.member.number, id));
        let Some((ask, script, answer, attempt)) = arrived else { return false };
        let request = (ask.id, attempt);
        let goes_on = self.serve_one(dice, &ask, &script, &answer, length, attempt).await;
        lock(&self.member.record).leave_slot(self.member.number, request);
        goes_on
    }

    async fn serve_one(
        &mut self,
        dice: &mut fastrand::Rng,
        ask: &Ask,
        script: &Script,
        answer: &MemberAnswer,
        length: BodyLength,
        attempt: usize,
    ) -> bool {
        let mut body = IncomingRequest { reader: BodyReader::new(length), bytes: vec![] };
        if !script.is_early && !self.take_body(&mut body, ask).await {
            return false;
        }
        if !self.works(script, script.works).await {
            return false;
        }
        let request = (ask.id, attempt);
        let is_good = matches!(answer.then, Then::Keep | Then::Close) && answer.is_whole;
        if !is_good && answer.then != Then::Hang {
            // What follows frees the slot at the latest.
            lock(&self.member.record).leave_slot(self.member.number, request);
        }
        if !self.send(dice, script, answer, body.reader.has_ended(), request).await {
            return false;
        }
        match answer.then {
            Then::Reset => {
                self.wire.reset();
                false
            }
            Then::Hang => {
                poll_fn(|cx| self.wire.poll_gone(cx)).await;
                false
            }
            Then::Close => {
                if answer.is_whole
                    && (script.says_close || script.is_old)
                    && body.reader.has_ended()
                    && self.inbox.is_empty()
                {
                    self.closes().await;
                }
                self.wire.close();
                false
            }
            Then::Keep | Then::KeepUnfit => {
                if answer.then == Then::KeepUnfit {
                    self.unfit = Some("an answer that is not one, or that was longer than it said");
                }
                self.take_body(&mut body, ask).await
            }
        }
    }

    /// Reads the body of a request, and compares it with what the client has sent. False: it does not come whole.
    async fn take_body(&mut self, body: &mut IncomingRequest, ask: &Ask) -> bool {
        loop {
            let Ok(used) = body.reader.take(&self.inbox, &mut body.bytes) else {
                self.broken(format!("the body of request {} breaks the chunked coding", ask.id));
                return false;
            };
            self.inbox.drain(..used);
            if body.reader.has_ended() {
                break;
            }
            if !self.read().await {
                return false;
            }
        }
        let is_right = body.bytes == pattern("body", ask.id, 0, ask.body);
        lock(&self.member.record)
            .note(ensure(is_right, || format!("request {} arrives with another body", ask.id)));
        true
    }

    /// False: the proxy has gone meanwhile.
    async fn works(&mut self, script: &Script, long: u64) -> bool {
        if long == 0 {
            return true;
        }
        let mut over: Pin<Box<_>> = Box::pin(sleep_until(Instant::now() + Duration::from_millis(long)));
        poll_fn(|cx| match over.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending if script.is_busy => Poll::Pending,
            Poll::Pending => self.wire.poll_gone(cx).map(|()| false),
        })
        .await
    }

    /// Sends the answer. False: the proxy has gone.
    async fn send(
        &mut self,
        dice: &mut fastrand::Rng,
        script: &Script,
        answer: &MemberAnswer,
        is_read: bool,
        request: (u64, usize),
    ) -> bool {
        // The last byte comes together with what is behind it: nothing protects a request from bytes that come while it is sent.
        let (mut rest, last) = match answer.surplus {
            b"" => (&answer.bytes[..], vec![]),
            surplus => {
                let (rest, last) = answer.bytes.split_at(answer.bytes.len() - 1);
                (rest, [last, surplus].concat())
            }
        };
        for left in (1..=script.pieces).rev() {
            let some = if left == 1 || rest.len() < 2 { rest.len() } else { dice.usize(1..rest.len()) };
            let (piece, after) = rest.split_at(some);
            rest = after;
            if rest.is_empty() && is_read {
                let is_alone = self.inbox.is_empty() && !self.wire.has_unread();
                lock(&self.member.record).note(ensure(is_alone, || {
                    format!("a request comes while {request:?} is not answered on its connection")
                }));
            }
            if rest.is_empty() && answer.is_whole {
                // The proxy may see the last byte before this task goes on.
                lock(&self.member.record).leave_slot(self.member.number, request);
            }
            if !self.write(piece).await || rest.is_empty() {
                break;
            }
            if !self.works(script, script.rest).await {
                return false;
            }
        }
        self.wire.write_at_once(&last);
        rest.is_empty()
    }

    /// False: the proxy has gone.
    async fn write(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        poll_fn(|cx| self.wire.poll_write(cx, &mut rest)).await
    }

    /// It has said that it closes the connection, and does so after a moment.
    async fn closes(&mut self) {
        let mut over = Box::pin(sleep_until(Instant::now() + CLOSES_AFTER));
        let (wire, inbox) = (&self.wire, &mut self.inbox);
        let came = poll_fn(|cx| match wire.poll_read(cx, inbox) {
            Poll::Ready(count) => Poll::Ready(count),
            Poll::Pending => over.as_mut().poll(cx).map(|()| 0),
        });
        if came.await > 0 {
            self.broken(format!("member {} gets a request after Connection: close", self.member.number));
        }
    }
}

/// The body of a request that is being read.
struct IncomingRequest {
    reader: BodyReader,
    bytes: Vec<u8>,
}
