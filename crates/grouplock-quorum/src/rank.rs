//! Who goes first.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::name::MemberId;
use crate::time::Time;

/// How priority and waiting are weighed against each other. It must be the same at all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Precedence {
    /// A step of priority is worth `weight` of waiting. Whoever has waited long enough is first, so nobody starves.
    Aged {
        /// What one step of priority is worth.
        weight: Duration,
    },
    /// Higher priority first, always; among equals the longer wait. This is the paper's rule, and it lets
    /// the lower priority starve.
    Static,
}

impl Precedence {
    /// How a request stands that was made at `asked`.
    pub fn claim(self, asked: Time, priority: i32) -> Claim {
        let priority = i128::from(priority);
        let urgency = match self {
            Precedence::Static => -priority,
            Precedence::Aged { weight } => {
                let weight = i128::try_from(weight.as_micros()).unwrap_or(i128::MAX);
                i128::from(asked.as_micros()).saturating_sub(weight.saturating_mul(priority))
            }
        };
        let bounds = (i128::from(i64::MIN), i128::from(i64::MAX));
        Claim { urgency: urgency.clamp(bounds.0, bounds.1) as i64, asked }
    }
}

/// How a process's request stands: the smaller, the sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Claim {
    urgency: i64,
    asked: Time,
}

impl Claim {
    /// Before all others.
    pub(crate) const FIRST: Claim = Claim { urgency: i64::MIN, asked: Time::ZERO };

    /// When it was made.
    pub fn asked(self) -> Time {
        self.asked
    }
}

/// How a stage stands among those of all members: the smaller, the sooner. No two are equal, as the member
/// and the stage's number break ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rank {
    /// The best claim of those who wait for the stage.
    pub claim: Claim,
    /// Whose stage it is.
    pub member: MemberId,
    /// Its number.
    pub stage: u64,
}
