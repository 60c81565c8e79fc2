//! The order of requests.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::name::MemberId;
use crate::time::Time;

/// How priority and waiting time compare. All members must have the same rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Precedence {
    /// A step of priority is worth `weight` of waiting. A request that has waited long enough is
    /// first, so none starves.
    Aged {
        /// The worth of one step of priority.
        weight: Duration,
    },
    /// The higher priority always goes first, as in the paper's figures; among equals the longer
    /// wait. Lower priorities can starve.
    Static,
}

impl Precedence {
    /// The claim of a request that was made at `asked`.
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

/// The order of a request: the smallest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Claim {
    urgency: i64,
    asked: Time,
}

impl Claim {
    /// Before all other claims.
    pub(crate) const FIRST: Claim = Claim { urgency: i64::MIN, asked: Time::ZERO };

    /// When the request was made.
    pub fn asked(self) -> Time {
        self.asked
    }
}

/// The order of a stage among those of all members: the smallest goes first. No two are equal,
/// because the member and the number of the stage break ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rank {
    /// The best claim of the requests that wait for the stage.
    pub claim: Claim,
    /// The member of the stage.
    pub member: MemberId,
    /// The number of the stage.
    pub stage: u64,
}
