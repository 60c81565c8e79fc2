//! What all members of a cluster must have in common, and the versions of frames.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::reason::Reason;
use crate::coterie::{Coterie, CoterieError};
use crate::settings::Settings;

/// The kind of coterie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CoterieKind {
    /// [`Coterie::plane`].
    Plane,
    /// [`Coterie::grid`].
    Grid,
    /// [`Coterie::majority`].
    Majority,
}

impl CoterieKind {
    /// The coterie with this number of members.
    ///
    /// # Errors
    /// If there is no such coterie of this kind.
    pub fn coterie(self, members: u16) -> Result<Coterie, CoterieError> {
        match self {
            CoterieKind::Plane => Coterie::plane(members),
            CoterieKind::Grid => Coterie::grid(members),
            CoterieKind::Majority => Coterie::majority(members),
        }
    }
}

impl fmt::Display for CoterieKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CoterieKind::Plane => "plane",
            CoterieKind::Grid => "grid",
            CoterieKind::Majority => "majority",
        })
    }
}

impl FromStr for CoterieKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "plane" => Ok(CoterieKind::Plane),
            "grid" => Ok(CoterieKind::Grid),
            "majority" => Ok(CoterieKind::Majority),
            _ => Err(()),
        }
    }
}

/// The address of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Peer {
    /// `host:port`, for members and clients.
    pub address: String,
    /// The name in its certificate.
    pub name: String,
}

/// A cluster, as the configuration of every member describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its members. The index is the number of the member.
    pub members: Vec<Peer>,
    /// The kind of coterie.
    pub coterie: CoterieKind,
    /// The settings of the protocol.
    pub settings: Settings,
    /// How far clocks may differ.
    pub clock_tolerance: Duration,
}

impl Cluster {
    /// A digest of what must be equal everywhere: the name, the number of members, the coterie, and
    /// the settings except `retry`. Addresses, names in certificates and the clock tolerance may
    /// differ, so that they can be changed at one member after the other. The digest detects
    /// mistakes in configurations. It is no protection against attacks; the certificates are.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut same = self.clone();
        same.members.fill(Peer { address: String::new(), name: String::new() });
        same.settings.retry = Duration::ZERO;
        same.clock_tolerance = Duration::ZERO;
        // Nothing in it can fail to be encoded. If it did, no member would accept another.
        let bytes = postcard::to_allocvec(&same).unwrap_or_default();
        let mut hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Fingerprint(hash ^ (hash >> 31))
    }

    pub(crate) fn check_clock(&self, apart: Duration) -> Result<(), Reason> {
        let tolerance = self.clock_tolerance;
        if apart > tolerance { Err(Reason::Clock { apart, tolerance }) } else { Ok(()) }
    }
}

/// The digest of a [`Cluster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub u64);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

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
