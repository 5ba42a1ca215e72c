//! Which member a request prefers, from its cookies or from a header field that names an instance. Knows no calls.

use hostler_config::ZonePreference;
use hostler_dispatch::{MemberId, MemberPreference, Pool, Tried};
use hostler_engine::exchange::{Exchange, Instance};
use hostler_engine::gateway::Refusal;
use hostler_engine::proxy::Endpoint;

use super::asked_instance::asked_instance;
use super::facts::registered_mut;
use super::objection::RouterObjection;
use super::route::RegisteredRoute;
use super::sticky;

impl RegisteredRoute {
    /// Which members of the pool the request is for.
    pub(super) fn wanted_members(
        &self,
        exchange: &mut Exchange,
        pool: &Pool<Endpoint>,
    ) -> Result<MemberPreference, Refusal> {
        let settings = self.rules.settings();
        let compat = self.rules.is_compat();
        let near = settings.zone_preference == ZonePreference::LocallyOptimistic;
        let preference =
            MemberPreference { present: true, forgiving: compat, near, ..MemberPreference::default() };
        if let Some(asked) = asked_instance(exchange)? {
            return match asked_member(exchange, pool, Tried::default())? {
                Some(only) => Ok(MemberPreference { only: Some(only), ..preference }),
                None => Err(asked.unknown().into()),
            };
        }
        let fields = &exchange.head.fields;
        let negotiates = settings.sticky_sessions_for_auth_negotiate && sticky::negotiates(fields);
        let Some(id) = sticky::instance(fields, &settings.sticky_session_cookie_names, negotiates) else {
            return Ok(preference);
        };
        let found = pool.find(|endpoint| of(endpoint).is_some_and(|found| *found.id == *id));
        if let Some(registered) = registered_mut(exchange) {
            registered.sticky = Some(id);
        }
        match (negotiates, found) {
            (false, wanted) => Ok(MemberPreference { wanted, ..preference }),
            // The handshake state is at that member; any other would begin the handshake again.
            (true, Some(only)) => Ok(MemberPreference { only: Some(only), ..preference }),
            (true, None) => Err(RouterObjection::NoNegotiator.into()),
        }
    }
}

/// A member that the request asks for. Of several, such as all instances of a process, one that gets requests and has not been tried, if there
/// is one.
pub(super) fn asked_member(
    exchange: &Exchange,
    pool: &Pool<Endpoint>,
    tried: Tried,
) -> Result<Option<MemberId>, RouterObjection> {
    let Some(asked) = asked_instance(exchange)? else { return Ok(None) };
    let all = pool.find_all(|endpoint| of(endpoint).is_some_and(|found| asked.is(found)));
    let is_fit = |member: &MemberId| !tried.contains(*member) && pool.takes_bound(*member);
    let fit: Vec<_> = all.iter().copied().filter(is_fit).collect();
    Ok(any_of(if fit.is_empty() { all } else { fit }))
}

fn of(endpoint: &Endpoint) -> Option<&Instance> {
    endpoint.instance.as_deref()
}

fn any_of(members: Vec<MemberId>) -> Option<MemberId> {
    (!members.is_empty()).then(|| members[fastrand::usize(..members.len())])
}
