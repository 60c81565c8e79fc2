//! What is checked.
//!
//! # A bounded number of its own steps
//! Four properties say that *every* process they speak of gets through by a bounded number of its own steps:
//! [`BoundedExit`](Property::BoundedExit), [`ConcurrentEntering`](Property::ConcurrentEntering),
//! [`StrongConcurrentEntering`](Property::StrongConcurrentEntering) and, from the moment it was overtaken,
//! [`Fife`](Property::Fife). What is checked is more than that a process gets through if it runs alone:
//!
//! * in no reachable state does such a process wait for what is not so;
//! * the steps of the text that such processes take, in all reachable states together, form no cycle. (A look of an
//!   `await` that fails leads back to where it began.)
//!
//! Then the longest path along these steps is the bound, and the outcome tells it. A cycle convicts even if no single execution
//! goes round it for ever: then a bound exists, but not one that the text shows.
//!
//! Four properties say that *some* process can: [`GroupBoundedExit`](Property::GroupBoundedExit),
//! [`GroupConcurrentEntering`](Property::GroupConcurrentEntering),
//! [`StrongGroupConcurrentEntering`](Property::StrongGroupConcurrentEntering) and [`BoundedEntry`](Property::BoundedEntry). A
//! process is *free* if it would get through running alone from here. What is checked is that in every reachable state in question
//! somebody is free, and that the steps that processes take while they are free form no cycle. So a free process gets through
//! within the bound, unless a step of another makes it wait; then somebody else is free.
//!
//! # For ever
//! [`DeadlockFreedom`](Property::DeadlockFreedom), [`StarvationFreedom`](Property::StarvationFreedom),
//! [`TerminatingExit`](Property::TerminatingExit) and the second halves of the group properties ("everybody gets through in the end")
//! speak of executions that never end. A violation is a *fair cycle* of the graph of all states. Fair: every process outside its
//! remainder section moves in it, or waits in at least one of its states for what is not so there. A process in an `await` whose
//! condition becomes true and false again may look at the wrong moments for ever. (Only the ideal lock is fairer: whoever could take
//! it again and again does take it.) The graph is kept only if it fits [`Options::graph_limit`](crate::Options::graph_limit);
//! [`Outcome::looked_at`](crate::Outcome::looked_at) says of what.
//!
//! # Who came first
//! Those that speak of doorways say nothing of a text that has none: then they are not looked at.

use std::fmt;
use std::str::FromStr;

use grouplock_algorithms::Claims;
use grouplock_algorithms::claims::Claim;
use serde::{Deserialize, Serialize};

use crate::registry;

/// A property of a lock, or of what its text says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// No two sessions (for a mutex: no two processes) are inside at once.
    MutualExclusion,
    /// If somebody tries to enter, somebody enters: there is no state in which all who are outside their remainder section
    /// wait, and no fair cycle in which somebody tries and nobody enters. As every process may stop for good in its
    /// remainder section, this says too that nobody is left waiting when all others have stopped.
    DeadlockFreedom,
    /// Everyone who tries to enter gets in: there is no fair cycle in which one process tries throughout.
    StarvationFreedom,
    /// Of two conflicting requests, if one's doorway ended before the other's began, it is served first.
    Fcfs,
    /// For a mutex: of two requests, the one whose doorway ended first is served first.
    StrongFifo,
    /// Of two requests for one session, if one's doorway ended before the other's began and the other has entered,
    /// then the first enters by a bounded number of its own steps.
    Fife,
    /// For a mutex: while nobody is in the critical section or leaving, some process that tries to enter can do so by a
    /// bounded number of its own steps.
    BoundedEntry,
    /// While nobody asks for another session, everyone who asks gets in, even if nobody leaves.
    ConcurrentOccupancy,
    /// While nobody asks for another session, everyone who asks gets in by a bounded number of its own steps.
    ConcurrentEntering,
    /// While nobody asks for another session, somebody who asks can get in by a bounded number of its own steps, and
    /// everyone gets in, even if nobody leaves.
    GroupConcurrentEntering,
    /// While somebody asks who finished its doorway before anybody began to ask for another session, somebody of that
    /// session can get in by a bounded number of its own steps, and it gets in even if nobody leaves.
    StrongGroupConcurrentEntering,
    /// A process that finished its doorway before any of those began who ask for another session gets in by a bounded number
    /// of its own steps.
    StrongConcurrentEntering,
    /// A process that leaves gets out: there is no fair cycle in which one process is leaving throughout.
    TerminatingExit,
    /// Everyone gets out by a bounded number of its own steps.
    BoundedExit,
    /// While some are leaving, one of them can get out by a bounded number of its own steps, and everyone gets out.
    GroupBoundedExit,
    /// Registers keep within the range that the algorithm tells for them.
    BoundedRegisters,
    /// Nobody reads what the text said is dead.
    DeadRead,
    /// What the text said of private variables is true: executions that were taken for one behave as one.
    DeadPrivate,
    /// The algorithm does not panic.
    NoPanic,
}

