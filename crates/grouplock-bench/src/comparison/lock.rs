//! What the harness needs from a lock.

use std::sync::{LockResult, PoisonError};

use crate::report::labels;

/// A lock under test.
///
/// A session is a number. What a lock without sessions does with it is its [`Kind`]. The compiler
/// compiles the harness once per lock and inlines the passage into its loop: there is no call
/// between them.
pub(crate) trait Lock: Send + Sync + 'static {
    /// No other lock has this name.
    const NAME: &'static str;
    const KIND: Kind;
    /// What a thread keeps for its passages: the node of a queue, if the caller provides it.
    type Local;

    fn new() -> Self;

    fn local() -> Self::Local;

    /// Enters `session`, calls `inside`, and leaves.
    fn pass<R>(&self, local: &mut Self::Local, session: u64, inside: impl FnOnce() -> R) -> R;
}

labels!(
    /// What a lock does with sessions.
    Kind {
        /// All requests for a session share it.
        Group = "sessions",
        /// Session 0 reads, and is shared. Every other session writes, and is not shared, not even
        /// by requests for the same one.
        ReadWrite = "read / write",
        /// No session is shared.
        Mutual = "mutex",
    }
);

impl Kind {
    /// Whether two holders of `session` may be inside together.
    pub(super) fn shares(self, session: u64) -> bool {
        match self {
            Kind::Group => true,
            Kind::ReadWrite => session == 0,
            Kind::Mutual => false,
        }
    }

    /// Whether requests for `one` and `other` exclude each other.
    pub(super) fn conflict(self, one: u64, other: u64) -> bool {
        one != other || !self.shares(one)
    }
}

/// Keeps `guard` during `inside`.
#[inline(always)]
pub(super) fn hold<G, R>(guard: G, inside: impl FnOnce() -> R) -> R {
    let result = inside();
    drop(guard);
    result
}

/// The guard, also of a poisoned lock: a panic inside is the harness's own, and ends the run.
#[inline(always)]
pub(super) fn held<G>(result: LockResult<G>) -> G {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Makes a [`Lock`] of a type: its name, its kind and its passage. The macro writes the calls into
/// the passage, so there is nothing between the harness and what it measures.
///
/// * `mutex |lock| GUARD`, `group |lock, session| GUARD`, `read_write |lock| GUARD, GUARD`: a guard
///   is kept inside.
/// * `Kind, |lock, session, inside| PASSAGE`: any passage. With `Local = NEW`, the thread's own
///   value is an argument too.
macro_rules! lock {
    ($(#[$doc:meta])* $name:ident($lock:ty) = $new:expr, $title:literal, mutex |$this:ident| $guard:expr) => {
        lock!($(#[$doc])* $name($lock) = $new, $title, Mutual, |$this, _, inside| hold($guard, inside));
    };
    ($(#[$doc:meta])* $name:ident($lock:ty) = $new:expr, $title:literal, group |$this:ident, $session:ident| $guard:expr) => {
        lock!($(#[$doc])* $name($lock) = $new, $title, Group, |$this, $session, inside| hold($guard, inside));
    };
    ($(#[$doc:meta])* $name:ident($lock:ty) = $new:expr, $title:literal, read_write |$this:ident| $read:expr, $write:expr) => {
        lock!($(#[$doc])* $name($lock) = $new, $title, ReadWrite,
            |$this, session, inside| if session == 0 { hold($read, inside) } else { hold($write, inside) });
    };
    ($(#[$doc:meta])* $name:ident($lock:ty) = $new:expr, $title:literal, $kind:ident,
        |$this:ident, $session:pat_param, $inside:ident| $pass:expr) => {
        lock!($(#[$doc])* $name($lock) = $new, $title, $kind, () = (), |$this, (), $session, $inside| $pass);
    };
    ($(#[$doc:meta])* $name:ident($lock:ty) = $new:expr, $title:literal, $kind:ident, $local:ty = $node:expr,
        |$this:ident, $own:pat_param, $session:pat_param, $inside:ident| $pass:expr) => {
        $(#[$doc])*
        pub(crate) struct $name($lock);

        impl Lock for $name {
            const NAME: &'static str = $title;
            const KIND: Kind = Kind::$kind;
            type Local = $local;

            fn new() -> Self {
                $name($new)
            }

            fn local() -> $local {
                $node
            }

            #[inline(always)]
            fn pass<R>(&self, $own: &mut $local, $session: u64, $inside: impl FnOnce() -> R) -> R {
                let $this = &self.0;
                $pass
            }
        }
    };
}
pub(super) use lock;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_shares_what_it_can() {
        let shared = |kind: Kind| [0, 1].map(|session| !kind.conflict(session, session));
        assert_eq!(shared(Kind::Group), [true, true]);
        assert_eq!(shared(Kind::ReadWrite), [true, false]);
        assert_eq!(shared(Kind::Mutual), [false, false]);
        assert!(Kind::ALL.iter().all(|kind| kind.conflict(0, 1)));
    }
}
