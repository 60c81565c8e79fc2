//! Being inside.

use std::fmt;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Instant, SystemTime};

use crate::backend::{Holding, Watch};
use crate::error::RoomError;
use crate::file;
use crate::helper::OnThread;
use crate::snapshot::HolderId;

/// Why a holding ended before its holder gave it back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// The room was removed or replaced.
    #[error("the room was removed")]
    Removed,
    /// The room's shared state is corrupt.
    #[error("the room is corrupt")]
    Corrupt,
    /// The lease has run out, or is about to and cannot be renewed.
    #[error("the lease ran out: {0}")]
    Expired(String),
    /// Someone with the right to do so took it away.
    #[error("it was taken away: {0}")]
    Revoked(String),
}

/// How a holding stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its holder is inside.
    Held,
    /// It was given back.
    Left,
    /// It ended before it was given back: others may be inside.
    Lost(Loss),
}

/// Someone died inside, so what the room protects may be in an inconsistent state.
///
/// It is told to everyone who enters the phase after the one in which it happened, and to those who join that phase
/// itself later. Whoever is told and dies as well, is told of again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The epoch of the phase in which the holder died.
    pub epoch: u64,
    /// Its session.
    pub session: String,
    /// The process that died.
    pub pid: u32,
    /// When it was noticed.
    pub noticed: SystemTime,
}

impl Recovered {
    /// For backends.
    pub fn new(epoch: u64, session: impl Into<String>, pid: u32, noticed: SystemTime) -> Self {
        Recovered { epoch, session: session.into(), pid, noticed }
    }
}

/// A place inside a room. Dropping it leaves.
#[must_use = "dropping the guard leaves the room at once"]
pub struct Guard<'r> {
    held: Held<'r>,
}

/// Two words: entering an idle room in a directory is a matter of nanoseconds, and so is moving what comes of it.
enum Held<'r> {
    Claimed(file::Claimed<'r>),
    Otherwise(Box<Otherwise<'r>>),
}

enum Otherwise<'r> {
    File(file::Holding<'r>),
    Other(Other),
}

/// A holding of another backend, and its session.
struct Other {
    session: Box<str>,
    holding: Box<dyn Holding>,
}

/// Whom to ask.
enum Source<'h> {
    File(file::Place<'h>),
    Other(&'h Other),
}

impl<'r> Guard<'r> {
    #[inline(always)]
    pub(crate) fn claimed(claimed: file::Claimed<'r>) -> Self {
        Guard { held: Held::Claimed(claimed) }
    }

    pub(crate) fn file(holding: file::Holding<'r>) -> Self {
        Guard { held: Held::Otherwise(Box::new(Otherwise::File(holding))) }
    }

    pub(crate) fn other(session: &str, holding: Box<dyn Holding>) -> Self {
        let other = Other { session: session.into(), holding };
        Guard { held: Held::Otherwise(Box::new(Otherwise::Other(other))) }
    }

    fn source(&self) -> Source<'_> {
        match &self.held {
            Held::Claimed(claimed) => Source::File(claimed.place()),
            Held::Otherwise(held) => match &**held {
                Otherwise::File(holding) => Source::File(holding.place()),
                Otherwise::Other(other) => Source::Other(other),
            },
        }
    }

    /// The session this is a holding of.
    pub fn session(&self) -> &str {
        match self.source() {
            Source::File(place) => place.session(),
            Source::Other(other) => &other.session,
        }
    }

    /// The epoch of the phase: the same for all who are inside together, larger than that of every phase before,
    /// also after deaths. A resource that refuses an epoch smaller than the largest it has
    /// seen cannot be changed by someone who lost the room without knowing.
    pub fn epoch(&self) -> u64 {
        match self.source() {
            Source::File(place) => place.epoch(),
            Source::Other(other) => other.holding.epoch(),
        }
    }

    /// How [snapshots](crate::Room::snapshot) call this holder.
    pub fn holder(&self) -> HolderId {
        match self.source() {
            Source::File(place) => place.holder(),
            Source::Other(other) => other.holding.holder(),
        }
    }

    /// Whether someone died inside shortly before, as a robust mutex would tell.
    pub fn recovered(&self) -> Option<Recovered> {
        match self.source() {
            Source::File(place) => place.recovered(),
            Source::Other(other) => other.holding.recovered(),
        }
    }

    /// How the holding stands now.
    pub fn standing(&self) -> Standing {
        match self.source() {
            Source::File(place) => place.standing(),
            Source::Other(other) => other.holding.watch().standing(),
        }
    }

    /// Something to hand to another thread that tells how this holding stands, also after the guard is gone.
    pub fn watch(&self) -> LossWatch {
        LossWatch(match self.source() {
            Source::File(place) => place.watch(),
            Source::Other(other) => other.holding.watch(),
        })
    }

    /// The descriptor whose lock keeps the place of a holder in a directory; `None` for rooms on servers.
    ///
    /// The place is kept for as long as any process has it open, so a program that is handed it cannot lose the place by the
    /// death of this process. Leaving ends the holding at once, whoever still has the descriptor.
    #[cfg(target_os = "linux")]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self.source() {
            Source::File(place) => Some(place.life().file.as_fd()),
            Source::Other(_) => None,
        }
    }

    /// Gives the place up for a holder that has died, in a child that was forked from it: others are let in and told of the
    /// death, whoever still has the [descriptor](Guard::descriptor). On servers it does nothing, since the lease ends.
    #[cfg(target_os = "linux")]
    pub fn abandon(&self) {
        if let Source::File(place) = self.source() {
            place.life().abandon();
        }
    }

    /// Leaves, and tells if that failed. Dropping the guard does the same without telling.
    ///
    /// # Errors
    /// [`RoomError::Lost`] if the holding had ended before; [`RoomError::Stalled`] if the room does not move, in
    /// which case the place is given up by force, and looks to others as if its holder had died.
    pub fn leave(self) -> Result<(), RoomError> {
        match self.held {
            Held::Claimed(claimed) => claimed.leave(),
            Held::Otherwise(held) => match *held {
                Otherwise::File(holding) => holding.leave(),
                Otherwise::Other(other) => other.holding.leave(),
            },
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("session", &self.session())
            .field("epoch", &self.epoch())
            .finish_non_exhaustive()
    }
}

