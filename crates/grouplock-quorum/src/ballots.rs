//! Votes, as the group that asked for them counts them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::coterie::Quorum;
use crate::group::World;
use crate::name::MemberId;
use crate::settings::Votes;
use crate::time::Time;

/// Who voted. Each vote has a lease, which the arbiter counts from when it heard our request. We count it from when we
/// sent that, which was before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ballots(BTreeMap<MemberId, Ballot>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ballot {
    /// The number of the grant: as long as the arbiter has not taken its vote back, the same.
    grant: u64,
    /// The highest epoch the arbiter knows of.
    epoch: u64,
    /// When the last request was sent that it has heard.
    sent: Time,
}

impl Ballots {
    pub(crate) fn count(&mut self, arbiter: MemberId, grant: u64, epoch: u64, sent: Time) {
        let ballot = self.0.entry(arbiter).or_insert(Ballot { grant, epoch, sent });
        let (epoch, sent) = (epoch.max(ballot.epoch), sent.max(ballot.sent));
        *ballot = Ballot { grant, epoch, sent };
    }

    /// Whether this is the vote that the arbiter has given already.
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

    /// A quorum that has voted, all of it with a word that is no older than `age`.
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

    /// The highest epoch that any of them knows of.
    pub(crate) fn epoch(&self) -> u64 {
        self.0.values().map(|ballot| ballot.epoch).max().unwrap_or(0)
    }

    /// Those of a quorum that know of no epoch from `least` on.
    pub(crate) fn behind(&self, quorum: &Quorum, least: u64) -> Vec<MemberId> {
        let behind = |arbiter: &&MemberId| self.0.get(arbiter).is_none_or(|b| b.epoch < least);
        quorum.iter().filter(behind).copied().collect()
    }
}
