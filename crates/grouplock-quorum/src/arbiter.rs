//! A member as arbiter: it has one vote, gives it to one stage at a time, and leases it.
//!
//! ```text
//!  owner: the stage with the vote, and the grant · queue: who waits, best rank first
//!  done[member]: its last stage that is over
//!
//!  REQUEST(rank, e)  stage is over: drop · the epoch grows · from the owner: LOCKED again, the
//!                    lease starts again · else into the queue; then: no owner → grant · else inform
//!  RELINQUISH(s, g)  if the owner is (from, s) by grant g: back into the queue, grant
//!  RELEASE(s, e)     done[from] and the epoch grow; entries of `from` up to s leave the queue; if it
//!                    had the vote: grant · else inform
//!  inform the owner  a better rank waits → INQUIRE, once per grant · else, if the owner knows another
//!                    rival → CONTESTED
//!  grant             the best of the queue is the owner; g := g + 1; save; LOCKED(s, g, epoch)
//!  lease has ended   the owner was silent for a vote's lease: epoch := epoch + LEAP + 1; grant
//! ```
//!
//! Each of these checks is needed. Without `g`, a RELINQUISH that arrives twice takes back a vote
//! that was given again. Without `done`, a REQUEST that arrives after its RELEASE gets a vote that
//! nobody returns. Without the leap, a stage whose home died may have the same epoch as the next
//! stage.

use std::collections::BTreeMap;

use crate::death::KnownDeath;
use crate::group::World;
use crate::message::PeerMessage;
use crate::name::MemberId;
use crate::rank::{Claim, Rank};
use crate::record::{Record, Vote};
use crate::settings::{Admission, Settings};
use crate::time::{Heard, Time};

/// How far the epoch of a stage may exceed the epoch that each of its arbiters knew when it voted.
/// An arbiter that gets its vote back without a RELEASE skips this many epochs. So it is past the
/// epoch of the stage, which it does not know.
pub(crate) const LEAP: u64 = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Arbiter {
    vote: Vote,
    /// When the owner was last heard.
    heard: Heard,
    /// At most one entry per member: its latest stage, and when it was heard.
    queue: BTreeMap<Rank, Heard>,
    /// The owner was asked to return the vote.
    inquired: bool,
    /// The best rival that the owner knows.
    told: Option<Claim>,
}

impl Arbiter {
    /// An arbiter with a saved vote. Waiting groups ask again. The lease of a given vote starts
    /// again.
    pub(crate) fn recover(vote: Vote, now: Time) -> Self {
        let heard = Heard { at: now, sent: Time::ZERO };
        Arbiter { vote, heard, ..Arbiter::default() }
    }

    pub(crate) fn vote(&self) -> &Vote {
        &self.vote
    }

    pub(crate) fn queue(&self) -> impl Iterator<Item = &Rank> {
        self.queue.keys()
    }

    /// Nobody has the vote or wants it.
    pub(crate) fn is_idle(&self) -> bool {
        self.vote.owner.is_none() && self.queue.is_empty()
    }

    /// The highest number that it has used or heard.
    pub(crate) fn highest(&self) -> u64 {
        let Vote { grant, epoch, done, .. } = &self.vote;
        done.values().copied().chain([*grant, *epoch]).max().unwrap_or(0)
    }

    /// The last stage of a member that this arbiter knows.
    pub(crate) fn last_stage(&self, member: MemberId) -> u64 {
        let owner = self.vote.owner.iter().map(|(rank, _)| rank);
        let ranks = owner.chain(self.queue.keys()).filter(|rank| rank.member == member);
        ranks.map(|rank| rank.stage).chain([self.done(member)]).max().unwrap_or(0)
    }

    pub(crate) fn request(&mut self, rank: Rank, sent: Time, epoch: u64, world: &mut World<'_>) {
        let (from, stage) = (rank.member, rank.stage);
        if stage <= self.done(from) {
            return;
        }
        let heard = Heard { at: world.now, sent };
        let learnt = epoch > self.vote.epoch;
        self.vote.epoch = self.vote.epoch.max(epoch);
        if let Some((owner, grant)) = self.vote.owner
            && owner.member == from
            && owner.stage >= stage
        {
            if owner.stage > stage {
                return;
            }
            self.heard = heard;
            if rank < owner {
                self.vote.owner = Some((rank, grant));
            }
            if learnt {
                world.out.save(Record::Vote(self.vote.clone()));
            }
            if learnt || rank >= owner {
                self.send_locked(from, stage, grant, world);
            }
            return;
        }
        if let Some(known) = self.queue.keys().find(|known| known.member == from).copied() {
            if known.stage > stage || (known.stage == stage && known <= rank) {
                if known.stage == stage
                    && let Some(last) = self.queue.get_mut(&known)
                {
                    *last = heard;
                }
                return;
            }
            self.queue.remove(&known);
        }
        self.queue.insert(rank, heard);
        match self.vote.owner {
            None => self.grant(world),
            Some((owner, _)) if owner.member == from => {} // its RELEASE is on the way
            Some(_) => self.tell_owner(world),
        }
    }

    pub(crate) fn relinquish(
        &mut self,
        from: MemberId,
        stage: u64,
        grant: u64,
        world: &mut World<'_>,
    ) {
        let Some((owner, granted)) = self.vote.owner else { return };
        if owner.member != from || owner.stage != stage || granted != grant {
            return;
        }
        // If a later stage of the owner waits, this stage is over.
        if !self.queue.keys().any(|rank| rank.member == from) {
            self.queue.insert(owner, self.heard);
        }
        self.grant(world);
    }

