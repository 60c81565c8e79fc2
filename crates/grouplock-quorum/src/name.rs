//! The names of members and processes, and the home of a session.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A member of the cluster: its index in the [coterie](crate::Coterie), from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct MemberId(pub u16);

impl MemberId {
    /// Its index in lists of all members.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {}", self.0)
    }
}

/// A process that asks for a session. The number is never used again. Its maker must guarantee
/// that.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ProcessId(pub u64);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.0)
    }
}

/// The home of a session, out of `members`. All processes that want the session ask there, so that
/// they share a stage wherever they run.
///
/// It is chosen by highest random weight: the same on every machine and in every version, evenly
/// spread, and independent of the order of names.
///
/// ```
/// use grouplock_quorum::home;
///
/// assert_eq!(home("release", 7), home("release", 7));
/// assert!(home("release", 7).index() < 7);
/// ```
pub fn home(session: &str, members: u16) -> MemberId {
    let weight = weight(session);
    MemberId((0..members).max_by_key(|member| weight(*member)).unwrap_or(0))
}

/// All members in the order in which they serve a session: first its [`home`], then the member to
/// ask if the home cannot be reached, and so on.
///
/// ```
/// use grouplock_quorum::{home, homes};
///
/// let order = homes("release", 7);
/// assert_eq!((order.len(), order[0]), (7, home("release", 7)));
/// ```
pub fn homes(session: &str, members: u16) -> Vec<MemberId> {
    let weight = weight(session);
    let mut all: Vec<u16> = (0..members).collect();
    // If weights are equal, the last member is the home.
    all.sort_by_key(|member| std::cmp::Reverse((weight(*member), *member)));
    all.into_iter().map(MemberId).collect()
}

/// The weight of each member for a session.
fn weight(session: &str) -> impl Fn(u16) -> u64 {
    // FNV-1a, then the finalizer of splitmix64. The hash of `std` is random and may change.
    let name = session.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    move |member| {
        let mut x = name ^ u64::from(member).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}
