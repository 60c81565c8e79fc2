//! The messages between a group and its arbiters.

use super::{Group, GroupState, World};
use crate::death::KnownDeath;
use crate::message::PeerMessage;
use crate::name::MemberId;
use crate::rank::Claim;
use crate::time::Time;

impl Group {
    pub(crate) fn locked(
        &mut self,
        arbiter: MemberId,
        (stage, grant): (u64, u64),
        (epoch, heard): (u64, Time),
        rival: Option<Claim>,
        died: Option<KnownDeath>,
        world: &mut World<'_>,
    ) {
        world.learn(died);
        if stage != self.stage {
            return;
        }
        // If the time is still to come, it is from before a restart, by a clock that was ahead.
        let heard = if heard > world.now { Time::ZERO } else { heard };
        match &mut self.state {
            GroupState::Wanting(wanting) => {
                if wanting.yielded.get(&arbiter).is_some_and(|yielded| grant <= *yielded) {
                    return;
                }
                wanting.votes.count(arbiter, grant, epoch, heard);
                wanting.rivals.hear(arbiter, rival);
                self.open(world);
            }
            GroupState::Running(running) => {
                running.rivals.hear(arbiter, rival);
                // A new grant with a later epoch: the arbiter may have taken its vote back in
                // between, and others were inside. An arbiter that has given its vote can also
                // learn later epochs from other requests.
                if running.votes.is_the_same(arbiter, grant) || epoch <= running.epoch {
                    running.votes.count(arbiter, grant, epoch, heard);
                } else {
                    running.votes.remove(arbiter);
                }
                self.admit_waiting(world);
            }
            GroupState::Idle => {}
        }
    }

    pub(crate) fn inquire(
        &mut self,
        arbiter: MemberId,
        (stage, grant): (u64, u64),
        rival: Claim,
        again: bool,
        world: &mut World<'_>,
    ) {
        if self.answer_if_over(arbiter, stage, again, world) {
            return;
        }
        match &mut self.state {
            GroupState::Wanting(wanting) => {
                wanting.rivals.hear(arbiter, Some(rival));
                let yielded = wanting.yielded.entry(arbiter).or_insert(0);
                // If this grant was returned before, the present vote was given after that. Our
                // answer may be lost, but then we repeat it ourselves.
                if grant > *yielded {
                    *yielded = grant;
                    wanting.votes.remove(arbiter);
                    world.out.send(arbiter, PeerMessage::Relinquish { stage, grant });
                }
            }
            GroupState::Running(running) => running.rivals.hear(arbiter, Some(rival)),
            GroupState::Idle => {}
        }
    }

    pub(crate) fn contested(
        &mut self,
        arbiter: MemberId,
        stage: u64,
        rival: Option<Claim>,
        again: bool,
        world: &mut World<'_>,
    ) {
        if self.answer_if_over(arbiter, stage, again, world) {
            return;
        }
        match &mut self.state {
            GroupState::Wanting(wanting) => wanting.rivals.hear(arbiter, rival),
            GroupState::Running(running) => {
                running.rivals.hear(arbiter, rival);
                self.admit_waiting(world);
            }
            GroupState::Idle => {}
        }
    }

    /// Whether that stage is over. An arbiter that asks again has missed the RELEASE.
    fn answer_if_over(
        &self,
        arbiter: MemberId,
        stage: u64,
        again: bool,
        world: &mut World<'_>,
    ) -> bool {
        let over = self.over();
        if again && stage <= over {
            world.out.send(arbiter, self.release(over, world));
        }
        stage <= over
    }

    /// The last stage that is over.
    fn over(&self) -> u64 {
        if matches!(self.state, GroupState::Idle) { self.stage } else { self.stage - 1 }
    }

    /// Repeats the last messages to `arbiter`, which may be lost.
    pub(crate) fn reconnect(&self, arbiter: MemberId, world: &mut World<'_>) {
        let asked = self.asked.contains(&arbiter);
        let over = self.over();
        if over > 0 && (asked || world.quorum().is_some_and(|own| own.contains(&arbiter))) {
            world.out.send(arbiter, self.release(over, world));
        }
        if asked {
            self.ask_again(arbiter, world);
            if matches!(self.state, GroupState::Running(_)) && world.settings.lease.is_some() {
                self.request_from(arbiter, self.epoch, world);
            }
        }
    }

    /// Asks an arbiter again that has not answered.
    fn ask_again(&self, arbiter: MemberId, world: &mut World<'_>) {
        let GroupState::Wanting(wanting) = &self.state else { return };
        if wanting.votes.has(arbiter) {
            return;
        }
        if let Some(&grant) = wanting.yielded.get(&arbiter) {
            world.out.send(arbiter, PeerMessage::Relinquish { stage: self.stage, grant });
        }
        self.request_from(arbiter, self.epoch, world);
    }

    /// Whether a request has no answer yet.
    pub(crate) fn is_waiting_for_answers(&self) -> bool {
        match &self.state {
            GroupState::Idle => false,
            GroupState::Wanting(_) => true,
            GroupState::Running(running) => !running.rivals.is_empty() || !self.waiting.is_empty(),
        }
    }

    /// Asks all arbiters again that have not answered.
    pub(crate) fn retry(&mut self, world: &mut World<'_>) {
        self.asked.iter().for_each(|arbiter| self.ask_again(*arbiter, world));
        self.open(world);
        self.tell_inside(world);
    }

    /// Whether it has votes whose leases must be renewed.
    pub(crate) fn has_votes(&self) -> bool {
        match &self.state {
            GroupState::Idle => false,
            GroupState::Wanting(wanting) => wanting.votes.len() > 0,
            GroupState::Running(_) => true,
        }
    }

    /// Renews the leases of its votes.
    pub(crate) fn keep(&self, world: &mut World<'_>) {
        if world.settings.lease.is_none() {
            return;
        }
        for arbiter in &self.asked {
            if !matches!(&self.state, GroupState::Wanting(wanting) if !wanting.votes.has(*arbiter))
            {
                self.request_from(*arbiter, self.epoch, world);
            }
        }
    }

    /// The highest grant of an arbiter that was returned in this stage.
    pub(crate) fn yielded(&self, arbiter: MemberId) -> u64 {
        match &self.state {
            GroupState::Wanting(wanting) => wanting.yielded.get(&arbiter).copied().unwrap_or(0),
            GroupState::Idle | GroupState::Running(_) => 0,
        }
    }
}
