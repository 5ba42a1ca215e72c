//! Members that fail: their back-off, their ejection and their health. Knows nothing of the waiting requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::claim::MemberId;
use super::eject::{HangUps, MOST_FORGIVEN, SUSPENSE};
use super::member::{Grant, Member, MemberState};
use super::roster::Roster;

impl<E> Roster<E> {
    /// The member could not be reached. Returns the end of its ejection if this failure is new. A slot granted before the
    /// last ejection ended says nothing new.
    pub fn back_off(&mut self, grant: &Grant<E>, now: Instant) -> Option<Instant> {
        let settings = self.settings().backoff;
        let back_off = |state: &mut MemberState<E>| {
            state.out_of_reach = Some(now);
            if state.left || state.ejected_until.is_some_and(|until| grant.since < until) {
                return None;
            }
            let until = now + settings.after(state.fail());
            state.ejected_until = Some(until);
            Some(until)
        };
        self.edit(grant.member.id, back_off)?
    }

    /// A request timed out on the member (waiting for an answer, or for a connection: then [`Self::back_off`] follows). Returns the end
    /// of the ejection, if this timeout ejects the member. A slot granted before the last ejection ended says nothing new.
    pub fn strike(&mut self, grant: &Grant<E>, now: Instant) -> Option<Instant> {
        let settings = self.settings().eject;
        let is_late = |state: &mut MemberState<E>| {
            if state.left || state.ejected_until.is_some_and(|until| grant.since < until) {
                return false;
            }
            state.late += 1;
            state.out_of_reach = None;
            state.member.suspected.store(true, Ordering::Relaxed);
            let most = usize::try_from(settings.failures).unwrap_or(usize::MAX).min(state.parallel().max(1));
            settings.failures > 0 && (state.late as usize >= most || state.ejections > 0)
        };
        if !self.edit(grant.member.id, is_late)? {
            return None;
        }
        // A look at each member, at most once for each ejection that is due.
        let is_other_out = |state: &&MemberState<E>| state.member.id != grant.member.id && state.is_out(now);
        if !settings.allows(self.totals().members, self.present().filter(is_other_out).count()) {
            return None;
        }
        self.edit(grant.member.id, |state| {
            state.ejections += 1;
            state.ejected_for = settings.after(state.ejections);
            state.fail();
            let until = state.ejected_until.max(Some(now + state.ejected_for));
            state.ejected_until = until;
            until
        })?
    }

    /// Sets the health of a member. Returns the member if its health changed.
    pub fn set_health(&mut self, id: MemberId, healthy: bool) -> Option<Arc<Member<E>>> {
        let set = |state: &mut MemberState<E>| {
            let was = std::mem::replace(&mut state.unhealthy, !healthy);
            if was && healthy {
                // The health check has just seen it answer.
                state.forgive();
            }
            (was == healthy).then(|| Arc::clone(&state.member))
        };
        self.edit(id, set)?
    }

    /// Ejection never takes the last member out. If no member gets requests any more, because the others have left, are unhealthy or cannot
    /// be reached, the ejection that would end first ends now. Its member stays in doubt: it gets one request at a time until it responds.
    /// `has_failed`: a connection has just failed. Then a member whose own last connection failed stays out, because it would be tried
    /// again and again.
    pub fn keep_one(&mut self, has_failed: bool, now: Instant) {
        if self.totals().out == 0 || self.present().any(|state| !state.is_out(now)) {
            return;
        }
        let may_return = |state: &&MemberState<E>| {
            state.ejections > 0 && !state.unhealthy && !(has_failed && state.out_of_reach.is_some())
        };
        let first = self.present().filter(may_return).min_by_key(|state| state.ejected_until);
        if let Some(first) = first.map(|state| state.member.id) {
            self.edit(first, |state| state.ejected_until = Some(now));
        }
    }

    /// The member gets no requests until the returned time, unless it answers another request before. This does not count as a
    /// failure.
    pub fn suspend(&mut self, id: MemberId, now: Instant) -> Instant {
        let until = now + SUSPENSE;
        self.edit(id, |state| {
            state.member.suspected.store(true, Ordering::Relaxed);
            // Of requests that end together, only the first one counts.
            state.hang_ups.count = state.hang_ups.count.saturating_add(u32::from(!state.is_ejected(now)));
            state.ejected_until = state.ejected_until.max(Some(until));
        });
        until
    }

    /// The member, which probably lives, ended a request without an answer. It gets no requests until the returned time if it has done so
    /// more than [`MOST_FORGIVEN`] times in a row. A slot granted before the last such end was counted says nothing new.
    pub fn hung_up(&mut self, grant: &Grant<E>, now: Instant) -> Option<Instant> {
        let is_over = |state: &mut MemberState<E>| {
            state.member.suspected.store(true, Ordering::Relaxed);
            if state.hang_ups.last.is_some_and(|last| grant.since < last) {
                return false;
            }
            state.hang_ups = HangUps { count: state.hang_ups.count.saturating_add(1), last: Some(now) };
            state.hang_ups.count > MOST_FORGIVEN
        };
        self.edit(grant.member.id, is_over)?.then(|| self.suspend(grant.member.id, now))
    }

    /// Ends the suspense that lasts until `until`. Changes nothing if the member was suspended again or has failed since, or was suspended
    /// more than [`MOST_FORGIVEN`] times in a row.
    pub fn end_suspense(&mut self, id: MemberId, until: Instant) {
        self.edit(id, |state| {
            let has_failed = state.ejections > 0 || state.member.is_doubted();
            if state.ejected_until == Some(until) && !has_failed && state.hang_ups.count <= MOST_FORGIVEN {
                state.ejected_until = None;
            }
        });
    }

    /// Ends the ejections and doubts of all members, as if all had responded. Requests that wait at a member that is marked down are not
    /// told here, because no task may be woken under the lock. They are told by its next response, for which `suspected` stays set.
    pub fn forgive(&mut self) {
        if self.totals().doubted > 0 {
            let in_doubt = self.states().iter().filter(|state| state.is_in_any_doubt());
            let ids: Vec<_> = in_doubt.map(|state| state.member.id).collect();
            for id in ids {
                self.edit(id, |state| {
                    let is_under_watch = state.member.is_under_watch();
                    state.forgive();
                    state.member.suspected.store(is_under_watch, Ordering::Relaxed);
                });
            }
        }
    }

    /// A connection to the member was made. That ends a doubt which is about connections alone: the response may take long, and the other
    /// requests must not wait for it. A member at which requests have timed out must respond.
    pub fn connected(&mut self, id: MemberId, now: Instant) {
        self.edit(id, |state| {
            if state.late == 0 && state.ejections == 0 && !state.is_ejected(now) {
                state.member.failures.store(0, Ordering::Relaxed);
                (state.ejected_until, state.out_of_reach, state.on_trial) = (None, None, false);
            }
        });
    }

    /// The member answered, so it is not in doubt any more. Returns true if this ends an ejection.
    pub fn reached(&mut self, id: MemberId) -> bool {
        let reached = |state: &mut MemberState<E>| {
            let was_ejected = state.ejections > 0;
            state.forgive();
            was_ejected
        };
        self.edit(id, reached).unwrap_or(false)
    }
}
