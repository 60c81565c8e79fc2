//! What members and processes are called, and where a session is at home.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A member of the cluster: its place in the [coterie](crate::Coterie), from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct MemberId(pub u16);

impl MemberId {
    /// Its place in lists of all members.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {}", self.0)
    }
}

/// A process that asks for a session. The number is never used again for another one: who made it up (a
/// member for its clients, say) sees to that.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ProcessId(pub u64);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.0)
    }
}

/// The member at which a session gathers, out of `members`: all who ask for the session ask there, so that
/// they share a stage wherever they run.
///
/// By highest random weight: the same on every machine and in every version, spread evenly, and
/// independent of the order in which names are made up.
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

/// All members in the order in which they stand in for each other as home of a session: first its [`home`], then who is to
/// be asked if that one cannot be reached, and so on.
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
    // The last of equals is the home.
    all.sort_by_key(|member| std::cmp::Reverse((weight(*member), *member)));
    all.into_iter().map(MemberId).collect()
}

/// How much a session prefers each member.
fn weight(session: &str) -> impl Fn(u16) -> u64 {
    // FNV-1a, then splitmix64's finalizer: what `std` hashes with is random and may change.
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