impl Property {
    /// Those that an exploration checks whatever is asked, because without them it means nothing.
    pub const SOUND: [Property; 3] = [Property::DeadRead, Property::DeadPrivate, Property::NoPanic];

    /// Those that an exploration checks unless it is asked for others [only](Properties::only).
    pub const ALWAYS: [Property; 5] = [
        Property::MutualExclusion,
        Property::DeadlockFreedom,
        Property::DeadRead,
        Property::DeadPrivate,
        Property::NoPanic,
    ];

    /// The properties that can be claimed and checked.
    pub const CLAIMABLE: [Property; 16] = [
        Property::MutualExclusion,
        Property::DeadlockFreedom,
        Property::StarvationFreedom,
        Property::Fcfs,
        Property::StrongFifo,
        Property::Fife,
        Property::BoundedEntry,
        Property::ConcurrentOccupancy,
        Property::ConcurrentEntering,
        Property::GroupConcurrentEntering,
        Property::StrongGroupConcurrentEntering,
        Property::StrongConcurrentEntering,
        Property::TerminatingExit,
        Property::BoundedExit,
        Property::GroupBoundedExit,
        Property::BoundedRegisters,
    ];

    /// Those that bound a process's own steps: each process it speaks of, or some of them.
    pub(crate) const BOUNDING: [Property; 8] = [
        Property::Fife,
        Property::BoundedEntry,
        Property::ConcurrentEntering,
        Property::GroupConcurrentEntering,
        Property::StrongGroupConcurrentEntering,
        Property::StrongConcurrentEntering,
        Property::BoundedExit,
        Property::GroupBoundedExit,
    ];

    /// Those that speak, if only in part, of executions that go on for ever.
    pub(crate) const FOR_EVER: [Property; 7] = [
        Property::DeadlockFreedom,
        Property::StarvationFreedom,
        Property::ConcurrentOccupancy,
        Property::GroupConcurrentEntering,
        Property::StrongGroupConcurrentEntering,
        Property::TerminatingExit,
        Property::GroupBoundedExit,
    ];

    /// What `claims` says of it.
    pub fn claim(self, claims: &Claims) -> Claim {
        let Claims { entering, exit, .. } = claims;
        match self {
            Property::MutualExclusion => claims.mutual_exclusion,
            Property::DeadlockFreedom => claims.deadlock_freedom,
            Property::StarvationFreedom => claims.starvation_freedom,
            Property::Fcfs => claims.fcfs,
            Property::StrongFifo => claims.strong_fifo,
            Property::Fife => claims.fife,
            Property::BoundedEntry => entering.bounded,
            Property::ConcurrentOccupancy => entering.concurrent_occupancy,
            Property::ConcurrentEntering => entering.concurrent_entering,
            Property::GroupConcurrentEntering => entering.group_concurrent_entering,
            Property::StrongGroupConcurrentEntering => entering.strong_group_concurrent_entering,
            Property::StrongConcurrentEntering => entering.strong_concurrent_entering,
            Property::TerminatingExit => exit.terminating,
            Property::BoundedExit => exit.bounded,
            Property::GroupBoundedExit => exit.group_bounded,
            Property::BoundedRegisters => claims.bounded_registers,
            Property::DeadRead | Property::DeadPrivate | Property::NoPanic => Claim::Yes,
        }
    }

