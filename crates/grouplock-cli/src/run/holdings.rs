//! The holdings of the command.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Loss, Recovered, RoomError, Standing};

use crate::entering::RoomRequest;
use crate::entering::nested::OuterHolding;

/// The holding of one room.
pub(super) enum Holding {
    /// Our own.
    Own(Guard<'static>),
    /// That of the `grouplock run` around this process.
    Outer(OuterHolding),
}

/// The holdings and their requests, in the order of the arguments.
pub(super) struct Holdings(pub(super) Vec<(RoomRequest, Holding)>);

/// Waits for the loss of a holding. Returns the room and the loss, or `None` after leaving.
pub(super) type LossWait = Box<dyn FnOnce() -> Option<(String, Loss)> + Send>;

/// The time between two checks of an outer holding.
const LOOK: Duration = Duration::from_millis(500);

impl Holding {
    pub(super) fn guard(&self) -> Option<&Guard<'static>> {
        match self {
            Holding::Own(guard) => Some(guard),
            Holding::Outer(_) => None,
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        match self {
            Holding::Own(guard) => guard.epoch(),
            Holding::Outer(outer) => outer.epoch,
        }
    }

    pub(super) fn holder(&self) -> String {
        match self {
            Holding::Own(guard) => guard.holder().to_string(),
            Holding::Outer(outer) => outer.holder.clone(),
        }
    }

    /// The last death inside, if it must be reported.
    pub(super) fn recovered(&self) -> Option<Recovered> {
        self.guard().and_then(Guard::recovered)
    }

    fn loss(&self, room: String) -> LossWait {
        match self {
            Holding::Own(guard) => {
                let watch = guard.watch();
                Box::new(move || match watch.wait() {
                    Standing::Lost(loss) => Some((room, loss)),
                    Standing::Held | Standing::Left => None,
                })
            }
            Holding::Outer(outer) => {
                let outer = outer.clone();
                Box::new(move || {
                    while outer.holds() {
                        std::thread::sleep(LOOK);
                    }
                    Some((room, given_back()))
                })
            }
        }
    }

    fn leave(self) -> Result<(), RoomError> {
        match self {
            // To leave a truncated room would raise SIGBUS, so check it first.
            Holding::Own(guard) => match guard.standing() {
                Standing::Lost(loss) => Err(loss.into()),
                Standing::Held | Standing::Left => guard.leave(),
            },
            Holding::Outer(outer) if outer.holds() => Ok(()),
            Holding::Outer(_) => Err(given_back().into()),
        }
    }
}

impl Holdings {
    /// The guards of our own holdings.
    pub(super) fn guards(&self) -> impl Iterator<Item = &Guard<'static>> {
        self.0.iter().filter_map(|(_, holding)| holding.guard())
    }

    /// The guard of the only room, if it is our own. Set-up and tear-down are for one room.
    pub(super) fn guard(&self) -> Option<&Guard<'static>> {
        self.guards().next()
    }

    /// The descriptors that keep our own holdings. Those of an outer run are inherited already.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.guards().filter_map(Guard::descriptor)
    }

    pub(super) fn losses(&self) -> Vec<LossWait> {
        self.0.iter().map(|(request, holding)| holding.loss(request.room.clone())).collect()
    }

    /// When others may enter, if that depends on time.
    pub(super) fn valid_until(&self) -> Option<Instant> {
        self.guards().filter_map(|guard| guard.watch().valid_until()).min()
    }

    /// Leaves all rooms. Returns the first failure.
    pub(super) fn leave(self) -> Result<(), RoomError> {
        // Leave all rooms, even if the first fails.
        let left: Vec<_> = self.0.into_iter().map(|(_, holding)| holding.leave()).collect();
        left.into_iter().collect()
    }
}

fn given_back() -> Loss {
    Loss::Revoked("the `grouplock run` around this one has left".to_owned())
}
