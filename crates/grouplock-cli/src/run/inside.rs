//! By what the command is inside.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Loss, Recovered, RoomError, Standing};

use crate::outer::Outer;

/// A place in the room.
pub(super) enum Inside {
    /// Of our own.
    Own(Guard<'static>),
    /// Of the `grouplock run` in which we run.
    Shared(Outer),
}

/// How often to look whether the place of another is still held.
const LOOK: Duration = Duration::from_millis(500);

impl Inside {
    pub(super) fn guard(&self) -> Option<&Guard<'static>> {
        match self {
            Inside::Own(guard) => Some(guard),
            Inside::Shared(_) => None,
        }
    }

    /// What keeps the place for as long as somebody has it open. That of another is open here already.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.guard().and_then(Guard::descriptor)
    }

    pub(super) fn epoch(&self) -> u64 {
        match self {
            Inside::Own(guard) => guard.epoch(),
            Inside::Shared(outer) => outer.epoch,
        }
    }

    pub(super) fn holder(&self) -> String {
        match self {
            Inside::Own(guard) => guard.holder().to_string(),
            Inside::Shared(outer) => outer.holder.clone(),
        }
    }

    /// Whether somebody died inside before.
    pub(super) fn recovered(&self) -> Option<Recovered> {
        self.guard().and_then(Guard::recovered)
    }

    /// Waits for the loss of the place; gives nothing once it was left.
    pub(super) fn loss(&self) -> Box<dyn FnOnce() -> Option<Loss> + Send> {
        match self {
            Inside::Own(guard) => {
                let watch = guard.watch();
                Box::new(move || match watch.wait() {
                    Standing::Lost(loss) => Some(loss),
                    Standing::Held | Standing::Left => None,
                })
            }
            Inside::Shared(outer) => {
                let outer = outer.clone();
                Box::new(move || {
                    while outer.holds() {
                        std::thread::sleep(LOOK);
                    }
                    Some(given_back())
                })
            }
        }
    }

    /// When others may be let in, if that depends on time.
    pub(super) fn valid_until(&self) -> Option<Instant> {
        self.guard().and_then(|guard| guard.watch().valid_until())
    }

    /// Gives the place back.
    pub(super) fn leave(self) -> Result<(), RoomError> {
        match self {
            Inside::Own(guard) => guard.leave(),
            Inside::Shared(outer) if outer.holds() => Ok(()),
            Inside::Shared(_) => Err(given_back().into()),
        }
    }
}

fn given_back() -> Loss {
    Loss::Revoked("the `grouplock run` around this one has left".to_owned())
}
