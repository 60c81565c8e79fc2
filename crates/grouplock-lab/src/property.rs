//! What is checked.

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
    /// If somebody is outside its remainder section, somebody can move. As every process may stop for good in
    /// its remainder section, this says too that nobody is left waiting when all others have stopped.
    DeadlockFreedom,
    /// Everyone who tries to enter gets in, if nobody stops elsewhere: looked for by
    /// [`starvation`](crate::starvation).
    StarvationFreedom,
    /// Of two conflicting requests, if one's doorway ended before the other's began, it is served first.
    Fcfs,
    /// Of two requests for one session, if one's doorway ended before the other's began and the other is inside,
    /// then the first can enter by its own steps.
    Fife,
    /// While nobody asks for another session, everyone who asks gets in, even if nobody leaves.
    ConcurrentOccupancy,
    /// While nobody asks for another session, everyone who asks gets in by its own steps.
    ConcurrentEntering,
    /// While nobody asks for another session, somebody who asks gets in by its own steps.
    GroupConcurrentEntering,
    /// While somebody asks who finished its doorway before anybody began to ask for another session, somebody of that
    /// session gets in by its own steps, and it gets in even if nobody leaves.
    StrongGroupConcurrentEntering,
    /// Everyone gets out by its own steps.
    BoundedExit,
    /// While some are leaving, one of them gets out by its own steps.
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
    pub const CLAIMABLE: [Property; 11] = [
        Property::MutualExclusion,
        Property::DeadlockFreedom,
        Property::Fcfs,
        Property::Fife,
        Property::ConcurrentOccupancy,
        Property::ConcurrentEntering,
        Property::GroupConcurrentEntering,
        Property::StrongGroupConcurrentEntering,
        Property::BoundedExit,
        Property::GroupBoundedExit,
        Property::BoundedRegisters,
    ];

    /// What `claims` says of it.
    pub fn claim(self, claims: &Claims) -> Claim {
        match self {
            Property::MutualExclusion => claims.mutual_exclusion,
            Property::DeadlockFreedom => claims.deadlock_freedom,
            Property::StarvationFreedom => claims.starvation_freedom,
            Property::Fcfs => claims.fcfs,
            Property::Fife => claims.fife,
            Property::ConcurrentOccupancy => claims.entering.concurrent_occupancy,
            Property::ConcurrentEntering => claims.entering.concurrent_entering,
            Property::GroupConcurrentEntering => claims.entering.group_concurrent_entering,
            Property::StrongGroupConcurrentEntering => {
                claims.entering.strong_group_concurrent_entering
            }
            Property::BoundedExit => claims.exit.bounded,
            Property::GroupBoundedExit => claims.exit.group_bounded,
            Property::BoundedRegisters => claims.bounded_registers,
            Property::DeadRead | Property::DeadPrivate | Property::NoPanic => Claim::Yes,
        }
    }

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Property::MutualExclusion => "mutual-exclusion",
            Property::DeadlockFreedom => "deadlock-freedom",
            Property::StarvationFreedom => "starvation-freedom",
            Property::Fcfs => "fcfs",
            Property::Fife => "fife",
            Property::ConcurrentOccupancy => "concurrent-occupancy",
            Property::ConcurrentEntering => "concurrent-entering",
            Property::GroupConcurrentEntering => "group-concurrent-entering",
            Property::StrongGroupConcurrentEntering => "strong-group-concurrent-entering",
            Property::BoundedExit => "bounded-exit",
            Property::GroupBoundedExit => "group-bounded-exit",
            Property::BoundedRegisters => "bounded-registers",
            Property::DeadRead => "dead-read",
            Property::DeadPrivate => "dead-private",
            Property::NoPanic => "no-panic",
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
    /// assert_eq!("bounded-exit".parse(), Ok(Property::BoundedExit));
    /// let error = "bounded-exut".parse::<Property>().unwrap_err();
    /// assert_eq!(error.to_string(), r#"no property is called "bounded-exut": is it "bounded-exit"?"#);
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
    pub(crate) const ORDER: [Property; 3] =
        [Property::Fcfs, Property::Fife, Property::StrongGroupConcurrentEntering];

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
    fn a_set_tells_each_of_its_properties_once() {
        let all: Properties = Property::CLAIMABLE.into_iter().chain(Property::ALWAYS).collect();
        let told: Vec<Property> = all.iter().collect();
        assert_eq!(told.iter().copied().collect::<Properties>(), all);
        assert!(told.iter().enumerate().all(|(i, p)| !told[..i].contains(p)), "{told:?}");
    }
}
