//! What the harness asks of a lock.

use serde::Serialize;

/// A lock under test.
///
/// A session is a number. A lock that has no sessions makes of it what it can: see [`Kind`]. The harness is
/// compiled once per lock, with the passage inlined into its loop: nothing stands between them.
pub trait Lock: Send + Sync + 'static {
    /// The name, unlike all others.
    const NAME: &'static str;
    /// What it makes of sessions.
    const KIND: Kind;
    /// What a thread keeps for itself: the node of a queue, if it is the caller's to provide.
    type Local;

    /// A lock that nobody holds.
    fn new() -> Self;

    /// What a thread needs for its passages.
    fn local() -> Self::Local;

    /// Enters `session`, does what is to be done inside, and leaves.
    fn pass<R>(&self, local: &mut Self::Local, session: u64, inside: impl FnOnce() -> R) -> R;
}

/// What a lock makes of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Each session is shared by all who ask for it.
    Group,
    /// Session 0 is reading, and shared. Any other is writing, and shared by nobody: not even by those who ask for the
    /// same one.
    ReadWrite,
    /// No session is shared.
    Mutual,
}

impl Kind {
    /// Whether two who ask for `session` may be inside together.
    pub fn shares(self, session: u64) -> bool {
        match self {
            Kind::Group => true,
            Kind::ReadWrite => session == 0,
            Kind::Mutual => false,
        }
    }

    /// Whether one who asks for `one` and one who asks for `other` exclude each other.
    pub fn conflict(self, one: u64, other: u64) -> bool {
        one != other || !self.shares(one)
    }

    /// As it stands in tables.
    pub fn told(self) -> &'static str {
        match self {
            Kind::Group => "sessions",
            Kind::ReadWrite => "read / write",
            Kind::Mutual => "mutex",
        }
    }
}

/// Keeps `held` while `inside` is done.
#[inline(always)]
pub(super) fn hold<G, R>(held: G, inside: impl FnOnce() -> R) -> R {
    let result = inside();
    drop(held);
    result
}

/// A lock of type `$lock`: its name, what it makes of sessions, and its passage. The passage stands in the text of each lock, so that
/// nothing lies between the harness and the call it measures.
macro_rules! lock {
    ($(#[$doc:meta])* $name:ident($lock:ty) = $new:expr, $title:literal, $kind:ident,
        |$this:ident, $session:pat_param, $inside:ident| $pass:expr) => {
        lock!($(#[$doc])* $name($lock) = $new, $title, $kind, () = (), |$this, (), $session, $inside| $pass);
    };
    ($(#[$doc:meta])* $name:ident($lock:ty) = $new:expr, $title:literal, $kind:ident, $local:ty = $node:expr,
        |$this:ident, $own:pat_param, $session:pat_param, $inside:ident| $pass:expr) => {
        $(#[$doc])*
        pub struct $name($lock);

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
        assert!(
            [Kind::Group, Kind::ReadWrite, Kind::Mutual].iter().all(|kind| kind.conflict(0, 1))
        );
    }
}
