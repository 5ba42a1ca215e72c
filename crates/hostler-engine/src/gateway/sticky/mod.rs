//! Keeps a client with one member of a pool (`sticky`): finds the member that a request belongs to, and tells the app and the client
//! when it went to another one. Knows no queue: the pool decides when the member can begin the request.

mod read;
mod rendezvous;
mod sessions;
mod stay;
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hostler_config::{SameSite, Sticky, StickyBy};
use hostler_dispatch::{Lease, Pool};
use serde::Serialize;

use super::identity;
use crate::exchange::Exchange;
use crate::proxy::{Call, Endpoint};
use read::EngineIo;
use sessions::Sessions;
use tokens::Tokens;

use stay::{CookieNeed, Moved};

pub(super) use read::cookies;
pub(super) use stay::Stay;
pub use tokens::StickyKey;

/// At most this many cookies with our name are checked: a browser has one for each path and domain. Each unknown token costs a look at all
/// members, and a request has room for more than a thousand cookies.
const MOST_COOKIES: usize = 8;

/// How the clients of one pool stay with its members.
pub struct Stickiness {
    by: StickyBy,
    /// How long a request waits for its own member.
    wait: Duration,
    cookie: Box<str>,
    same_site: SameSite,
    tokens: Tokens,
    shared: Arc<Shared>,
}

/// What stays when a reload changes the settings.
#[derive(Default)]
struct Shared {
    sessions: Sessions,
    gone: AtomicU64,
    busy: AtomicU64,
}

/// The figures of one pool.
#[derive(Debug, Clone, Serialize)]
pub struct StickyView {
    /// What clients are recognised by, as in the configuration.
    pub by: String,
    /// Requests that went to another member than their own, by the reason.
    pub moved: MovedView,
    /// The sessions of Engine.IO that are remembered.
    pub sessions: usize,
}

/// Requests that went to another member than their own.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MovedView {
    /// Their member was gone, unhealthy or ejected.
    pub gone: u64,
    /// Their member was busy for too long.
    pub busy: u64,
}

impl Stickiness {
    /// The stickiness of the pool of this name. None if `sticky` is off. `before`: that of the same pool before a reload.
    pub fn new(
        pool: &Arc<str>,
        settings: &Sticky,
        random: &StickyKey,
        before: Option<&Self>,
    ) -> Option<Self> {
        if settings.by == StickyBy::Off {
            return None;
        }
        let secret = settings.secret.as_ref().map(|secret| secret.0.as_str());
        Some(Self {
            by: settings.by.clone(),
            wait: settings.wait,
            cookie: settings.cookie.as_str().into(),
            same_site: settings.same_site,
            tokens: Tokens::new(pool.clone(), secret, random),
            shared: before.map(|before| before.shared.clone()).unwrap_or_default(),
        })
    }

    pub fn view(&self) -> StickyView {
        let Shared { sessions, gone, busy } = &*self.shared;
        let moved = MovedView { gone: gone.load(Ordering::Relaxed), busy: busy.load(Ordering::Relaxed) };
        StickyView { by: self.by.to_string(), moved, sessions: sessions.len() }
    }

    /// Whether the request waits for one member.
    pub(super) fn binds(&self, exchange: &Exchange, pool: &Pool<Endpoint>) -> bool {
        self.stay(exchange, pool).is_some_and(|stay| stay.bound.is_some())
    }

