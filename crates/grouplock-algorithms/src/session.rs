//! The name of a session.

use core::fmt;
use core::num::NonZeroU64;

/// The session that a process requests: any number but zero.
///
/// In several algorithms zero in a register means that its process requests nothing.
///
/// ```
/// use grouplock_algorithms::Session;
///
/// assert_eq!(Session::new(7)?.get(), 7);
/// assert_eq!(Session::new(0).unwrap_err().to_string(),
///     "session 0 was requested, but sessions are numbered from 1: zero means \"no request\"");
/// # Ok::<(), grouplock_algorithms::EnterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Session(NonZeroU64);

impl Session {
    /// The session called `number`.
    ///
    /// # Errors
    /// [`EnterError::SessionZero`] if `number` is zero.
    pub const fn new(number: u64) -> Result<Self, EnterError> {
        match NonZeroU64::new(number) {
            Some(number) => Ok(Session(number)),
            None => Err(EnterError::SessionZero),
        }
    }

    /// The session's number.
    #[inline(always)]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl From<NonZeroU64> for Session {
    fn from(number: NonZeroU64) -> Self {
        Session(number)
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a process could not request to enter. Nothing has changed when this is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnterError {
    /// Zero is not a session.
    #[error("session 0 was requested, but sessions are numbered from 1: zero means \"no request\"")]
    SessionZero,
    /// The algorithm keeps the session in a part of a register, and this one does not fit.
    #[error("session {session} was requested, but this algorithm has room for 1 to {largest} only")]
    SessionTooLarge {
        /// The requested session.
        session: u64,
        /// The largest session that fits.
        largest: u64,
    },
    /// The process never left: the guard of an earlier passage was leaked, or the lock's own code
    /// panicked. It stays where it was until the lock is dropped.
    #[error("this process has not left its last passage: was the guard passed to mem::forget?")]
    StillInside,
    /// The lock and the process belong to different domains
    /// ([`Domain`](crate::dvir_taubenfeld_2::Domain)).
    #[error("this lock belongs to another domain than the process that tries to acquire it")]
    ForeignLock,
}

/// Why a lock could not be made, or a process could not join it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// An impossible number of processes was requested.
    #[error("a lock for {asked} processes was asked for, but this algorithm serves 1 to {most}")]
    Unsupported {
        /// The requested number.
        asked: usize,
        /// The largest number that works.
        most: usize,
    },
    /// All places are taken.
    #[error(
        "this lock was made for {processes} processes and all of them have joined: drop one first, \
         or make the lock larger"
    )]
    Full {
        /// The number of processes that the lock was made for.
        processes: usize,
    },
}
