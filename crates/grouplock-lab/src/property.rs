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
//! # Giving up
//! Where waiters can give up, an exploration lets them do so at every such wait, at any moment. From then on a process neither enters nor leaves
//! until it is inside or idle. A request that is given up is as if it had not been made: an order of service is violated only if
//! a process that was overtaken enters after all. [`GroupBoundedExit`](Property::GroupBoundedExit),
//! [`GroupConcurrentEntering`](Property::GroupConcurrentEntering),
//! [`StrongGroupConcurrentEntering`](Property::StrongGroupConcurrentEntering) and [`BoundedEntry`](Property::BoundedEntry) ask for somebody who can
//! get through by its own steps only while nobody is giving up. Then [`GroupBoundedAbort`](Property::GroupBoundedAbort) asks for somebody, whatever it
//! does.
//!
//! # Dying
//! Where processes may die, an exploration lets them do so before any step, in any section, as often as it is told. A process that died
//! inside counts as inside until it is buried. A request whose process died is as if it had not been made. Whoever waits where it can be told
//! of a death does not wait while there is one to be told of. Nobody dies in a cycle: what is said of
//! executions that go on for ever is said of those with finitely many deaths.
//!
//! # Who came first
//! Those that speak of doorways say nothing of a text that has none: then they are not looked at.

use std::fmt;
use std::str::FromStr;

use grouplock_algorithms::Claims;
use grouplock_algorithms::claims::Claim;
use serde::{Deserialize, Serialize};

use crate::registry::{self, UnknownName};

