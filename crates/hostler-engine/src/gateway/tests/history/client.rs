//! A simulated client: sends one request through the gateway, takes the answer as the listeners do, and may leave.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hostler_address::Trust;
use hostler_wire::{BodyLength, Fields, Limits, ResponseHead};
use tokio::time::{Instant, Sleep, sleep_until};

use super::record::target;
use super::script::pattern;
use super::steps::Ask;
use crate::exchange::{BodyError, Downstream, Exchange, Sweep};
use crate::gateway::{Answer, Gateway, Refusal};
use crate::proxy::CallBox;

/// A client leaves if no byte of an answer that has begun comes for this long.
const PATIENCE: Duration = Duration::from_secs(3);

/// How a request ends for its client.
#[derive(Debug)]
pub enum End {
    Whole(ClientAnswer),
    /// The answer breaks off after some of it has come.
    Cut(ClientAnswer),
    Refused(Refusal),
    /// The client has left while its answer came.
    Left,
}

/// What a client has got.
#[derive(Debug)]
pub struct ClientAnswer {
    pub status: u16,
    /// The request and the attempt that the head names.
    pub of: (Option<u64>, Option<usize>),
    pub length: BodyLength,
    pub body: Vec<u8>,
}

/// One request that has ended.
pub struct Ended {
    pub end: End,
    /// When its body had come, if the gateway reads it before it asks for a slot.
    pub asked: Instant,
    /// When the gateway had an answer.
    pub answered: Instant,
    pub has_left: bool,
    /// The requests that interim answers name, and their status.
    pub interims: Vec<(u16, Option<u64>)>,
    pub hedge: Option<&'static str>,
}

/// The side of the client.
struct Client {
    body: Vec<u8>,
    at: usize,
    pause: Duration,
    /// When the next piece of the body comes.
    next: Option<Pin<Box<Sleep>>>,
    done: Option<Instant>,
    leaves: Option<Pin<Box<Sleep>>>,
    has_left: bool,
    interims: Vec<(u16, Option<u64>)>,
}

