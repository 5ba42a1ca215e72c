//! What each step of a history does to the pool, its clients and its members.

use std::time::Duration;

use super::steps::Step;
use super::world::{World, take};
use crate::{AcquireError, Claim, FairKey, Lease};

impl World<'_> {
    /// Carries out a step.
    pub fn apply(&mut self, step: &Step) {
        match *step {
            Step::Arrive(arrival) => self.arrive(arrival),
            Step::Poll(pick) if !self.waiting.is_empty() => _ = self.poll(pick % self.waiting.len()),
            Step::Poll(_) => {}
            Step::PollWoken(newest_first) => self.poll_woken(newest_first),
            Step::Leave(pick) => self.leave(pick),
            Step::Unbind(pick) => {
                let count = self.waiting.len().max(1);
                if let Some(waiting) = self.waiting.get_mut(pick % count) {
                    std::pin::Pin::new(&mut waiting.acquire).unbind();
                }
            }
            Step::End(pick, how) => _ = self.end(pick, how),
            Step::Return(pick, how) => {
                if let Some((claim, place)) = self.end(pick, how) {
                    self.enter(Claim { ticket: Some(place.ticket), deadline: None, ..claim });
                }
            }
            Step::Tunnel(pick) => self.tunnel(pick),
            Step::EndTunnel(pick) => drop(take(&mut self.tunnels, pick)),
            Step::Stream(pick) => self.stream(pick),
            Step::Join(how) => self.join(how),
            Step::Part(pick, how) => self.part(pick, how),
            Step::Pass(micros) => self.pass(Duration::from_micros(micros)),
            _ => self.apply_to_pool(step),
        }
    }

    fn apply_to_pool(&mut self, step: &Step) {
        match *step {
            Step::Sent(pick) => self.with_lease(pick, Lease::sent),
            Step::Strike(pick) => self.with_lease(pick, |lease| _ = lease.strike()),
            Step::Reached(pick) => self.with_lease(pick, |lease| _ = lease.reached()),
            Step::Resize(pick, slots) => self.with_member(pick, |(member, _)| member.set_slots(slots)),
            Step::Observe(pick, most) => self
                .with_member(pick, |(member, event_loop)| member.gauge().observe(most, event_loop.clone())),
            Step::Health(pick, healthy) => {
                self.with_member(pick, |(member, _)| _ = member.set_health(healthy));
            }
            Step::Hold(pick) => {
                let mut hold = None;
                self.with_member(pick, |(member, _)| hold = member.gauge().hold());
                self.holds.extend(hold);
            }
            Step::EndHold => self.holds.clear(),
            Step::Loop(pick, cpu) => self.with_member(pick, |(_, event_loop)| event_loop.set(cpu)),
            Step::Update(settings) => self.pool.update(settings),
            Step::RefuseEarly(priority, key) => {
                if let Some(error) = self.pool.refuse_early(priority, Some(FairKey::of(key))) {
                    self.count(error);
                    if matches!(error, AcquireError::QueueFull { .. }) {
                        self.refused_full.push(priority);
                    }
                }
            }
            Step::Pause => self.pool.pause(),
            Step::Resume => self.pool.resume(),
            Step::Sleep => _ = self.pool.fall_asleep(&self.wake_requested),
            Step::Wake => self.pool.wake_up(),
            Step::Close => {
                self.is_closed = true;
                self.pool.close();
            }
            _ => {}
        }
    }
}
