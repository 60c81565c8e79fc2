//! Being inside.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

#[cfg(unix)]
use crate::backend::KEPT;
use crate::backend::{Holding, Watch};
use crate::error::RoomError;
use crate::helper::OnThread;
use crate::room::Room;
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
/// In a directory every holder who enters after the death is told, until one of them
/// [acknowledges](Guard::acknowledge) it. Elsewhere the next phase is told, and those who join the phase in which it
/// happened. If a holder who was told also dies inside, its death is reported too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The epoch of the phase in which the holder died.
    pub epoch: u64,
    /// Its session.
    pub session: String,
    /// The process that died.
    pub pid: u32,
    /// Its command line, shortened; empty if it is not known.
    pub command: String,
    /// When it was noticed.
    pub noticed: SystemTime,
}

impl Recovered {
    /// For backends.
    pub fn new(epoch: u64, session: impl Into<String>, pid: u32, noticed: SystemTime) -> Self {
        Recovered { epoch, session: session.into(), pid, command: String::new(), noticed }
    }
}

/// A place that an open file keeps, see [`Guard::keep_by`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Its session.
    pub session: String,
    /// The epoch of its phase.
    pub epoch: u64,
    /// How snapshots call it.
    pub holder: HolderId,
}

/// What runs when the last holder leaves.
pub(crate) type TearDown = Box<dyn FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + Send>;

/// A place inside a room. Dropping it leaves.
#[must_use = "dropping the guard leaves the room at once"]
pub struct Guard<'r> {
    room: Room,
    session: Box<str>,
    /// `None` once it has been given back.
    holding: Option<Box<dyn Holding>>,
    /// In a mutex only to be shared between threads.
    tear_down: Mutex<Option<TearDown>>,
    borrowed: PhantomData<&'r Room>,
}

