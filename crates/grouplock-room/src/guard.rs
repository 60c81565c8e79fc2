//! Guards: holdings as programs see them.

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
use crate::room::Room;
use crate::snapshot::HolderId;

/// Why a holding ended before its holder left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// The room was removed or replaced.
    #[error("the room was removed")]
    Removed,
    /// The room's shared state is corrupt.
    #[error("the room is corrupt")]
    Corrupt,
    /// The lease has expired, or will expire soon and cannot be renewed.
    #[error("the lease expired: {0}")]
    Expired(String),
    /// A user with the right to do so took it away.
    #[error("it was taken away: {0}")]
    Revoked(String),
}

/// The standing of a holding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The holder is inside.
    Held,
    /// The holder has left.
    Left,
    /// The holding ended before the holder left. Others may be inside.
    Lost(Loss),
}

/// The report of a holder that died inside. The resource that the room protects may be in an
/// inconsistent state.
///
/// In a directory the report goes to every holder that enters after the death, until one of them
/// [acknowledges](Guard::acknowledge) it. On servers it goes to all holders of the next phase;
/// holders that join the phase of the death may get it too. If a holder that got the report also
/// dies inside, its death is reported too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Recovered {
    /// The epoch of the phase in which the holder died.
    pub epoch: u64,
    /// Its session.
    pub session: String,
    /// Its process.
    pub pid: u32,
    /// Its command line, shortened; empty if unknown.
    pub command: String,
    /// When another process noticed the death.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::snapshot::form::moment"))]
    pub noticed: SystemTime,
}

impl Recovered {
    /// For backends.
    pub fn new(epoch: u64, session: impl Into<String>, pid: u32, noticed: SystemTime) -> Self {
        Recovered { epoch, session: session.into(), pid, command: String::new(), noticed }
    }
}

/// The holding that an open file keeps, see [`Guard::keep_by`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Its session.
    pub session: String,
    /// The epoch of its phase.
    pub epoch: u64,
    /// Its identifier in snapshots.
    pub holder: HolderId,
}

/// The function that runs when the last holder leaves.
pub(crate) type TearDown = Box<dyn FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + Send>;