fn number<T: std::str::FromStr>(head: &ResponseHead, wanted: &str) -> Option<T> {
    let mut named = head.fields.iter().filter(|(_, name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
    let (_, _, value) = named.next()?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

impl Client {
    fn new(ask: &Ask) -> Self {
        let after = |millis| Box::pin(sleep_until(Instant::now() + Duration::from_millis(millis)));
        Self {
            body: pattern("body", ask.id, 0, ask.body),
            at: 0,
            pause: Duration::from_millis(ask.pause),
            next: None,
            done: None,
            leaves: ask.leaves.map(after),
            has_left: false,
            interims: vec![],
        }
    }
}

impl Downstream for Client {
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(leaves) = &mut self.leaves
            && leaves.as_mut().poll(cx).is_ready()
        {
            (self.has_left, self.leaves) = (true, None);
        }
        if self.has_left { Poll::Ready(()) } else { Poll::Pending }
    }

    fn allow_body(&mut self, _: u64) {}

    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, BodyError>> {
        if self.poll_left(cx).is_ready() {
            return Poll::Ready(Err(BodyError::Left));
        }
        if let Some(next) = &mut self.next
            && next.as_mut().poll(cx).is_pending()
        {
            return Poll::Pending;
        }
        let left = self.body.len() - self.at;
        let some = if self.pause.is_zero() { left } else { left.min(self.body.len() / 3 + 1) }.min(max);
        into.extend_from_slice(&self.body[self.at..self.at + some]);
        self.at += some;
        let is_done = self.at == self.body.len();
        self.next =
            (!is_done && !self.pause.is_zero()).then(|| Box::pin(sleep_until(Instant::now() + self.pause)));
        if is_done {
            self.done.get_or_insert_with(Instant::now);
        }
        Poll::Ready(Ok(is_done))
    }

    fn trailers(&self) -> Option<&Fields> {
        None
    }

    fn interim(&mut self, _: &mut Context<'_>, head: &ResponseHead) -> bool {
        self.interims.push((head.status, number(head, "X-Id")));
        true
    }
}

/// Sends the request, and waits for its end.
pub async fn send(ask: Ask, gateway: Arc<Gateway>, sweep: Sweep) -> Ended {
    let began = Instant::now();
    let mut client = Client::new(&ask);
    let mut exchange = exchange(&ask, &sweep);
    let answer = gateway.answer(&mut exchange, &mut client, 0).await;
    let answered = Instant::now();
    let end = match answer {
        Ok(Answer::Member(call)) => deliver(call, &mut exchange, &mut client, &gateway).await,
        Ok(_) => unreachable!("members of this simulation send answers with an end"),
        Err(failed) => End::Refused(failed.refusal),
    };
    if let End::Refused(refusal) = &end {
        exchange.log_facts.refusal = Some(refusal.facts().reason);
    }
    gateway.settle(&mut exchange);
    let Client { done, has_left, interims, .. } = client;
    let asked = if exchange.streams { began } else { done.unwrap_or(began) };
    Ended { end, asked, answered, has_left, interims, hedge: exchange.log_facts.hedge }
}

fn exchange(ask: &Ask, sweep: &Sweep) -> Exchange {
    let address = ([127, 0, 0, 1], 1).into();
    let mut exchange = Exchange::new(address, address, sweep.deadline());
    let (method, target) = (ask.method.name(), target(ask.id));
    let framing = match (ask.body, ask.is_chunked) {
        (0, _) => String::new(),
        (_, true) => "Transfer-Encoding: chunked\r\n".into(),
        (length, false) => format!("Content-Length: {length}\r\n"),
    };
    let head = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{framing}\r\n");
    exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
    exchange.begin(&Trust::default());
    exchange.length = match (ask.body, ask.is_chunked) {
        (length, false) => BodyLength::Known(length as u64),
        (_, true) => BodyLength::Chunked,
    };
    exchange
}

/// What came while the answer was read.
enum Piece {
    /// True: the answer is complete.
    Some(bool),
    Broken(hostler_wire::CallError),
    Left,
}

/// Takes the answer as `deliver` does in the listeners: nothing is sent before the first look at the body, so an answer that has broken
/// off by then is replaced.
async fn deliver(mut call: CallBox, exchange: &mut Exchange, client: &mut Client, gateway: &Gateway) -> End {
    let head = call.answer();
    let mut answer = ClientAnswer {
        status: head.status,
        of: (number(head, "X-Id"), number(head, "X-Attempt")),
        length: call.body_length(),
        body: vec![],
    };
    exchange.log_facts.status = answer.status;
    loop {
        let mut patience = Box::pin(sleep_until(Instant::now() + PATIENCE));
        let body = &mut answer.body;
        let piece = poll_fn(|cx| {
            if let Poll::Ready(Err(_)) = call.poll_upload(cx, client) {
                return Poll::Ready(Piece::Left);
            }
            match call.poll_body(cx, body, 16 * 1024) {
                Poll::Ready(Ok(is_complete)) => return Poll::Ready(Piece::Some(is_complete)),
                Poll::Ready(Err(error)) => return Poll::Ready(Piece::Broken(error)),
                Poll::Pending => {}
            }
            if client.poll_left(cx).is_ready() || patience.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Piece::Left);
            }
            Poll::Pending
        });
        match piece.await {
            Piece::Some(false) => {}
            Piece::Some(true) => {
                call.finish(exchange);
                return End::Whole(answer);
            }
            Piece::Left => {
                exchange.log_facts.aborted = Some("client");
                call.abandon(exchange);
                return End::Left;
            }
            Piece::Broken(error) => {
                let failure = call.give_up(exchange, error);
                if !answer.body.is_empty() {
                    exchange.log_facts.aborted = Some("worker");
                    return End::Cut(answer);
                }
                return match gateway.instead(exchange, failure.into()).await {
                    Ok(_) => unreachable!("the route has no cache"),
                    Err(failed) => End::Refused(failed.refusal),
                };
            }
        }
    }
}
