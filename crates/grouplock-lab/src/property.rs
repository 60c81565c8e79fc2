//! What is checked.
//!
//! # A bounded number of its own steps
//! Four properties say that *every* process that they concern finishes its section by a bounded
//! number of its own steps: [`BoundedExit`](Property::BoundedExit),
//! [`ConcurrentEntering`](Property::ConcurrentEntering),
//! [`StrongConcurrentEntering`](Property::StrongConcurrentEntering) and, from the moment it was
//! overtaken, [`Fife`](Property::Fife). It is not enough that a process finishes its section if it
//! runs alone. The lab checks that
//!
//! * in no reachable state such a process waits for a condition that does not hold;
//! * the steps of the text that such processes take, in all reachable states together, form no
//!   cycle. (A failed round of an `await` leads back to its beginning.)
//!
//! Then the longest path along these steps is the bound, and the outcome contains it. (A step that
//! no other process can notice is taken as soon as it is possible. If the property concerns the
//! process only later, the bound lacks that step, unless `Reductions::alone` is off.) A cycle is a
//! violation even if no single execution repeats it forever: then a bound may exist, but the text
//! does not show one.
//!
//! Four properties say that *some* process can do so:
//! [`GroupBoundedExit`](Property::GroupBoundedExit),
//! [`GroupConcurrentEntering`](Property::GroupConcurrentEntering),
//! [`StrongGroupConcurrentEntering`](Property::StrongGroupConcurrentEntering) and
//! [`BoundedEntry`](Property::BoundedEntry). A process is *free* if it would finish its section
//! alone from here. The lab checks that some process is free in every reachable state in question,
//! and that the steps of free processes form no cycle. So a free process finishes its section
//! within the bound, unless a step of another process makes it wait. Then another process is free.
//!
//! # Infinite executions
//! [`DeadlockFreedom`](Property::DeadlockFreedom),
//! [`StarvationFreedom`](Property::StarvationFreedom),
//! [`TerminatingExit`](Property::TerminatingExit) and the second halves of the group properties
//! ("every process finishes its section in the end") concern infinite executions. A violation is a
//! *fair cycle* of the graph of all states. In a fair cycle every process outside its remainder
//! section moves, or waits in at least one state for a condition that does not hold there. So a
//! process in an `await` whose condition becomes true and false again may read at the wrong moments
//! forever. (Only the ideal lock is fairer: a process that could take it again and again takes it.)
//! The lab keeps the graph only if it fits [`Options::graph_limit`](crate::Options::graph_limit).
//! [`Outcome::checked`](crate::Outcome::checked) says which properties were checked.
//!
//! Whether a process enters while others of its session come and go is a question of starvation
//! freedom. [`ConcurrentOccupancy`](Property::ConcurrentOccupancy) and its like do not concern these
//! executions here, though the words of the papers ("even if no process leaves") include them.
//!
//! # Withdrawal
//! If waiters can withdraw, an exploration allows that at every such wait: on a flag at any moment,
//! on a register after any read that did not end the wait. From then on the process is neither
//! entering nor leaving until it is inside or idle. A withdrawn request does not count: an order of
//! service is violated only if a process that was overtaken enters after all. A request that the
//! text itself declines counts as withdrawn too, so a lock that declines always violates nothing
//! here. The four properties
//! of *some* process hold only while no process withdraws. While one does,
//! [`GroupBoundedAbort`](Property::GroupBoundedAbort) requires some process that can complete what
//! it does.
//!
//! # Death
//! If processes may die, an exploration allows that before any step outside the remainder section,
//! as often as its options say. A process that died inside counts as inside until it is buried. The
//! request of a dead process does not count. A process that waits where it can learn of a death
//! does not wait while there is one. No process dies in a cycle: the statements about infinite
//! executions concern executions with finitely many deaths.
//!
//! # Order
//! The properties that concern doorways say nothing about a text without a doorway; then they are
//! not checked. Whether a doorway is bounded, as the definitions require, is not checked either.

use std::fmt;
use std::str::FromStr;

use grouplock_algorithms::Claims;
use grouplock_algorithms::claims::Claim;
use serde::{Deserialize, Serialize};

use crate::registry::{self, UnknownName};