impl Guard<'_> {
    pub(crate) fn new(room: &Room, session: &str, holding: Box<dyn Holding>) -> Self {
        Guard {
            room: room.clone(),
            session: session.into(),
            holding: Some(holding),
            tear_down: Mutex::new(None),
            borrowed: PhantomData,
        }
    }

    pub(crate) fn with_tear_down(mut self, tear_down: Option<TearDown>) -> Self {
        self.tear_down = Mutex::new(tear_down);
        self
    }

    fn holding(&self) -> &dyn Holding {
        // It is taken only by what consumes the guard.
        self.holding.as_deref().expect("a guard has a holding")
    }

    /// Runs the tear-down if it is due, and gives the holding out of the guard's hands.
    pub(crate) fn into_holding(mut self) -> Result<Box<dyn Holding>, RoomError> {
        let torn_down = self.run_tear_down();
        let holding = self.holding.take();
        torn_down?;
        holding.ok_or(RoomError::Withdrawn)
    }

    fn run_tear_down(&mut self) -> Result<(), RoomError> {
        let slot = self.tear_down.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (Some(tear_down), Some(holding)) = (slot.take(), &self.holding) else { return Ok(()) };
        if !holding.try_alone()? {
            return Ok(());
        }
        // First: if we die from here on, the room is set up for nobody.
        holding.set_prepared(None)?;
        tear_down().map_err(RoomError::TearDown)
    }

    /// The session this is a holding of. Of one that is alone, its name.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The epoch of the phase: the same for all who are inside together, larger than that of every phase before,
    /// also after deaths. A resource that refuses an epoch smaller than the largest it has
    /// seen cannot be changed by someone who lost the room without knowing.
    pub fn epoch(&self) -> u64 {
        self.holding().epoch()
    }

    /// How [snapshots](crate::Room::snapshot) call this holder.
    pub fn holder(&self) -> HolderId {
        self.holding().holder()
    }

    /// The last death inside that was not [acknowledged](Guard::acknowledge) when this holder entered.
    pub fn recovered(&self) -> Option<Recovered> {
        self.holding().recovered()
    }

    /// All deaths inside that were not [acknowledged](Guard::acknowledge) when this holder entered, the oldest first, as
    /// far as the room remembers them.
    pub fn deaths(&self) -> Vec<Recovered> {
        self.holding().deaths()
    }

    /// What the dead of [`deaths`](Guard::deaths) left behind is repaired: nobody is told of them any more. Until then
    /// everyone is.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`] where deaths are told once; else as the room has reason to.
    pub fn acknowledge(&self) -> Result<(), RoomError> {
        if !self.room.capabilities().acknowledge {
            return Err(self.room.unsupported("acknowledging deaths"));
        }
        self.holding().acknowledge()
    }

    /// Leaves and queues for another session in one step: nobody comes in between, and nobody who waits is overtaken. For
    /// more than a session: [`Entry::switch`](crate::Entry::switch).
    ///
    /// ```
    /// # fn main() -> Result<(), grouplock_room::RoomError> {
    /// # let directory = std::env::temp_dir().join(format!("grouplock-doc-switch-{}", std::process::id()));
    /// # let directory = directory.as_path();
    /// # use grouplock_room::Room;
    /// let board = Room::open(directory, "board")?;
    /// let flashing = board.exclusive()?;
    /// let testing = flashing.switch("firmware 2")?;
    /// assert_eq!(testing.session(), "firmware 2");
    /// # drop(testing);
    /// # std::fs::remove_dir_all(directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Room::enter`], and [`RoomError::Unsupported`]. The room has been left in any case.
    pub fn switch(self, session: &str) -> Result<Self, RoomError> {
        let room = self.room.clone();
        room.request(session).switch(self)
    }

    /// From alone to a session that others may join, at once. The epoch stays.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; else as the room has reason to. The room has been left then.
    pub fn downgrade(mut self, session: &str) -> Result<Self, RoomError> {
        if !self.room.capabilities().set_up {
            return Err(self.room.unsupported("downgrading"));
        }
        self.holding().downgrade(session)?;
        self.session = session.into();
        Ok(self)
    }

    /// The session for which the room is [set up](crate::Entry::set_up).
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; else as the room has reason to.
    pub fn prepared(&self) -> Result<Option<String>, RoomError> {
        self.set_up_possible()?;
        self.holding().prepared()
    }

    /// The session for which the room was set up before, if nobody has torn that down.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; else as the room has reason to.
    pub fn previous(&self) -> Result<Option<String>, RoomError> {
        self.set_up_possible()?;
        self.holding().previous()
    }

    /// Remembers for which session the room is set up, for one who is alone and has done the set-up without
    /// [`Entry::set_up`](crate::Entry::set_up). Say `None` before it begins: then the room is set up for nobody if it fails.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; else as the room has reason to.
    pub fn set_prepared(&self, session: Option<&str>) -> Result<(), RoomError> {
        self.set_up_possible()?;
        self.holding().set_prepared(session)
    }

    /// If nobody else is inside, this holder is alone from now on, as if it had asked for that. Whether it is.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; else as the room has reason to.
    pub fn try_alone(&self) -> Result<bool, RoomError> {
        self.set_up_possible()?;
        self.holding().try_alone()
    }

    fn set_up_possible(&self) -> Result<(), RoomError> {
        if self.room.capabilities().set_up {
            Ok(())
        } else {
            Err(self.room.unsupported("set-up and tear-down"))
        }
    }

    /// How the holding stands now.
    pub fn standing(&self) -> Standing {
        self.holding().watch().standing()
    }

    /// Something to hand to another thread that tells how this holding stands, also after the guard is gone.
    pub fn watch(&self) -> LossWatch {
        LossWatch(self.holding().watch())
    }

    /// The descriptor whose lock keeps the place of a holder in a directory; `None` for rooms on servers.
    ///
    /// The place is kept for as long as any process has it open, so a program that is handed it cannot lose the place by the
    /// death of this process. Leaving ends the holding at once, whoever still has the descriptor.
    #[cfg(unix)]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.holding().descriptor()
    }

    /// Gives the place up for a holder that has died, in a child that was forked from it: others are let in and told of the
    /// death, whoever still has the [descriptor](Guard::descriptor). On servers it does nothing, since the lease ends.
    pub fn abandon(&self) {
        self.holding().abandon();
    }

    /// Hands the place to a file that somebody else has opened: a shell that called this program, say. From then on the place
    /// lasts until the last process has closed that file, or until [`Room::leave_kept`]. Snapshots show `pid` as its
    /// process; how they call the holder is returned.
    ///
    /// The descriptor must be open for writing on the [file](Room::file) of this room, and not keep a place in it yet. If it is
    /// closed without leaving, that counts as a death inside.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = std::env::temp_dir().join(format!("grouplock-doc-keep-{}", std::process::id()));
    /// # let directory = directory.as_path();
    /// # use grouplock_room::Room;
    /// use std::os::fd::AsFd;
    ///
    /// let room = Room::open(directory, "database")?;
    /// let file = std::fs::File::options().append(true).open(room.file().unwrap())?;
    /// room.enter("backup")?.keep_by(file.as_fd(), std::process::id())?;
    /// assert!(room.try_enter("migration").is_err_and(|e| e.is_conflict()));
    /// assert!(room.leave_kept(file.as_fd(), false)?);
    /// room.try_enter("migration")?.leave()?;
    /// # std::fs::remove_dir_all(directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError::BadOption`] if the descriptor is none of that kind, [`RoomError::Unsupported`] for rooms on servers; else
    /// as the room has reason to. The room has been left then. A tear-down is not run.
    #[cfg(unix)]
    pub fn keep_by(mut self, descriptor: BorrowedFd<'_>, pid: u32) -> Result<HolderId, RoomError> {
        if self.room.file().is_none() {
            return Err(self.room.unsupported(KEPT));
        }
        self.tear_down = Mutex::new(None);
        self.into_holding()?.keep_by(descriptor, pid)
    }

    /// Leaves, and tells if that failed. Dropping the guard does the same without telling.
    ///
    /// # Errors
    /// [`RoomError::Lost`] if the holding had ended before; [`RoomError::TearDown`] if that failed, in which case the room
    /// was left all the same; [`RoomError::Stalled`] if the room does not move, in
    /// which case the place is given up by force, and looks to others as if its holder had died.
    pub fn leave(mut self) -> Result<(), RoomError> {
        let torn_down = self.run_tear_down();
        let left = self.holding.take().map_or(Ok(()), Holding::leave);
        torn_down.and(left)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // There is nobody to tell; `leave` tells.
        _ = self.run_tear_down();
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