    /// The member to which the request belongs, and what is to be done for it. None if the request may go to any member and no later
    /// request depends on that member.
    pub(super) fn stay(&self, exchange: &Exchange, pool: &Pool<Endpoint>) -> Option<Stay> {
        let engine_io = read::engine_io(exchange.head.target());
        if let Some(EngineIo::Session(id)) = engine_io
            && let Some(identity) = self.shared.sessions.find(id)
        {
            return Some(match member_of(&identity, pool) {
                // No other member can serve the session, so it is worth the whole time.
                Some(member) => Stay::with(member, None),
                None => Stay::lost(),
            });
        }
        let begins = engine_io == Some(EngineIo::Begins);
        let stay = match &self.by {
            StickyBy::Auto | StickyBy::Off => None,
            StickyBy::Cookie => Some(self.by_cookie(exchange, pool)),
            StickyBy::Address => {
                Some(self.by_key(identity::network_name(exchange.client.ip).as_bytes(), pool))
            }
            StickyBy::Header(name) => exchange.head.fields.get(name).map(|value| self.by_key(value, pool)),
            StickyBy::Query(name) => {
                let query = read::query(exchange.head.target());
                let value = query.and_then(|query| read::parameter(query, name.as_bytes()));
                value.map(|value| self.by_key(value, pool))
            }
            StickyBy::AppCookie(name) => {
                let value = read::cookies(&exchange.head.fields, name).find(|value| !value.is_empty());
                value.map(|value| self.by_key(value, pool))
            }
        };
        let stay = if begins { Some(stay.unwrap_or_default()) } else { stay };
        stay.map(|stay| Stay { begins_session: begins, ..stay })
    }

    fn by_cookie(&self, exchange: &Exchange, pool: &Pool<Endpoint>) -> Stay {
        let (mut stay, mut has_cookie) = (None, false);
        for token in read::cookies(&exchange.head.fields, &self.cookie).take(MOST_COOKIES) {
            has_cookie = true;
            let identity = self.tokens.identity(token, pool);
            stay = stay.or_else(|| member_of(&identity?, pool));
        }
        let stay = match stay {
            Some(member) => Stay::with(member, Some(self.wait)),
            None if has_cookie => Stay::lost(),
            None => Stay::default(),
        };
        Stay { cookie: if stay.bound.is_some() { CookieNeed::IfGone } else { CookieNeed::Now }, ..stay }
    }

    fn by_key(&self, key: &[u8], pool: &Pool<Endpoint>) -> Stay {
        let key = rendezvous::hash(key);
        let ranking =
            pool.rank(|endpoint| rendezvous::score(key, rendezvous::hash(endpoint.label.as_bytes())));
        Stay {
            home: ranking.passed.or(ranking.first),
            bound: ranking.first,
            next: ranking.second,
            wait: Some(self.wait),
            moved: ranking.passed.map(|_| Moved::Gone),
            ..Stay::default()
        }
    }

    /// The request got a slot of a member. `has_waited`: it has waited for its own member, which had no free slot.
    pub(super) fn reached(
        &self,
        stay: &mut Stay,
        lease: &Lease<Endpoint>,
        has_waited: bool,
        pool: &Pool<Endpoint>,
        exchange: &mut Exchange,
    ) {
        let counter = match stay.reached(lease, |bound| has_waited || pool.takes_bound(bound), exchange) {
            None => return,
            Some(Moved::Gone) => &self.shared.gone,
            Some(Moved::Busy) => &self.shared.busy,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A member has answered: the client gets a cookie if it needs one, and a session that begins is remembered.
    pub(super) async fn answered(
        &self,
        stay: Stay,
        call: &mut Call,
        pool: &Pool<Endpoint>,
        exchange: &mut Exchange,
    ) {
        let Some(member) = &stay.member else { return };
        if stay.needs_cookie() {
            let token = self.tokens.token(member, pool);
            let edit = stay::set_cookie(&self.cookie, &token, self.same_site, exchange);
            exchange.to_client.own.push(edit);
        }
        if stay.begins_session
            && let Some(id) = stay::begun_session(call, exchange).await
        {
            self.shared.sessions.begin(&id, member.clone());
        }
    }
}

fn member_of(identity: &Arc<str>, pool: &Pool<Endpoint>) -> Option<hostler_dispatch::MemberId> {
    pool.find_bound(|endpoint| endpoint.identity() == identity)
}
