//! Quorums: which members a member asks for their votes.
//!
//! Member k asks the members of its quorum. Any two quorums have a common member, which votes for
//! one stage at a time. Mutual exclusion rests on nothing else. The size of quorums decides the
//! cost of a stage (3(q−1) messages), and how many members must be up.
//!
//! | kind | members | quorum | |
//! |---|---|---|---|
//! | [projective plane](Coterie::plane) | 3, 7, 13, 21, 31 | about √m | smallest possible |
//! | [folded](Coterie::folded_plane) | others up to 31 | at most that of the next plane | if the result is a coterie |
//! | [grid](Coterie::grid) | r·c | r + c − 1 | a row and a column |
//! | [majority](Coterie::majority) | any | ⌊m/2⌋ + 1 | simplest |

use std::collections::BTreeSet;

use thiserror::Error;

use crate::name::MemberId;

/// The members that one member asks.
pub type Quorum = BTreeSet<MemberId>;

/// Perfect difference sets: every non-zero remainder modulo the first number is the difference of
/// exactly one pair. So any two sets D + k modulo m have exactly one common element.
const PLANES: [(u16, &[u16]); 5] = [
    (3, &[0, 1]),
    (7, &[0, 1, 3]),
    (13, &[0, 1, 3, 9]),
    (21, &[0, 1, 4, 14, 16]),
    (31, &[0, 1, 3, 8, 12, 18]),
];

/// A quorum for every member. [`Coterie::new`] checks the quorums.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coterie {
    quorums: Vec<Quorum>,
}

/// Why some quorums are not a coterie.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CoterieError {
    /// There are no members.
    #[error("a coterie needs at least one member, and there is none")]
    NoMembers,
    /// More than [`Coterie::MOST`].
    #[error("{0} members are too many for a coterie: at most {most}", most = Coterie::MOST)]
    TooMany(usize),
    /// A quorum is empty.
    #[error("the quorum of {0} is empty: expected at least {0} itself")]
    EmptyQuorum(MemberId),
    /// A quorum names a member that does not exist.
    #[error("the quorum of {of} names {named}, but the members are 0 to {last}")]
    NoSuchMember {
        /// Whose quorum.
        of: MemberId,
        /// The member that it names.
        named: MemberId,
        /// The last member.
        last: u16,
    },
    /// A member is not in its own quorum. It must ask for its own vote like any other.
    #[error("the quorum of {0} does not contain {0} itself")]
    WithoutItself(MemberId),
    /// Two quorums without a common member: both could be inside at once.
    #[error("the quorums of {0} and {1} have no member in common")]
    Disjoint(MemberId, MemberId),
    /// A quorum contains another: it is larger than needed.
    #[error(
        "the quorum of {outer} contains all of the quorum of {inner} and more: {inner}'s would do"
    )]
    NotMinimal {
        /// The member with the smaller quorum.
        inner: MemberId,
        /// The member with the larger quorum.
        outer: MemberId,
    },
    /// There is no plane of that size, or none to fold.
    #[error("there is no projective plane with {0} members here: expected 3, 7, 13, 21 or 31")]
    NoPlane(u16),
    /// There is no rectangle of that size.
    #[error("{0} members make no grid: expected the product of two numbers from 2 on")]
    NoGrid(u16),
}

impl Coterie {
    /// The largest number of members.
    pub const MOST: usize = 1024;

    /// A coterie from the quorums of members 0, 1, 2, …
    ///
    /// # Errors
    /// If a quorum is empty, names an unknown member, or does not contain its owner; if two quorums
    /// have no common member; if one is a proper part of another.
    ///
    /// ```
    /// use grouplock_quorum::{Coterie, MemberId};
    ///
    /// let quorum = |members: [u16; 2]| members.map(MemberId).into();
    /// assert!(Coterie::new(vec![quorum([0, 1]), quorum([1, 2]), quorum([2, 0])]).is_ok());
    ///
    /// let error = Coterie::new([[0, 1], [1, 0], [2, 3], [3, 2]].map(quorum).into()).unwrap_err();
    /// assert_eq!(error.to_string(), "the quorums of member 0 and member 2 have no member in common");
    /// ```
    pub fn new(quorums: Vec<Quorum>) -> Result<Self, CoterieError> {
        if quorums.is_empty() {
            return Err(CoterieError::NoMembers);
        }
        if quorums.len() > Self::MOST {
            return Err(CoterieError::TooMany(quorums.len()));
        }
        let last = (quorums.len() - 1) as u16;
        for (of, quorum) in named(&quorums) {
            if quorum.is_empty() {
                return Err(CoterieError::EmptyQuorum(of));
            }
            if let Some(&named) = quorum.iter().find(|member| member.0 > last) {
                return Err(CoterieError::NoSuchMember { of, named, last });
            }
            if !quorum.contains(&of) {
                return Err(CoterieError::WithoutItself(of));
            }
        }
        for (a, s_a) in named(&quorums) {
            for (b, s_b) in named(&quorums) {
                if s_a.is_disjoint(s_b) {
                    return Err(CoterieError::Disjoint(a, b));
                }
                if s_a.len() < s_b.len() && s_a.is_subset(s_b) {
                    return Err(CoterieError::NotMinimal { inner: a, outer: b });
                }
            }
        }
        Ok(Coterie { quorums })
    }

