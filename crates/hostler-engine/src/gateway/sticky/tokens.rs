//! The signed names of members, as clients get them in a cookie. Knows no requests.
//!
//! A token is an HMAC of the member's identity. So a client can neither choose a member nor read an address, and every Hostler with
//! the same key makes the same token for the same member.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::hmac;
use hostler_dispatch::Pool;
use hostler_wire::hex;
use serde::{Deserialize, Serialize};

use crate::proxy::Endpoint;

/// The bytes of a token: enough that no client finds one by chance.
const TOKEN: usize = 16;

/// The key that signs the cookies of the pools without a key of their own. It is kept over an upgrade.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct StickyKey([u8; 32]);

impl StickyKey {
    /// A random key.
    pub fn random() -> Self {
        let mut bytes = [0; 32];
        // From the system: the numbers of `aws-lc-rs` take 60 ms for the first time, at each start. An error means that the system has no random
        // numbers at all. TLS would not work then either.
        if getrandom::fill(&mut bytes).is_err() {
            fastrand::fill(&mut bytes);
        }
        Self(bytes)
    }
}

/// As text, for the successor.
impl From<StickyKey> for String {
    fn from(key: StickyKey) -> Self {
        hex(&key.0)
    }
}

impl TryFrom<String> for StickyKey {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const WRONG: &str = "not a key of 64 hexadecimal digits";
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() || !text.is_ascii() {
            return Err(WRONG);
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| WRONG)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for StickyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// The tokens of the members of one pool.
pub(super) struct Tokens {
    key: hmac::Key,
    pool: Arc<str>,
    known: ArcSwap<KnownTokens>,
}

/// The tokens that were made so far, in both directions.
#[derive(Default)]
struct KnownTokens {
    by_token: HashMap<Arc<str>, Arc<str>>,
    by_identity: HashMap<Arc<str>, Arc<str>>,
}

impl Tokens {
    /// `secret` of the configuration, or else the random key.
    pub fn new(pool: Arc<str>, secret: Option<&str>, random: &StickyKey) -> Self {
        let key = secret.map_or(&random.0[..], str::as_bytes);
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key), pool, known: ArcSwap::default() }
    }

    /// The identity of the member with this token. None if no member of the pool has it.
    pub fn identity(&self, token: &[u8], pool: &Pool<Endpoint>) -> Option<Arc<str>> {
        let token = std::str::from_utf8(token).ok().filter(|token| token.len() == 2 * TOKEN)?;
        let known = self.known.load().by_token.get(token).cloned();
        known.or_else(|| self.learn(pool).by_token.get(token).cloned())
    }

    /// The token of this member.
    pub fn token(&self, identity: &str, pool: &Pool<Endpoint>) -> Arc<str> {
        let known = self.known.load().by_identity.get(identity).cloned();
        let known = known.or_else(|| self.learn(pool).by_identity.get(identity).cloned());
        known.unwrap_or_else(|| self.sign(identity))
    }

    /// Makes the tokens of the current members, and forgets those of members that are gone. The caller must use what is returned: another
    /// thread, which has looked at the pool before, may store its older tokens after this.
    fn learn(&self, pool: &Pool<Endpoint>) -> Arc<KnownTokens> {
        let members = pool.snapshot_with(|endpoint| endpoint.identity().clone()).members;
        let before = self.known.load_full();
        if members.len() == before.by_identity.len()
            && members.iter().all(|member| before.by_identity.contains_key(&member.endpoint))
        {
            return before;
        }
        let mut known = KnownTokens::default();
        for member in members {
            let identity = member.endpoint;
            let token = before.by_identity.get(&identity).cloned();
            let token = token.unwrap_or_else(|| self.sign(&identity));
            known.by_token.insert(token.clone(), identity.clone());
            known.by_identity.insert(identity, token);
        }
        let known = Arc::new(known);
        self.known.store(known.clone());
        known
    }

    fn sign(&self, identity: &str) -> Arc<str> {
        let mut signing = hmac::Context::with_key(&self.key);
        [b"hostler sticky\0", self.pool.as_bytes(), b"\0", identity.as_bytes()]
            .into_iter()
            .for_each(|part| signing.update(part));
        hex(&signing.sign().as_ref()[..TOKEN]).into()
    }
}

#[cfg(test)]
mod tests {
    use hostler_dispatch::PoolSettings;
    use hostler_wire::Address;

    use super::*;
    use crate::proxy::Meter;

    #[test]
    fn what_a_request_has_learnt_holds_although_another_thread_forgets_it() {
        let pool = Pool::new("app", PoolSettings::default());
        let address = Address::Tcp("127.0.0.1".into(), 1);
        let endpoint = Endpoint::new(address.into(), "a".into(), Arc::new(Meter::new(1)), 1, None);
        let tokens = Tokens::new("app".into(), None, &StickyKey::random());
        let token = tokens.sign("a");
        let member = pool.join(endpoint, 1);
        let learnt = tokens.learn(&pool);
        drop(member);
        // What another thread stores that has looked at the pool when the member was not there.
        assert!(tokens.learn(&pool).by_token.is_empty());
        assert_eq!(tokens.identity(token.as_bytes(), &pool), None);
        assert_eq!(learnt.by_token.get(&token).map(|identity| &**identity), Some("a"));
    }

    #[test]
    fn a_key_survives_as_text_and_other_texts_are_no_key() {
        let key = StickyKey::random();
        assert_eq!(StickyKey::try_from(String::from(key.clone())).as_ref(), Ok(&key));
        assert_eq!(format!("{key:?}"), "(secret)");
        for text in ["", "ab", &"x".repeat(64), &"é".repeat(32)] {
            assert!(StickyKey::try_from(text.to_owned()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_token_depends_on_key_pool_and_member() {
        let random = StickyKey::random();
        let token = |pool: &str, secret, identity| Tokens::new(pool.into(), secret, &random).sign(identity);
        let one = token("app", Some("a secret of sixteen"), "10.0.0.5:80");
        assert_eq!(one.len(), 32);
        assert_eq!(one, token("app", Some("a secret of sixteen"), "10.0.0.5:80"));
        assert_ne!(one, token("api", Some("a secret of sixteen"), "10.0.0.5:80"));
        assert_ne!(one, token("app", Some("another secret here"), "10.0.0.5:80"));
        assert_ne!(one, token("app", Some("a secret of sixteen"), "10.0.0.6:80"));
        assert_ne!(one, token("app", None, "10.0.0.5:80"));
    }
}
