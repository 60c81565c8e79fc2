//! The versions of frames.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A range of versions of all frames after Hello and Welcome. Two sides use the highest version
/// that both speak. So members can be upgraded one after the other.
///
/// ```
/// use grouplock_quorum::wire::Versions;
///
/// let (old, new) = (Versions { lowest: 2, highest: 3 }, Versions { lowest: 3, highest: 5 });
/// assert_eq!(old.common(new), Some(3));
/// assert_eq!(old.common(Versions { lowest: 4, highest: 5 }), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The oldest.
    pub lowest: u16,
    /// The newest.
    pub highest: u16,
}

impl Versions {
    /// The versions of this program. When frames change, `highest` grows, and the frames of the
    /// last version are kept as bytes in `tests/core/frames`.
    ///
    /// Version 2 had votes without leases. They cannot be counted together with leased votes.
    pub const OURS: Versions = Versions { lowest: 3, highest: 3 };

    /// The highest that both speak.
    pub fn common(self, other: Versions) -> Option<u16> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest.max(other.lowest)).then_some(highest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Versions { lowest, highest } = self;
        if lowest == highest { write!(f, "{lowest}") } else { write!(f, "{lowest} to {highest}") }
    }
}
