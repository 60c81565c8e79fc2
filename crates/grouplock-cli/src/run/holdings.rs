//! By what the command is inside.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Loss, Recovered, RoomError, Standing};

use crate::outer::Outer;
use crate::waiting::Wish;

/// A place in a room.
pub(super) enum Seat {
    /// Of our own.
    Own(Guard<'static>),
    /// Of the `grouplock run` in which we run.
    Shared(Outer),
}

/// Our places, with what was wished, in the order of the arguments.
pub(super) struct Inside(pub(super) Vec<(Wish, Seat)>);

/// Waits for the loss of a place, and names its room; gives nothing once it was left.
pub(super) type Awaited = Box<dyn FnOnce() -> Option<(String, Loss)> + Send>;

/// How often to look whether the place of another is still held.
const LOOK: Duration = Duration::from_millis(500);

impl Seat {
    pub(super) fn guard(&self) -> Option<&Guard<'static>> {
        match self {
            Seat::Own(guard) => Some(guard),
            Seat::Shared(_) => None,
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        match self {
            Seat::Own(guard) => guard.epoch(),
            Seat::Shared(outer) => outer.epoch,
        }
    }

    pub(super) fn holder(&self) -> String {
        match self {
            Seat::Own(guard) => guard.holder().to_string(),
            Seat::Shared(outer) => outer.holder.clone(),
        }
    }

    /// Whether somebody died inside before.
    pub(super) fn recovered(&self) -> Option<Recovered> {
        self.guard().and_then(Guard::recovered)
    }

    fn loss(&self, room: String) -> Awaited {
        match self {
            Seat::Own(guard) => {
                let watch = guard.watch();
                Box::new(move || match watch.wait() {
                    Standing::Lost(loss) => Some((room, loss)),
                    Standing::Held | Standing::Left => None,
                })
            }
            Seat::Shared(outer) => {
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
            // To leave a room whose file was cut off would be a signal, unless it is known.
            Seat::Own(guard) => match guard.standing() {
                Standing::Lost(loss) => Err(loss.into()),
                Standing::Held | Standing::Left => guard.leave(),
            },
            Seat::Shared(outer) if outer.holds() => Ok(()),
            Seat::Shared(_) => Err(given_back().into()),
        }
    }
}

impl Inside {
    /// The places that are our own.
    pub(super) fn guards(&self) -> impl Iterator<Item = &Guard<'static>> {
        self.0.iter().filter_map(|(_, seat)| seat.guard())
    }

    /// The guard of the only room, if it is our own: what is set up and torn down is one room.
    pub(super) fn guard(&self) -> Option<&Guard<'static>> {
        self.guards().next()
    }

    /// What keeps the places for as long as somebody has it open. Those of another are open here already.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.guards().filter_map(Guard::descriptor)
    }

    pub(super) fn losses(&self) -> Vec<Awaited> {
        self.0.iter().map(|(wish, seat)| seat.loss(wish.room.clone())).collect()
    }

    /// When others may be let in, if that depends on time.
    pub(super) fn valid_until(&self) -> Option<Instant> {
        self.guards().filter_map(|guard| guard.watch().valid_until()).min()
    }

    /// Gives all places back. The first failure.
    pub(super) fn leave(self) -> Result<(), RoomError> {
        // All of them, whatever becomes of the first.
        let left: Vec<_> = self.0.into_iter().map(|(_, seat)| seat.leave()).collect();
        left.into_iter().collect()
    }
}

fn given_back() -> Loss {
    Loss::Revoked("the `grouplock run` around this one has left".to_owned())
}
