//! Who else wants the room, as the arbiters tell it.

use std::collections::BTreeMap;

use crate::name::MemberId;
use crate::rank::Claim;

/// The best claim that waits for each arbiter's vote, other than ours. Every other group has asked an arbiter that we have
/// asked as well, so together they know all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rivals(BTreeMap<MemberId, Claim>);

impl Rivals {
    /// When nothing is known: everyone might be before us.
    pub(crate) fn unknown<'a>(arbiters: impl IntoIterator<Item = &'a MemberId>) -> Self {
        Rivals(arbiters.into_iter().map(|arbiter| (*arbiter, Claim::FIRST)).collect())
    }

    pub(crate) fn hear(&mut self, arbiter: MemberId, rival: Option<Claim>) {
        match rival {
            Some(claim) => drop(self.0.insert(arbiter, claim)),
            None => drop(self.0.remove(&arbiter)),
        }
    }

    pub(crate) fn best(&self) -> Option<Claim> {
        self.0.values().min().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