    pub(crate) fn release(
        &mut self,
        from: MemberId,
        stage: u64,
        epoch: u64,
        died: Option<KnownDeath>,
        world: &mut World<'_>,
    ) {
        world.learn(died);
        let done = self.vote.done.entry(from).or_insert(0);
        *done = stage.max(*done);
        self.vote.epoch = self.vote.epoch.max(epoch);
        self.queue.retain(|rank, _| rank.member != from || rank.stage > stage);
        if self.vote.owner.is_some_and(|(owner, _)| owner.member == from && owner.stage <= stage) {
            self.grant(world);
        } else {
            self.tell_owner(world);
        }
    }

    // ---- time ----

    /// Whether a group waits for a vote that is given. Then the owner must be asked again.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.vote.owner.is_some() && !self.queue.is_empty()
    }

    /// When the next lease ends, of the vote or of a group in the queue.
    pub(crate) fn expires(&self, settings: &Settings) -> Option<Time> {
        let lease = settings.lease?;
        let owner = self.vote.owner.and(settings.vote_lease());
        let owner = owner.map(|vote_lease| self.heard.at + vote_lease);
        self.queue.values().map(|heard| heard.at + lease).chain(owner).min()
    }

    /// Removes groups from the queue whose lease has ended, and takes the vote back if its lease
    /// has ended.
    pub(crate) fn expire(&mut self, world: &mut World<'_>) {
        let (Some(lease), Some(vote_lease)) = (world.settings.lease, world.settings.vote_lease())
        else {
            return;
        };
        let before = self.queue.len();
        self.queue.retain(|_, heard| heard.at + lease > world.now);
        if self.vote.owner.is_some() && self.heard.at + vote_lease <= world.now {
            self.vote.epoch += LEAP + 1;
            // It is not known what happened in the stage.
            world.suspect(self.vote.epoch);
            self.grant(world);
        } else if self.queue.len() < before {
            self.tell_owner(world);
        }
    }

    /// Repeats the last message to the owner: it, or its answer, may be lost.
    pub(crate) fn retry(&mut self, world: &mut World<'_>) {
        let (Some((owner, grant)), Some((best, _))) =
            (self.vote.owner, self.queue.first_key_value())
        else {
            return;
        };
        let (stage, again, claim) = (owner.stage, true, best.claim);
        if *best < owner {
            self.inquired = true;
            self.told = Some(claim);
            world
                .out
                .send(owner.member, PeerMessage::Inquire { stage, grant, rival: claim, again });
        } else {
            let rival = self.rival(owner.member).map(|rank| rank.claim);
            self.told = rival;
            world.out.send(owner.member, PeerMessage::Contested { stage, grant, rival, again });
        }
    }

    /// The first group in the queue that is not of `member`.
    fn rival(&self, member: MemberId) -> Option<Rank> {
        self.queue.keys().find(|rank| rank.member != member).copied()
    }

    /// Informs the owner that the queue has changed.
    fn tell_owner(&mut self, world: &mut World<'_>) {
        let Some((owner, grant)) = self.vote.owner else { return };
        let best = self.rival(owner.member);
        let (stage, again, rival) = (owner.stage, false, best.map(|rank| rank.claim));
        let news = match world.settings.admission {
            // It matters whether a group waits, not which.
            Admission::Together => self.told.is_some() != rival.is_some(),
            Admission::InOrder => self.told != rival,
        };
        match best {
            Some(best) if best < owner && !self.inquired => {
                self.inquired = true;
                let rival = best.claim;
                world.out.send(owner.member, PeerMessage::Inquire { stage, grant, rival, again });
            }
            _ if news => {
                world.out.send(owner.member, PeerMessage::Contested { stage, grant, rival, again });
            }
            _ => {}
        }
        self.told = rival;
    }

    /// Repeats the last message to `peer`, which may be lost. `peer` may have restarted with
    /// another clock, to which the times of its earlier requests mean nothing.
    pub(crate) fn reconnect(&mut self, peer: MemberId, world: &mut World<'_>) {
        if let Some((_, heard)) = self.queue.iter_mut().find(|(rank, _)| rank.member == peer) {
            heard.sent = Time::ZERO;
        }
        let Some((owner, grant)) = self.vote.owner.filter(|(owner, _)| owner.member == peer) else {
            return;
        };
        self.heard.sent = Time::ZERO;
        let stage = owner.stage;
        match self.rival(peer) {
            Some(best) if best < owner => {
                self.inquired = true;
                self.told = Some(best.claim);
                let (rival, again) = (best.claim, true);
                world.out.send(peer, PeerMessage::Inquire { stage, grant, rival, again });
            }
            _ => self.send_locked(peer, stage, grant, world),
        }
    }

    fn done(&self, member: MemberId) -> u64 {
        self.vote.done.get(&member).copied().unwrap_or(0)
    }

    fn grant(&mut self, world: &mut World<'_>) {
        self.inquired = false;
        self.vote.owner = None;
        let Some((best, heard)) = self.queue.pop_first() else {
            return world.out.save(Record::Returned(self.vote.clone()));
        };
        self.heard = heard;
        self.vote.grant += 1;
        self.vote.owner = Some((best, self.vote.grant));
        world.out.save(Record::Vote(self.vote.clone()));
        self.send_locked(best.member, best.stage, self.vote.grant, world);
    }

    fn send_locked(&mut self, to: MemberId, stage: u64, grant: u64, world: &mut World<'_>) {
        let rival = self.rival(to).map(|rank| rank.claim);
        self.told = rival;
        let (epoch, heard) = (self.vote.epoch, self.heard.sent);
        let died = world.died.clone();
        world.out.send(to, PeerMessage::Locked { stage, grant, epoch, heard, rival, died });
    }
}