    /// The lines of a finite projective plane: any two quorums have one common member.
    ///
    /// # Errors
    /// [`CoterieError::NoPlane`] unless `members` is 3, 7, 13, 21 or 31.
    pub fn plane(members: u16) -> Result<Self, CoterieError> {
        match PLANES.iter().find(|(size, _)| *size == members) {
            Some((size, set)) => Self::new(shifted(*size, set)),
            None => Err(CoterieError::NoPlane(members)),
        }
    }

    /// The next larger plane. Each surplus position is taken by a member that has another one.
    ///
    /// # Errors
    /// If there is no larger plane, or the result is not minimal.
    pub fn folded_plane(members: u16) -> Result<Self, CoterieError> {
        let plane = PLANES.iter().find(|(size, _)| *size >= members);
        let (size, set) = plane.ok_or(CoterieError::NoPlane(members))?;
        Self::new(fold(shifted(*size, set), members))
    }

    /// A rectangle, as square as possible. A quorum is a row and a column.
    ///
    /// # Errors
    /// [`CoterieError::NoGrid`] if `members` is not a product.
    pub fn grid(members: u16) -> Result<Self, CoterieError> {
        enough_room(members)?;
        let rows = (2..=members.isqrt()).rev().find(|rows| members.is_multiple_of(*rows));
        let columns = members / rows.ok_or(CoterieError::NoGrid(members))?;
        Self::new(cross(members, columns))
    }

    /// The smallest square that is large enough, folded.
    ///
    /// # Errors
    /// If the result is not minimal.
    pub fn folded_grid(members: u16) -> Result<Self, CoterieError> {
        enough_room(members)?;
        let side = (1..=members).find(|side| u32::from(*side).pow(2) >= u32::from(members));
        let side = side.ok_or(CoterieError::NoMembers)?;
        Self::new(fold(cross(side * side, side), members))
    }

    /// More than half of the members: itself and those after it.
    ///
    /// # Errors
    /// If there are no members, or too many.
    pub fn majority(members: u16) -> Result<Self, CoterieError> {
        enough_room(members)?;
        let set: Vec<u16> = (0..=members / 2).collect();
        Self::new(if members == 0 { Vec::new() } else { shifted(members, &set) })
    }

    /// The coterie with the smallest quorums, of all kinds above.
    ///
    /// # Errors
    /// If there are no members, or too many.
    ///
    /// ```
    /// use grouplock_quorum::Coterie;
    ///
    /// assert_eq!(Coterie::smallest(13)?.largest_quorum(), 4); // a plane
    /// assert_eq!(Coterie::smallest(2)?.largest_quorum(), 2);
    /// # Ok::<(), grouplock_quorum::CoterieError>(())
    /// ```
    pub fn smallest(members: u16) -> Result<Self, CoterieError> {
        let majority = Self::majority(members)?;
        let others = [Self::folded_plane, Self::grid, Self::folded_grid];
        let mut all: Vec<Coterie> = others.iter().filter_map(|make| make(members).ok()).collect();
        all.push(majority.clone());
        Ok(all.into_iter().min_by_key(Coterie::largest_quorum).unwrap_or(majority))
    }

    /// How many members there are.
    pub fn members(&self) -> u16 {
        self.quorums.len() as u16
    }

    /// The quorum of `member`; `None` if there is no such member.
    pub fn quorum(&self, member: MemberId) -> Option<&Quorum> {
        self.quorums.get(member.index())
    }

    pub(crate) fn all(&self) -> &[Quorum] {
        &self.quorums
    }

    /// A quorum of which every member meets a condition: that of `first` if it does, else another.
    pub(crate) fn quorum_in(
        &self,
        first: MemberId,
        has: impl Fn(MemberId) -> bool,
    ) -> Option<&Quorum> {
        let others = self.quorums.iter();
        let all = self.quorums.get(first.index()).into_iter().chain(others);
        all.into_iter().find(|quorum| quorum.iter().all(|member| has(*member)))
    }

    /// The size of the largest quorum: q.
    pub fn largest_quorum(&self) -> usize {
        self.quorums.iter().map(BTreeSet::len).max().unwrap_or(0)
    }
}

/// Checked first: building a grid of all 16-bit members would take minutes.
fn enough_room(members: u16) -> Result<(), CoterieError> {
    let members = usize::from(members);
    if members > Coterie::MOST { Err(CoterieError::TooMany(members)) } else { Ok(()) }
}

fn named(quorums: &[Quorum]) -> impl Iterator<Item = (MemberId, &Quorum)> {
    quorums.iter().enumerate().map(|(member, quorum)| (MemberId(member as u16), quorum))
}

/// `set` + k modulo `size`, for each k.
fn shifted(size: u16, set: &[u16]) -> Vec<Quorum> {
    (0..size).map(|k| set.iter().map(|x| MemberId((x + k) % size)).collect()).collect()
}

/// The row and the column of each position.
fn cross(places: u16, columns: u16) -> Vec<Quorum> {
    let in_cross = |a: u16, b: u16| a / columns == b / columns || a % columns == b % columns;
    (0..places).map(|a| (0..places).filter(|b| in_cross(a, *b)).map(MemberId).collect()).collect()
}

/// Replaces each position x by the member x modulo `members`. Common members stay common.
fn fold(quorums: Vec<Quorum>, members: u16) -> Vec<Quorum> {
    let folded = |quorum: Quorum| quorum.into_iter().map(|x| MemberId(x.0 % members)).collect();
    quorums.into_iter().take(members.into()).map(folded).collect()
}
