//! One request of a client that stays with a member: what follows from the member that it got. Knows no other requests.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use hostler_config::SameSite;
use hostler_dispatch::{Lease, MemberId, MemberPreference};

use super::read;
use crate::exchange::{Edit, Exchange};
use crate::proxy::{Call, Endpoint, MOVED};

/// How much of an answer is read to find the id of its session. The id is at the beginning.
const PEEKED: usize = 256;

/// The member to which one request belongs, and what is still to be done for the request.
#[derive(Default)]
pub(in super::super) struct Stay {
    /// The member that keeps the state of the client, even if that member gets no requests now.
    pub home: Option<MemberId>,
    /// The member for which the request waits: `home`, or the next one in the client's order of members.
    pub bound: Option<MemberId>,
    /// The member that gets the request if `bound` is busy for too long.
    pub next: Option<MemberId>,
    /// How long the request waits for `bound`. None: as long as for any slot.
    pub wait: Option<Duration>,
    /// Why the request went to another member than `home`.
    pub moved: Option<Moved>,
    /// The response begins a session of Engine.IO.
    pub begins_session: bool,
    /// Whether its client gets a cookie.
    pub cookie: CookieNeed,
    /// The identity of the member that got the request.
    pub member: Option<Arc<str>>,
    /// The move has been counted.
    pub counted: bool,
}

/// Whether a client gets a cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum CookieNeed {
    /// Hostler sets none.
    #[default]
    None,
    /// The client has a cookie for its member. It gets a new one only if that member is gone.
    IfGone,
    /// The client has none, or one of a member that is gone.
    Now,
}

/// Why a request went to another member than its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Moved {
    /// Its member was gone, unhealthy or ejected.
    Gone,
    /// Its member was busy for too long.
    Busy,
}

impl Moved {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Busy => "busy",
        }
    }
}

impl Stay {
    /// It belongs to this member.
    pub fn with(member: MemberId, wait: Option<Duration>) -> Self {
        Self { home: Some(member), bound: Some(member), wait, ..Self::default() }
    }

    /// Its member is gone.
    pub fn lost() -> Self {
        Self { moved: Some(Moved::Gone), ..Self::default() }
    }

    /// Binds the claim to the member for which the request waits.
    pub fn prefer(&self, preference: &mut MemberPreference) {
        (preference.bound, preference.wanted) = (self.bound, self.next);
        // Has an effect only on an unbound claim: other requests of the client will follow it to its member.
        preference.spread = true;
    }

    /// To be called when the request got a slot. `was_busy`: whether it had to wait for the member to which it was bound. Returns why the
    /// request moved, the first time only.
    pub fn reached(
        &mut self,
        lease: &Lease<Endpoint>,
        was_busy: impl FnOnce(MemberId) -> bool,
        exchange: &mut Exchange,
    ) -> Option<Moved> {
        if self.home == Some(lease.member()) {
            self.come_home(exchange);
        } else if let Some(bound) = self.bound.filter(|bound| *bound != lease.member()) {
            self.moved = Some(if was_busy(bound) { Moved::Busy } else { Moved::Gone });
        }
        if self.begins_session || self.cookie != CookieNeed::None {
            self.member = Some(lease.identity().clone());
        }
        let moved = self.moved?;
        let word = moved.as_str();
        exchange.to_member.own.push(Edit::Set(Cow::Borrowed(MOVED), word.into()));
        exchange.log_facts.moved = Some(word);
        (!std::mem::replace(&mut self.counted, true)).then_some(moved)
    }

    /// The request is at its home member after all: that member gets requests again, or an attempt at another member failed.
    fn come_home(&mut self, exchange: &mut Exchange) {
        if self.moved.take().is_some() {
            exchange.to_member.own.retain(|edit| !matches!(edit, Edit::Set(name, _) if name == MOVED));
            exchange.log_facts.moved = None;
        }
    }

    /// The client gets a cookie with this answer. A request that moved only because its member was busy keeps its cookie: the state of
    /// the client is still at that member.
    pub fn needs_cookie(&self) -> bool {
        match self.cookie {
            CookieNeed::None => false,
            CookieNeed::IfGone => self.moved == Some(Moved::Gone),
            CookieNeed::Now => true,
        }
    }
}

/// A `Set-Cookie` line. The browser keeps the cookie until it is closed.
pub(super) fn set_cookie(name: &str, token: &str, same_site: SameSite, exchange: &Exchange) -> Edit {
    let (word, needs_tls) = match same_site {
        SameSite::Lax => ("Lax", false),
        SameSite::Strict => ("Strict", false),
        // Browsers accept this one only with `Secure`.
        SameSite::None => ("None", true),
    };
    let secure = if needs_tls || exchange.is_secure() { "; Secure" } else { "" };
    let value = format!("{name}={token}; Path=/; HttpOnly; SameSite={word}{secure}");
    Edit::Add(Cow::Borrowed("Set-Cookie"), value.into_bytes())
}

/// The id of the session that this answer begins.
pub(super) async fn begun_session(call: &mut Call, exchange: &Exchange) -> Option<Vec<u8>> {
    if call.answer().status != 200 || exchange.is_head_request() {
        return None;
    }
    let begin = call.peek(exchange, PEEKED).await;
    read::session_id(begin).map(<[u8]>::to_vec)
}