/// One table of all properties: the name in reports and on the command line, what claims say of it, and the sets of properties
/// that it is in.
macro_rules! properties {
    ($($(#[$doc:meta])* $property:ident = $name:literal ($claim:expr) [$($set:ident),*],)*) => {
        /// A property of a lock, or of what its text says of itself.
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

/// An exploration checks it whatever is asked, because without it nothing means anything.
const SOUND: u8 = 1;
/// An exploration checks it unless it is asked for others [only](Properties::only).
const ALWAYS: u8 = 2;
/// It bounds the own steps of each process that it speaks of.
const EACH: u8 = 4;
/// It bounds the own steps of some of them.
const SOME: u8 = 8;
/// It speaks, if only in part, of executions that go on for ever.
const FOR_EVER: u8 = 16;
/// It needs to know who came before whom, for which states are told apart further.
const ORDER: u8 = 32;

properties! {
    /// No two sessions (for a mutex: no two processes) are inside at once.
    MutualExclusion = "mutual-exclusion" (|c| c.mutual_exclusion) [ALWAYS],
    /// If somebody tries to enter, somebody enters: there is no state in which all who are outside their remainder section
    /// wait, and no fair cycle in which somebody tries and nobody enters. As every process may stop for good in its
    /// remainder section, this says too that nobody is left waiting when all others have stopped.
    DeadlockFreedom = "deadlock-freedom" (|c| c.deadlock_freedom) [ALWAYS, FOR_EVER],
    /// Everyone who tries to enter gets in: there is no fair cycle in which one process tries throughout.
    StarvationFreedom = "starvation-freedom" (|c| c.starvation_freedom) [FOR_EVER],
    /// Of two conflicting requests, if one's doorway ended before the other's began, it is served first.
    Fcfs = "fcfs" (|c| c.fcfs) [ORDER],
    /// For a mutex: of two requests, the one whose doorway ended first is served first.
    StrongFifo = "strong-fifo" (|c| c.strong_fifo) [ORDER],
    /// Of two requests for one session, if one's doorway ended before the other's began and the other has entered,
    /// then the first enters by a bounded number of its own steps.
    Fife = "fife" (|c| c.fife) [EACH, ORDER],
    /// For a mutex: while nobody is in the critical section or leaving, some process that tries to enter can do so by a
    /// bounded number of its own steps.
    BoundedEntry = "bounded-entry" (|c| c.entering.bounded) [SOME],
    /// While nobody asks for another session, everyone who asks gets in, even if nobody leaves.
    ConcurrentOccupancy = "concurrent-occupancy" (|c| c.entering.concurrent_occupancy) [FOR_EVER],
    /// While nobody asks for another session, everyone who asks gets in by a bounded number of its own steps.
    ConcurrentEntering = "concurrent-entering" (|c| c.entering.concurrent_entering) [EACH],
    /// While nobody asks for another session, somebody who asks can get in by a bounded number of its own steps, and
    /// everyone gets in, even if nobody leaves.
    GroupConcurrentEntering = "group-concurrent-entering"
        (|c| c.entering.group_concurrent_entering) [SOME, FOR_EVER],
    /// While somebody asks who finished its doorway before anybody began to ask for another session, somebody of that
    /// session can get in by a bounded number of its own steps, and it gets in even if nobody leaves.
    StrongGroupConcurrentEntering = "strong-group-concurrent-entering"
        (|c| c.entering.strong_group_concurrent_entering) [SOME, FOR_EVER, ORDER],
    /// A process that finished its doorway before any of those began who ask for another session gets in by a bounded number
    /// of its own steps.
    StrongConcurrentEntering = "strong-concurrent-entering"
        (|c| c.entering.strong_concurrent_entering) [EACH, ORDER],
    /// A process that leaves gets out: there is no fair cycle in which one process is leaving throughout.
    TerminatingExit = "terminating-exit" (|c| c.exit.terminating) [FOR_EVER],
    /// Everyone gets out by a bounded number of its own steps.
    BoundedExit = "bounded-exit" (|c| c.exit.bounded) [EACH],
    /// While some are leaving, one of them can get out by a bounded number of its own steps, and everyone gets out.
    GroupBoundedExit = "group-bounded-exit" (|c| c.exit.group_bounded) [SOME, FOR_EVER],
    /// While some are giving up, some process can complete what it does (enter, leave, or give up) by a bounded number of its own
    /// steps, and everyone who gives up gets through. The bound told is that of those who give up.
    GroupBoundedAbort = "group-bounded-abort" (|c| c.group_bounded_abort) [SOME, FOR_EVER],
    /// Registers keep within the range that the algorithm tells for them.
    BoundedRegisters = "bounded-registers" (|c| c.bounded_registers) [],
    /// Nobody reads what the text said is dead.
    DeadRead = "dead-read" (|_| Claim::Yes) [SOUND, ALWAYS],
    /// What the text said of private variables is true: executions that were taken for one behave as one.
    DeadPrivate = "dead-private" (|_| Claim::Yes) [SOUND, ALWAYS],
    /// The algorithm does not panic.
    NoPanic = "no-panic" (|_| Claim::Yes) [SOUND, ALWAYS],
}

impl Property {
    /// The properties that can be claimed and checked.
    pub const CLAIMABLE: [Property; 17] = *Property::ALL.first_chunk().unwrap();

    /// Whether it says that some process can get through, not each.
    pub(crate) fn is_of_some(self) -> bool {
        self.sets() & SOME != 0
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
    /// Those that need to know who came before whom, for which states are told apart further.
    pub(crate) const ORDER: Self = Properties::of(ORDER);
    /// Those that bound a process's own steps: each process it speaks of, or some of them.
    pub(crate) const BOUNDING: Self = Properties::of(EACH | SOME);
    /// Those that speak, if only in part, of executions that go on for ever.
    pub(crate) const FOR_EVER: Self = Properties::of(FOR_EVER);

    /// Those that are in one of `sets`.
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

    /// What `claims` claims, rightly or not, and what is always checked.
    pub fn claimed(claims: &Claims) -> Self {
        let claimed = Property::CLAIMABLE.into_iter().filter(|p| p.claim(claims).is_claimed());
        claimed.chain(Properties::basic().iter()).collect()
    }

    /// Mutual exclusion, deadlock freedom and no more.
    pub fn basic() -> Self {
        Properties::of(ALWAYS)
    }

    /// `property` and no more, but for what every exploration needs to mean anything: it goes on where another property
    /// is violated.
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

    /// This set without `others`.
    pub(crate) fn minus(self, others: Self) -> Self {
        Properties(self.0 & !others.0)
    }

    /// What is in both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        Properties(self.0 & other.0)
    }

    /// The properties in the set, those that can be claimed first.
    pub fn iter(self) -> impl Iterator<Item = Property> {
        Property::ALL.iter().copied().filter(move |&p| self.contains(p))
    }

    /// The claims, and what was `asked` for, that are not in the set.
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
}

impl Properties {
    /// What is `missing`, in words: of those in this set, only executions that go on for ever.
    pub fn tell_missing(self, missing: Self) -> String {
        let told = |what: &str, list: Self| match list {
            Properties(0) => String::new(),
            list => format!("; {what}: {list}"),
        };
        let without_end = told("executions without end not looked at", missing.and(self));
        without_end + &told("not looked at", missing.minus(self))
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