/// One table of all properties: the name in reports and on the command line, what claims say of the
/// property, and the sets of properties that it is in.
macro_rules! properties {
    ($($(#[$doc:meta])* $property:ident = $name:literal ($claim:expr) [$($set:ident),*],)*) => {
        /// A property of a lock, or of what its text says about itself.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        pub enum Property {
            $($(#[$doc])* #[serde(rename = $name)] $property,)*
        }

        impl Property {
            /// All of them, those that can be claimed first.
            pub const ALL: &[Property] = &[$(Property::$property),*];

            /// The name in reports and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Property::$property => $name,)*
                }
            }

            /// What `claims` says of it.
            pub fn claim(self, claims: &Claims) -> Claim {
                let of: fn(&Claims) -> Claim = match self {
                    $(Property::$property => $claim,)*
                };
                of(claims)
            }

            const fn sets(self) -> u8 {
                match self {
                    $(Property::$property => 0 $(| $set)*,)*
                }
            }
        }
    };
}

/// Every exploration checks it: without it the other results mean nothing.
const SOUND: u8 = 1;
/// An exploration checks it unless it checks another one [only](Properties::only).
const ALWAYS: u8 = 2;
/// It bounds the own steps of each process that it concerns.
const EACH: u8 = 4;
/// It bounds the own steps of some of them.
const SOME: u8 = 8;
/// It concerns infinite executions, at least in part.
const FOR_EVER: u8 = 16;
/// It needs the order of arrival, which makes more states.
const ORDER: u8 = 32;
/// It is looked for only if processes may pass again and again.
const PASSING: u8 = 64;
/// It says that every process of a session enters as long as none leaves.
const GATHERS: u8 = 128;

properties! {
    /// No two sessions (for a mutex: no two processes) are inside at once.
    MutualExclusion = "mutual-exclusion" (|c| c.mutual_exclusion) [ALWAYS],
    /// If a process tries to enter, some process enters: there is no state in which all processes
    /// outside their remainder sections wait, and no fair cycle in which a process tries and none
    /// enters. Every process may stop forever in its remainder section. So this also says that no
    /// process waits forever when all others have stopped.
    DeadlockFreedom = "deadlock-freedom" (|c| c.deadlock_freedom) [ALWAYS, FOR_EVER],
    /// Every process that tries to enter does enter: there is no fair cycle in which one process
    /// tries throughout.
    StarvationFreedom = "starvation-freedom" (|c| c.starvation_freedom) [FOR_EVER, PASSING],
    /// Of two conflicting requests, if one's doorway ended before the other's began, it is served
    /// first.
    Fcfs = "fcfs" (|c| c.fcfs) [ORDER],
    /// For a mutex: of two requests, the one whose doorway ended first is served first.
    StrongFifo = "strong-fifo" (|c| c.strong_fifo) [ORDER],
    /// Of two requests for one session, if one's doorway ended before the other's began and the
    /// other has entered, then the first enters by a bounded number of its own steps.
    Fife = "fife" (|c| c.fife) [EACH, ORDER],
    /// For a mutex: while no process is in the critical section or leaving, some process that tries
    /// to enter can do so by a bounded number of its own steps.
    BoundedEntry = "bounded-entry" (|c| c.entering.bounded) [SOME],
    /// While no process requests another session and none leaves, every process that requests
    /// enters.
    ConcurrentOccupancy = "concurrent-occupancy"
        (|c| c.entering.concurrent_occupancy) [FOR_EVER, GATHERS],
    /// While no process requests another session, every process that requests enters by a bounded
    /// number of its own steps.
    ConcurrentEntering = "concurrent-entering" (|c| c.entering.concurrent_entering) [EACH],
    /// While no process requests another session, some process that requests can enter by a bounded
    /// number of its own steps, and every process enters as long as none leaves.
    GroupConcurrentEntering = "group-concurrent-entering"
        (|c| c.entering.group_concurrent_entering) [SOME, FOR_EVER, GATHERS],
    /// A process waits that finished its doorway before any process requested another session. Then
    /// some process of its session can enter by a bounded number of its own steps, and the waiting
    /// process enters as long as none leaves.
    StrongGroupConcurrentEntering = "strong-group-concurrent-entering"
        (|c| c.entering.strong_group_concurrent_entering) [SOME, FOR_EVER, ORDER, GATHERS],
    /// A process that finished its doorway before any process of another session began enters by a
    /// bounded number of its own steps.
    StrongConcurrentEntering = "strong-concurrent-entering"
        (|c| c.entering.strong_concurrent_entering) [EACH, ORDER],
    /// A process that leaves finishes its exit section: there is no fair cycle in which one process
    /// is leaving throughout.
    TerminatingExit = "terminating-exit" (|c| c.exit.terminating) [FOR_EVER, PASSING],
    /// Every process finishes its exit section by a bounded number of its own steps.
    BoundedExit = "bounded-exit" (|c| c.exit.bounded) [EACH],
    /// While processes leave, one of them can finish its exit section by a bounded number of its
    /// own steps, and every process finishes it.
    GroupBoundedExit = "group-bounded-exit"
        (|c| c.exit.group_bounded) [SOME, FOR_EVER, PASSING],
    /// While processes withdraw, some process can complete what it does (enter, leave or withdraw)
    /// by a bounded number of its own steps, and every withdrawal ends. The reported bound is that
    /// of the withdrawals.
    GroupBoundedAbort = "group-bounded-abort"
        (|c| c.group_bounded_abort) [SOME, FOR_EVER, PASSING],
    /// Registers stay within the range that the algorithm states for them.
    BoundedRegisters = "bounded-registers" (|c| c.bounded_registers) [],
    /// No process reads contents that the text called dead.
    DeadRead = "dead-read" (|_| Claim::Yes) [SOUND, ALWAYS],
    /// What the text says about private variables is true: executions that count as one behave
    /// alike.
    DeadPrivate = "dead-private" (|_| Claim::Yes) [SOUND, ALWAYS],
    /// The algorithm does not panic.
    NoPanic = "no-panic" (|_| Claim::Yes) [SOUND, ALWAYS],
}

impl Property {
    /// The properties that can be claimed and checked.
    pub const CLAIMABLE: [Property; 17] = *Property::ALL.first_chunk().unwrap();

    /// Whether it concerns some process, not every process.
    pub(crate) fn is_of_some(self) -> bool {
        self.sets() & SOME != 0
    }

    /// The property, if there is one, that implies it for infinite executions: it bounds the own
    /// steps of every process.
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

impl FromStr for Property {
    type Err = UnknownName;

    /// ```
    /// use grouplock_lab::Property;
    ///
    /// assert_eq!("strong-fifo".parse(), Ok(Property::StrongFifo));
    /// let error = "strong-fifa".parse::<Property>().unwrap_err();
    /// let told = r#"there is no property "strong-fifa": did you mean "strong-fifo"?"#;
    /// assert_eq!(error.to_string(), told);
    /// ```
    fn from_str(name: &str) -> Result<Self, UnknownName> {
        registry::named("property", Property::ALL, |property| property.name(), name)
    }
}

/// A set of properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties(u32);

impl Properties {
    pub(crate) const ORDER: Self = Properties::of(ORDER);
    pub(crate) const BOUNDING: Self = Properties::of(EACH | SOME);
    pub(crate) const FOR_EVER: Self = Properties::of(FOR_EVER);
    pub(crate) const PASSING: Self = Properties::of(PASSING);
    pub(crate) const GATHERS: Self = Properties::of(GATHERS);

    /// The properties that are in one of `sets`.
    const fn of(sets: u8) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < Property::ALL.len() {
            if Property::ALL[i].sets() & sets != 0 {
                bits |= 1 << i;
            }
            i += 1;
        }
        Properties(bits)
    }

    /// What `claims` claims, true or not, and what is always checked.
    pub fn claimed(claims: &Claims) -> Self {
        let claimed = Property::CLAIMABLE.into_iter().filter(|p| p.claim(claims).is_claimed());
        claimed.chain(Properties::basic().iter()).collect()
    }

    /// Only mutual exclusion, deadlock freedom, and what every exploration checks.
    pub fn basic() -> Self {
        Properties::of(ALWAYS)
    }

    /// `property`, and what every exploration checks. The exploration continues after a violation
    /// of another property.
    pub fn only(property: Property) -> Self {
        Properties::of(SOUND).with(property)
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

    pub(crate) fn minus(self, others: Self) -> Self {
        Properties(self.0 & !others.0)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Properties(self.0 & other.0)
    }

    /// The properties in the set, those that can be claimed first.
    pub fn iter(self) -> impl Iterator<Item = Property> {
        Property::ALL.iter().copied().filter(move |&p| self.contains(p))
    }

    /// The claims, and the property `asked` for, that are not in the set.
    #[must_use]
    pub fn missing(self, claims: &Claims, asked: Option<Property>) -> Self {
        let counts = |p: Property| p.claim(claims).is_claimed() || asked == Some(p);
        let all = Property::CLAIMABLE.into_iter();
        all.filter(|&property| counts(property) && !self.contains(property)).collect()
    }

    /// Whether `property` is in the set.
    pub fn contains(self, property: Property) -> bool {
        self.0 & 1 << property as u32 != 0
    }

    /// What is `missing`, in words: of the properties in this set, only infinite executions.
    pub fn tell_missing(self, missing: Self) -> String {
        let told = |what: &str, list: Self| match list {
            Properties(0) => String::new(),
            list => format!("; {what}: {list}"),
        };
        let infinite = told("infinite executions not checked", missing.and(self));
        infinite + &told("not checked", missing.minus(self))
    }
}

impl fmt::Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Property::name).collect();
        f.write_str(&names.join(", "))
    }
}

impl Serialize for Properties {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Property>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl FromIterator<Property> for Properties {
    fn from_iter<I: IntoIterator<Item = Property>>(properties: I) -> Self {
        properties.into_iter().fold(Properties::default(), Properties::with)
    }
}