    /// The name in reports and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Property::MutualExclusion => "mutual-exclusion",
            Property::DeadlockFreedom => "deadlock-freedom",
            Property::StarvationFreedom => "starvation-freedom",
            Property::Fcfs => "fcfs",
            Property::StrongFifo => "strong-fifo",
            Property::Fife => "fife",
            Property::BoundedEntry => "bounded-entry",
            Property::ConcurrentOccupancy => "concurrent-occupancy",
            Property::ConcurrentEntering => "concurrent-entering",
            Property::GroupConcurrentEntering => "group-concurrent-entering",
            Property::StrongGroupConcurrentEntering => "strong-group-concurrent-entering",
            Property::StrongConcurrentEntering => "strong-concurrent-entering",
            Property::TerminatingExit => "terminating-exit",
            Property::BoundedExit => "bounded-exit",
            Property::GroupBoundedExit => "group-bounded-exit",
            Property::BoundedRegisters => "bounded-registers",
            Property::DeadRead => "dead-read",
            Property::DeadPrivate => "dead-private",
            Property::NoPanic => "no-panic",
        }
    }

    /// Whether it says that some process can get through, not each.
    pub(crate) fn is_of_some(self) -> bool {
        matches!(
            self,
            Property::BoundedEntry
                | Property::GroupConcurrentEntering
                | Property::StrongGroupConcurrentEntering
                | Property::GroupBoundedExit
        )
    }

    /// What gives it for all executions that go on for ever, if there is such a property: one that bounds everybody's own steps.
    pub(crate) fn follows_from(self) -> Option<Property> {
        match self {
            Property::ConcurrentOccupancy | Property::GroupConcurrentEntering => {
                Some(Property::ConcurrentEntering)
            }
            Property::StrongGroupConcurrentEntering => Some(Property::StrongConcurrentEntering),
            Property::TerminatingExit | Property::GroupBoundedExit => Some(Property::BoundedExit),
            _ => None,
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no property of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no property is called {name:?}: is it {nearest:?}?")]
pub struct UnknownProperty {
    name: String,
    nearest: &'static str,
}

impl FromStr for Property {
    type Err = UnknownProperty;

    /// ```
    /// use grouplock_lab::Property;
    ///
    /// assert_eq!("strong-fifo".parse(), Ok(Property::StrongFifo));
    /// let error = "strong-fifa".parse::<Property>().unwrap_err();
    /// assert_eq!(error.to_string(), r#"no property is called "strong-fifa": is it "strong-fifo"?"#);
    /// ```
    fn from_str(name: &str) -> Result<Self, UnknownProperty> {
        let all = || Properties(u32::MAX).iter();
        all().find(|property| property.name() == name).ok_or_else(|| UnknownProperty {
            name: name.to_owned(),
            nearest: registry::nearest(name, all().map(Property::name)).unwrap_or_default(),
        })
    }
}

/// A set of properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties(u32);

impl Properties {
    /// Those that need to know who came before whom, for which states are told apart further.
    pub(crate) const ORDER: [Property; 5] = [
        Property::Fcfs,
        Property::StrongFifo,
        Property::Fife,
        Property::StrongGroupConcurrentEntering,
        Property::StrongConcurrentEntering,
    ];

    /// What `claims` claims, rightly or not, and what is always checked.
    pub fn claimed(claims: &Claims) -> Self {
        let claimed = Property::CLAIMABLE.into_iter().filter(|p| p.claim(claims).is_claimed());
        claimed.chain(Property::ALWAYS).collect()
    }

    /// Mutual exclusion, deadlock freedom and no more.
    pub fn basic() -> Self {
        Property::ALWAYS.into_iter().collect()
    }

    /// `property` and no more, but for what every exploration needs to mean anything: it goes on where another property
    /// is violated.
    pub fn only(property: Property) -> Self {
        Property::SOUND.into_iter().chain([property]).collect()
    }

    /// This set with one more.
    #[must_use]
    pub fn with(self, property: Property) -> Self {
        Properties(self.0 | 1 << property as u32)
    }

    /// This set without one.
    #[must_use]
    pub fn without(self, property: Property) -> Self {
        Properties(self.0 & !(1 << property as u32))
    }

    /// This set without `others`.
    pub(crate) fn minus(self, others: &[Property]) -> Self {
        others.iter().fold(self, |set, &property| set.without(property))
    }

    /// The properties in the set, those that can be claimed first.
    pub fn iter(self) -> impl Iterator<Item = Property> {
        Property::CLAIMABLE.into_iter().chain(Property::SOUND).filter(move |&p| self.contains(p))
    }

    /// Whether `property` is in the set.
    pub fn contains(self, property: Property) -> bool {
        self.0 & 1 << property as u32 != 0
    }
}

impl FromIterator<Property> for Properties {
    fn from_iter<I: IntoIterator<Item = Property>>(properties: I) -> Self {
        properties.into_iter().fold(Properties::default(), Properties::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_its_property() {
        for property in Properties(u32::MAX).iter() {
            assert_eq!(property.name().parse(), Ok(property));
        }
    }

    #[test]
    fn a_set_tells_each_of_its_properties_once() {
        let all: Properties = Property::CLAIMABLE.into_iter().chain(Property::ALWAYS).collect();
        let told: Vec<Property> = all.iter().collect();
        assert_eq!(told.iter().copied().collect::<Properties>(), all);
        assert!(told.iter().enumerate().all(|(i, p)| !told[..i].contains(p)), "{told:?}");
    }
}