/// Of a guard that is being given back.
pub(crate) struct Gone;

impl Watch for Gone {
    fn standing(&self) -> Standing {
        Standing::Left
    }

    fn wait(&self, _: Option<Instant>) -> Standing {
        Standing::Left
    }
}

/// Tells how a holding stands, from [`Guard::watch`].
pub struct LossWatch(Box<dyn Watch>);

impl LossWatch {
    /// How it stands now.
    pub fn standing(&self) -> Standing {
        self.0.standing()
    }

    /// Waits until the holding is given back or lost.
    pub fn wait(&self) -> Standing {
        self.0.wait(None)
    }

    /// The same, but at most until `deadline`: then the answer may be [`Standing::Held`].
    pub fn wait_until(&self, deadline: Instant) -> Standing {
        self.0.wait(Some(deadline))
    }

    /// The moment at which the holding ends if no server is heard from any more; `None` if it does not depend on
    /// time. Once it is lost: the moment from which on others may be inside, which may have passed.
    pub fn valid_until(&self) -> Option<Instant> {
        self.0.valid_until()
    }

    /// For tasks: completes when the holding is given back or lost. Waits on a thread of its own, which ends with
    /// the holding, not with the future.
    pub fn ended(self) -> impl Future<Output = Standing> + Send + 'static {
        OnThread::new(move || self.0.wait(None))
    }

    /// Calls `callback` if the holding gets lost, on a thread of its own that ends with the holding.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn on_loss(self, callback: impl FnOnce(Loss) + Send + 'static) -> std::io::Result<()> {
        let watch = move || {
            if let Standing::Lost(loss) = self.0.wait(None) {
                callback(loss);
            }
        };
        std::thread::Builder::new().name("grouplock-watch".to_owned()).spawn(watch).map(drop)
    }
}

impl fmt::Debug for LossWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LossWatch").field(&self.standing()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // What has three words is copied through memory, which takes longer than entering.
    #[test]
    fn a_guard_is_two_words() {
        assert_eq!(size_of::<Guard<'_>>(), 2 * size_of::<usize>());
    }
}
