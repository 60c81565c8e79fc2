//! What all members of a cluster must agree on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::coterie::{Coterie, CoterieError};
use crate::settings::Settings;

/// How quorums are made.
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
    /// The coterie of that many members.
    ///
    /// # Errors
    /// If there is none of this kind with so many.
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

/// Where a member is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Peer {
    /// `host:port`, for members and clients.
    pub address: String,
    /// What its certificate is for.
    pub name: String,
}

/// A cluster, as every member's configuration has to describe it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cluster {
    /// What it is called.
    pub name: String,
    /// Who belongs to it; the place in this list is the member's number.
    pub members: Vec<Peer>,
    /// How quorums are made.
    pub coterie: CoterieKind,
    /// What the protocol is told.
    pub settings: Settings,
    /// How far clocks may be apart.
    pub clock_tolerance: Duration,
}

impl Cluster {
    /// A digest of what must be the same everywhere: the name, how many members there are, the coterie, and the settings but
    /// `retry`. Addresses, names in certificates and the tolerance of clocks may differ, so that they can be changed at one member
    /// after the other. It keeps apart what was configured differently by mistake; it is no protection against malice,
    /// which is the certificates' business.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut same = self.clone();
        same.members.fill(Peer { address: String::new(), name: String::new() });
        same.settings.retry = Duration::ZERO;
        same.clock_tolerance = Duration::ZERO;
        // Nothing in it can fail to be encoded; were it so, nobody would get a welcome.
        let bytes = postcard::to_allocvec(&same).unwrap_or_default();
        let mut hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Fingerprint(hash ^ (hash >> 31))
    }
}

/// Of a [`Cluster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub u64);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
