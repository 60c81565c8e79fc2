//! The claims of other groups that want the room.

use std::collections::BTreeMap;

use crate::name::MemberId;
use crate::rank::Claim;

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