/// A holding: the right to be inside a room. Dropping it leaves the room.
#[must_use = "dropping the guard leaves the room at once"]
pub struct Guard<'r> {
    room: Room,
    session: Box<str>,
    /// `None` after leaving.
    holding: Option<Box<dyn Holding>>,
    /// The mutex only makes the guard `Sync`.
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
        // Only methods that consume the guard take it.
        self.holding.as_deref().expect("a guard has a holding")
    }

    /// Runs the tear-down if it is due, and takes the holding out of the guard.
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
        // First: if this process dies during the tear-down, the room is not set up.
        holding.set_prepared(None)?;
        tear_down().map_err(RoomError::TearDown)
    }

    /// The session of this holding. If the holder is alone, its name.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The epoch of the phase. All holders of a phase have the same epoch, and it is larger than
    /// that of every earlier phase, also after deaths. Give it to the resource: if the resource
    /// refuses epochs smaller than the largest it has seen, a process that lost the room without
    /// knowing cannot change it.
    pub fn epoch(&self) -> u64 {
        self.holding().epoch()
    }

    /// The identifier of this holder in [snapshots](crate::Room::snapshot).
    pub fn holder(&self) -> HolderId {
        self.holding().holder()
    }

    /// The last death inside that nobody had [acknowledged](Guard::acknowledge) when this holder
    /// entered.
    pub fn recovered(&self) -> Option<Recovered> {
        self.holding().deaths().pop()
    }

    /// All deaths inside that nobody had [acknowledged](Guard::acknowledge) when this holder
    /// entered, the oldest first. The room remembers a limited number.
    pub fn deaths(&self) -> Vec<Recovered> {
        self.holding().deaths()
    }

    /// Acknowledges [`deaths`](Guard::deaths): their damage is repaired, and they are not reported
    /// again. Until then every entrant gets the report.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`] if the room reports deaths only once; otherwise the errors of the
    /// room.
    pub fn acknowledge(&self) -> Result<(), RoomError> {
        self.room.require(self.room.capabilities().acknowledge, "acknowledging deaths")?;
        self.holding().acknowledge()
    }

    /// Leaves and queues for another session in one step. No other request is admitted in between.
    /// The order is that of a new request. [`Entry::switch`](crate::Entry::switch) has more
    /// options.
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
    /// As [`Room::enter`], and [`RoomError::Unsupported`]. Also after an error the room has been
    /// left.
    pub fn switch(self, session: &str) -> Result<Self, RoomError> {
        let room = self.room.clone();
        room.request(session).switch(self)
    }

    /// Turns a holder that is alone into a holder of `session`, which others may join. It does not
    /// wait, and keeps the epoch.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; otherwise the errors of the room. After an error the room has
    /// been left.
    pub fn downgrade(mut self, session: &str) -> Result<Self, RoomError> {
        self.room.require(self.room.capabilities().set_up, "downgrading")?;
        self.holding().downgrade(session)?;
        self.session = session.into();
        Ok(self)
    }

    /// The session that the room is [set up](crate::Entry::set_up) for.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; otherwise the errors of the room.
    pub fn prepared(&self) -> Result<Option<String>, RoomError> {
        self.with_set_up()?.prepared()
    }

    /// The session that the room was set up for before, unless it was torn down.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; otherwise the errors of the room.
    pub fn previous(&self) -> Result<Option<String>, RoomError> {
        self.with_set_up()?.previous()
    }

    /// Records the session that the room is set up for. It is for holders that are alone and do the
    /// set-up without [`Entry::set_up`](crate::Entry::set_up). Record `None` before the set-up
    /// begins. Then the room is not set up if it fails.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; otherwise the errors of the room.
    pub fn set_prepared(&self, session: Option<&str>) -> Result<(), RoomError> {
        self.with_set_up()?.set_prepared(session)
    }

    /// Makes this holder alone if it is the only one inside, and returns whether it is.
    ///
    /// # Errors
    /// [`RoomError::Unsupported`]; otherwise the errors of the room.
    pub fn try_alone(&self) -> Result<bool, RoomError> {
        self.with_set_up()?.try_alone()
    }

    /// The holding, if the room supports set-up and tear-down.
    fn with_set_up(&self) -> Result<&dyn Holding, RoomError> {
        self.room.require(self.room.capabilities().set_up, "set-up and tear-down")?;
        Ok(self.holding())
    }

    /// The standing of the holding now.
    pub fn standing(&self) -> Standing {
        self.holding().watch().standing()
    }

    /// A watch of this holding for another thread. It outlives the guard.
    pub fn watch(&self) -> LossWatch {
        LossWatch(self.holding().watch())
    }

    /// The descriptor whose lock keeps a holding in a directory; `None` for rooms on servers.
    ///
    /// The holding lasts for as long as any process has the descriptor open. So a program that
    /// inherits it keeps the holding if this process dies. Leaving ends the holding at once, even
    /// if other processes have the descriptor.
    #[cfg(unix)]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.holding().descriptor()
    }

    /// Gives up the holding of a dead process. A child that was forked from that process calls it.
    /// Others can then enter, and get a report of the death, even if other processes have the
    /// [descriptor](Guard::descriptor). On servers it does nothing: the lease ends.
    pub fn abandon(&self) {
        self.holding().abandon();
    }

    /// Moves the holding to a file that another process has opened, for example the shell that
    /// called this program. The holding then lasts until the last process has closed that file, or
    /// until [`Room::leave_kept`]. Snapshots show `pid` as its process. Returns the identifier of
    /// the holder.
    ///
    /// The descriptor must be open for writing on the [file](Room::file) of this room, and must not
    /// keep a holding in it yet. Closing it without leaving counts as a death inside.
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
    /// [`RoomError::BadOption`] if the descriptor does not fit, [`RoomError::Unsupported`] for
    /// rooms on servers; otherwise the errors of the room. After an error the room has been left. A
    /// tear-down is not run.
    #[cfg(unix)]
    pub fn keep_by(mut self, descriptor: BorrowedFd<'_>, pid: u32) -> Result<HolderId, RoomError> {
        self.room.require(self.room.file().is_some(), KEPT)?;
        self.tear_down = Mutex::new(None);
        self.into_holding()?.keep_by(descriptor, pid)
    }

    /// Leaves, and reports a failure. Dropping the guard leaves without a report.
    ///
    /// # Errors
    /// [`RoomError::Lost`] if the holding had already ended. [`RoomError::TearDown`] if the
    /// tear-down failed; the room was left. [`RoomError::Stalled`] if the room does not move; then
    /// the holding is given up by force, and other processes see a death.
    pub fn leave(mut self) -> Result<(), RoomError> {
        let torn_down = self.run_tear_down();
        let left = self.holding.take().map_or(Ok(()), Holding::leave);
        torn_down.and(left)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // `drop` cannot report an error. `leave` can.
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

/// Reports the standing of a holding. [`Guard::watch`] makes it.
pub struct LossWatch(Box<dyn Watch>);

impl LossWatch {
    /// The standing now.
    pub fn standing(&self) -> Standing {
        self.0.standing()
    }

    /// Waits until the holder has left, or the holding is lost.
    pub fn wait(&self) -> Standing {
        self.0.wait(None)
    }

    /// As [`wait`](LossWatch::wait), but at most until `deadline`. Then it may return
    /// [`Standing::Held`].
    pub fn wait_until(&self, deadline: Instant) -> Standing {
        self.0.wait(Some(deadline))
    }

    /// The time at which the holding ends if the servers stay silent; `None` if it does not depend
    /// on time. For a lost holding: the time from which others may be inside. It may be in the
    /// past.
    pub fn valid_until(&self) -> Option<Instant> {
        self.0.valid_until()
    }

    /// Calls `callback` if the holding is lost, on a thread of its own. The thread ends with the
    /// holding.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn on_loss(self, callback: impl FnOnce(Loss) + Send + 'static) -> std::io::Result<()> {
        let watch = move || {
            if let Standing::Lost(loss) = self.0.wait(None) {
                callback(loss);
            }
        };
        // Not a thread of this crate: the callback may rely on signals.
        std::thread::Builder::new().name("grouplock-watch".to_owned()).spawn(watch).map(drop)
    }
}

impl fmt::Debug for LossWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LossWatch").field(&self.standing()).finish()
    }
}
