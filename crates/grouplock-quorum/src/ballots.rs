//! What a group has heard from its arbiters: votes, and the claims of other groups.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::coterie::Quorum;
use crate::group::World;
use crate::name::MemberId;
use crate::rank::Claim;
use crate::settings::Votes;
use crate::time::Time;

/// The votes of the arbiters. Each has a lease. The arbiter counts it from the time at which it
/// heard the request. The group counts it from the time at which it sent the request, which is
/// earlier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ballots(BTreeMap<MemberId, Ballot>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ballot {
    /// The number of the grant. It stays the same until the arbiter takes its vote back.
    grant: u64,
    /// The highest epoch that the arbiter knows.
    epoch: u64,
    /// When the last request that the arbiter heard was sent.
    sent: Time,
}

impl Ballots {
    pub(crate) fn count(&mut self, arbiter: MemberId, grant: u64, epoch: u64, sent: Time) {
        let ballot = self.0.entry(arbiter).or_insert(Ballot { grant, epoch, sent });
        let (epoch, sent) = (epoch.max(ballot.epoch), sent.max(ballot.sent));
        *ballot = Ballot { grant, epoch, sent };
    }

    /// Whether the arbiter gave this grant before.
    pub(crate) fn is_the_same(&self, arbiter: MemberId, grant: u64) -> bool {
        self.0.get(&arbiter).is_some_and(|ballot| ballot.grant == grant)
    }

    pub(crate) fn remove(&mut self, arbiter: MemberId) {
        self.0.remove(&arbiter);
    }

    pub(crate) fn has(&self, arbiter: MemberId) -> bool {
        self.0.contains_key(&arbiter)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// A quorum that has voted, if each of its votes is at most `age` old.
    pub(crate) fn quorum<'a>(
        &self,
        age: Option<Duration>,
        world: &World<'a>,
    ) -> Option<&'a Quorum> {
        let young = |sent: Time| age.is_none_or(|age| sent + age >= world.now);
        let has = |arbiter| self.0.get(&arbiter).is_some_and(|ballot| young(ballot.sent));
        match world.settings.votes {
            Votes::OwnQuorum => world.quorum().filter(|own| own.iter().all(|member| has(*member))),
            Votes::AnyQuorum => world.coterie.quorum_in(world.me, has),
        }
    }

    /// The highest epoch that a voter knows.
    pub(crate) fn epoch(&self) -> u64 {
        self.0.values().map(|ballot| ballot.epoch).max().unwrap_or(0)
    }

    /// The members of a quorum that know no epoch from `least` on.
    pub(crate) fn behind(&self, quorum: &Quorum, least: u64) -> Vec<MemberId> {
        let behind = |arbiter: &&MemberId| self.0.get(arbiter).is_none_or(|b| b.epoch < least);
        quorum.iter().filter(behind).copied().collect()
    }
}

/// The best claim of other groups at each arbiter. Every other group has asked one of the arbiters
/// that we have asked, so together they know all claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rivals(BTreeMap<MemberId, Claim>);

impl Rivals {
    /// If nothing is known, every other group may be first.
    pub(crate) fn unknown<'a>(arbiters: impl IntoIterator<Item = &'a MemberId>) -> Self {
        Rivals(arbiters.into_iter().map(|arbiter| (*arbiter, Claim::FIRST)).collect())
    }

    pub(crate) fn hear(&mut self, arbiter: MemberId, rival: Option<Claim>) {
        match rival {
            Some(claim) => _ = self.0.insert(arbiter, claim),
            None => _ = self.0.remove(&arbiter),
        }
    }

    pub(crate) fn best(&self) -> Option<Claim> {
        self.0.values().min().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
